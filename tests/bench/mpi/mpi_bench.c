/* SPDX-License-Identifier: BSD-2-Clause
 *
 * mpi_bench [-s SECONDS] [-c CPU,CPU] [-k] TEST...: what MPI programs get. Prints lines "name value" on rank
 * 0: microseconds of half a round trip (_us), millions of messages a second (_mps), MB/s (_mbps), each the
 * median of batches in so many seconds (0.1). -c pins the ranks to processors in turn, -k has messages
 * checked. Tests: hop, latency, stream and orders with 2 ranks, pairs with an even number of them, threads
 * with 2 under MPI_THREAD_MULTIPLE.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mpi_bench.h"

struct job job = { .seconds = 0.1 };

enum { MAX_SAMPLES = 100000, LATENCY_TRIPS = 20, HOPS = 200 };

void fail(const char *what)
{
	fprintf(stderr, "mpi_bench: rank %d: %s\n", job.rank, what);
	MPI_Abort(MPI_COMM_WORLD, 1);
	exit(1);
}

void report(const char *name, double value)
{
	if (job.rank == 0)
		printf("%s %.6g\n", name, value);
	fflush(stdout);
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static struct {
	double us[MAX_SAMPLES]; /* of a batch each, ascending once measure has returned */
	int count;
} samples;

static double quantile(double of)
{
	return samples.us[(int)(of * samples.count)];
}

/* Rank 0 says whether there is another batch; that is not measured. */
double measure(void (*batch)(void *), void *what)
{
	double end, from;
	int more = 1;

	batch(what);
	samples.count = 0;
	end = MPI_Wtime() + job.seconds;
	while (more) {
		from = MPI_Wtime();
		batch(what);
		samples.us[samples.count++] = (MPI_Wtime() - from) * 1e6;
		more = MPI_Wtime() < end && samples.count < MAX_SAMPLES;
		MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
	}
	qsort(samples.us, samples.count, sizeof(*samples.us), ascending);
	return quantile(0.5);
}

/* ---- how far the processors are apart ---- */

static void hops(void *line)
{
	_Atomic uint64_t *at = line;

	for (uint64_t i = 0; i < HOPS; i++) {
		if (job.rank == 0)
			atomic_store(at, 2 * i + 1);
		while (atomic_load(at) != 2 * i + 1 + (job.rank == 0))
			;
		if (job.rank == 1)
			atomic_store(at, 2 * i + 2);
	}
}

/* The line is in memory of the two ranks', whatever MPI has. The figure says how far the processors are apart, so
 * it is the first decile: what other programs take of their time is not in it. */
static void test_hop(void)
{
	char name[64] = "";
	void *line;
	int fd = -1;

	snprintf(name, sizeof(name), "/mpi_bench-%d", (int)getpid());
	MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, MPI_COMM_WORLD);
	if (job.rank == 0 && ((fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600)) < 0 || ftruncate(fd, 4096)))
		fail("hop: no shared memory");
	MPI_Barrier(MPI_COMM_WORLD);
	if (job.rank != 0 && (fd = shm_open(name, O_RDWR, 0)) < 0)
		fail("hop: the ranks are on two hosts");
	line = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	MPI_Barrier(MPI_COMM_WORLD);
	if (job.rank == 0)
		shm_unlink(name);
	if (line == MAP_FAILED)
		fail("hop: no shared memory");
	measure(hops, line);
	munmap(line, 4096);
	report("mpi_hop_ns", quantile(0.1) * 1e3 / HOPS / 2);
}

/* ---- two ranks ---- */

static void round_trips(void *stream)
{
	struct stream *s = stream;
	char first = s->room[0];

	for (int n = 0; n < LATENCY_TRIPS; n++) {
		if (job.check)
			s->room[0] = s->room[s->bytes - 1] = (char)(s->sends ? n : 0);
		if (s->sends)
			MPI_Send(s->room, s->bytes, MPI_CHAR, s->peer, 1, s->comm);
		MPI_Recv(s->room, s->bytes, MPI_CHAR, s->peer, 1, s->comm, MPI_STATUS_IGNORE);
		if (job.check && (s->room[0] != (char)n || s->room[s->bytes - 1] != (char)n))
			fail("a message has other bytes");
		if (!s->sends)
			MPI_Send(s->room, s->bytes, MPI_CHAR, s->peer, 1, s->comm);
	}
	s->room[0] = first;
}

