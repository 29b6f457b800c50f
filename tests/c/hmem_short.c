/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_HMEM: operations so short that a thread posts them without Go where the memory is its own.
 */
#include "hmem.h"

/* Each form of one piece or element, from and to the device. */
static void short_ones(long unused)
{
	struct node n;
	struct buffer b, theirs;
	struct remote r;
	uint64_t *d, got[4], in[6] = { 3, 4, 5, 0, 12, 0 };

	(void)unused;
	open_node(&n, 0);
	b = buffer_open(&n, 4096, true);
	theirs = buffer_open(&n, 4096, false);
	d = b.p;
	node_connect(&n);
	exchange(&n, &theirs, &r);
	if (test_rank == 0) {
		struct iovec iov = { d, 8 };
		struct fi_rma_iov at = { r.addr + 8, 8, r.key };
		struct fi_msg_rma m = { .msg_iov = &iov,
					.desc = &b.desc,
					.iov_count = 1,
					.addr = n.peer[1],
					.rma_iov = &at,
					.rma_iov_count = 1 };

		gpu_put(d, in, sizeof(in));
		DO(&n, fi_writedata(n.ep, d, 8, b.desc, 1, n.peer[1], r.addr, r.key, NULL));
		DO(&n, fi_writemsg(n.ep, &m, FI_COMPLETION | FI_DELIVERY_COMPLETE));
		iov.iov_base = d + 1;
		at.addr = r.addr + 16;
		DO(&n, fi_writemsg(n.ep, &m, FI_COMPLETION));
		DO(&n, fi_atomic(n.ep, d + 2, 1, b.desc, n.peer[1], r.addr, r.key, FI_UINT64, FI_SUM, NULL));
		DO(&n, fi_fetch_atomic(n.ep, d + 2, 1, b.desc, d + 3, b.desc, n.peer[1], r.addr, r.key, FI_UINT64,
				       FI_SUM, NULL));
		gpu_get(got, d + 3, 8);
		CHECKF(got[0] == 8, "fetched %lu", (unsigned long)got[0]);
		DO(&n, fi_compare_atomic(n.ep, d + 4, 1, b.desc, d + 3, b.desc, d + 5, b.desc, n.peer[1], r.addr, r.key,
					 FI_UINT64, FI_CSWAP_NE, NULL));
		gpu_get(got, d + 5, 8);
		CHECKF(got[0] == 13, "compared with %lu", (unsigned long)got[0]);
		iov.iov_base = d + 3;
		at.addr = r.addr;
		DO(&n, fi_readmsg(n.ep, &m, FI_COMPLETION));
		DO(&n, fi_read(n.ep, d, 8, b.desc, n.peer[1], r.addr + 16, r.key, NULL));
		gpu_get(got, d, 32);
		CHECKF(got[0] == 4 && got[3] == 12, "read %lu and %lu", (unsigned long)got[0], (unsigned long)got[3]);
	}
	barrier(&n);
	if (test_rank == 1) {
		const uint64_t *w = theirs.p;

		CHECKF(w[0] == 12 && w[1] == 3 && w[2] == 4, "%lu %lu %lu", (unsigned long)w[0], (unsigned long)w[1],
		       (unsigned long)w[2]);
	}
	barrier(&n);
	buffer_close(&b);
	buffer_close(&theirs);
	node_close(&n);
}

static const struct test tests[] = {
	{ "short", short_ones, 2, 60, 0 },
};

int main(int argc, char **argv)
{
	gpu_main(argv);
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
