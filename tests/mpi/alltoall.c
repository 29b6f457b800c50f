/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MPI's all-to-all in all forms, every byte checked: what libweft-mpi takes over must be as the MPI has it.
 * Arguments name parts; without them all run that one process each can.
 */
#include <pthread.h>

#include "parts.h"

#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif
#if MPI_VERSION >= 4
#define INIT(f) MPI_##f##_init
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define INIT(f) MPIX_##f##_init
#endif

static void vector_round(int round, MPI_Comm comm)
{
	struct parts in, out;
	int in_place = round % 3 == 2;

	vector_make(&in, &out, round, 4, comm, in_place);
	if (in_place)
		MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, out.buf, out.counts, out.displs, MPI_INT,
			      comm);
	else
		MPI_Alltoallv(in.buf, in.counts, in.displs, MPI_INT, out.buf, out.counts, out.displs, MPI_FLOAT, comm);
	vector_check(&in, &out, round, 4, comm);
}

static void vector(void)
{
	for (int round = 0; round < 18; round++)
		vector_round(round, MPI_COMM_WORLD);
}

static void uniform_round(int slice, MPI_Comm comm, int in_place)
{
	int n, me;

	MPI_Comm_size(comm, &n);
	MPI_Comm_rank(comm, &me);
	unsigned char *in = malloc((size_t)n * slice + 1), *out = malloc((size_t)n * slice + 1);

	memset(out, 0, (size_t)n * slice);
	for (int i = 0; i < n; i++)
		fill((in_place ? out : in) + (size_t)i * slice, slice, seed_of(slice, me, i));
	out[(size_t)n * slice] = 0x55;
	if (in_place)
		MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, slice, MPI_BYTE, comm);
	else
		MPI_Alltoall(in, slice, MPI_BYTE, out, slice, MPI_CHAR, comm);
	for (int i = 0; i < n; i++)
		verify(out + (size_t)i * slice, slice, seed_of(slice, i, me));
	CHECK_EQ(out[(size_t)n * slice], 0x55);
	free(in);
	free(out);
}

static void uniform(void)
{
	static const int slices[] = { 0, 1, 100, 4095, 4096, 4097, 70000, 300000 };

	for (size_t i = 0; i < sizeof(slices) / sizeof(slices[0]); i++)
		for (int in_place = 0; in_place < 2; in_place++)
			uniform_round(slices[i], MPI_COMM_WORLD, in_place);
}

/* A column of doubles as seen from one row. */
static MPI_Datatype column(int rows, int cols)
{
	MPI_Datatype v, r;

	MPI_Type_vector(rows, 1, cols, MPI_DOUBLE, &v);
	MPI_Type_create_resized(v, 0, sizeof(double), &r);
	MPI_Type_commit(&r);
	MPI_Type_free(&v);
	return r;
}

/* The transpose of a matrix: columns go, and become rows. */
static void transpose(MPI_Comm comm)
{
	enum { ROWS = 700, PER = 3 };
	int n, me;

	MPI_Comm_size(comm, &n);
	MPI_Comm_rank(comm, &me);
	int cols = n * PER;
	double *a = malloc(sizeof(double) * ROWS * cols), *b = malloc(sizeof(double) * ROWS * cols);
	MPI_Datatype t = column(ROWS, cols), d;

	for (int i = 0; i < ROWS * cols; i++)
		a[i] = me * 1e6 + i;
	MPI_Type_dup(t, &d);
	MPI_Type_free(&t);
	MPI_Alltoall(a, PER, d, b, PER * ROWS, MPI_DOUBLE, comm);
	for (int i = 0; i < n; i++)
		for (int c = 0; c < PER; c++)
			for (int r = 0; r < ROWS; r++)
				CHECK(b[(i * PER + c) * ROWS + r] == i * 1e6 + r * cols + me * PER + c);
	/* and back, in place of what was sent: plain out, columns in */
	memset(a, 0, sizeof(double) * ROWS * cols);
	MPI_Alltoall(b, PER * ROWS, MPI_DOUBLE, a, PER, d, comm);
	for (int i = 0; i < ROWS * cols; i++)
		CHECK(a[i] == me * 1e6 + i);
	/* columns to columns, in place: each rank gets what the others had for it */
	MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, a, PER, d, comm);
	for (int i = 0; i < n; i++)
		for (int c = 0; c < PER; c++)
			for (int r = 0; r < ROWS; r++)
				CHECK(a[r * cols + i * PER + c] == i * 1e6 + r * cols + me * PER + c);
	MPI_Type_free(&d);
	free(a);
	free(b);
}

