/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process of the same user that writes nonsense into segments while they are in use: into the
 * receiver's, and into its own, which others read. Messages may be lost, repeated, forged or fail;
 * but no call crashes or hangs, and endpoints that are opened afterwards work. Rank 1 is the culprit;
 * rank 0 and rank 2 talk to it and to each other.
 */
#include "common.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "../../include/weft/segment.h"
#include "shmdir.h"

#define WINDOW 8
#define MAX_LEN 100000
#define ROUNDS 6
#define ROUND_MS 300
#define CALL_MS 5000 /* no call may take longer */
#define MAPS 8

enum target { ANYWHERE, HEADER, RING, BEHIND, TARGETS };

static struct node n;
static char *bufs[WINDOW][2];
static uint64_t calls, slowest;

/* ---- the culprit ---- */

static struct {
	char *mem;
	size_t size, attach; /* bytes; offset of what is behind the rings */
} maps[MAPS];
static size_t nmaps;

static void map_one(const char *path, void *arg)
{
	int fd = open(path, O_RDWR);
	struct stat st;

	(void)arg;
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || nmaps == MAPS)
		goto out;
	maps[nmaps].size = (size_t)st.st_size;
	maps[nmaps].mem = mmap(NULL, maps[nmaps].size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (maps[nmaps].mem == MAP_FAILED)
		goto out;
	if (((struct weft_segment *)(void *)maps[nmaps].mem)->magic != WEFT_SEG_MAGIC) {
		munmap(maps[nmaps].mem, maps[nmaps].size); /* a page of counters */
		goto out;
	}
	maps[nmaps].attach = ((struct weft_segment *)(void *)maps[nmaps].mem)->attach_offset;
	nmaps++;
out:
	if (fd >= 0)
		close(fd);
}

static void unmap_all(void)
{
	while (nmaps > 0) {
		nmaps--;
		munmap(maps[nmaps].mem, maps[nmaps].size);
	}
}

/* Values that fields are likely to be compared with, and any others. */
static uint64_t nonsense(uint64_t *seed)
{
	uint64_t r = rnd(seed);

	switch (r % 6) {
	case 0:
		return 0;
	case 1:
		return UINT64_MAX;
	case 2:
		return r >> 32 & 0xff;
	case 3:
		return 1ull << (r >> 32) % 64;
	case 4:
		return (r >> 32) << 18 | (r >> 8 & 3) | (r >> 16 & 7) << 2; /* a slot's word */
	default:
		return rnd(seed);
	}
}

static void scribble(enum target t, unsigned words, uint64_t *seed)
{
	for (unsigned i = 0; i < words; i++) {
		uint64_t v = nonsense(seed);
		size_t m = rnd(seed) % nmaps, from = 0, to = maps[m].size;
		size_t width = 1u << rnd(seed) % 4;

		if (t == HEADER)
			to = sizeof(struct weft_segment);
		else if (t == RING)
			from = sizeof(struct weft_segment), to = maps[m].attach;
		else if (t == BEHIND)
			from = maps[m].attach;
		memcpy(maps[m].mem + from + rnd(seed) % (to - from - 8) / width * width, &v, width);
	}
}

/* ---- all three ---- */

static int timed_read(struct fid_cq *cq, struct fi_cq_tagged_entry *e)
{
	uint64_t begin = now_us(), took;
	int rc = wait_for(&n, cq, e, 0);

	took = now_us() - begin;
	slowest = took > slowest ? took : slowest;
	calls++;
	return rc;
}

