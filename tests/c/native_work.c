/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints of FI_PROTO_CXI: deferred work whose messages go at once, by rendezvous and injected, on either side, with
 * and without a completion. Without a NIC of Slingshot, or its model (tests/clients/cxi.sh), all is skipped. */
#include <rdma/fi_atomic.h>
#include <rdma/fi_trigger.h>

#include "native_rma.h"

static struct fid_cntr *on, *done; /* bound to nothing */

/* An endpoint with itself as its peer, whose queues complete what asks for it. */
static void open_work(void)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct node_opts o = opts;

	o.caps |= FI_TRIGGER;
	o.tx_bind = o.rx_bind = FI_SELECTIVE_COMPLETION;
	open_node(o);
	n.peer[1] = node_insert(&n, &n);
	OK(fi_cntr_open(n.domain, &attr, &on, NULL));
	OK(fi_cntr_open(n.domain, &attr, &done, NULL));
}

static void close_work(void)
{
	OK(fi_close(&on->fid));
	OK(fi_close(&done->fid));
	node_close(&n);
}

static int queue(struct fi_deferred_work *w, uint64_t threshold, enum fi_op_type type, void *op)
{
	memset(w, 0, sizeof(*w));
	w->threshold = threshold;
	w->triggering_cntr = on;
	w->completion_cntr = done;
	w->op_type = type;
	w->op.msg = op;
	return fi_control(&n.domain->fid, FI_QUEUE_WORK, w);
}

/* One message or receive, deferred. */
static int queue_message(struct fi_deferred_work *w, bool receive, bool tagged, size_t len, uint64_t threshold,
			 uint64_t flags)
{
	struct iovec iov = { receive ? back : local, len };
	fi_addr_t addr = receive ? FI_ADDR_UNSPEC : n.peer[1];
	struct fi_op_msg plain = { n.ep, { .msg_iov = &iov, .iov_count = 1, .addr = addr, .context = w }, flags };
	struct fi_op_tagged with_tag = { n.ep,
					 { .msg_iov = &iov, .iov_count = 1, .addr = addr, .context = w, .tag = 77 },
					 flags };

	if (tagged)
		return queue(w, threshold, receive ? FI_OP_TRECV : FI_OP_TSEND, &with_tag);
	return queue(w, threshold, receive ? FI_OP_RECV : FI_OP_SEND, &plain);
}

/* The same at once, with a completion. */
static void post_message(bool receive, bool tagged, size_t len)
{
	struct op o = { .form = F_MSG,
			.tagged = tagged,
			.tag = tagged ? 77 : 0,
			.flags = FI_COMPLETION,
			.ctx = &n,
			.addr = receive ? FI_ADDR_UNSPEC : n.peer[1] };

	op_split(&o, receive ? back : local, len, 1, false);
	(receive ? post_recv : post_send)(&n, &o);
}

/* A message of which one side or both are deferred, at a threshold that is reached already or later. */
static void one_message(int deferred, bool tagged, bool completes, size_t len, uint64_t later)
{
	struct fi_deferred_work send, receive;
	uint64_t count = fi_cntr_read(on), ended = fi_cntr_read(done), flags = completes ? FI_COMPLETION : 0;
	struct fi_cq_tagged_entry e;

	fill(local, len, len + (uint64_t)deferred);
	memset(back, 0, len);
	if (deferred & 1)
		OK(queue_message(&receive, true, tagged, len, count + later, flags));
	else
		post_message(true, tagged, len);
	if (deferred & 2)
		OK(queue_message(&send, false, tagged, len, count + later, flags));
	else
		post_message(false, tagged, len);
	if (later) {
		wait_none(&n, deferred & 2 ? n.txcq : n.rxcq, 3);
		CHECK(fi_cntr_read(done) == ended);
		OK(fi_cntr_add(on, later));
	}
	CHECK_RC(fi_cntr_wait(done, ended + (deferred == 3 ? 2 : 1), 60000), 0);
	if (!(deferred & 1) || completes) {
		wait_ok(&n, n.rxcq, &e);
		CHECK(e.op_context == (deferred & 1 ? (void *)&receive : &n) && e.len == len);
	}
	if (!(deferred & 2) || completes) {
		wait_ok(&n, n.txcq, &e);
		CHECK(e.op_context == (deferred & 2 ? (void *)&send : &n));
	}
	while (memcmp(back, local, len))
		progress(&n); /* a send may have ended first */
	CHECK(fi_cntr_readerr(done) == 0);
}

static void test_messages(long len)
{
	open_work();
	for (int k = 0; k < 24; k++)
		one_message(1 + k % 3, k / 3 % 2, k / 6 % 2, (size_t)len, k / 12 ? 4 : 0);
	wait_none(&n, n.rxcq, 2);
	wait_none(&n, n.txcq, 1);
	close_work();
}

