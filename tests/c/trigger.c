/* SPDX-License-Identifier: BSD-2-Clause */
/* Triggered operations and deferred work: rank 0 works, rank 1 is its peer. */
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>

#include "common.h"

#define LEN 4096
#define KEY 0x33

struct trig {
	struct node n;
	struct fid_mr *mr;
	struct fid_cntr *on, *done; /* bound to nothing */
	char *mem;
};

static const struct node_opts opts = {
	.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_FENCE | FI_TRIGGER,
	.mr_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED,
};

static struct fid_cntr *counter(struct trig *g, enum fi_wait_obj wait)
{
	struct fi_cntr_attr attr = { .wait_obj = wait };
	struct fid_cntr *c;

	OK(fi_cntr_open(g->n.domain, &attr, &c, NULL));
	return c;
}

static void open_trig(struct trig *g, const struct node_opts *o)
{
	struct fi_info *info = node_info(o);

	NEED(info != NULL, "triggered operations");
	fi_freeinfo(info);
	memset(g, 0, sizeof(*g));
	node_open(&g->n, o);
	node_connect(&g->n);
	g->mem = guard_alloc(LEN);
	memset(g->mem, 0, LEN);
	OK(fi_mr_reg(g->n.domain, g->mem, LEN, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &g->mr, NULL));
	if (g->n.info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
		OK(fi_mr_bind(g->mr, &g->n.ep->fid, 0));
		OK(fi_mr_enable(g->mr));
	}
	g->on = counter(g, FI_WAIT_NONE);
	g->done = counter(g, FI_WAIT_UNSPEC);
	barrier(&g->n);
}

static void close_trig(struct trig *g)
{
	barrier(&g->n);
	OK(fi_close(&g->mr->fid));
	OK(fi_close(&g->on->fid));
	OK(fi_close(&g->done->fid));
	node_close(&g->n);
	guard_free(g->mem, LEN);
}

static int work(struct trig *g, int command, void *arg)
{
	return fi_control(&g->n.domain->fid, command, arg);
}

static void condition(struct fi_triggered_context *c, struct fid_cntr *cntr, size_t threshold)
{
	memset(c, 0, sizeof(*c));
	c->event_type = FI_TRIGGER_THRESHOLD;
	c->trigger.threshold.cntr = cntr;
	c->trigger.threshold.threshold = threshold;
}

/* Sends, a write and an atomic, each of which waits for the one before it: the
 * first for a counter that the program adds to, the others for the endpoint's. */