/* Sends to and receives from both others for a while, as far as it goes. */
static void talk(uint64_t *seed, enum target t, unsigned words)
{
	static const size_t sizes[] = { 8, 100, 2000, 16384, 66000, MAX_LEN };
	bool sending[WINDOW] = { 0 }, receiving[WINDOW] = { 0 };
	uint64_t end = now_ms() + ROUND_MS;

	while (now_ms() < end) {
		struct fi_cq_tagged_entry e;
		int i = (int)(rnd(seed) % WINDOW);
		struct op s = { .tagged = true,
				.buf = bufs[i][0],
				.len = sizes[rnd(seed) % ARRAY_LEN(sizes)],
				.addr = n.peer[rnd(seed) % 3],
				.tag = 1,
				.ctx = &sending[i] };
		struct op r = { .tagged = true,
				.buf = bufs[i][1],
				.len = MAX_LEN,
				.addr = FI_ADDR_UNSPEC,
				.tag = 1,
				.ctx = &receiving[i] };

		if (!sending[i])
			sending[i] = op_send(n.ep, &s) == 0;
		if (!receiving[i])
			receiving[i] = op_recv(n.ep, &r) == 0;
		if (test_rank == 1 && (words || rnd(seed) % 64 == 0))
			scribble(t, words ? words : 1, seed);
		for (int k = 0; k < 4; k++) {
			int rc = timed_read(n.txcq, &e);
			void *ctx = rc > 0 ? e.op_context : n.err.op_context;

			if (rc && (bool *)ctx >= sending && (bool *)ctx < sending + WINDOW)
				*(bool *)ctx = false;
			rc = timed_read(n.rxcq, &e);
			ctx = rc > 0 ? e.op_context : n.err.op_context;
			if (rc && (bool *)ctx >= receiving && (bool *)ctx < receiving + WINDOW)
				*(bool *)ctx = false;
		}
	}
}

/* New endpoints know nothing of the old ones' errors. */
static void works_again(uint64_t round)
{
	char *in = bufs[0][1], *out = bufs[0][0];

	node_open(&n, NULL);
	node_connect(&n);
	for (int from = 0; from < 3; from++)
		for (int to = 0; to < 3; to++) {
			size_t len = (from + to) % 2 ? MAX_LEN : 64;
			uint64_t tag = round * 100 + (uint64_t)(from * 10 + to);

			if (to == test_rank)
				trecv(&n, in, len, FI_ADDR_UNSPEC, tag, 0, in);
			if (from == test_rank) {
				fill(out, len, tag);
				tsend(&n, out, len, n.peer[to], tag, out);
				wait_ctx(&n, n.txcq, out);
			}
			if (to == test_rank) {
				wait_ctx(&n, n.rxcq, in);
				verify(in, len, tag);
			}
		}
	barrier(&n);
}

static void test_corrupt(long target)
{
	uint64_t seed = (uint64_t)getpid() * 1000003 + (uint64_t)test_rank;

	setenv("FI_WEFT_ASSIST_SIZE", "0", 1); /* see docs/design.md, known limits */
	shmdir_make();
	if (!test_is_weft())
		SKIP("the segments are weft's");
	note("seed %#llx", (unsigned long long)seed);
	for (int i = 0; i < WINDOW; i++)
		CHECK((bufs[i][0] = calloc(1, MAX_LEN)) && (bufs[i][1] = calloc(1, MAX_LEN)));
	for (uint64_t round = 0; round < ROUNDS; round++) {
		works_again(round);
		if (test_rank == 1)
			shmdir_each(map_one, NULL);
		barrier(&n);
		talk(&seed, (enum target)target, round % 3 == 2 ? 64 : round % 3 == 1 ? 2 : 0);
		barrier(NULL);
		if (test_rank == 1)
			unmap_all();
		node_close(&n);
		barrier(NULL);
	}
	works_again(ROUNDS);
	node_close(&n);
	barrier(NULL);
	note("%llu calls, the slowest took %llu us", (unsigned long long)calls, (unsigned long long)slowest);
	CHECK(slowest < CALL_MS * 1000);
	if (test_rank == 0) {
		EXPECTF(shmdir_count() == 0, "%d files are left", shmdir_count());
		shmdir_remove();
	}
}

static const struct test tests[] = {
	{ "anywhere", test_corrupt, 3, 60, ANYWHERE },
	{ "header", test_corrupt, 3, 60, HEADER },
	{ "ring", test_corrupt, 3, 60, RING },
	{ "attach_and_bounce", test_corrupt, 3, 60, BEHIND },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
