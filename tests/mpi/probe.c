/* SPDX-License-Identifier: BSD-2-Clause */
/* Probe, Iprobe, Mprobe, Improbe and cancel. */
#include "check.h"

static const int sizes[] = { 0, 8, 100, 5000, 100000 };
#define SIZES ((int)(sizeof(sizes) / sizeof(*sizes)))

static char buf[100000];

static void send_sizes(int to)
{
	for (int i = 0; i < SIZES; i++) {
		fill(buf, (size_t)sizes[i], (uint64_t)i);
		MPI_Send(buf, sizes[i], MPI_BYTE, to, 10 + i, MPI_COMM_WORLD);
	}
}

static void take(int i, MPI_Status *seen)
{
	MPI_Status st;

	CHECK_EQ(got_bytes(seen), sizes[i]);
	MPI_Recv(buf, got_bytes(seen), MPI_BYTE, seen->MPI_SOURCE, seen->MPI_TAG, MPI_COMM_WORLD, &st);
	CHECK_EQ(got_bytes(&st), sizes[i]);
	verify(buf, (size_t)sizes[i], (uint64_t)i);
}

static void test_probe(void)
{
	if (rank == 0) {
		send_sizes(1);
	} else if (rank == 1) {
		for (int i = 0; i < SIZES; i++) {
			MPI_Status st;

			MPI_Probe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
			CHECK_EQ(st.MPI_TAG, 10 + i);				/* in the order sent */
			MPI_Probe(MPI_ANY_SOURCE, 10 + i, MPI_COMM_WORLD, &st); /* still there */
			CHECK_EQ(st.MPI_SOURCE, 0);
			take(i, &st);
		}
	}
	done("probe");
}

static void test_iprobe(void)
{
	MPI_Status st;
	int flag;

	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < 1000; i++) {
		MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, &st);
		CHECK(!flag);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0) {
		send_sizes(1);
	} else if (rank == 1) {
		for (int i = 0; i < SIZES; i++) {
			do
				MPI_Iprobe(0, 10 + i, MPI_COMM_WORLD, &flag, &st);
			while (!flag);
			take(i, &st);
		}
	}
	done("iprobe");
}

/* A matched message is no other's, whatever the wildcards. */
static void test_mprobe(void)
{
	if (rank == 0) {
		send_sizes(1);
	} else if (rank == 1) {
		MPI_Message msg[SIZES];
		MPI_Status st;
		int flag;

		for (int i = 0; i < SIZES; i++) {
			if (i % 2) {
				MPI_Mprobe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &msg[i], &st);
			} else {
				do
					MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &msg[i], &st);
				while (!flag);
			}
			CHECK_EQ(st.MPI_TAG, 10 + i);
			CHECK_EQ(got_bytes(&st), sizes[i]);
		}
		MPI_Iprobe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &st);
		CHECK(!flag);
		for (int i = SIZES - 1; i >= 0; i--) {
			MPI_Request r;

			if (i % 2) {
				MPI_Mrecv(buf, sizes[i], MPI_BYTE, &msg[i], &st);
			} else {
				MPI_Imrecv(buf, sizes[i], MPI_BYTE, &msg[i], &r);
				MPI_Wait(&r, &st);
			}
			CHECK(msg[i] == MPI_MESSAGE_NULL);
			CHECK_EQ(st.MPI_TAG, 10 + i);
			verify(buf, (size_t)sizes[i], (uint64_t)i);
		}
	}
	done("mprobe");
}

static void test_cancel(void)
{
	enum { N = 300 };
	MPI_Request r[N];
	int in[N], flag, v = 4711;
	MPI_Status st;

	for (int i = 0; i < N; i++)
		MPI_Irecv(&in[i], 1, MPI_INT, MPI_ANY_SOURCE, 50, MPI_COMM_WORLD, &r[i]);
	for (int i = 0; i < N - 1; i++) { /* all but the last */
		MPI_Cancel(&r[i]);
		MPI_Wait(&r[i], &st);
		MPI_Test_cancelled(&st, &flag);
		CHECK(flag);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Send(&v, 1, MPI_INT, (rank + 1) % size, 50, MPI_COMM_WORLD);
	MPI_Wait(&r[N - 1], &st);
	MPI_Test_cancelled(&st, &flag);
	CHECK(!flag);
	CHECK_EQ(in[N - 1], 4711);
	done("cancel");
}

/* Cancels that race with the message: either way nothing is lost. */
static void test_cancel_race(void)
{
	enum { N = 1000 };
	int canceled = 0;

	for (int i = 0; i < N; i++) {
		if (rank == 0) {
			MPI_Send(&i, 1, MPI_INT, 1, 60, MPI_COMM_WORLD);
		} else if (rank == 1) {
			MPI_Request r;
			MPI_Status st;
			int v = -1, flag;

			MPI_Irecv(&v, 1, MPI_INT, 0, 60, MPI_COMM_WORLD, &r);
			for (volatile int spin = 0; spin < i % 50 * 20; spin++)
				;
			MPI_Cancel(&r);
			MPI_Wait(&r, &st);
			MPI_Test_cancelled(&st, &flag);
			canceled += flag;
			if (flag)
				MPI_Recv(&v, 1, MPI_INT, 0, 60, MPI_COMM_WORLD, &st);
			CHECK_EQ(v, i);
		}
	}
	if (rank == 1)
		printf("# %d of %d canceled\n", canceled, N);
	done("cancel_race");
}

int main(int argc, char **argv)
{
	start(&argc, &argv);
	test_probe();
	test_iprobe();
	test_mprobe();
	test_cancel();
	test_cancel_race();
	return conclude("probe");
}
