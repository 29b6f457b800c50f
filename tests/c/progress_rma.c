/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One-sided operations on a target that never calls the library: with FI_PROGRESS_AUTO they are
 * performed, acknowledged and counted while it sleeps.
 */
#include "common.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>

#define BYTES (1 << 20)
#define KEY 42
#define ADDS 1000

struct target {
	struct node n;
	struct fid_mr *mr;
	struct fid_cntr *remote;
	uint64_t *memory; /* BYTES */
};

static void open_target(struct target *t, uint64_t caps)
{
	struct node_opts o = {
		.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RMA_EVENT | caps,
		.control = FI_PROGRESS_AUTO,
		.data = FI_PROGRESS_AUTO,
		.tx_flags = FI_DELIVERY_COMPLETE,
		.disabled = true,
	};
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };

	node_open(&t->n, &o);
	CHECK(t->n.info->domain_attr->data_progress == FI_PROGRESS_AUTO);
	OK(fi_cntr_open(t->n.domain, &attr, &t->remote, NULL));
	OK(fi_ep_bind(t->n.ep, &t->remote->fid, FI_REMOTE_WRITE | FI_REMOTE_READ));
	OK(fi_enable(t->n.ep));
	t->n.o.disabled = false;
	t->memory = calloc(1, BYTES);
	CHECK(t->memory != NULL);
	OK(fi_mr_reg(t->n.domain, t->memory, BYTES, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &t->mr, NULL));
	CHECK(fi_mr_key(t->mr) == KEY);
	node_connect(&t->n);
}

static void close_target(struct target *t)
{
	barrier(&t->n);
	OK(fi_close(&t->mr->fid));
	OK(fi_close(&t->n.ep->fid));
	OK(fi_close(&t->remote->fid));
	t->n.ep = NULL;
	node_close(&t->n);
	free(t->memory);
}

/* Waits until the target's counter says so many, and no more: it may come after the data of a read. */
static void expect_counted(struct target *t, uint64_t want)
{
	for (uint64_t end = now_ms() + 20000; fi_cntr_read(t->remote) < want && now_ms() < end;)
		usleep(1000);
	usleep(10000); /* for one too many */
	CHECKF(fi_cntr_read(t->remote) == want, "counted %lu", (unsigned long)fi_cntr_read(t->remote));
}

