/* SPDX-License-Identifier: BSD-2-Clause */
/* Point to point: sizes, modes, wildcards, order, self, many outstanding, persistent requests. */
#include "check.h"

static int right, left;

static void test_sizes(void)
{
	static const int sizes[] = {
		0,    1,    7,	  8,	24,   25,    63,    64,	   65,	    100,	   128,	    1000,    4095,
		4096, 4097, 8191, 8192, 8193, 65535, 65536, 65537, 1 << 20, (1 << 20) + 3, 5000000, 64 << 20
	};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		int n = sizes[i];
		char *out = malloc((size_t)n + 1), *in = malloc((size_t)n + 1);
		MPI_Request req;
		MPI_Status st;

		CHECK(out && in);
		fill(out, (size_t)n, (uint64_t)rank * 1000 + i);
		in[n] = 0x5a;
		MPI_Irecv(in, n, MPI_BYTE, left, (int)i, MPI_COMM_WORLD, &req);
		MPI_Send(out, n, MPI_BYTE, right, (int)i, MPI_COMM_WORLD);
		MPI_Wait(&req, &st);
		CHECK_EQ(st.MPI_SOURCE, left);
		CHECK_EQ(st.MPI_TAG, i);
		CHECK_EQ(got_bytes(&st), n);
		verify(in, (size_t)n, (uint64_t)left * 1000 + i);
		CHECK_EQ(in[n], 0x5a);
		free(out);
		free(in);
	}
	done("sizes");
}

/* The same message through each mode of send. */
static void test_modes(void)
{
	enum { N = 50000 };
	char *buf = malloc(4 * (N + MPI_BSEND_OVERHEAD)), *out = malloc(N), *in = malloc(N);
	void *back;
	int back_size;

	CHECK(buf && out && in);
	MPI_Buffer_attach(buf, 4 * (N + MPI_BSEND_OVERHEAD));
	for (int mode = 0; mode < 6; mode++)
		for (int n = 16; n <= N; n = n == 16 ? 6000 : n == 6000 ? N : N + 1) {
			MPI_Request r, s = MPI_REQUEST_NULL;

			fill(out, (size_t)n, (uint64_t)(rank + mode));
			MPI_Irecv(in, n, MPI_BYTE, left, mode, MPI_COMM_WORLD, &r);
			if (mode == 4 || mode == 5)
				MPI_Barrier(MPI_COMM_WORLD); /* ready: the receive is posted */
			switch (mode) {
			case 0:
				MPI_Isend(out, n, MPI_BYTE, right, mode, MPI_COMM_WORLD, &s);
				break;
			case 1:
				MPI_Issend(out, n, MPI_BYTE, right, mode, MPI_COMM_WORLD, &s);
				break;
			case 2:
				MPI_Bsend(out, n, MPI_BYTE, right, mode, MPI_COMM_WORLD);
				break;
			case 3:
				MPI_Ibsend(out, n, MPI_BYTE, right, mode, MPI_COMM_WORLD, &s);
				break;
			case 4:
				MPI_Rsend(out, n, MPI_BYTE, right, mode, MPI_COMM_WORLD);
				break;
			default:
				MPI_Irsend(out, n, MPI_BYTE, right, mode, MPI_COMM_WORLD, &s);
			}
			MPI_Wait(&s, MPI_STATUS_IGNORE);
			MPI_Wait(&r, MPI_STATUS_IGNORE);
			verify(in, (size_t)n, (uint64_t)(left + mode));
		}
	MPI_Buffer_detach(&back, &back_size);
	CHECK(back == buf);
	free(buf);
	free(out);
	free(in);
	done("modes");
}

