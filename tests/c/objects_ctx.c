/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive contexts and shared transmit contexts. */
#include "common.h"

/* Opens n's endpoint anew on a shared receive and/or transmit context. It is not enabled yet. */
static void bind_to(struct node *n, const struct node *base, struct fid_ep *srx, struct fid_stx *stx)
{
	struct node_opts o = { .disabled = true };

	node_open_on(n, base, &o);
	OK(fi_close(&n->ep->fid));
	fi_freeinfo(n->info);
	n->info = fi_dupinfo(base->info);
	CHECK(n->info != NULL);
	if (srx)
		n->info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	if (stx)
		n->info->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
	OK(fi_endpoint(n->domain, n->info, &n->ep, NULL));
	OK(fi_ep_bind(n->ep, &base->av->fid, 0));
	OK(fi_ep_bind(n->ep, &n->txcq->fid, FI_TRANSMIT));
	OK(fi_ep_bind(n->ep, &n->rxcq->fid, FI_RECV));
	if (srx)
		OK(fi_ep_bind(n->ep, &srx->fid, 0));
	if (stx)
		OK(fi_ep_bind(n->ep, &stx->fid, 0));
}

/* The same, enabled. */
static void open_on(struct node *n, const struct node *base, struct fid_ep *srx, struct fid_stx *stx)
{
	bind_to(n, base, srx, stx);
	OK(fi_enable(n->ep));
}

/* Receives on a shared context match messages of either endpoint, in posting order, and complete
 * on the CQ of the endpoint that got the message. */
static void test_srx(long arg)
{
	struct fid_ep *srx = NULL;
	struct node base, a, b;
	uint64_t in[6] = { 0 }, out[6];
	fi_addr_t to[2];
	int rc;

	(void)arg;
	node_open(&base, NULL);
	rc = fi_srx_context(base.domain, base.info->rx_attr, &srx, NULL);
	NEED(rc == 0, "shared receive contexts");
	open_on(&a, &base, srx, NULL);
	open_on(&b, &base, srx, NULL);
	to[0] = node_insert(&base, &a);
	to[1] = node_insert(&base, &b);
	for (uint64_t i = 0; i < 4; i++) /* two tagged, two not */
		OK(i & 1 ? fi_recv(srx, &in[i], 8, NULL, FI_ADDR_UNSPEC, &in[i])
			 : fi_trecv(srx, &in[i], 8, NULL, FI_ADDR_UNSPEC, 7, 0, &in[i]));
	for (uint64_t i = 0; i < 4; i++) {
		struct node *n = i < 2 ? &b : &a;
		struct op o = {
			.tagged = !(i & 1), .buf = &out[i], .len = 8, .addr = to[i < 2], .tag = 7, .ctx = &out[i]
		};

		out[i] = 10 + i;
		post_send(&base, &o);
		wait_ctx(n, n->rxcq, &in[i]);
		wait_ctx(&base, base.txcq, &out[i]);
		CHECK(in[i] == 10 + i);
	}
	wait_none(&a, a.rxcq, 1);
	/* A message before its receive, then a cancel through the shared context. */
	tsend(&base, &out[0], 8, to[0], 9, &out[0]);
	wait_none(&a, a.rxcq, 5);
	OK(fi_trecv(srx, &in[4], 8, NULL, FI_ADDR_UNSPEC, 9, 0, &in[4]));
	wait_ctx(&a, a.rxcq, &in[4]);
	CHECK_RC(fi_close(&srx->fid), -FI_EBUSY);
	CHECK_RC(fi_close(&base.av->fid), -FI_EBUSY);
	node_close(&a);
	CHECK_RC(fi_close(&srx->fid), -FI_EBUSY);
	node_close(&b);
	OK(fi_close(&srx->fid));
	wait_ctx(&base, base.txcq, &out[0]);
	node_close(&base);
}

/* Messages from each of n endpoints to base; completions go to each one's own CQ. */
static void send_from(struct node *base, struct node **from, uint64_t n, fi_addr_t to)
{
	for (uint64_t i = 0; i < 100; i++) {
		struct node *s = from[i % n];
		uint64_t in = 0, out = i;

		trecv(base, &in, 8, FI_ADDR_UNSPEC, 1, 0, &in);
		tsend(s, &out, 8, to, 1, &out);
		wait_ctx(base, base->rxcq, &in);
		wait_ctx(s, s->txcq, &out);
		CHECK(in == i);
	}
}

/* Endpoints send through one transmit context. It may be closed before them, as Sandia OpenSHMEM does: they send on,
 * and so does one that is bound to it but enabled only then. */
static void test_stx(long arg)
{
	struct node base, a, b, late, *from[] = { &a, &b, &late };
	struct fid_stx *stx = NULL;
	fi_addr_t to;
	int rc;

	(void)arg;
	node_open(&base, NULL);
	rc = fi_stx_context(base.domain, base.info->tx_attr, &stx, NULL);
	NEED(rc == 0, "shared transmit contexts");
	open_on(&a, &base, NULL, stx);
	open_on(&b, &base, NULL, stx);
	bind_to(&late, &base, NULL, stx);
	to = node_insert(&base, &base);
	send_from(&base, from, 2, to);
	OK(fi_close(&stx->fid));
	OK(fi_enable(late.ep));
	send_from(&base, from, 3, to);
	node_close(&a);
	node_close(&b);
	node_close(&late);
	node_close(&base);
}

static const struct test tests[] = {
	{ "srx", test_srx, 1, 0, 0 },
	{ "stx", test_stx, 1, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