/* Posts until there is room, then waits for the completion. */
#define DO(t, call) \
	do { \
		ssize_t rc_; \
		while ((rc_ = (call)) == -FI_EAGAIN) \
			progress(&(t)->n); \
		CHECKF(rc_ == 0, #call " = %zd (%s)", rc_, fi_strerror((int)-rc_)); \
		wait_ctx(&(t)->n, (t)->n.txcq, NULL); \
	} while (0)

static void test_write_read(long len)
{
	char *buf = malloc((size_t)len), byte;
	struct target t;

	CHECK(buf != NULL);
	open_target(&t, 0);
	if (test_rank == 1) {
		link_recv(0, &byte, 1); /* asleep, outside the library */
		verify(t.memory, (size_t)len, 3);
		expect_counted(&t, 2); /* a write and a read */
	} else {
		fill(buf, (size_t)len, 3);
		DO(&t, fi_write(t.n.ep, buf, (size_t)len, NULL, t.n.peer[1], 0, KEY, NULL));
		memset(buf, 0, (size_t)len);
		DO(&t, fi_read(t.n.ep, buf, (size_t)len, NULL, t.n.peer[1], 0, KEY, NULL));
		verify(buf, (size_t)len, 3);
		link_send(1, "d", 1);
	}
	close_target(&t);
	free(buf);
}

/* An operation on several pieces of the target's memory is one for its counter. */
static void test_pieces(long unused)
{
	static char buf[3000];
	struct target t;
	char byte;

	(void)unused;
	open_target(&t, 0);
	if (test_rank == 1) {
		link_recv(0, &byte, 1);
		expect_counted(&t, 2);
	} else {
		struct iovec iov = { buf, sizeof(buf) };
		struct fi_rma_iov there[] = { { 5, 1000, KEY }, { 2000, 1999, KEY }, { 5000, 1, KEY } };
		struct fi_msg_rma msg = {
			.msg_iov = &iov,
			.iov_count = 1,
			.addr = t.n.peer[1],
			.rma_iov = there,
			.rma_iov_count = ARRAY_LEN(there),
		};

		fill(buf, sizeof(buf), 4);
		DO(&t, fi_writemsg(t.n.ep, &msg, FI_COMPLETION));
		memset(buf, 0, sizeof(buf));
		DO(&t, fi_readmsg(t.n.ep, &msg, FI_COMPLETION));
		verify(buf, sizeof(buf), 4);
		link_send(1, "d", 1);
	}
	close_target(&t);
}

static void test_atomics(long unused)
{
	struct target t;
	char byte;

	(void)unused;
	open_target(&t, 0);
	if (test_rank == 1) {
		link_recv(0, &byte, 1);
		CHECK(t.memory[3] == ADDS);
	} else {
		uint64_t one = 1, before;

		for (uint64_t i = 0; i < ADDS; i++) {
			DO(&t, fi_fetch_atomic(t.n.ep, &one, 1, NULL, &before, NULL, t.n.peer[1], 24, KEY, FI_UINT64,
					       FI_SUM, NULL));
			CHECKF(before == i, "fetched %lu, want %lu", (unsigned long)before, (unsigned long)i);
		}
		link_send(1, "d", 1);
	}
	close_target(&t);
}

/* ---- triggered work ---- */

#define ANSWER 7

static void condition(struct fi_triggered_context *c, struct fid_cntr *cntr, size_t threshold)
{
	memset(c, 0, sizeof(*c));
	c->event_type = FI_TRIGGER_THRESHOLD;
	c->trigger.threshold.cntr = cntr;
	c->trigger.threshold.threshold = threshold;
}

/* What the target queues before it sleeps: a peer's write triggers a message, whose end triggers a
 * write into that peer's memory; a second write of the peer triggers another message. */
static void queue_answers(struct target *t, struct fid_cntr *done)
{
	static struct fi_deferred_work send, write;
	static struct fi_triggered_context ctx;
	static uint64_t first = 11, second = 22, third = 33;
	struct iovec iov = { &first, 8 }, write_iov = { &second, 8 }, last = { &third, 8 };
	struct fi_rma_iov to = { .addr = 8, .len = 8, .key = KEY };
	struct fi_op_tagged tsend = { t->n.ep,
				      { .msg_iov = &iov, .iov_count = 1, .addr = t->n.peer[0], .tag = ANSWER },
				      0 };
	struct fi_op_rma rma = {
		t->n.ep,
		{ .msg_iov = &write_iov, .iov_count = 1, .addr = t->n.peer[0], .rma_iov = &to, .rma_iov_count = 1 },
		0
	};
	struct fi_msg_tagged msg = {
		.msg_iov = &last, .iov_count = 1, .addr = t->n.peer[0], .tag = ANSWER + 1, .context = &ctx
	};

	send = (struct fi_deferred_work){ .threshold = 1,
					  .triggering_cntr = t->remote,
					  .completion_cntr = done,
					  .op_type = FI_OP_TSEND,
					  .op.tagged = &tsend };
	write = (struct fi_deferred_work){
		.threshold = 1, .triggering_cntr = done, .op_type = FI_OP_WRITE, .op.rma = &rma
	};
	OK(fi_control(&t->n.domain->fid, FI_QUEUE_WORK, &write));
	OK(fi_control(&t->n.domain->fid, FI_QUEUE_WORK, &send));
	condition(&ctx, t->remote, 2);
	OK(fi_tsendmsg(t->n.ep, &msg, FI_TRIGGER));
}

static void test_triggered(long unused)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *done;
	struct target t;
	char byte;

	(void)unused;
	open_target(&t, FI_TRIGGER);
	OK(fi_cntr_open(t.n.domain, &attr, &done, NULL));
	if (test_rank == 1) {
		queue_answers(&t, done);
		link_send(0, "q", 1);
		link_recv(0, &byte, 1); /* asleep, outside the library */
	} else {
		uint64_t one = 1, got[2] = { 0, 0 };

		link_recv(1, &byte, 1);
		for (uint64_t i = 0; i < 2; i++)
			trecv(&t.n, &got[i], 8, FI_ADDR_UNSPEC, ANSWER + i, 0, &got[i]);
		DO(&t, fi_write(t.n.ep, &one, 8, NULL, t.n.peer[1], 0, KEY, NULL));
		wait_ctx(&t.n, t.n.rxcq, &got[0]);
		CHECKF(got[0] == 11, "the first message says %lu", (unsigned long)got[0]);
		while (__atomic_load_n(&t.memory[1], __ATOMIC_ACQUIRE) != 22)
			usleep(1000);
		DO(&t, fi_write(t.n.ep, &one, 8, NULL, t.n.peer[1], 0, KEY, NULL));
		wait_ctx(&t.n, t.n.rxcq, &got[1]);
		CHECKF(got[1] == 33, "the second message says %lu", (unsigned long)got[1]);
		link_send(1, "d", 1);
	}
	barrier(&t.n);
	OK(fi_close(&done->fid));
	close_target(&t);
}

static const struct test tests[] = {
	{ "write_read_small", test_write_read, 2, 30, 8 },
	{ "write_read_large", test_write_read, 2, 30, BYTES },
	{ "pieces", test_pieces, 2, 0, 0 },
	{ "atomics", test_atomics, 2, 30, 0 },
	{ "triggered", test_triggered, 2, 30, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