static const int sizes[] = { 8, 4096, 65536, 1 << 20, 4 << 20 };

static void test_latency(void)
{
	char name[40];

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct stream s;

		stream_open(&s, MPI_COMM_WORLD, !job.rank, !job.rank, sizes[i]);
		double us = measure(round_trips, &s);
		stream_close(&s);
		snprintf(name, sizeof(name), "mpi_latency_%d_us", sizes[i]);
		report(name, us / LATENCY_TRIPS / 2);
	}
}

/* Windows of a stream. Short ones are so many to a batch. */
struct windows {
	struct stream stream;
	enum order order;
	int count;
};

static void some_windows(void *what)
{
	struct windows *w = what;

	for (int n = 0; n < w->count; n++)
		window(&w->stream, w->order);
}

/* windows_us is the time of a window in us. */
static double windows_us(int bytes, enum order order)
{
	struct windows w = { .order = order, .count = bytes > 65536 ? 1 : 10 };
	double us;

	stream_open(&w.stream, MPI_COMM_WORLD, !job.rank, !job.rank, bytes);
	us = measure(some_windows, &w);
	stream_close(&w.stream);
	return us / w.count;
}

static void test_stream(void)
{
	char name[40];

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		snprintf(name, sizeof(name), "mpi_stream_%d_mbps", sizes[i]);
		report(name, (double)sizes[i] * WINDOW / windows_us(sizes[i], STREAMED));
	}
}

static void test_orders(void)
{
	static const struct {
		const char *name;
		enum order order;
	} orders[] = { { "before", BEFORE }, { "after", AFTER }, { "reversed", REVERSED }, { "any", WILDCARDS } };
	static const int bytes[] = { 8, 4096 };
	char name[40];

	for (size_t i = 0; i < sizeof(orders) / sizeof(*orders); i++)
		for (size_t k = 0; k < sizeof(bytes) / sizeof(*bytes); k++) {
			snprintf(name, sizeof(name), "mpi_%s_%d_mps", orders[i].name, bytes[k]);
			report(name, WINDOW / windows_us(bytes[k], orders[i].order));
		}
}

/* ---- */

static void pin(const char *list)
{
	cpu_set_t set;
	int cpus[2];

	if (sscanf(list, "%d,%d", &cpus[0], &cpus[1]) != 2)
		fail("-c takes two processors, as in 0,1");
	CPU_ZERO(&set);
	CPU_SET(cpus[job.rank % 2], &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fail("-c: no such processor");
}

static void run(const char *test)
{
	static const struct {
		const char *name;
		void (*run)(void);
		bool two;
	} tests[] = { { "hop", test_hop, true },       { "latency", test_latency, true },
		      { "stream", test_stream, true }, { "orders", test_orders, true },
		      { "pairs", test_pairs, false },  { "threads", test_threads, true } };

	for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++)
		if (!strcmp(test, tests[i].name)) {
			if (tests[i].two && job.ranks != 2)
				fail("the test is for 2 ranks");
			tests[i].run();
			return;
		}
	fail("there is no such test");
}

/* The level that a program without threads has, unless threads are to be measured. */
static int level_for(char **tests)
{
	for (; *tests; tests++)
		if (!strcmp(*tests, "threads"))
			return MPI_THREAD_MULTIPLE;
	return MPI_THREAD_SINGLE;
}

int main(int argc, char **argv)
{
	const char *cpus = NULL;
	int level;

	for (int opt; (opt = getopt(argc, argv, "s:c:k")) != -1;) {
		if (opt == 's')
			job.seconds = atof(optarg);
		else if (opt == 'c')
			cpus = optarg;
		else if (opt == 'k')
			job.check = true;
		else
			return 2;
	}
	MPI_Init_thread(&argc, &argv, level_for(argv + optind), &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &job.ranks);
	if (!(job.seconds > 0))
		fail("-s takes seconds");
	if (cpus)
		pin(cpus);
	for (int i = optind; i < argc; i++)
		run(argv[i]);
	MPI_Finalize();
	return 0;
}
