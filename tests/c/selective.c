/* SPDX-License-Identifier: BSD-2-Clause */
/* FI_SELECTIVE_COMPLETION and FI_COMPLETION: what gets a completion, and errors always do. */
#include "common.h"

static char in[4096], out[4096];

static void sendmsg_flags(struct node *n, size_t len, uint64_t flags, void *ctx)
{
	struct op o = { .form = F_MSG, .tagged = true, .addr = n->peer[0], .flags = flags, .ctx = ctx };

	op_split(&o, out, len, 1, false);
	post_send(n, &o);
}

static void recvmsg_flags(struct node *n, size_t len, uint64_t flags, void *ctx)
{
	struct op o = { .form = F_MSG, .tagged = true, .addr = FI_ADDR_UNSPEC, .flags = flags, .ctx = ctx };

	op_split(&o, in, len, 1, false);
	post_recv(n, &o);
}

static void open_bound(struct node *n, uint64_t tx_bind, uint64_t rx_bind, uint64_t tx_flags, uint64_t rx_flags)
{
	struct node_opts o = { .tx_bind = tx_bind, .rx_bind = rx_bind, .tx_flags = tx_flags, .rx_flags = rx_flags };

	node_open(n, &o);
	node_connect(n);
}

static void test_transmit(long arg)
{
	struct op plain = { .tagged = true, .buf = out, .len = 8, .ctx = out };
	struct node n;

	(void)arg;
	open_bound(&n, FI_SELECTIVE_COMPLETION, 0, 0, 0);
	plain.addr = n.peer[0];
	for (int i = 0; i < 4; i++)
		trecv(&n, in, 8, FI_ADDR_UNSPEC, 0, 0, in);
	post_send(&n, &plain);
	wait_ctx(&n, n.rxcq, in);
	wait_none(&n, n.txcq, 5);
	sendmsg_flags(&n, 8, 0, &n);
	wait_ctx(&n, n.rxcq, in);
	wait_none(&n, n.txcq, 5);
	sendmsg_flags(&n, 8, FI_COMPLETION, &n);
	wait_ctx(&n, n.rxcq, in);
	wait_ctx(&n, n.txcq, &n);
	plain.form = F_INJECT;
	post_send(&n, &plain);
	wait_ctx(&n, n.rxcq, in);
	wait_none(&n, n.txcq, 5);
	node_close(&n);
}

/* FI_COMPLETION as the endpoint's default: for the plain calls; fi_tsendmsg brings its own flags. */
static void test_transmit_default(long arg)
{
	struct op plain = { .tagged = true, .buf = out, .len = 8, .ctx = out };
	struct node n;

	(void)arg;
	open_bound(&n, FI_SELECTIVE_COMPLETION, 0, FI_COMPLETION, 0);
	plain.addr = n.peer[0];
	for (int i = 0; i < 3; i++)
		trecv(&n, in, 8, FI_ADDR_UNSPEC, 0, 0, in);
	post_send(&n, &plain);
	wait_ctx(&n, n.rxcq, in);
	wait_ctx(&n, n.txcq, out);
	sendmsg_flags(&n, 8, 0, &n);
	wait_ctx(&n, n.rxcq, in);
	if (!deviates("sendmsg-default-flags"))
		wait_none(&n, n.txcq, 5);
	plain.form = F_INJECT;
	post_send(&n, &plain);
	wait_ctx(&n, n.rxcq, in);
	node_close(&n);
}

/* Without FI_SELECTIVE_COMPLETION every operation completes, FI_COMPLETION given or not. */
static void test_not_selective(long arg)
{
	struct node n;

	(void)arg;
	open_bound(&n, 0, 0, 0, 0);
	recvmsg_flags(&n, 8, 0, in);
	recvmsg_flags(&n, 8, FI_COMPLETION, in + 1);
	sendmsg_flags(&n, 8, 0, &n);
	wait_ctx(&n, n.rxcq, in);
	wait_ctx(&n, n.txcq, &n);
	sendmsg_flags(&n, 8, FI_COMPLETION, &n);
	wait_ctx(&n, n.rxcq, in + 1);
	wait_ctx(&n, n.txcq, &n);
	node_close(&n);
}