static void test_chain(long arg)
{
	enum { CHAIN = 200 };
	struct node_opts o = opts;
	struct trig g;
	static struct fi_triggered_context ctx[CHAIN];
	static uint64_t value[CHAIN], one = 1;

	o.counters = true;
	o.tx_bind = arg ? FI_SELECTIVE_COMPLETION : 0;
	open_trig(&g, &o);
	if (test_rank == 0) {
		uint64_t base = fi_cntr_read(g.n.txcntr);

		for (int i = CHAIN - 1; i >= 0; i--) {
			struct iovec iov = { &value[i], 8 };
			struct fi_msg_tagged msg = {
				.msg_iov = &iov, .iov_count = 1, .addr = g.n.peer[1], .tag = i, .context = &ctx[i]
			};

			value[i] = i * 7;
			if (i)
				condition(&ctx[i], g.n.txcntr, base + i);
			else
				condition(&ctx[i], g.on, 3);
			OK(fi_tsendmsg(g.n.ep, &msg, FI_TRIGGER));
			memset(&iov, 0xff, sizeof(iov)); /* the vector is the caller's again */
			memset(&msg, 0xff, sizeof(msg));
		}
		wait_none(&g.n, g.n.txcq, 20);
		OK(fi_cntr_add(g.on, 2));
		wait_none(&g.n, g.n.txcq, 20);
		OK(fi_cntr_add(g.on, 1));
		for (int i = 0; i < CHAIN && !arg; i++)
			wait_ctx(&g.n, g.n.txcq, &ctx[i]);
		while (fi_cntr_read(g.n.txcntr) < base + CHAIN)
			;
		/* one-sided operations, in the order of their thresholds */
		struct fi_ioc ioc = { &one, 1 };
		struct fi_rma_ioc rioc = { 8, 1, KEY };
		struct fi_msg_atomic at = { .msg_iov = &ioc,
					    .iov_count = 1,
					    .addr = g.n.peer[1],
					    .rma_iov = &rioc,
					    .rma_iov_count = 1,
					    .datatype = FI_UINT64,
					    .op = FI_SUM,
					    .context = &ctx[1] };
		struct iovec iov = { &value[3], 8 };
		struct fi_rma_iov rma = { 8, 8, KEY };
		struct fi_msg_rma wr = { .msg_iov = &iov,
					 .iov_count = 1,
					 .addr = g.n.peer[1],
					 .rma_iov = &rma,
					 .rma_iov_count = 1,
					 .context = &ctx[0] };

		condition(&ctx[1], g.on, 5);
		OK(fi_atomicmsg(g.n.ep, &at, FI_TRIGGER | FI_FENCE | FI_COMPLETION));
		condition(&ctx[0], g.on, 4);
		OK(fi_writemsg(g.n.ep, &wr, FI_TRIGGER | FI_COMPLETION));
		OK(fi_cntr_set(g.on, 100));
		wait_ctx(&g.n, g.n.txcq, &ctx[0]);
		wait_ctx(&g.n, g.n.txcq, &ctx[1]);
	} else {
		for (int i = 0; i < CHAIN; i++) {
			uint64_t got = 0;

			trecv(&g.n, &got, 8, FI_ADDR_UNSPEC, 0, ~0ull, &got);
			while (!fi_cntr_read(g.n.rxcntr))
				;
			wait_ctx(&g.n, g.n.rxcq, &got);
			CHECKF(got == (uint64_t)i * 7, "message %d says %lu", i, (unsigned long)got);
		}
	}
	barrier(&g.n);
	if (test_rank == 1)
		CHECK(*(uint64_t *)(g.mem + 8) == 3 * 7 + 1);
	close_trig(&g);
}

/* Sends of rendezvous messages, each of which waits for the one before it, on an endpoint that
 * counts nothing but sends: acknowledgements that C takes in fire triggers as soon as others. */
static void test_chain_rendezvous(long arg)
{
	enum { CHAIN = 100, BYTES = 65536, SLOW_MS = 5000 };
	struct node_opts o = {
		.caps = FI_MSG | FI_TAGGED | FI_TRIGGER,
		.data = FI_PROGRESS_MANUAL,
		.disabled = true,
	};
	static struct fi_triggered_context ctx[CHAIN];
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_NONE };
	char *buf = calloc(1, BYTES);
	struct fid_cntr *sent;
	struct node n;

	(void)arg;
	CHECK(buf);
	node_open(&n, &o);
	OK(fi_cntr_open(n.domain, &attr, &sent, NULL));
	OK(fi_ep_bind(n.ep, &sent->fid, FI_SEND));
	OK(fi_enable(n.ep));
	node_connect(&n);
	for (int i = 0; i < CHAIN && test_rank == 1; i++)
		trecv(&n, buf, BYTES, FI_ADDR_UNSPEC, i, 0, &ctx[i]);
	barrier(&n);
	if (test_rank == 0) {
		uint64_t base = fi_cntr_read(sent);
		uint64_t start = now_ms();

		for (int i = CHAIN - 1; i >= 0; i--) {
			struct iovec iov = { buf, BYTES };
			struct fi_msg_tagged msg = {
				.msg_iov = &iov, .iov_count = 1, .addr = n.peer[1], .tag = i, .context = &ctx[i]
			};

			condition(&ctx[i], sent, base + i);
			OK(fi_tsendmsg(n.ep, &msg, FI_TRIGGER));
		}
		for (int i = 0; i < CHAIN; i++)
			wait_ctx(&n, n.txcq, &ctx[i]);
		CHECKF(now_ms() - start < SLOW_MS, "%lu ms", (unsigned long)(now_ms() - start));
	} else {
		for (int i = 0; i < CHAIN; i++)
			wait_ctx(&n, n.rxcq, &ctx[i]);
	}
	barrier(&n);
	OK(fi_close(&n.ep->fid));
	n.ep = NULL;
	OK(fi_close(&sent->fid));
	node_close(&n);
	free(buf);
}

