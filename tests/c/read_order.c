/* SPDX-License-Identifier: BSD-2-Clause */
/* The order in which one thread reads the completions of its receives: that of the messages of a peer, also where some
 * receives are the runtime's (of several pieces) and others are completed into the array of fi_cq_read. */
#include "common.h"

enum { MESSAGES = 6, READ = 16 };

static void test_mixed(long threading)
{
	struct node_opts o = { .threading = (enum fi_threading)threading };
	struct fi_cq_tagged_entry e[READ];
	static char in[MESSAGES][32], out[16];
	struct node n;

	node_open(&n, &o);
	node_connect(&n);
	for (int round = 0; round < 20; round++) {
		int got = 0;

		for (int i = 0; i < MESSAGES; i++) {
			struct op op = { .form = F_V, .tagged = true, .addr = FI_ADDR_UNSPEC, .tag = 1, .ctx = in[i] };

			op_split(&op, in[i], sizeof(in[i]), 2, false);
			if (i % 2 == 0)
				post_recv(&n, &op);
			else
				trecv(&n, in[i], sizeof(in[i]), FI_ADDR_UNSPEC, 1, 0, in[i]);
		}
		for (int i = 0; i < MESSAGES; i++)
			tsend(&n, out, sizeof(out), n.peer[0], 1, out);
		while (got < MESSAGES) {
			ssize_t k = fi_cq_read(n.rxcq, e, READ);

			if (k == -FI_EAGAIN)
				continue;
			CHECKF(k > 0, "fi_cq_read: %zd", k);
			for (ssize_t i = 0; i < k; i++, got++)
				CHECKF(e[i].op_context == in[got], "round %d: completion %d is of receive %td", round,
				       got, ((char *)e[i].op_context - in[0]) / (ptrdiff_t)sizeof(in[0]));
		}
		for (int i = 0; i < MESSAGES; i++)
			wait_ok(&n, n.txcq, e);
	}
	node_close(&n);
}

static const struct test tests[] = {
	{ "safe", test_mixed, 1, 60, FI_THREAD_SAFE },
	{ "domain", test_mixed, 1, 60, FI_THREAD_DOMAIN },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