/* A synchronous send ends only after its receive has been posted. */
static void test_ssend_waits(void)
{
	if (rank == 0) {
		for (int n = 8; n <= 80000; n *= 100) {
			char *out = calloc(1, (size_t)n);
			MPI_Request r;
			int flag = 0;
			double t = MPI_Wtime();

			MPI_Issend(out, n, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &r);
			while (MPI_Wtime() - t < 0.05) {
				MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
				CHECK(!flag);
			}
			MPI_Send(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
			MPI_Wait(&r, MPI_STATUS_IGNORE);
			free(out);
		}
	} else if (rank == 1) {
		for (int n = 8; n <= 80000; n *= 100) {
			char *in = malloc((size_t)n);

			MPI_Recv(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Recv(in, n, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			free(in);
		}
	}
	done("ssend_waits");
}

/* Everybody sends to rank 0, which takes any source and any tag; each sender's order holds. */
static void test_wildcards(void)
{
	enum { N = 500 };

	if (rank) {
		for (int i = 0; i < N; i++) {
			int v[2] = { rank, i };

			MPI_Send(v, 2, MPI_INT, 0, i % 7, MPI_COMM_WORLD);
		}
	} else {
		int next[64] = { 0 };

		for (int i = 0; i < N * (size - 1); i++) {
			MPI_Status st;
			int v[2];

			MPI_Recv(v, 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
			CHECK_EQ(st.MPI_SOURCE, v[0]);
			CHECK_EQ(v[1], next[v[0]]);
			CHECK_EQ(st.MPI_TAG, v[1] % 7);
			next[v[0]]++;
		}
	}
	done("wildcards");
}

/* Any source with a tag, a source with any tag: the rest stays for later. */
static void test_half_wildcards(void)
{
	if (rank) {
		for (int tag = 0; tag < 10; tag++)
			MPI_Send(&tag, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);
	} else {
		MPI_Status st;
		int v;

		for (int i = 1; i < size; i++) {
			MPI_Recv(&v, 1, MPI_INT, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &st);
			CHECK_EQ(v, 9);
		}
		for (int s = size - 1; s > 0; s--)
			for (int i = 0; i < 9; i++) {
				MPI_Recv(&v, 1, MPI_INT, s, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
				CHECK_EQ(v, i);
				CHECK_EQ(st.MPI_TAG, i);
				CHECK_EQ(st.MPI_SOURCE, s);
			}
	}
	done("half_wildcards");
}

/* Thousands of receives posted before the first send, taken in another order. */
static void test_outstanding(void)
{
	enum { N = 5000 };
	int *in = malloc(N * sizeof(int)), *out = malloc(N * sizeof(int));
	MPI_Request *r = malloc(N * sizeof(*r)), *s = malloc(N * sizeof(*s));

	CHECK(in && out && r && s);
	for (int i = 0; i < N; i++)
		MPI_Irecv(&in[i], 1, MPI_INT, left, i, MPI_COMM_WORLD, &r[i]);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < N; i++) {
		int tag = N - 1 - i;

		out[tag] = rank * N + tag;
		MPI_Isend(&out[tag], 1, MPI_INT, right, tag, MPI_COMM_WORLD, &s[i]);
	}
	MPI_Waitall(N, s, MPI_STATUSES_IGNORE);
	MPI_Waitall(N, r, MPI_STATUSES_IGNORE);
	for (int i = 0; i < N; i++)
		CHECK_EQ(in[i], left * N + i);
	free(in);
	free(out);
	free(r);
	free(s);
	done("outstanding");
}

/* Thousands of messages that nothing has asked for yet. */
static void test_unexpected(void)
{
	enum { N = 5000, LEN = 300 };
	char *out = malloc((size_t)N * LEN), in[LEN];
	MPI_Request *s = malloc(N * sizeof(*s));

	CHECK(out && s);
	for (int i = 0; i < N; i++) {
		fill(out + (size_t)i * LEN, LEN, (uint64_t)(rank * N + i));
		MPI_Isend(out + (size_t)i * LEN, LEN, MPI_BYTE, right, i, MPI_COMM_WORLD, &s[i]);
	}
	for (int i = N - 1; i >= 0; i--) {
		MPI_Recv(in, LEN, MPI_BYTE, left, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		verify(in, LEN, (uint64_t)(left * N + i));
	}
	MPI_Waitall(N, s, MPI_STATUSES_IGNORE);
	free(out);
	free(s);
	done("unexpected");
}

static void test_self(void)
{
	for (int n = 0; n <= 1000000; n = n ? n * 10 : 1) {
		char *out = malloc((size_t)n + 1), *in = malloc((size_t)n + 1);
		MPI_Request r, s;

		CHECK(out && in);
		fill(out, (size_t)n, 77);
		MPI_Irecv(in, n, MPI_BYTE, rank, 4, MPI_COMM_WORLD, &r);
		MPI_Send(out, n, MPI_BYTE, rank, 4, MPI_COMM_WORLD);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		verify(in, (size_t)n, 77);
		MPI_Isend(out, n, MPI_BYTE, rank, 5, MPI_COMM_WORLD, &s); /* unexpected */
		MPI_Recv(in, n, MPI_BYTE, rank, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Wait(&s, MPI_STATUS_IGNORE);
		verify(in, (size_t)n, 77);
		free(out);
		free(in);
	}
	done("self");
}

static void test_persistent(void)
{
	enum { N = 200 };
	int out = 0, in = 0, big_out[20000], big_in[20000];
	MPI_Request r[4];

	MPI_Send_init(&out, 1, MPI_INT, right, 1, MPI_COMM_WORLD, &r[0]);
	MPI_Recv_init(&in, 1, MPI_INT, left, 1, MPI_COMM_WORLD, &r[1]);
	MPI_Ssend_init(big_out, 20000, MPI_INT, right, 2, MPI_COMM_WORLD, &r[2]);
	MPI_Recv_init(big_in, 20000, MPI_INT, left, 2, MPI_COMM_WORLD, &r[3]);
	for (int i = 0; i < N; i++) {
		out = rank * N + i;
		fill(big_out, sizeof(big_out), (uint64_t)out);
		MPI_Startall(4, r);
		MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
		CHECK_EQ(in, left * N + i);
		verify(big_in, sizeof(big_in), (uint64_t)in);
	}
	for (int i = 0; i < 4; i++)
		MPI_Request_free(&r[i]);
	done("persistent");
}

/* Too short a receive is an error that the program sees. */
static void test_truncate(void)
{
	char buf[200] = "";
	MPI_Status st;
	int rc, class;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (rank == 0) {
		MPI_Send(buf, 200, MPI_BYTE, 1, 3, MPI_COMM_WORLD);
	} else if (rank == 1) {
		rc = MPI_Recv(buf, 100, MPI_BYTE, 0, 3, MPI_COMM_WORLD, &st);
		CHECK(rc != MPI_SUCCESS);
		MPI_Error_class(rc, &class);
		CHECK_EQ(class, MPI_ERR_TRUNCATE);
	}
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	done("truncate");
}

int main(int argc, char **argv)
{
	start(&argc, &argv);
	right = (rank + 1) % size;
	left = (rank + size - 1) % size;
	test_sizes();
	test_modes();
	test_ssend_waits();
	test_wildcards();
	test_half_wildcards();
	test_outstanding();
	test_unexpected();
	test_self();
	test_persistent();
	test_truncate();
	return conclude("p2p");
}