/* Every form of transfer through an alias whose calls are all triggered, and
 * receives. */
static void test_alias(long arg)
{
	struct fi_triggered_context send, recv, wr, rd, fetch;
	struct fid_ep *alias = NULL;
	uint64_t got = 0, one = 1, back = 0, was = 7;
	struct trig g;

	(void)arg;
	open_trig(&g, &opts);
	OK(fi_ep_alias(g.n.ep, &alias, FI_TRANSMIT | FI_TRIGGER));
	if (test_rank == 0) {
		condition(&send, g.on, 1);
		condition(&wr, g.on, 2);
		condition(&rd, g.on, 3);
		condition(&fetch, g.on, 4);
		OK(fi_send(alias, &one, 8, NULL, g.n.peer[1], &send));
		OK(fi_write(alias, &one, 8, NULL, g.n.peer[1], 0, KEY, &wr));
		OK(fi_read(alias, &back, 8, NULL, g.n.peer[1], 0, KEY, &rd));
		OK(fi_fetch_atomic(alias, &one, 1, NULL, &was, NULL, g.n.peer[1], 0, KEY, FI_UINT64, FI_SUM, &fetch));
		for (int i = 1; i <= 4; i++) {
			struct fi_triggered_context *c[] = { &send, &wr, &rd, &fetch };

			wait_none(&g.n, g.n.txcq, 5);
			OK(fi_cntr_add(g.on, 1));
			wait_ctx(&g.n, g.n.txcq, c[i - 1]);
		}
		CHECK(back == 1 && was == 1);
	} else {
		struct iovec iov = { &got, 8 };
		struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &recv };

		condition(&recv, g.on, 1);
		OK(fi_recvmsg(g.n.ep, &msg, FI_TRIGGER));
		wait_none(&g.n, g.n.rxcq, 30);
		OK(fi_cntr_add(g.on, 1));
		wait_ctx(&g.n, g.n.rxcq, &recv);
		CHECK(got == 1);
	}
	barrier(&g.n);
	if (test_rank == 1)
		CHECK(*(uint64_t *)g.mem == 2);
	OK(fi_close(&alias->fid));
	close_trig(&g);
}

static void deferred(struct fi_deferred_work *w, struct trig *g, uint64_t threshold, enum fi_op_type op, void *what)
{
	memset(w, 0, sizeof(*w));
	w->threshold = threshold;
	w->triggering_cntr = g->on;
	w->completion_cntr = op == FI_OP_CNTR_ADD || op == FI_OP_CNTR_SET ? NULL : g->done;
	w->op_type = op;
	w->op.msg = what;
	OK(work(g, FI_QUEUE_WORK, w));
}

