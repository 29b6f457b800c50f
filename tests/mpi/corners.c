/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of MPI's all-to-all that are legal and rare, under libweft-mpi. Arguments name parts; without them all run. */
#include "check.h"

#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif
#if MPI_VERSION >= 4
#define INIT(f) MPI_##f##_init
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define INIT(f) MPIX_##f##_init
#endif

enum { MAX = 64 };

/* One element of more than 2 GiB from the last rank to the first: a block that is sent again and again with a tail,
 * received as two halves with a gap. */
enum { BLOCK = 1 << 17, BLOCKS = 1 << 11, TAIL = 2, HALF = BLOCK / 2 * BLOCKS + TAIL / 2, GAP = 2 };

static MPI_Datatype large_out(void)
{
	MPI_Datatype block, parts[2] = { MPI_DATATYPE_NULL, MPI_DOUBLE }, type;
	MPI_Aint displs[2] = { 0, BLOCK * sizeof(double) };

	MPI_Type_contiguous(BLOCK, MPI_DOUBLE, &block);
	MPI_Type_create_hvector(BLOCKS, 1, 0, block, &parts[0]);
	MPI_Type_create_struct(2, (int[]){ 1, TAIL }, displs, parts, &type);
	MPI_Type_commit(&type);
	MPI_Type_free(&block);
	MPI_Type_free(&parts[0]);
	return type;
}

static MPI_Datatype large_in(void)
{
	MPI_Datatype type;

	MPI_Type_vector(2, HALF, HALF + GAP, MPI_DOUBLE, &type);
	MPI_Type_commit(&type);
	return type;
}

