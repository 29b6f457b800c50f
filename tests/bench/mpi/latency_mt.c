// SPDX-License-Identifier: BSD-2-Clause
// latency_mt [THREADS [BYTES [SECONDS]]]: ping-pong of as many threads of rank 0
// with as many of rank 1 at once, each pair by a tag of its own, under
// MPI_THREAD_MULTIPLE. Prints the mean of all half round trips, as osu_latency_mt
// does, and median and p99 of batches of 20, in microseconds. The defaults are 2
// threads, 8 bytes, 2 seconds.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 20, MAX_THREADS = 64, MAX_BATCHES = 100000 };

static struct {
	int rank, bytes;
	double seconds;
} job;

struct pair {
	int tag, batches;
	double *took;
	pthread_t thread;
};

static void round_trip(char *buf, int tag)
{
	if (job.rank == 0) {
		MPI_Send(buf, job.bytes, MPI_CHAR, 1, tag, MPI_COMM_WORLD);
		MPI_Recv(buf, job.bytes, MPI_CHAR, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else {
		MPI_Recv(buf, job.bytes, MPI_CHAR, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(buf, job.bytes, MPI_CHAR, 0, tag, MPI_COMM_WORLD);
	}
}

// The first rank says with the first byte of a batch whether there is another.
static void *run(void *arg)
{
	struct pair *p = arg;
	char *buf = calloc(1, job.bytes);
	double start = MPI_Wtime(), from;

	for (int more = 1; more;) {
		from = MPI_Wtime();
		if (job.rank == 0)
			buf[0] = from - start < job.seconds && p->batches + 1 < MAX_BATCHES;
		round_trip(buf, p->tag);
		more = buf[0];
		for (int n = 1; n < BATCH; n++)
			round_trip(buf, p->tag);
		p->took[p->batches++] = (MPI_Wtime() - from) / BATCH / 2 * 1e6;
	}
	free(buf);
	return NULL;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int number(int argc, char **argv, int n, int otherwise, int low, int high)
{
	int v = argc > n ? atoi(argv[n]) : otherwise;

	if (v < low || v > high) {
		fprintf(stderr, "argument %d is %d, which is not in %d to %d\n", n, v, low, high);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	return v;
}

int main(int argc, char **argv)
{
	struct pair pairs[MAX_THREADS] = { 0 };
	int provided, ranks, threads, total = 0;
	double *all, sum = 0;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (provided != MPI_THREAD_MULTIPLE || ranks != 2) {
		fprintf(stderr, "2 ranks and MPI_THREAD_MULTIPLE are needed: %d ranks, level %d\n", ranks, provided);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	threads = number(argc, argv, 1, 2, 1, MAX_THREADS);
	job.bytes = number(argc, argv, 2, 8, 1, 1 << 24);
	job.seconds = number(argc, argv, 3, 2, 1, 3600);
	for (int n = 0; n < threads; n++) {
		pairs[n].tag = n + 1;
		pairs[n].took = calloc(MAX_BATCHES, sizeof(double));
		pthread_create(&pairs[n].thread, NULL, run, &pairs[n]);
	}
	all = calloc((size_t)threads * MAX_BATCHES, sizeof(double));
	for (int n = 0; n < threads; n++) {
		pthread_join(pairs[n].thread, NULL);
		memcpy(all + total, pairs[n].took, pairs[n].batches * sizeof(double));
		total += pairs[n].batches;
		free(pairs[n].took);
	}
	qsort(all, total, sizeof(double), ascending);
	for (int n = 0; n < total; n++)
		sum += all[n];
	if (job.rank == 0)
		printf("latency_mt: %d threads, %d bytes, mean %.3f us, median %.3f us, p99 %.3f us, %d batches\n",
		       threads, job.bytes, sum / total, all[total / 2], all[(int)(total * 0.99)], total);
	free(all);
	MPI_Finalize();
	return 0;
}