/* Deferred work of each type; both ranks do the same to each other. */
static void test_types(long arg)
{
	static struct fi_deferred_work w[11];
	uint64_t buf[8] = { 5, 0, 6, 0, 9, 0, 1, 1 }, old[2] = { 77, 77 }, five = 5;
	struct fi_rma_iov rma = { .len = 8, .key = KEY };
	struct fi_rma_ioc rioc = { .count = 1, .key = KEY };
	struct trig g;

	(void)arg;
	open_trig(&g, &opts);
	fi_addr_t peer = g.n.peer[1 - test_rank];
	struct iovec v[] = { { &buf[0], 8 }, { &buf[1], 8 }, { &buf[2], 8 },
			     { &buf[3], 8 }, { &buf[4], 8 }, { &buf[5], 8 } };
	struct fi_op_msg send = { g.n.ep, { .msg_iov = &v[0], .iov_count = 1, .addr = peer }, 0 };
	struct fi_op_msg recv = { g.n.ep, { .msg_iov = &v[1], .iov_count = 1, .addr = FI_ADDR_UNSPEC }, 0 };
	struct fi_op_tagged tsend = { g.n.ep, { .msg_iov = &v[2], .iov_count = 1, .addr = peer, .tag = 4 }, 0 };
	struct fi_op_tagged trecv_op = { g.n.ep,
					 { .msg_iov = &v[3], .iov_count = 1, .addr = FI_ADDR_UNSPEC, .tag = 4 },
					 0 };
	struct fi_op_rma wr = { g.n.ep,
				{ .msg_iov = &v[4], .iov_count = 1, .addr = peer, .rma_iov = &rma, .rma_iov_count = 1 },
				0 };
	struct fi_op_rma rd = wr;
	struct fi_ioc five_ioc = { &five, 1 }, old_ioc[] = { { &old[0], 1 }, { &old[1], 1 } };
	struct fi_ioc one_ioc = { &buf[6], 1 };
	struct fi_msg_atomic at = { .msg_iov = &one_ioc,
				    .iov_count = 1,
				    .addr = peer,
				    .rma_iov = &rioc,
				    .rma_iov_count = 1,
				    .datatype = FI_UINT64,
				    .op = FI_SUM };
	struct fi_op_atomic atomic = { g.n.ep, at, 0 };
	struct fi_op_fetch_atomic fetch = { g.n.ep, at, { .msg_iov = &old_ioc[0], .iov_count = 1 }, 0 };
	struct fi_op_compare_atomic cmp = {
		g.n.ep, at, { .msg_iov = &old_ioc[1], .iov_count = 1 }, { .msg_iov = &five_ioc, .iov_count = 1 }, 0
	};
	struct fi_op_cntr add = { g.on, 100 }, set = { g.on, 1000 };

	cmp.msg.op = FI_CSWAP;
	rd.msg.msg_iov = &v[5];
	deferred(&w[0], &g, 1, FI_OP_RECV, &recv);
	deferred(&w[1], &g, 1, FI_OP_TRECV, &trecv_op);
	deferred(&w[2], &g, 2, FI_OP_SEND, &send);
	deferred(&w[3], &g, 2, FI_OP_TSEND, &tsend);
	deferred(&w[4], &g, 2, FI_OP_WRITE, &wr);
	deferred(&w[5], &g, 3, FI_OP_READ, &rd);
	deferred(&w[6], &g, 4, FI_OP_ATOMIC, &atomic);
	deferred(&w[7], &g, 5, FI_OP_FETCH_ATOMIC, &fetch);
	deferred(&w[8], &g, 6, FI_OP_COMPARE_ATOMIC, &cmp);
	deferred(&w[9], &g, 6, FI_OP_CNTR_ADD, &add);
	deferred(&w[10], &g, 106, FI_OP_CNTR_SET, &set);
	rma.key = 0; /* what work refers to was copied, but for the data */
	rioc.key = 0;
	wait_none(&g.n, g.n.txcq, 10);
	CHECK(fi_cntr_read(g.done) == 0);

	OK(fi_cntr_add(g.on, 1)); /* receives */
	OK(fi_cntr_add(g.on, 1)); /* sends and the write */
	OK(fi_cntr_wait(g.done, 5, 20000));
	CHECK(buf[1] == 5 && buf[3] == 6);
	barrier(&g.n);
	OK(fi_cntr_adderr(g.on, 1)); /* errors count */
	OK(fi_cntr_wait(g.done, 6, 20000));
	CHECK(buf[5] == 9);
	barrier(&g.n);
	OK(fi_cntr_add(g.on, 1));
	OK(fi_cntr_wait(g.done, 7, 20000));
	OK(fi_cntr_add(g.on, 1));
	OK(fi_cntr_wait(g.done, 8, 20000));
	CHECK(old[0] == 10);
	OK(fi_cntr_add(g.on, 1));
	OK(fi_cntr_wait(g.done, 9, 20000));
	CHECK(old[1] == 11);
	CHECK(fi_cntr_read(g.on) == 1000);
	CHECK(fi_cntr_readerr(g.done) == 0);
	wait_none(&g.n, g.n.txcq, 10);
	wait_none(&g.n, g.n.rxcq, 10);
	close_trig(&g);
}

