/* SPDX-License-Identifier: BSD-2-Clause */
/* FI_MULTI_RECV: one buffer takes many messages and is given back once it is (nearly) used up. */
#include "common.h"

#define MIN_LEFT 512
#define BUF_SIZE 65536
#define BUFS 2

struct mbuf {
	char *mem;
	size_t filled; /* the bytes below this are used */
	bool posted;
};

static struct mbuf bufs[BUFS];

static void post_buffer(struct node *n, struct mbuf *b)
{
	struct op o = { .form = F_MSG, .addr = FI_ADDR_UNSPEC, .flags = FI_MULTI_RECV, .ctx = b };

	CHECK(!b->posted);
	op_split(&o, b->mem, BUF_SIZE, 1, false);
	b->posted = true;
	b->filled = 0;
	post_recv(n, &o);
}

static size_t size_of(uint64_t k)
{
	return k * 37 % MIN_LEFT;
}

/* One message: inside the buffer, behind those before it, whole. */
static void take(const struct fi_cq_tagged_entry *e, uint64_t k)
{
	struct mbuf *b = e->op_context;
	size_t at = (size_t)((char *)e->buf - b->mem);

	CHECK(b == &bufs[0] || b == &bufs[1]);
	CHECK(b->posted);
	CHECKF(e->len == size_of(k), "message %llu has %zu bytes, want %zu", (unsigned long long)k, e->len, size_of(k));
	if (e->len == 0)
		return; /* the man page gives no place to nothing */
	CHECKF(at + e->len <= BUF_SIZE, "message at %zu", at);
	CHECKF(at >= b->filled, "message at %zu overlaps the one up to %zu", at, b->filled);
	verify(b->mem + at, e->len, k);
	b->filled = at + e->len;
}

/* Reads completions until count messages have come; buffers given back are posted again. */
static unsigned receive(struct node *n, uint64_t count)
{
	struct fi_cq_tagged_entry e;
	unsigned released = 0;

	for (uint64_t k = 0; k < count;) {
		wait_ok(n, n->rxcq, &e);
		if (e.flags & FI_RECV) {
			CHECK(e.flags & FI_MSG);
			take(&e, k++);
		} else {
			CHECKF(e.flags == FI_MULTI_RECV, "flags %#llx", (unsigned long long)e.flags);
		}
		if (e.flags & FI_MULTI_RECV) {
			struct mbuf *b = e.op_context;

			CHECKF(BUF_SIZE - b->filled < MIN_LEFT + 64 || b->filled == 0, "given back with %zu bytes left",
			       BUF_SIZE - b->filled);
			b->posted = false;
			released++;
			post_buffer(n, b);
		}
	}
	return released;
}

static void send_all(struct node *n, fi_addr_t to, uint64_t count)
{
	static char out[64][MIN_LEFT];
	struct fi_cq_tagged_entry e;

	for (uint64_t k = 0; k < count; k++) {
		struct op o = { .buf = out[k % 64], .len = size_of(k), .addr = to };

		if (k >= 64)
			wait_ok(n, n->txcq, &e);
		fill(o.buf, o.len, k);
		post_send(n, &o);
	}
	for (uint64_t k = 0; k < (count < 64 ? count : 64); k++)
		wait_ok(n, n->txcq, &e);
}

static void open_multi_min(struct node *n, size_t min)
{
	struct node_opts o = { .caps = FI_MSG | FI_MULTI_RECV, .disabled = true };

	node_open(n, &o);
	OK(fi_setopt(&n->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof(min)));
	OK(fi_enable(n->ep));
	node_connect(n);
}

static void open_multi(struct node *n)
{
	open_multi_min(n, MIN_LEFT);
}

/* With a minimum of 0 a buffer is given back when it is full to the last byte, by messages that come
 * after it was posted, or before. */
