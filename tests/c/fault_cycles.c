/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening and closing 10,000 times leaves nothing behind: memory, descriptors, threads, files. */
#include "common.h"

#include <dirent.h>
#include <limits.h>

#include "shmdir.h"

#define CYCLES 5000
#define WARM_UP 1000
#define PEERS 2000
#define SPANS 4		     /* parts of a run whose peaks of resident memory are compared */
#define ROOM_KIB 512	     /* by so much a peak may be above the one before in every span */
#define ROOM_VIRTUAL_MIB 160 /* a thread's heap is 64 MiB of address space */
#define ROOM_MAPS 64
#define ROOM_THREADS 4 /* as many Go threads as run at a time start when they are first needed, and stay */

struct usage {
	long virtual_mib, maps, fds, threads, files;
};

static long entries(const char *dir)
{
	DIR *d = opendir(dir);
	long count = 0;

	CHECK(d != NULL);
	while (readdir(d))
		count++;
	closedir(d);
	return count;
}

/* What of the process is in memory, and its address space. */
static void pages_kib(long *resident, long *space)
{
	long page_kib = sysconf(_SC_PAGESIZE) / 1024;
	FILE *f = fopen("/proc/self/statm", "r");

	CHECK(f && fscanf(f, "%ld %ld", space, resident) == 2);
	fclose(f);
	*resident *= page_kib;
	*space *= page_kib;
}

static struct usage measure(void)
{
	struct usage u = { .fds = entries("/proc/self/fd"),
			   .threads = entries("/proc/self/task"),
			   .files = shmdir_count() };
	long resident, space;
	FILE *f = fopen("/proc/self/maps", "r");

	CHECK(f != NULL);
	pages_kib(&resident, &space);
	u.virtual_mib = space / 1024;
	for (int c; (c = getc(f)) != EOF;)
		u.maps += c == '\n';
	fclose(f);
	return u;
}

/* The most resident memory in each span of a run. The collector's cycles and what allocators keep raise
 * some of them; only what every cycle leaves behind raises each. */
struct peaks {
	long kib[SPANS];
};

static void sample(struct peaks *p, int cycle, int cycles)
{
	long *peak = &p->kib[cycle * SPANS / cycles];
	long kib, space;

	pages_kib(&kib, &space);
	if (kib > *peak)
		*peak = kib;
}

/* The least rise from one span's peak to the next, in KiB. */
static long least_rise(const struct peaks *p)
{
	long least = LONG_MAX;

	for (int i = 1; i < SPANS; i++)
		if (p->kib[i] - p->kib[i - 1] < least)
			least = p->kib[i] - p->kib[i - 1];
	return least;
}

/* What is left in the end: a NIC that is a model closes what it had for a peer a moment later. */
static struct usage measure_end(const struct usage *before)
{
	struct usage u = measure();

	for (int i = 0; i < 50 && u.fds > before->fds; i++) {
		usleep(100000);
		u = measure();
	}
	return u;
}

/* kept_kib: memory that the test itself keeps in a span. */
static void compare(const struct usage *before, const struct usage *after, const struct peaks *p, long kept_kib)
{
	note("memory at most %ld, %ld, %ld, %ld KiB, address space %ld -> %ld MiB in %ld -> %ld pieces", p->kib[0],
	     p->kib[1], p->kib[2], p->kib[3], before->virtual_mib, after->virtual_mib, before->maps, after->maps);
	note("descriptors %ld -> %ld, threads %ld -> %ld, files %ld -> %ld", before->fds, after->fds, before->threads,
	     after->threads, before->files, after->files);
	EXPECT(least_rise(p) - kept_kib < ROOM_KIB);
	EXPECT(after->virtual_mib - before->virtual_mib < ROOM_VIRTUAL_MIB);
	EXPECT(after->maps - before->maps < ROOM_MAPS);
	EXPECT(after->fds == before->fds);
	EXPECT(after->threads <= before->threads + ROOM_THREADS);
	EXPECT(after->files == before->files);
}