/* The end of deferred work triggers a change of a counter, at an endpoint of which nothing but that counter is read. */
static void test_cascade(long arg)
{
	static struct fi_deferred_work w[2];
	uint64_t buf[2] = { 5, 0 }, until;
	struct fid_cntr *last;
	struct trig g;

	open_trig(&g, &opts);
	last = counter(&g, FI_WAIT_UNSPEC);
	struct iovec v[] = { { &buf[0], 8 }, { &buf[1], 8 } };
	struct fi_op_msg send = { g.n.ep, { .msg_iov = &v[0], .iov_count = 1, .addr = g.n.peer[1 - test_rank] }, 0 };
	struct fi_op_cntr add = { last, 100 };

	OK(fi_recv(g.n.ep, &buf[1], 8, NULL, FI_ADDR_UNSPEC, &g));
	barrier(&g.n);
	deferred(&w[0], &g, 1, FI_OP_SEND, &send);
	w[1] = (struct fi_deferred_work){
		.threshold = 1,
		.triggering_cntr = g.done,
		.op_type = FI_OP_CNTR_ADD,
		.op.cntr = &add,
	};
	OK(work(&g, FI_QUEUE_WORK, &w[1]));
	OK(fi_cntr_add(g.on, 1));
	if (arg)
		OK(fi_cntr_wait(last, 100, 20000));
	for (until = now_ms() + 20000; fi_cntr_read(last) != 100 && now_ms() < until;)
		;
	CHECKF(fi_cntr_read(last) == 100, "%llu", (unsigned long long)fi_cntr_read(last));
	wait_ctx(&g.n, g.n.rxcq, &g);
	CHECK(buf[1] == 5);
	barrier(&g.n);
	OK(fi_close(&last->fid));
	close_trig(&g);
}

/* Thousands outstanding, triggered in one step: the peer gets all in order. */
static void test_many(long arg)
{
	enum { MANY = 4000 };
	static struct fi_deferred_work w[MANY];
	static uint64_t value[MANY];
	struct node_opts o = opts;
	struct trig g;

	if (arg) {
		o.control = o.data = FI_PROGRESS_AUTO;
		o.wait = FI_WAIT_UNSPEC;
	}
	open_trig(&g, &o);
	for (int i = 0; i < MANY; i++) {
		struct iovec iov = { &value[i], 8 };
		struct fi_op_tagged op = { g.n.ep,
					   { .msg_iov = &iov, .iov_count = 1, .addr = g.n.peer[1], .tag = 1 },
					   0 };
		uint64_t got = 0;

		if (test_rank == 0) {
			value[i] = MANY - i;
			deferred(&w[i], &g, MANY - i, FI_OP_TSEND, &op);
			continue;
		}
		trecv(&g.n, &got, 8, FI_ADDR_UNSPEC, 1, 0, &got);
		wait_ctx(&g.n, g.n.rxcq, &got);
		CHECKF(got == (uint64_t)i + 1, "message %d says %lu", i, (unsigned long)got);
	}
	if (test_rank == 0) {
		OK(fi_cntr_add(g.on, MANY));
		OK(fi_cntr_wait(g.done, MANY, 25000));
	}
	close_trig(&g);
}