/* Types that look contiguous by their size and extent, and are not in order. */
static void swapped(MPI_Comm comm)
{
	int n, me, lengths[2] = { 1, 1 }, displs[2] = { 1, 0 };
	MPI_Datatype pair, run;

	MPI_Comm_size(comm, &n);
	MPI_Comm_rank(comm, &me);
	int *in = malloc(sizeof(int) * n * 4000), *out = malloc(sizeof(int) * n * 4000);
	MPI_Type_indexed(2, lengths, displs, MPI_INT, &pair);
	MPI_Type_contiguous(1000, pair, &run);
	MPI_Type_commit(&run);
	for (int i = 0; i < n * 4000; i++)
		in[i] = me * 1000000 + i;
	MPI_Alltoall(in, 2, run, out, 4000, MPI_INT, comm);
	for (int i = 0; i < n; i++)
		for (int k = 0; k < 4000; k++)
			CHECK_EQ(out[i * 4000 + k], i * 1000000 + me * 4000 + (k ^ 1));
	MPI_Type_free(&pair);
	MPI_Type_free(&run);
	free(in);
	free(out);
}

static void types(void)
{
	transpose(MPI_COMM_WORLD);
	swapped(MPI_COMM_WORLD);
}

/* MPI_Alltoallw with another type for each peer, buffers by absolute addresses, and freed types. */
struct w {
	int counts[2][MAX], displs[2][MAX];
	MPI_Datatype types[2][MAX];
	double *buf[2][MAX];
};

static void w_make(struct w *w, int round, MPI_Comm comm)
{
	int n, me;

	MPI_Comm_size(comm, &n);
	MPI_Comm_rank(comm, &me);
	for (int side = 0; side < 2; side++)
		for (int i = 0; i < n; i++) {
			int len = elements(round, side ? i : me, side ? me : i) % 5000,
			    step = (side ? i + me : 2 * i) % 3 + 1;
			MPI_Aint at;
			MPI_Datatype v;

			w->buf[side][i] = malloc((len + 1) * step * sizeof(double));
			memset(w->buf[side][i], 0, (len + 1) * step * sizeof(double));
			for (int k = 0; k < len && !side; k++)
				w->buf[0][i][k * step] = round * 1e8 + me * 1e6 + i * 1e4 + k;
			MPI_Get_address(w->buf[side][i], &at);
			MPI_Type_vector(len, 1, step, MPI_DOUBLE, &v);
			MPI_Type_create_hindexed(1, (int[]){ 1 }, &at, v, &w->types[side][i]);
			MPI_Type_commit(&w->types[side][i]);
			MPI_Type_free(&v);
			w->counts[side][i] = 1;
			w->displs[side][i] = 0;
		}
}

static void w_free_types(struct w *w, int n)
{
	for (int side = 0; side < 2; side++)
		for (int i = 0; i < n; i++)
			MPI_Type_free(&w->types[side][i]);
}

