/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The C side of a completion queue in a file, for the tests of package cq.
 *
 *   cqproc push FILE RINGS_AT RING PRODUCER COUNT   write completions 0..COUNT-1
 *   cqproc pop  FILE RINGS_AT COUNT BATCH           read COUNT, print the sum of their contexts
 *   cqproc next FILE RINGS_AT                       print what a read of 4 gives and whether an error is next
 *   cqproc bench                                    print nanoseconds of single steps
 */
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "weft/cq.h"

#define PRODUCERS 16
#define MAX_BATCH 16

static struct weft_hot_cq cq; /* a copy: addresses differ between processes */
static struct weft_hot_cq *shared;

static void map(char **argv)
{
	int fd = open(argv[2], O_RDWR);
	struct stat st;

	if (fd < 0 || fstat(fd, &st)) {
		perror(argv[2]);
		exit(2);
	}
	shared = mmap(NULL, st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED) {
		perror("mmap");
		exit(2);
	}
	memcpy(&cq, shared, sizeof(cq));
	cq.rings = (unsigned char *)shared + atoi(argv[3]);
}

static struct weft_cqe stamp(uint64_t producer, uint64_t n)
{
	uint64_t v = producer << 40 | n;
	return (struct weft_cqe){ .context = v, .flags = 1 << 11, .len = v + 1, .buf = v + 2,
				  .data = v + 3, .tag = v + 4, .src = v + 5 };
}

static void push(uint32_t ring, uint64_t producer, uint64_t count)
{
	for (uint64_t n = 0; n < count; n++) {
		struct weft_cqe e = stamp(producer, n);

		while (!weft_cq_push(&cq, ring, &e))
			sched_yield();
	}
}

static int pop(uint64_t count, size_t batch)
{
	uint64_t next[PRODUCERS] = { 0 };
	uint64_t sum = 0;

	while (count) {
		struct weft_cqe out[MAX_BATCH];
		bool error;
		size_t got = weft_cq_pop(&cq, out, count < batch ? count : batch, &error);

		if (!got)
			sched_yield();
		for (size_t i = 0; i < got; i++) {
			uint64_t producer = out[i].context >> 40, n = out[i].context & ((1ull << 40) - 1);
			struct weft_cqe want = stamp(producer, n);
			if (producer >= PRODUCERS || n < next[producer] ||
			    memcmp(&want.context, &out[i].context, sizeof(want) - 8)) {
				fprintf(stderr, "context %#" PRIx64 "\n", out[i].context);
				return 1;
			}
			next[producer] = n + 1;
			sum += out[i].context;
		}
		count -= got;
	}
	printf("%" PRIu64 "\n", sum);
	return 0;
}

static int next_entries(void)
{
	struct weft_cqe out[4];
	bool error;
	size_t got = weft_cq_pop(&cq, out, 4, &error);

	for (size_t i = 0; i < got; i++)
		printf("%" PRIu64 " ", out[i].context);
	printf("%s\n", error ? "error" : "end");
	return 0;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static struct weft_cqe out[MAX_BATCH];
static bool error;

static void empty(int steps)
{
	while (steps--)
		if (weft_cq_pop(&cq, out, 1, &error))
			abort();
}

static void pair(int steps)
{
	while (steps--) {
		struct weft_cqe e = { .context = steps, .flags = 1 };
		if (!weft_cq_push(&cq, cq.nrings - 1, &e) || !weft_cq_pop(&cq, out, 1, &error))
			abort();
	}
}

/* The best of some rounds: others use the machine too. */
static double best(void (*step)(int))
{
	enum { ROUNDS = 20, STEPS = 200000 };
	double least = 1e9;

	for (int i = 0; i < ROUNDS; i++) {
		double start = now();
		step(STEPS);
		double each = (now() - start) / STEPS;
		if (each < least)
			least = each;
	}
	return least;
}

static int bench(void)
{
	static unsigned char memory[3 * (128 + 1024 * 64)] __attribute__((aligned(64)));

	for (uint32_t flags = 0; flags <= WEFT_CQ_EXCLUSIVE; flags += WEFT_CQ_EXCLUSIVE) {
		for (uint32_t nrings = 1; nrings <= 3; nrings += 2) {
			memset(memory, 0, sizeof(memory));
			cq = (struct weft_hot_cq){ .rings = memory, .ring_stride = 128 + 1024 * 64,
						   .nrings = nrings, .log2_slots = 10, .flags = flags };
			printf("%s, %u rings: empty pop %.2f ns, push and pop %.2f ns\n",
			       flags ? "exclusive" : "shared", nrings, best(empty), best(pair));
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "bench"))
		return bench();
	if (argc < 4)
		return 2;
	map(argv);
	if (!strcmp(argv[1], "push") && argc == 7) {
		push(atoi(argv[4]), strtoull(argv[5], NULL, 10), strtoull(argv[6], NULL, 10));
		return 0;
	}
	if (!strcmp(argv[1], "pop") && argc == 6 && atoi(argv[5]) <= MAX_BATCH)
		return pop(strtoull(argv[4], NULL, 10), atoi(argv[5]));
	return next_entries();
}