/* Work that is taken back does nothing, and is counted nowhere. */
static void test_cancel(long arg)
{
	static struct fi_deferred_work w[10];
	struct fi_triggered_context ctx;
	struct trig g;
	uint64_t x = 1;

	(void)arg;
	open_trig(&g, &opts);
	struct iovec iov = { &x, 8 };
	struct fi_op_msg op = { g.n.ep, { .msg_iov = &iov, .iov_count = 1, .addr = g.n.peer[test_rank] }, 0 };
	struct fid_cntr *other = counter(&g, FI_WAIT_NONE);

	for (int i = 0; i < 10; i++)
		deferred(&w[i], &g, 1, FI_OP_SEND, &op);
	OK(work(&g, FI_CANCEL_WORK, &w[3]));
	CHECK_RC(work(&g, FI_CANCEL_WORK, &w[3]), -FI_ENOENT);
	OK(work(&g, FI_FLUSH_WORK, other));
	CHECK_RC(fi_close(&g.on->fid), -FI_EBUSY);
	OK(fi_cntr_add(g.on, 1));
	OK(fi_cntr_wait(g.done, 9, 20000));
	CHECK_RC(work(&g, FI_CANCEL_WORK, &w[0]), -FI_ENOENT);
	for (int i = 0; i < 10; i++)
		deferred(&w[i], &g, 2, FI_OP_SEND, &op);
	OK(work(&g, FI_FLUSH_WORK, g.on));
	for (int i = 0; i < 10; i++)
		deferred(&w[i], &g, 2, FI_OP_SEND, &op);
	OK(work(&g, FI_FLUSH_WORK, NULL));
	OK(fi_cntr_add(g.on, 10));
	wait_none(&g.n, g.n.txcq, 20);
	CHECK(fi_cntr_read(g.done) == 9);

	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = g.n.peer[test_rank], .context = &ctx };
	condition(&ctx, g.on, 99);
	OK(fi_sendmsg(g.n.ep, &msg, FI_TRIGGER));
	OK(fi_cancel(&g.n.ep->fid, &ctx));
	wait_err(&g.n, g.n.txcq, FI_ECANCELED);
	CHECK(g.n.err.op_context == &ctx);

	/* a receive that is posted is taken back by its own context, and counted as failed */
	struct fi_op_tagged recv = { g.n.ep,
				     { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &x },
				     0 };
	uint64_t reached = fi_cntr_read(g.on);

	deferred(&w[0], &g, reached, FI_OP_TRECV, &recv);
	OK(fi_cancel(&g.n.ep->fid, &x));
	do {
		progress(&g.n);
	} while (!fi_cntr_readerr(g.done));
	wait_err(&g.n, g.n.rxcq, FI_ECANCELED);
	CHECK(g.n.err.op_context == &x);
	CHECK(fi_cntr_readerr(g.done) == 1 && fi_cntr_read(g.done) == 9);

	/* what still waits when its endpoint is closed lets go of its counters */
	deferred(&w[0], &g, reached + 99, FI_OP_SEND, &op);
	OK(fi_sendmsg(g.n.ep, &msg, FI_TRIGGER));
	OK(fi_close(&g.mr->fid));
	OK(fi_close(&g.n.ep->fid));
	OK(fi_close(&g.on->fid));
	OK(fi_close(&g.done->fid));
	OK(fi_close(&other->fid));
	g.n.ep = NULL;
	node_close(&g.n);
	guard_free(g.mem, LEN);
}