static void w_check(struct w *w, int round, MPI_Comm comm)
{
	int n, me;

	MPI_Comm_size(comm, &n);
	MPI_Comm_rank(comm, &me);
	for (int i = 0; i < n; i++) {
		int len = elements(round, i, me) % 5000, step = (i + me) % 3 + 1;

		for (int k = 0; k < len; k++) {
			CHECK(w->buf[1][i][k * step] == round * 1e8 + i * 1e6 + me * 1e4 + k);
			for (int x = 1; x < step; x++)
				CHECK(w->buf[1][i][k * step + x] == 0);
		}
		free(w->buf[0][i]);
		free(w->buf[1][i]);
	}
}

static void wform(void)
{
	struct w w;

	for (int round = 0; round < 6; round++) {
		w_make(&w, round, MPI_COMM_WORLD);
		MPI_Alltoallw(MPI_BOTTOM, w.counts[0], w.displs[0], w.types[0], MPI_BOTTOM, w.counts[1], w.displs[1],
			      w.types[1], MPI_COMM_WORLD);
		w_free_types(&w, size);
		w_check(&w, round, MPI_COMM_WORLD);
	}
}

/* Several at a time, among messages, completed by each of the functions; types are freed at once. */
static void wait_all(int how, int n, MPI_Request *r)
{
	int left = n, index, some, flag = 0, indices[MAX];

	switch (how % 5) {
	case 0:
		MPI_Waitall(n, r, MPI_STATUSES_IGNORE);
		break;
	case 1:
		for (; left > 0; left--) {
			MPI_Waitany(n, r, &index, MPI_STATUS_IGNORE);
			CHECK(index >= 0 && index < n && r[index] == MPI_REQUEST_NULL);
		}
		break;
	case 2:
		while (left > 0) {
			MPI_Waitsome(n, r, &some, indices, MPI_STATUSES_IGNORE);
			CHECK(some > 0);
			left -= some;
		}
		break;
	case 3:
		while (!flag)
			MPI_Testall(n, r, &flag, MPI_STATUSES_IGNORE);
		break;
	case 4:
		for (int i = n; i-- > 0;)
			MPI_Wait(&r[i], MPI_STATUS_IGNORE);
		break;
	}
	for (int i = 0; i < n; i++)
		CHECK(r[i] == MPI_REQUEST_NULL);
}

static void iform(void)
{
	enum { OPS = 4, LONG = 100000 };
	static char slice[2][MAX * 5000], far[2][LONG];

	for (int round = 0; round < 5; round++) {
		MPI_Request r[OPS + 3];
		struct parts in[OPS], out[OPS];
		struct w w;
		int next = (rank + 1) % size, before = (rank + size - 1) % size;

		MPI_Irecv(far[1], LONG, MPI_BYTE, before, 5, MPI_COMM_WORLD, &r[OPS + 2]);
		for (int i = 0; i < OPS - 1; i++) {
			vector_make(&in[i], &out[i], round * OPS + i, 4, MPI_COMM_WORLD, 0);
			MPI_Ialltoallv(in[i].buf, in[i].counts, in[i].displs, MPI_INT, out[i].buf, out[i].counts,
				       out[i].displs, MPI_INT, MPI_COMM_WORLD, &r[i]);
		}
		fill(far[0], LONG, round * 7 + rank);
		MPI_Isend(far[0], LONG, MPI_BYTE, next, 5, MPI_COMM_WORLD, &r[OPS + 1]);
		w_make(&w, round, MPI_COMM_WORLD);
		MPI_Ialltoallw(MPI_BOTTOM, w.counts[0], w.displs[0], w.types[0], MPI_BOTTOM, w.counts[1], w.displs[1],
			       w.types[1], MPI_COMM_WORLD, &r[OPS - 1]);
		w_free_types(&w, size);
		for (int i = 0; i < size; i++)
			fill(slice[0] + i * 5000, 5000, seed_of(round, rank, i));
		MPI_Ialltoall(slice[0], 5000, MPI_BYTE, slice[1], 5000, MPI_BYTE, MPI_COMM_WORLD, &r[OPS]);
		wait_all(round, OPS + 3, r);
		for (int i = 0; i < OPS - 1; i++)
			vector_check(&in[i], &out[i], round * OPS + i, 4, MPI_COMM_WORLD);
		w_check(&w, round, MPI_COMM_WORLD);
		for (int i = 0; i < size; i++)
			verify(slice[1] + i * 5000, 5000, seed_of(round, i, rank));
		verify(far[1], LONG, round * 7 + before);
	}
}