/* One message to oneself, so that everything that is made on first use is made. */
static void use(struct node *n, size_t len)
{
	static char in[80000], out[80000];
	fi_addr_t self = node_insert(n, n);

	trecv(n, in, len, FI_ADDR_UNSPEC, 1, 0, in);
	tsend(n, out, len, self, 1, out);
	wait_ctx(n, n->rxcq, in);
	wait_ctx(n, n->txcq, out);
}

/* arg: what one cycle opens. 0: an endpoint with AV and CQs on one domain; 1: everything. */
static void test_cycles(long arg)
{
	int cycles = arg ? CYCLES / 10 : CYCLES;
	struct usage before = { 0 }, after;
	struct peaks peaks = { 0 };
	struct node base, n;

	shmdir_make();
	node_open(&base, NULL);
	for (int i = 0; i < cycles; i++) {
		if (i == (arg ? WARM_UP / 5 : WARM_UP))
			before = measure();
		if (arg)
			node_open(&n, NULL);
		else
			node_open_on(&n, &base, NULL);
		if (i % 4 == 0)
			use(&n, i % 8 ? 80000 : 8);
		node_close(&n);
		sample(&peaks, i, cycles);
	}
	after = measure_end(&before);
	compare(&before, &after, &peaks, 0);
	node_close(&base);
	EXPECT(shmdir_count() <= 0);
	shmdir_remove();
}

/* Rank 0 stays, rank 1's endpoint is another each time: what sends first takes turns, and the message is
 * one of each protocol. arg: the addresses stay in rank 0's AV, which grows by that much. */
static void test_peers(long keep)
{
	static char in[80000], out[80000];
	struct usage before = { 0 }, after;
	struct peaks peaks = { 0 };
	struct name names[NODE_PEERS];
	struct node n;

	setenv("FI_WEFT_PEER_CHECK_INTERVAL", "1ms", 1);
	shmdir_make();
	node_open(&n, NULL);
	for (int i = 0; i < PEERS; i++) {
		static const size_t sizes[] = { 8, 4000, 80000 };
		size_t len = sizes[i % 3];
		fi_addr_t peer;

		if (i == PEERS / 4)
			before = measure();
		if (test_rank == 1 && i) {
			node_close(&n);
			node_open(&n, NULL);
		}
		node_names(&n, names);
		peer = node_insert_name(&n, &names[!test_rank]);
		for (int k = 0; k < 2; k++) {
			if (test_rank == (i + k) % 2) {
				fill(out, len, (uint64_t)i);
				tsend(&n, out, len, peer, 1, out);
				wait_ctx(&n, n.txcq, out);
			} else {
				trecv(&n, in, len, FI_ADDR_UNSPEC, 1, 0, in);
				wait_ctx(&n, n.rxcq, in);
				verify(in, len, (uint64_t)i);
			}
		}
		barrier(&n);
		if (!keep || test_rank == 1)
			OK(fi_av_remove(n.av, &peer, 1, 0));
		if (i >= PEERS / 2) /* the collector's heap has grown to what it is to be */
			sample(&peaks, i - PEERS / 2, PEERS / 2);
	}
	after = measure_end(&before);
	after.files = before.files; /* the other side's come and go */
	compare(&before, &after, &peaks, keep && test_rank == 0 ? PEERS / 2 / SPANS : 0); /* 1 KiB for an address */
	barrier(&n);
	node_close(&n);
	barrier(NULL);
	if (test_rank == 0) {
		EXPECT(shmdir_count() <= 0);
		shmdir_remove();
	}
}

static const struct test tests[] = {
	{ "endpoints", test_cycles, 1, 300, 0 },
	{ "everything", test_cycles, 1, 300, 1 },
	{ "peers", test_peers, 2, 300, 0 },
	{ "peers_kept_in_av", test_peers, 2, 300, 1 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
