/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints whose capabilities the application writes itself, between fi_getinfo and fi_endpoint:
 * what they leave out, neither FI_LOCAL_COMM nor FI_REMOTE_COMM and no directions, means all. */
#include <rdma/fi_rma.h>

#include "common.h"

#define LEN ((size_t)100000)
#define KEY 0x5C

/* Rank 0 sends, writes and reads; rank 1 receives and owns the memory. */
static void exchange(long caps)
{
	struct node_opts o = {
		.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_DIRECTED_RECV,
		.ep_caps = caps,
		.tx_flags = FI_DELIVERY_COMPLETE,
	};
	char *mem = guard_alloc(LEN), *in = guard_alloc(LEN);
	struct fid_mr *mr = NULL;
	ssize_t rc;
	struct node n;

	node_open(&n, &o);
	node_connect(&n);
	fill(mem, LEN, test_rank);
	if (test_rank == 1) {
		OK(fi_mr_reg(n.domain, mem, LEN, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL));
		trecv(&n, in, LEN, n.peer[0], 7, 0, &n);
	}
	barrier(&n);
	if (test_rank == 0) {
		tsend(&n, mem, LEN, n.peer[1], 7, &n);
		wait_ctx(&n, n.txcq, &n);
		while ((rc = fi_read(n.ep, in, LEN, NULL, n.peer[1], 0, KEY, in)) == -FI_EAGAIN)
			progress(&n);
		CHECKF(rc == 0, "fi_read: %zd", rc);
		wait_ctx(&n, n.txcq, in);
		verify(in, LEN, 1);
		while ((rc = fi_write(n.ep, mem, LEN, NULL, n.peer[1], 0, KEY, mem)) == -FI_EAGAIN)
			progress(&n);
		CHECKF(rc == 0, "fi_write: %zd", rc);
		wait_ctx(&n, n.txcq, mem);
	} else {
		wait_ctx(&n, n.rxcq, &n);
		verify(in, LEN, 0);
	}
	barrier(&n);
	verify(mem, LEN, 0);
	if (mr)
		OK(fi_close(&mr->fid));
	node_close(&n);
	guard_free(in, LEN);
	guard_free(mem, LEN);
}

/* Only rank 1 has a source that its receive may match: FI_DIRECTED_RECV is the endpoint's, whether
 * or not rx_attr names it. */
static void directed(long added)
{
	struct node_opts o = {
		.caps = FI_MSG | FI_TAGGED | (added ? 0 : FI_DIRECTED_RECV),
		.ep_caps = FI_MSG | FI_TAGGED | (added ? FI_DIRECTED_RECV : 0),
	};
	uint64_t got = 0, want = 5;
	struct node n;

	node_open(&n, &o);
	node_connect(&n);
	if (test_rank == 1) {
		trecv(&n, &got, sizeof(got), n.peer[1], 1, 0, &n); /* from itself, if directed */
		barrier(&n);
		if (added)
			wait_none(&n, n.rxcq, 300);
		else
			wait_ctx(&n, n.rxcq, &n);
		CHECK(got == (added ? 0 : want));
	} else {
		barrier(&n);
		tsend(&n, &want, sizeof(want), n.peer[1], 1, NULL);
		wait_ctx(&n, n.txcq, NULL);
	}
	barrier(&n);
	node_close(&n);
}

static const struct test tests[] = {
	{ "no place of peers", exchange, 2, 0,
	  FI_MSG | FI_TAGGED | FI_RMA | FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE },
	{ "no place and no directions", exchange, 2, 0, FI_MSG | FI_TAGGED | FI_RMA },
	{ "FI_DIRECTED_RECV added", directed, 2, 0, 1 },
	{ "FI_DIRECTED_RECV taken out", directed, 2, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