static void test_full(long late)
{
	char out[BUF_SIZE / 8];
	struct fi_cq_tagged_entry e;
	struct node n;
	size_t len = sizeof(size_t), min;

	open_multi_min(&n, 0);
	OK(fi_getopt(&n.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, &len));
	CHECK(min == 0);
	bufs[0].mem = guard_alloc(BUF_SIZE);
	if (!late)
		post_buffer(&n, &bufs[0]);
	for (uint64_t k = 0; k < 8; k++) {
		struct op o = { .buf = out, .len = sizeof(out), .addr = n.peer[0], .ctx = out };

		fill(out, sizeof(out), k);
		post_send(&n, &o);
		wait_ctx(&n, n.txcq, out);
	}
	if (late)
		post_buffer(&n, &bufs[0]);
	for (uint64_t k = 0; k < 8; k++) {
		wait_ok(&n, n.rxcq, &e);
		CHECK(e.len == sizeof(out));
		verify(e.buf, e.len, k);
		CHECKF(!(e.flags & FI_MULTI_RECV) == (k < 7), "message %d: flags %#llx", (int)k,
		       (unsigned long long)e.flags);
	}
	node_close(&n);
	guard_free(bufs[0].mem, BUF_SIZE);
}

static void test_stream(long late)
{
	enum { COUNT = 5000 };
	struct node n;

	open_multi(&n);
	if (test_rank == 0) {
		send_all(&n, n.peer[1], COUNT);
	} else {
		unsigned released;

		if (late)
			usleep(20000); /* the first messages are there before any buffer */
		for (int i = 0; i < BUFS; i++) {
			bufs[i].mem = guard_alloc(BUF_SIZE);
			post_buffer(&n, &bufs[i]);
		}
		released = receive(&n, COUNT);
		CHECKF(released >= 10, "only %u buffers given back", released);
		wait_none(&n, n.rxcq, 1);
	}
	barrier(&n);
	node_close(&n);
	for (int i = 0; i < BUFS && test_rank; i++)
		guard_free(bufs[i].mem, BUF_SIZE);
}

/* Not one byte past the buffer: a message that fits in no more is for the next buffer. */
static void test_cancel(long arg)
{
	struct fi_cq_tagged_entry e;
	char out[100];
	struct node n;

	(void)arg;
	open_multi(&n);
	bufs[0].mem = guard_alloc(BUF_SIZE);
	post_buffer(&n, &bufs[0]);
	fill(out, sizeof(out), 0);
	struct op o = { .buf = out, .len = sizeof(out), .addr = n.peer[0], .ctx = out };
	post_send(&n, &o);
	wait_ok(&n, n.rxcq, &e);
	CHECK(e.op_context == &bufs[0] && e.len == sizeof(out) && !(e.flags & FI_MULTI_RECV));
	verify(e.buf, e.len, 0);
	wait_ctx(&n, n.txcq, out);
	OK(fi_cancel(&n.ep->fid, &bufs[0]));
	wait_err(&n, n.rxcq, FI_ECANCELED);
	CHECK(n.err.op_context == &bufs[0]);
	node_close(&n);
	guard_free(bufs[0].mem, BUF_SIZE);
}

/* Completions suppressed: the one that gives the buffer back still comes. */
static void test_selective(long arg)
{
	struct node_opts o = { .caps = FI_MSG | FI_MULTI_RECV, .rx_bind = FI_SELECTIVE_COMPLETION };
	struct fi_cq_tagged_entry e;
	size_t got = 0;
	char out[4096];
	struct node n;

	(void)arg;
	node_open(&n, &o);
	node_connect(&n);
	bufs[0].mem = guard_alloc(BUF_SIZE);
	post_buffer(&n, &bufs[0]);
	fill(out, sizeof(out), 1);
	for (int i = 0; i < BUF_SIZE / 4096; i++) {
		struct op s = { .buf = out, .len = sizeof(out), .addr = n.peer[0], .ctx = out };

		post_send(&n, &s);
		wait_ctx(&n, n.txcq, out);
		if (wait_for(&n, n.rxcq, &e, 0) == 1)
			got += (e.flags & FI_MULTI_RECV) != 0;
	}
	while (!got) {
		wait_ok(&n, n.rxcq, &e);
		got += (e.flags & FI_MULTI_RECV) != 0;
	}
	CHECK(got == 1 && e.op_context == &bufs[0]);
	node_close(&n);
	for (size_t i = 0; i < BUF_SIZE; i += 4096)
		verify(bufs[0].mem + i, 4096, 1);
	guard_free(bufs[0].mem, BUF_SIZE);
}

static const struct test tests[] = {
	{ "stream", test_stream, 2, 0, false }, { "stream_late", test_stream, 2, 0, true },
	{ "full", test_full, 1, 0, false },	{ "full_late", test_full, 1, 0, true },
	{ "cancel", test_cancel, 1, 0, 0 },	{ "selective", test_selective, 1, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
