/* SPDX-License-Identifier: BSD-2-Clause */
/* MPI_THREAD_MULTIPLE: many threads send, receive, probe and wait at the same time. */
#include "check.h"

#include <pthread.h>

#define THREADS 8
#define ROUNDS 400

static int right, left;

struct thread {
	pthread_t id;
	int index;
	MPI_Comm comm;
};

static int size_of(int i)
{
	static const int sizes[] = { 8, 64, 4000, 8, 20000, 8, 100, 9000 };

	return sizes[i % 8];
}

/* Each thread has its tag: a ring of its own. */
static void *by_tag(void *p)
{
	struct thread *t = p;
	char *out = malloc(20000), *in = malloc(20000);

	CHECK(out && in);
	for (int i = 0; i < ROUNDS; i++) {
		int n = size_of(i + t->index);
		MPI_Request r[2];
		MPI_Status st[2];

		fill(out, (size_t)n, (uint64_t)(rank * 100000 + t->index * 1000 + i));
		MPI_Irecv(in, 20000, MPI_BYTE, left, t->index, MPI_COMM_WORLD, &r[0]);
		MPI_Isend(out, n, MPI_BYTE, right, t->index, MPI_COMM_WORLD, &r[1]);
		MPI_Waitall(2, r, st);
		CHECK_EQ(got_bytes(&st[0]), n);
		verify(in, (size_t)n, (uint64_t)(left * 100000 + t->index * 1000 + i));
	}
	free(out);
	free(in);
	return NULL;
}

/* Each thread has its communicator, and all wildcards. */
static void *by_comm(void *p)
{
	struct thread *t = p;

	for (int i = 0; i < ROUNDS; i++) {
		int out[2] = { rank, i }, in[2];
		MPI_Request r;

		MPI_Irecv(in, 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, t->comm, &r);
		MPI_Send(out, 2, MPI_INT, right, i % 5, t->comm);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		CHECK_EQ(in[0], left);
		CHECK_EQ(in[1], i);
		if (i % 50 == 0) {
			int sum = 0;

			MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, t->comm);
			CHECK_EQ(sum, size * (size - 1) / 2);
		}
	}
	return NULL;
}

/* Threads share a tag: whatever matches a probe takes that message; none is lost. */
static int taken; /* atomic */

static void *mprobers(void *p)
{
	struct thread *t = p;
	int v = t->index;

	for (int i = 0; i < ROUNDS; i++) {
		MPI_Message msg;
		MPI_Status st;

		MPI_Send(&v, 1, MPI_INT, right, 77, MPI_COMM_WORLD);
		MPI_Mprobe(left, 77, MPI_COMM_WORLD, &msg, &st);
		v = -1;
		MPI_Mrecv(&v, 1, MPI_INT, &msg, &st);
		CHECK(v >= 0 && v < THREADS);
		__atomic_add_fetch(&taken, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void run(void *(*body)(void *), const char *what)
{
	struct thread t[THREADS];

	for (int i = 0; i < THREADS; i++) {
		t[i].index = i;
		MPI_Comm_dup(MPI_COMM_WORLD, &t[i].comm);
	}
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&t[i].id, NULL, body, &t[i]) == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i].id, NULL);
	for (int i = 0; i < THREADS; i++)
		MPI_Comm_free(&t[i].comm);
	done(what);
}

int main(int argc, char **argv)
{
	int provided;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	CHECK_EQ(provided, MPI_THREAD_MULTIPLE);
	right = (rank + 1) % size;
	left = (rank + size - 1) % size;
	run(by_tag, "by_tag");
	run(by_comm, "by_comm");
	run(mprobers, "mprobers");
	CHECK_EQ(taken, THREADS * ROUNDS);
	return conclude("mt");
}