/* What deferred work injects is what the buffer has when it is done; more than can be injected is refused. */
static void test_inject(long tagged)
{
	struct fi_deferred_work w;

	open_work();
	CHECK_RC(queue_message(&w, false, tagged, 193, 1, FI_INJECT | FI_COMPLETION), -FI_EINVAL);
	memset(local, 1, 192);
	post_message(true, tagged, 192);
	OK(queue_message(&w, false, tagged, 192, 1, FI_INJECT | FI_COMPLETION));
	memset(local, 2, 192);
	wait_none(&n, n.txcq, 2);
	OK(fi_cntr_add(on, 1));
	memset(local, 3, 192);
	wait_ctx(&n, n.rxcq, &n);
	wait_ctx(&n, n.txcq, &w);
	CHECK(back[0] == 2 && back[191] == 2);
	CHECK_RC(fi_cntr_wait(done, 1, 60000), 0);
	close_work();
}

/* Reads and writes of all lengths and atomic operations, by keys of both kinds; what has no region fails, and counts as
 * that. */
static void test_memory(long key)
{
	static const size_t lens[] = { 0, 8, 193, 5000, LARGE };
	uint64_t ended = 0, failed, one = 1;
	struct fid_mr *mr;

	open_work();
	mr = expose(memory, sizeof(memory), ALL, (uint64_t)key);
	for (size_t k = 0; k < 4 * ARRAY_LEN(lens); k++) {
		size_t len = lens[k / 4];
		bool read = k % 2, completes = k / 2 % 2;
		struct iovec iov = { read ? back : local, len };
		struct fi_rma_iov remote = { 16, len, (uint64_t)key };
		struct fi_op_rma op = {
			n.ep,
			{ .msg_iov = &iov, .iov_count = 1, .addr = n.peer[1], .rma_iov = &remote, .rma_iov_count = 1 },
			completes ? FI_COMPLETION : 0
		};
		struct fi_deferred_work w;

		op.msg.context = &w;
		fill(read ? memory + 16 : local, len, k);
		OK(queue(&w, k + 1, read ? FI_OP_READ : FI_OP_WRITE, &op));
		wait_none(&n, n.txcq, 1);
		OK(fi_cntr_add(on, 1));
		CHECK_RC(fi_cntr_wait(done, ++ended, 60000), 0);
		verify(read ? back : memory + 16, len, k);
		if (completes)
			wait_ctx(&n, n.txcq, &w);
	}
	memset(memory, 0, 8);
	for (uint64_t k = 0; k < 6; k++) { /* of no region in the end */
		struct fi_ioc ioc = { &one, 1 };
		struct fi_rma_ioc remote = { 0, 1, (uint64_t)key + (k == 5) };
		struct fi_op_atomic op = { n.ep,
					   { .msg_iov = &ioc,
					     .iov_count = 1,
					     .addr = n.peer[1],
					     .rma_iov = &remote,
					     .rma_iov_count = 1,
					     .datatype = FI_UINT64,
					     .op = FI_SUM },
					   0 };
		struct fi_deferred_work w;

		OK(queue(&w, 0, FI_OP_ATOMIC, &op));
		failed = k == 5;
		CHECK_RC(fi_cntr_wait(done, ++ended, 60000), failed ? -FI_EAVAIL : 0);
		CHECK(*(volatile uint64_t *)memory == k + !failed && fi_cntr_readerr(done) == failed);
	}
	wait_err(&n, n.txcq, FI_EIO);
	OK(fi_close(&mr->fid));
	close_work();
}

/* Work that is flushed does nothing and leaves its structures to the program; what is queued after it is done. */
static void test_flushed(long arg)
{
	static struct fi_deferred_work w[64];

	(void)arg;
	open_work();
	for (size_t k = 0; k < ARRAY_LEN(w); k++)
		OK(queue_message(&w[k], k % 2, k % 4 > 1, k % 3 ? 8 : LARGE, 1 + k % 5, FI_COMPLETION));
	OK(fi_control(&n.domain->fid, FI_FLUSH_WORK, NULL));
	memset(w, 0xff, sizeof(w));
	OK(fi_cntr_add(on, 100));
	wait_none(&n, n.txcq, 5);
	wait_none(&n, n.rxcq, 5);
	CHECK(fi_cntr_read(done) == 0);
	one_message(3, true, true, LARGE, 1);
	close_work();
}

static const struct test tests[] = {
	{ "messages_inline", test_messages, 1, 0, 100 },       { "messages_eager", test_messages, 1, 0, 1024 },
	{ "messages_rendezvous", test_messages, 1, 0, LARGE }, { "inject", test_inject, 1, 0, false },
	{ "inject_tagged", test_inject, 1, 0, true },	       { "memory", test_memory, 1, 0, 5000 },
	{ "memory_optimised", test_memory, 1, 0, 57 },	       { "flushed", test_flushed, 1, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
