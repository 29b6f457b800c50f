/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages that come after a pause, to what polls all the time and to what has not called for as long: a
 * provider may stop polling where nothing comes, but has to find what does. */
#include "common.h"

#define MOST 9000

static const int pauses[] = { 0, 1, 30, 200 }; /* ms */
static const size_t sizes[] = { 8, 0, 104, 1, 300, 96, MOST, 8, 8 };

static void pass_time(struct node *n, int ms, bool polls)
{
	struct fi_cq_tagged_entry e;
	uint64_t end = now_ms() + (uint64_t)ms;

	while (now_ms() < end)
		if (!polls)
			usleep(1000);
		else
			CHECK(fi_cq_read(n->rxcq, &e, 1) == -FI_EAGAIN);
}

/* The ranks take turns to answer. Before it answers a rank lets time pass, so the other one gets the
 * answer after so much silence. */
static void test_quiet(long polls)
{
	static char out[MOST], in[MOST];
	struct node n;
	uint64_t round = 0;

	node_open(&n, &(struct node_opts){ .threading = FI_THREAD_DOMAIN,
					   .control = FI_PROGRESS_MANUAL,
					   .data = FI_PROGRESS_MANUAL });
	node_connect(&n);
	for (size_t p = 0; p < ARRAY_LEN(pauses); p++) {
		for (size_t k = 0; k < 2 * ARRAY_LEN(sizes); k++, round++) {
			size_t there = sizes[k / 2], back = sizes[(k + p) % ARRAY_LEN(sizes)];
			struct fi_cq_tagged_entry e;

			trecv(&n, in, MOST, FI_ADDR_UNSPEC, round, 0, in);
			if (test_rank == 1) {
				wait_ok(&n, n.rxcq, &e);
				CHECK(e.len == there);
				verify(in, there, round);
				pass_time(&n, pauses[p], polls);
			}
			fill(out, test_rank ? back : there, round + (uint64_t)test_rank);
			tsend(&n, out, test_rank ? back : there, n.peer[!test_rank], round, out);
			wait_ctx(&n, n.txcq, out);
			if (test_rank == 0) {
				if (!polls)
					pass_time(&n, pauses[p], false);
				wait_ok(&n, n.rxcq, &e);
				CHECK(e.len == back);
				verify(in, back, round + 1);
			}
		}
	}
	node_close(&n);
}

static const struct test tests[] = {
	{ "polled", test_quiet, 2, 0, true },
	{ "not_polled", test_quiet, 2, 0, false },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