static void test_receive(long arg)
{
	struct node n;

	(void)arg;
	open_bound(&n, 0, FI_SELECTIVE_COMPLETION, 0, 0);
	fill(out, 8, 1);
	trecv(&n, in, 8, FI_ADDR_UNSPEC, 0, 0, in);
	sendmsg_flags(&n, 8, FI_COMPLETION, &n);
	wait_ctx(&n, n.txcq, &n);
	wait_none(&n, n.rxcq, 5);
	verify(in, 8, 1);
	recvmsg_flags(&n, 8, FI_COMPLETION, in);
	sendmsg_flags(&n, 8, FI_COMPLETION, &n);
	wait_ctx(&n, n.txcq, &n);
	wait_ctx(&n, n.rxcq, in);
	recvmsg_flags(&n, 8, 0, in);
	sendmsg_flags(&n, 8, FI_COMPLETION, &n);
	wait_ctx(&n, n.txcq, &n);
	wait_none(&n, n.rxcq, 5);
	node_close(&n);
}

/* Errors are reported whatever was suppressed: truncation here, a cancel below. */
static void test_errors(long arg)
{
	struct node n;

	(void)arg;
	open_bound(&n, FI_SELECTIVE_COMPLETION, FI_SELECTIVE_COMPLETION, 0, 0);
	recvmsg_flags(&n, 10, 0, in);
	sendmsg_flags(&n, 100, FI_COMPLETION, &n);
	wait_err(&n, n.rxcq, FI_ETRUNC);
	CHECK(n.err.olen == 90);
	wait_ctx(&n, n.txcq, &n);
	trecv(&n, in, 8, FI_ADDR_UNSPEC, 7, 0, in + 1);
	OK(fi_cancel(&n.ep->fid, in + 1));
	wait_err(&n, n.rxcq, FI_ECANCELED);
	CHECK(n.err.op_context == in + 1);
	wait_none(&n, n.txcq, 1);
	node_close(&n);
}

/* Counters count what completes, whether or not it is reported. */
static void test_counters(long arg)
{
	struct node_opts o = { .tx_bind = FI_SELECTIVE_COMPLETION,
			       .rx_bind = FI_SELECTIVE_COMPLETION,
			       .counters = true };
	struct op inject = { .form = F_INJECT, .tagged = true, .buf = out, .len = 8 };
	struct node n;

	(void)arg;
	node_open(&n, &o);
	node_connect(&n);
	inject.addr = n.peer[0];
	for (int i = 0; i < 30; i++) {
		trecv(&n, in, 64, FI_ADDR_UNSPEC, 0, 0, in);
		if (i % 3)
			tsend(&n, out, 64, n.peer[0], 0, out);
		else
			post_send(&n, &inject);
	}
	OK(fi_cntr_wait(n.rxcntr, 30, 5000));
	OK(fi_cntr_wait(n.txcntr, 30, 5000));
	CHECK(fi_cntr_read(n.rxcntr) == 30);
	CHECK(fi_cntr_read(n.txcntr) == 30);
	CHECK(fi_cntr_readerr(n.rxcntr) == 0);
	wait_none(&n, n.txcq, 1);
	wait_none(&n, n.rxcq, 1);
	node_close(&n);
}

static const struct test tests[] = {
	{ "transmit", test_transmit, 1, 0, 0 },
	{ "transmit_default", test_transmit_default, 1, 0, 0 },
	{ "not_selective", test_not_selective, 1, 0, 0 },
	{ "receive", test_receive, 1, 0, 0 },
	{ "errors", test_errors, 1, 0, 0 },
	{ "counters", test_counters, 1, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
