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
				       MPI_COMM_WORLD), MPI_SUCCESS);
		if (!rank)
			large_verify(buf[1]);
	}
	free(buf[0]);
	free(buf[1]);
	MPI_Type_free(&out);
	MPI_Type_free(&in);
}

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

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} parts[] = {
		{ "many", many }, { "large", large },
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
	return finish("corners");
}