static void large_verify(const double *in)
{
	for (long i = 0; i < 2L * HALF; i++) {
		double want = i < (long)BLOCK * BLOCKS ? i % BLOCK : BLOCK + i % BLOCK;
		long at = i < HALF ? i : i + GAP;

		if (in[at] != want) {
			fprintf(stderr, "element %ld of %ld is %g, want %g\n", i, 2L * HALF, in[at], want);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	for (int i = 0; i < GAP; i++)
		CHECK(in[HALF + i] == -1);
}

/* MiB of memory that can be had. */
static long available(void)
{
	FILE *f = fopen("/proc/meminfo", "r");
	char line[128];
	long kib = 0;

	while (f && fgets(line, sizeof(line), f) && sscanf(line, "MemAvailable: %ld", &kib) != 1)
		;
	if (f)
		fclose(f);
	return kib >> 10;
}

/* Whether there is room for the buffer, and what each side packs. */
static int large_fits(void)
{
	enum { NEED = 8 << 10 };
	long mib = available();

	MPI_Bcast(&mib, 1, MPI_LONG, 0, MPI_COMM_WORLD);
	if (mib < NEED && !rank)
		printf("skipped large: it needs %d MiB of memory, %ld are available\n", NEED, mib);
	return mib >= NEED;
}

static void large(void)
{
	int counts[2][MAX] = { 0 }, displs[MAX] = { 0 };
	MPI_Datatype out = large_out(), in = large_in(), types[2][MAX];
	double *buf[2] = { NULL, NULL };

	if (large_fits()) {
		for (int i = 0; i < size; i++) {
			types[0][i] = out;
			types[1][i] = in;
		}
		if (rank == size - 1) {
			buf[0] = malloc((BLOCK + TAIL) * sizeof(double));
			for (int i = 0; i < BLOCK + TAIL; i++)
				buf[0][i] = i;
			counts[0][0] = 1;
		}
		if (!rank) {
			buf[1] = malloc((2L * HALF + GAP) * sizeof(double));
			CHECK(buf[1]);
			for (int i = 0; i < GAP; i++)
				buf[1][HALF + i] = -1;
			counts[1][size - 1] = 1;
		}
		CHECK_EQ(MPI_Alltoallw(buf[0], counts[0], displs, types[0], buf[1], counts[1], displs, types[1],
				       MPI_COMM_WORLD),
			 MPI_SUCCESS);
		if (!rank)
			large_verify(buf[1]);
	}
	free(buf[0]);
	free(buf[1]);
	MPI_Type_free(&out);
	MPI_Type_free(&in);
}

/* Each rank sends to the next and to no other, with no type for the others. The last names types for all. */
static void nulls(void)
{
	enum { N = 5000 };
	int counts[2][MAX] = { 0 }, displs[MAX] = { 0 }, next = (rank + 1) % size, before = (rank + size - 1) % size;
	MPI_Datatype types[2][MAX];
	static char in[N], out[N];
	MPI_Request r;

	counts[0][next] = counts[1][before] = N;
	for (int side = 0; side < 2; side++)
		for (int i = 0; i < size; i++)
			types[side][i] = counts[side][i] || rank == size - 1 ? MPI_BYTE : MPI_DATATYPE_NULL;
	for (int form = 0; form < 3; form++) {
		fill(in, N, form * MAX + rank);
		if (form == 0) {
			MPI_Alltoallw(in, counts[0], displs, types[0], out, counts[1], displs, types[1],
				      MPI_COMM_WORLD);
		} else if (form == 1) {
			MPI_Ialltoallw(in, counts[0], displs, types[0], out, counts[1], displs, types[1],
				       MPI_COMM_WORLD, &r);
			MPI_Wait(&r, MPI_STATUS_IGNORE);
		} else {
#ifdef INIT
			INIT(Alltoallw)
			(in, counts[0], displs, types[0], out, counts[1], displs, types[1], MPI_COMM_WORLD,
			 MPI_INFO_NULL, &r);
			MPI_Start(&r);
			MPI_Wait(&r, MPI_STATUS_IGNORE);
			MPI_Request_free(&r);
#else
			break;
#endif
		}
		verify(out, N, form * MAX + before);
	}
}

#if MPI_VERSION >= 4
/* Types that are made with long counts, plain ones and others, also in one that is made of them. */
static void made_wide(void)
{
	enum { RUN = 1500 };
	int ones[MAX], zeros[MAX] = { 0 }, runs[MAX], displs[MAX];
	MPI_Datatype run, pair, column;
	int *in = malloc(sizeof(int) * size * 2 * RUN), *out = malloc(sizeof(int) * size * 2 * RUN);

	MPI_Type_contiguous_c(RUN, MPI_INT, &run);
	MPI_Type_contiguous(2, run, &pair);
	MPI_Type_vector_c(RUN, 1, 2, MPI_INT, &column);
	MPI_Type_commit(&run);
	MPI_Type_commit(&pair);
	MPI_Type_commit(&column);
	for (int i = 0; i < size; i++) {
		ones[i] = 1;
		runs[i] = RUN;
		displs[i] = i * RUN;
	}
	for (int i = 0; i < size * 2 * RUN; i++)
		in[i] = rank * 1000000 + i;
	MPI_Alltoall(in, 1, pair, out, 2, run, MPI_COMM_WORLD);
	for (int i = 0; i < size * 2 * RUN; i++)
		CHECK_EQ(out[i], i / (2 * RUN) * 1000000 + rank * 2 * RUN + i % (2 * RUN));
	MPI_Alltoall(in, 1, run, out, RUN, MPI_INT, MPI_COMM_WORLD);
	for (int i = 0; i < size * RUN; i++)
		CHECK_EQ(out[i], i / RUN * 1000000 + rank * RUN + i % RUN);
	/* every second element of the first row to each */
	MPI_Alltoallv(in, ones, zeros, column, out, runs, displs, MPI_INT, MPI_COMM_WORLD);
	for (int i = 0; i < size * RUN; i++)
		CHECK_EQ(out[i], i / RUN * 1000000 + 2 * (i % RUN));
	MPI_Type_free(&run);
	MPI_Type_free(&pair);
	MPI_Type_free(&column);
	free(in);
	free(out);
}
#else
static void made_wide(void) {}
#endif

#ifdef INIT
/* More requests at a time than there are tags that every MPI has. The last works as the first. */
static void many(void)
{
	enum { REQUESTS = 40000, SLICE = 4096 };
	static MPI_Request r[REQUESTS];
	static char in[MAX * SLICE], out[MAX * SLICE];

	for (int i = 0; i < REQUESTS; i++)
		INIT(Alltoall)(in, SLICE, MPI_BYTE, out, SLICE, MPI_BYTE, MPI_COMM_WORLD, MPI_INFO_NULL, &r[i]);
	for (int i = 0; i < REQUESTS; i += REQUESTS - 1) {
		for (int to = 0; to < size; to++)
			fill(in + to * SLICE, SLICE, i + rank * MAX + to);
		MPI_Start(&r[i]);
		MPI_Wait(&r[i], MPI_STATUS_IGNORE);
		for (int from = 0; from < size; from++)
			verify(out + from * SLICE, SLICE, i + from * MAX + rank);
	}
	for (int i = REQUESTS; i-- > 0;)
		MPI_Request_free(&r[i]);
}
#else
static void many(void) {}
#endif

/* As many operations as a communicator has under way at a time, and it is freed. The last rank begins them later. */
static void crowd(void)
{
	enum { OPS = 1024 };
	static int in[OPS][MAX], out[OPS][MAX];
	static MPI_Request r[OPS];
	int ones[MAX], displs[MAX];
	MPI_Comm comm;

	for (int i = 0; i < size; i++) {
		ones[i] = 1;
		displs[i] = i;
	}
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Alltoallv(in[0], ones, displs, MPI_INT, out[0], ones, displs, MPI_INT, comm);
	if (rank == size - 1)
		usleep(300000);
	for (int op = 0; op < OPS; op++) {
		for (int i = 0; i < size; i++)
			in[op][i] = op * 10000 + rank * 100 + i;
		MPI_Ialltoallv(in[op], ones, displs, MPI_INT, out[op], ones, displs, MPI_INT, comm, &r[op]);
	}
	MPI_Comm_free(&comm);
	MPI_Waitall(OPS, r, MPI_STATUSES_IGNORE);
	for (int op = 0; op < OPS; op++)
		for (int i = 0; i < size; i++)
			CHECK_EQ(out[op][i], op * 10000 + i * 100 + rank);
}

#ifdef INIT
static MPI_Request ends_late;

static int end_late(MPI_Comm comm, int key, void *value, void *extra)
{
	(void)comm;
	(void)key;
	(void)value;
	(void)extra;
	CHECK_EQ(MPI_Request_free(&ends_late), MPI_SUCCESS);
	CHECK(ends_late == MPI_REQUEST_NULL);
	return MPI_SUCCESS;
}

/* A request, of a type of the program's, that is freed in MPI_Finalize, by an attribute that is older than the first
 * all-to-all; and one that is never freed. */
static void late(void)
{
	static int in[MAX * 2], out[MAX];
	int ones[MAX], out_displs[MAX], in_displs[MAX], key;
	MPI_Datatype pair;
	MPI_Request never;

	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_late, &key, NULL);
	MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
	MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &pair);
	MPI_Type_commit(&pair);
	for (int i = 0; i < size; i++) {
		ones[i] = 1;
		in_displs[i] = out_displs[i] = i;
		in[2 * i] = rank * MAX + i;
	}
	for (int i = 0; i < 2; i++)
		INIT(Alltoallv)
	(in, ones, in_displs, pair, out, ones, out_displs, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL,
	 i ? &ends_late : &never);
	MPI_Type_free(&pair);
	MPI_Start(&ends_late);
	MPI_Wait(&ends_late, MPI_STATUS_IGNORE);
	for (int i = 0; i < size; i++)
		CHECK_EQ(out[i], i * MAX + rank);
}
#else
static void late(void) {}
#endif

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} parts[] = {
		{ "late", late },	    { "crowd", crowd }, { "nulls", nulls },
		{ "made_wide", made_wide }, { "many", many },	{ "large", large },
	};

	start(&argc, &argv);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		int wanted = argc < 2;

		for (int a = 1; a < argc; a++)
			wanted |= !strcmp(argv[a], parts[i].name);
		if (wanted) {
			parts[i].run();
			done(parts[i].name);
		}
	}
	return conclude("corners");
}