/* Bad input: the errno, and nothing happens. */
static void test_bad(long arg)
{
	struct fi_triggered_context ctx;
	struct fi_deferred_work w;
	struct trig g;
	uint64_t x = 1;

	(void)arg;
	open_trig(&g, &opts);
	struct iovec iov = { &x, 8 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = g.n.peer[0], .context = &ctx };
	struct fi_op_msg op = { g.n.ep, msg, 0 };
	struct fi_op_cntr cop = { g.on, 1 };

	memset(&w, 0, sizeof(w));
	w.op_type = FI_OP_SEND;
	w.op.msg = &op;
	CHECK_RC(work(&g, FI_QUEUE_WORK, NULL), -FI_EINVAL);
	CHECK_RC(work(&g, FI_CANCEL_WORK, NULL), -FI_EINVAL);
	CHECK_RC(work(&g, FI_CANCEL_WORK, &w), -FI_ENOENT);
	CHECK_RC(work(&g, FI_QUEUE_WORK, &w), -FI_EINVAL); /* no counter */
	w.triggering_cntr = (struct fid_cntr *)g.n.ep;
	CHECK_RC(work(&g, FI_QUEUE_WORK, &w), -FI_EINVAL);
	w.triggering_cntr = g.on;
	w.completion_cntr = (struct fid_cntr *)g.mr;
	CHECK_RC(work(&g, FI_QUEUE_WORK, &w), -FI_EINVAL);
	w.completion_cntr = g.done;
	w.op.msg = NULL;
	CHECK_RC(work(&g, FI_QUEUE_WORK, &w), -FI_EINVAL);
	w.op.msg = &op;
	op.ep = NULL;
	CHECK_RC(work(&g, FI_QUEUE_WORK, &w), -FI_EINVAL);
	op.ep = g.n.ep;
	op.msg.addr = 12345;
	CHECK_RC(work(&g, FI_QUEUE_WORK, &w), -FI_EINVAL);
	op.msg.addr = g.n.peer[0];
	op.flags = FI_PEEK;
	CHECK_RC(work(&g, FI_QUEUE_WORK, &w), -FI_EBADFLAGS);
	w.op_type = FI_OP_RECV;
	op.flags = FI_MULTI_RECV;
	CHECK_RC(work(&g, FI_QUEUE_WORK, &w), -FI_ENOSYS);
	w.op_type = FI_OP_CNTR_ADD;
	w.op.cntr = &cop;
	CHECK_RC(work(&g, FI_QUEUE_WORK, &w), -FI_EINVAL); /* with a completion counter */
	w.op_type = 99;
	CHECK_RC(work(&g, FI_QUEUE_WORK, &w), -FI_ENOSYS);
	CHECK_RC(fi_control(&g.n.domain->fid, 9999, NULL), -FI_ENOSYS);

	condition(&ctx, NULL, 0);
	CHECK_RC(fi_sendmsg(g.n.ep, &msg, FI_TRIGGER), -FI_EINVAL);
	condition(&ctx, g.on, 0);
	ctx.event_type = FI_TRIGGER_XPU;
	CHECK_RC(fi_sendmsg(g.n.ep, &msg, FI_TRIGGER), -FI_ENOSYS);
	msg.context = NULL;
	CHECK_RC(fi_sendmsg(g.n.ep, &msg, FI_TRIGGER), -FI_EINVAL);
	CHECK(fi_cntr_read(g.done) == 0);
	wait_none(&g.n, g.n.txcq, 5);
	close_trig(&g);
}

/* Endpoints that did not ask for triggered operations refuse them. */
static void test_without(long arg)
{
	struct fi_triggered_context ctx;
	struct fi_deferred_work w = { .op_type = FI_OP_CNTR_ADD };
	struct node n;
	struct fid_cntr *c;
	struct iovec iov = { &ctx, 8 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .context = &ctx };

	(void)arg;
	node_open(&n, NULL);
	node_connect(&n);
	OK(fi_cntr_open(n.domain, NULL, &c, NULL));
	struct fi_op_cntr op = { c, 1 };
	w.triggering_cntr = c;
	w.op.cntr = &op;
	msg.addr = n.peer[0];
	condition(&ctx, c, 0);
	CHECK_RC(fi_sendmsg(n.ep, &msg, FI_TRIGGER), -FI_EBADFLAGS);
	CHECK_RC(fi_control(&n.domain->fid, FI_QUEUE_WORK, &w), -FI_ENOSYS);
	OK(fi_close(&c->fid));
	node_close(&n);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "chain", test_chain, .procs = 2 },
		{ "chain_selective", test_chain, .procs = 2, .arg = 1 },
		{ "chain_rendezvous", test_chain_rendezvous, .procs = 2 },
		{ "alias", test_alias, .procs = 2 },
		{ "types", test_types, .procs = 2 },
		{ "cascade", test_cascade, .procs = 2 },
		{ "cascade_wait", test_cascade, .procs = 2, .arg = 1 },
		{ "many", test_many, .procs = 2 },
		{ "many_automatic", test_many, .procs = 2, .arg = 1 },
		{ "cancel", test_cancel, .procs = 1 },
		{ "bad_input", test_bad, .procs = 1 },
		{ "without_capability", test_without, .procs = 1 },
	};

	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