#ifdef INIT
/* How many regions the rank has registered for its peers, as the command that WEFT_COMMAND names says. */
static long registered(void)
{
	static char text[1 << 20], command[512], own[32];
	const char *weft = getenv("WEFT_COMMAND"), *at;
	size_t n;
	FILE *f;

	snprintf(command, sizeof(command), "LD_PRELOAD= '%s' top --once --json --filter %d", weft, (int)getpid());
	snprintf(own, sizeof(own), "\"pid\": %d,", (int)getpid());
	f = popen(command, "r");
	CHECK(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = 0;
	CHECK(pclose(f) == 0);
	at = strstr(text, own);
	at = at ? strstr(at, "\"exchange_registered\": ") : NULL;
	CHECK(at);
	return at ? atol(strchr(at, ':') + 1) : 0;
}

/* Requests that are started again and again, with other data each time; the last is short and so the MPI's own. What
 * peers put into, or get from, is registered by the first starts only. */
static void persistent(void)
{
	enum { SLICE = 6000, SHORT = 64 };
	static char in[MAX * SLICE], out[MAX * SLICE], both[MAX * SLICE], few[MAX * SHORT];
	MPI_Request r[4];
	struct parts vin, vout;
	long kept = 0;

	vector_make(&vin, &vout, 77, 4, MPI_COMM_WORLD, 0);
	INIT(Alltoall)(in, SLICE, MPI_BYTE, out, SLICE, MPI_BYTE, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]);
	INIT(Alltoallv)
	(vin.buf, vin.counts, vin.displs, MPI_INT, vout.buf, vout.counts, vout.displs, MPI_INT, MPI_COMM_WORLD,
	 MPI_INFO_NULL, &r[1]);
	INIT(Alltoall)(MPI_IN_PLACE, 0, MPI_BYTE, both, SLICE / 4, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &r[2]);
	INIT(Alltoall)(in, SHORT, MPI_BYTE, few, SHORT, MPI_BYTE, MPI_COMM_WORLD, MPI_INFO_NULL, &r[3]);
	for (int round = 0; round < 8; round++) {
		for (int i = 0; i < size; i++) {
			fill(in + i * SLICE, SLICE, seed_of(round, rank, i));
			fill(both + i * SLICE, SLICE, seed_of(round + 1, rank, i));
		}
		if (round % 2) {
			MPI_Startall(4, r);
		} else {
			for (int i = 0; i < 4; i++)
				MPI_Start(&r[i]);
		}
		MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
		for (int i = 0; i < size; i++) {
			CHECK(i > 3 || r[i] != MPI_REQUEST_NULL);
			verify(out + i * SLICE, SLICE, seed_of(round, i, rank));
			verify(both + i * SLICE, SLICE, seed_of(round + 1, i, rank));
			CHECK(rank ||
			      !memcmp(few + i * SHORT, out + i * SLICE, SHORT)); /* the beginning of what comes first */
		}
		if (round == 0 && getenv("WEFT_COMMAND"))
			kept = registered();
	}
	if (getenv("WEFT_COMMAND")) {
		CHECK(kept > 0);
		/* What others get in place is a copy, which is registered each time. */
		CHECK_EQ(registered() - kept, strcmp(getenv("FI_WEFT_ALLTOALL_ALGORITHM"), "get") ? 0 : 7 * (size - 1));
	}
	for (int i = 0; i < 4; i++) {
		MPI_Request_free(&r[i]);
		CHECK(r[i] == MPI_REQUEST_NULL);
	}
	vector_check(&vin, &vout, 77, 4, MPI_COMM_WORLD);
}
#else
static void persistent(void) {}
#endif

