/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Several streams of 8 bytes at once: between pairs of ranks, and between threads of two ranks.
 */
#include <pthread.h>
#include <stdio.h>

#include "mpi_bench.h"

enum { BYTES = 8, WINDOWS = 20 /* of each stream in a batch */ };

static void windows(struct stream *s)
{
	for (int n = 0; n < WINDOWS; n++)
		window(s, STREAMED);
}

static void pair_batch(void *stream)
{
	windows(stream);
	MPI_Barrier(MPI_COMM_WORLD);
}

void test_pairs(void)
{
	struct stream s;
	double us;

	if (job.ranks % 2)
		fail("pairs: the number of ranks is not even");
	stream_open(&s, MPI_COMM_WORLD, job.rank ^ 1, !(job.rank & 1), BYTES);
	us = measure(pair_batch, &s);
	stream_close(&s);
	report("mpi_pairs_8_mps", (double)WINDOWS * WINDOW * (job.ranks / 2) / us);
}

/* Threads that each have a stream, and a communicator for it. They are between batches at the first barrier,
 * where the main thread says whether there is another. */
static struct {
	struct stream streams[MAX_THREADS];
	pthread_barrier_t begin, end;
	bool stop;
} threads;

static void *thread(void *stream)
{
	for (;;) {
		pthread_barrier_wait(&threads.begin);
		if (threads.stop)
			return NULL;
		windows(stream);
		pthread_barrier_wait(&threads.end);
	}
}

static void thread_batch(void *unused)
{
	(void)unused;
	pthread_barrier_wait(&threads.begin);
	pthread_barrier_wait(&threads.end);
}

static void threads_of(int count)
{
	pthread_t ids[MAX_THREADS];
	MPI_Comm comms[MAX_THREADS];
	char name[40];
	double us;

	threads.stop = false;
	pthread_barrier_init(&threads.begin, NULL, count + 1);
	pthread_barrier_init(&threads.end, NULL, count + 1);
	for (int n = 0; n < count; n++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[n]);
		stream_open(&threads.streams[n], comms[n], !job.rank, !job.rank, BYTES);
		if (pthread_create(&ids[n], NULL, thread, &threads.streams[n]))
			fail("threads: none can be made");
	}
	us = measure(thread_batch, NULL);
	threads.stop = true;
	pthread_barrier_wait(&threads.begin);
	for (int n = 0; n < count; n++) {
		pthread_join(ids[n], NULL);
		stream_close(&threads.streams[n]);
		MPI_Comm_free(&comms[n]);
	}
	pthread_barrier_destroy(&threads.begin);
	pthread_barrier_destroy(&threads.end);
	snprintf(name, sizeof(name), "mpi_threads_%d_8_mps", count);
	report(name, (double)WINDOWS * WINDOW * count / us);
}

void test_threads(void)
{
	int level;

	MPI_Query_thread(&level);
	if (level != MPI_THREAD_MULTIPLE || job.ranks != 2)
		fail("threads: 2 ranks and MPI_THREAD_MULTIPLE are needed");
	threads_of(1);
	threads_of(2);
}