#if MPI_VERSION >= 4
/* Counts of MPI_Count: the same lengths, in place and with requests too. */
static void wide(void)
{
	struct parts in, out;
	MPI_Count counts[2][MAX];
	MPI_Aint displs[2][MAX];
	MPI_Request r;

	for (int round = 0; round < 3; round++) {
		vector_make(&in, &out, round, 4, MPI_COMM_WORLD, 0);
		for (int i = 0; i < size; i++) {
			counts[0][i] = in.counts[i];
			displs[0][i] = in.displs[i];
			counts[1][i] = out.counts[i];
			displs[1][i] = out.displs[i];
		}
		if (round == 0) {
			MPI_Alltoallv_c(in.buf, counts[0], displs[0], MPI_INT, out.buf, counts[1], displs[1], MPI_INT,
					MPI_COMM_WORLD);
		} else if (round == 1) {
			MPI_Ialltoallv_c(in.buf, counts[0], displs[0], MPI_INT, out.buf, counts[1], displs[1], MPI_INT,
					 MPI_COMM_WORLD, &r);
			MPI_Wait(&r, MPI_STATUS_IGNORE);
		} else {
			MPI_Alltoallv_init_c(in.buf, counts[0], displs[0], MPI_INT, out.buf, counts[1], displs[1],
					     MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
			memset(counts, 0xff, sizeof(counts));
			MPI_Start(&r);
			MPI_Wait(&r, MPI_STATUS_IGNORE);
			MPI_Request_free(&r);
		}
		vector_check(&in, &out, round, 4, MPI_COMM_WORLD);
	}
}
#else
static void wide(void) {}
#endif

/* Communicators that are made, split and freed, also while an operation is under way on them. */
static void comms(void)
{
	for (int round = 0; round < 6; round++) {
		MPI_Comm dup, half;
		struct parts in, out;
		MPI_Request r;

		MPI_Comm_dup(MPI_COMM_WORLD, &dup);
		vector_round(round, dup);
		MPI_Comm_split(dup, rank % 2, -rank, &half);
		uniform_round(9000, half, round % 2);
		vector_round(round, half);
		vector_make(&in, &out, round, 4, dup, 0);
		MPI_Ialltoallv(in.buf, in.counts, in.displs, MPI_INT, out.buf, out.counts, out.displs, MPI_INT, dup,
			       &r);
		MPI_Comm_free(&dup);
		MPI_Comm_free(&half);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		vector_check(&in, &out, round, 4, MPI_COMM_WORLD);
	}
}

/* The groups of an intercommunicator exchange; this is the MPI's. */
static void inter(void)
{
	MPI_Comm half, far;
	int n, other, low = rank % 2;
	long in[MAX], out[MAX];

	if (size < 2)
		return;
	MPI_Comm_split(MPI_COMM_WORLD, low, rank, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, !low, 9, &far);
	MPI_Comm_remote_size(far, &n);
	MPI_Comm_rank(half, &other);
	for (int i = 0; i < n; i++)
		in[i] = rank * 100 + i;
	MPI_Alltoall(in, 1, MPI_LONG, out, 1, MPI_LONG, far);
	for (int i = 0; i < n; i++)
		CHECK_EQ(out[i], (2 * i + !low) * 100 + other);
	MPI_Comm_free(&far);
	MPI_Comm_free(&half);
}

/* A message between two ranks of which one is in the collective already, and makes the MPI's progress there:
 * the other sends it, or receives it, before it comes. */
static void message_before(int round)
{
	enum { LONG = 8 << 20 };
	int peer = rank ^ 1, early = rank % 2 == round % 2, to_early = round / 2 % 2;
	char *buf = malloc(LONG);
	MPI_Request r = MPI_REQUEST_NULL;

	if (peer < size && early != to_early)
		fill(buf, LONG, round);
	if (peer < size && early && to_early)
		MPI_Irecv(buf, LONG, MPI_BYTE, peer, 3, MPI_COMM_WORLD, &r);
	else if (peer < size && early)
		MPI_Isend(buf, LONG, MPI_BYTE, peer, 3, MPI_COMM_WORLD, &r);
	else if (peer < size && to_early)
		MPI_Send(buf, LONG, MPI_BYTE, peer, 3, MPI_COMM_WORLD);
	else if (peer < size)
		MPI_Recv(buf, LONG, MPI_BYTE, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	uniform_round(5000, MPI_COMM_WORLD, 0);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	if (peer < size && early == to_early)
		verify(buf, LONG, round);
	free(buf);
}

/* An operation that goes on while those that have begun it wait in the MPI for what has completed it. */
static void message_between(int round)
{
	struct parts in, out;
	MPI_Request r;
	int got = round;

	vector_make(&in, &out, round, 4, MPI_COMM_WORLD, 0);
	MPI_Ialltoallv(in.buf, in.counts, in.displs, MPI_INT, out.buf, out.counts, out.displs, MPI_INT, MPI_COMM_WORLD,
		       &r);
	if (rank == round % size) {
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		for (int i = 0; i < size; i++)
			if (i != rank)
				MPI_Send(&got, 1, MPI_INT, i, 4, MPI_COMM_WORLD);
	} else {
		MPI_Recv(&got, 1, MPI_INT, round % size, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		CHECK_EQ(got, round);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
	}
	vector_check(&in, &out, round, 4, MPI_COMM_WORLD);
}

static void older(void)
{
	for (int round = 0; round < 4; round++) {
		message_before(round);
		message_between(round);
	}
}

static void *thread(void *arg)
{
	MPI_Comm comm = *(MPI_Comm *)arg, sub;

	for (int round = 0; round < 8; round++) {
		struct parts in, out;
		MPI_Request r;

		vector_round(round, comm);
		uniform_round(4096 + round * 999, comm, round % 2);
		vector_make(&in, &out, round, 4, comm, 0);
		MPI_Ialltoallv(in.buf, in.counts, in.displs, MPI_INT, out.buf, out.counts, out.displs, MPI_INT, comm,
			       &r);
		if (round == 4) {
			MPI_Comm_dup(comm, &sub);
			vector_round(round, sub);
			MPI_Comm_free(&sub);
		}
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		vector_check(&in, &out, round, 4, comm);
	}
	return NULL;
}

/* Threads that use communicators of the same members, in no common order. */
static void threads(void)
{
	enum { THREADS = 3 };
	MPI_Comm comms[THREADS];
	pthread_t ids[THREADS];
	int level;

	MPI_Query_thread(&level);
	if (level < MPI_THREAD_MULTIPLE)
		return;
	for (int i = 0; i < THREADS; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&ids[i], NULL, thread, &comms[(i + rank) % THREADS]));
	for (int i = 0; i < THREADS; i++)
		pthread_join(ids[i], NULL);
	for (int i = 0; i < THREADS; i++)
		MPI_Comm_free(&comms[i]);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} parts[] = {
		{ "vector", vector }, { "uniform", uniform },	    { "types", types },	    { "wform", wform },
		{ "iform", iform },   { "persistent", persistent }, { "wide", wide },	    { "comms", comms },
		{ "inter", inter },   { "older", older },	    { "threads", threads },
	};
	int level;

	level = argc > 1 && !strcmp(argv[1], "threads") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
	MPI_Init_thread(&argc, &argv, level, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		int wanted = argc < 2;

		for (int a = 1; a < argc; a++)
			wanted |= !strcmp(argv[a], parts[i].name);
		if (wanted) {
			parts[i].run();
			done(parts[i].name);
		}
	}
	return conclude("alltoall");
}
