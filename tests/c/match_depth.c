/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deep queues: many posted receives, many unexpected messages, taken in the order, in reverse and
 * mixed with wildcards. Correctness only; the time of each is printed for the reader.
 */
#include "common.h"

#define DEPTH 100000
#define OTHERS 900 /* what other providers are asked to hold: their queues are linear and bounded */
#define DONE 0xdddd000000000000ull

static uint64_t depth(void)
{
	return test_is_weft() ? DEPTH : OTHERS;
}

/* The tag of the k-th message or receive: forward, reverse or shuffled by an odd multiplier. */
static uint64_t tag_of(uint64_t k, long how)
{
	if (how == 1)
		return depth() - 1 - k;
	if (how == 2)
		return k * 7919 % depth(); /* 7919 is prime and divides neither depth */
	return k;
}

static void send_tags(struct node *n, long how, size_t len)
{
	struct fi_cq_tagged_entry e;
	uint64_t sent = 0, acked = 0, total = depth() + 1;
	uint64_t *values = malloc(total * sizeof(*values));
	char *big = calloc(1, len);

	CHECK(values && big);
	while (acked < total) {
		if (sent < total) {
			uint64_t tag = sent < depth() ? tag_of(sent, how) : DONE;
			struct op o = { .tagged = true,
					.buf = &values[sent],
					.len = 8,
					.addr = n->peer[1],
					.tag = tag,
					.ctx = &values[sent] };
			ssize_t rc;

			values[sent] = tag;
			if (len > 8 && sent < depth()) {
				o.buf = big; /* all alike: only the length is read */
				o.len = len;
			}
			rc = op_send(n->ep, &o);
			CHECKF(rc == 0 || rc == -FI_EAGAIN, "send %llu = %zd", (unsigned long long)sent, rc);
			sent += rc == 0;
		}
		while (wait_for(n, n->txcq, &e, 0) == 1)
			acked++;
	}
	free(values);
	free(big);
}

struct queue {
	uint64_t *got; /* by receive */
	bool *seen;    /* by message */
	char *big;     /* where messages that only have a length go */
	size_t len;
	bool wild; /* every other receive takes any message */
	uint64_t mark;
};

static void queue_open(struct queue *q, size_t len, bool wild)
{
	q->got = calloc(depth(), sizeof(*q->got));
	q->seen = calloc(depth(), sizeof(*q->seen));
	q->big = malloc(len);
	q->len = len;
	q->wild = wild;
	CHECK(q->got && q->seen && q->big);
}

static void queue_close(struct queue *q)
{
	free(q->got);
	free(q->seen);
	free(q->big);
}

static void post_all(struct node *n, struct queue *q)
{
	for (uint64_t k = 0; k < depth(); k++)
		trecv(n, q->len == 8 ? (char *)&q->got[k] : q->big, q->len, FI_ADDR_UNSPEC, k,
		      q->wild && k % 2 ? ~DONE : 0, &q->got[k]);
}

static void check_one(struct queue *q, const struct fi_cq_tagged_entry *e)
{
	uint64_t k = (uint64_t)((uint64_t *)e->op_context - q->got);

	CHECK(k < depth() && e->tag < depth());
	CHECKF(!q->seen[e->tag], "message %llu came twice", (unsigned long long)e->tag);
	q->seen[e->tag] = true;
	CHECKF(e->len == q->len, "message %llu has %zu bytes", (unsigned long long)k, e->len);
	if (q->len == 8)
		CHECK(q->got[k] == e->tag);
	if (!q->wild || k % 2 == 0)
		CHECKF(e->tag == k, "receive %llu got message %llu", (unsigned long long)k, (unsigned long long)e->tag);
}

/* Takes all completions; with marked, the marker's among them. */
static void drain(struct node *n, struct queue *q, bool marked)
{
	struct fi_cq_tagged_entry e;

	for (uint64_t i = 0; i < depth() + marked; i++) {
		wait_ok(n, n->rxcq, &e);
		if (e.op_context == &q->mark)
			CHECK(marked && q->mark == DONE);
		else
			check_one(q, &e);
	}
}

static void receiver(struct node *n, size_t len, bool posted, bool wild)
{
	struct queue q = { 0 };
	bool marked = posted || len > 8;
	uint64_t start;

	queue_open(&q, len, wild);
	trecv(n, &q.mark, 8, FI_ADDR_UNSPEC, DONE, 0, &q.mark);
	if (!marked)
		wait_ctx(n, n->rxcq, &q.mark);
	for (uint64_t end = now_ms() + 300; len > 8 && now_ms() < end;)
		progress(n); /* so much that the senders may be delayed: no marker to wait for */
	start = now_us();
	post_all(n, &q);
	if (posted) {
		barrier(n);
		start = now_us();
	}
	drain(n, &q, marked);
	note("%llu messages of %zu bytes: %llu ns each", (unsigned long long)depth(), len,
	     (unsigned long long)((now_us() - start) * 1000 / depth()));
	wait_none(n, n->rxcq, 1);
	queue_close(&q);
}

static void depth_test(long how, size_t len, bool posted, bool wild)
{
	struct node_opts o = { .cq_size = depth() + 1024 };
	struct node n;

	node_open(&n, &o);
	node_connect(&n);
	if (test_rank == 0) {
		if (posted)
			barrier(&n);
		send_tags(&n, how, len);
	} else {
		receiver(&n, len, posted, wild);
	}
	barrier(&n);
	node_close(&n);
}

static void test_posted(long how)
{
	depth_test(how, 8, true, false);
}
static void test_unexpected(long how)
{
	depth_test(how, 8, false, false);
}
static void test_unexpected_large(long how)
{
	depth_test(how, 1000, false, false);
}

/* In order, so that exact and wildcard receives take turns and nothing is left over. */
static void test_wild(long posted)
{
	depth_test(0, 8, posted, true);
}

static const struct test tests[] = {
	{ "posted_in_order", test_posted, 2, 120, 0 },
	{ "posted_reverse", test_posted, 2, 120, 1 },
	{ "posted_shuffled", test_posted, 2, 120, 2 },
	{ "unexpected_in_order", test_unexpected, 2, 120, 0 },
	{ "unexpected_reverse", test_unexpected, 2, 120, 1 },
	{ "unexpected_shuffled", test_unexpected, 2, 120, 2 },
	{ "unexpected_1000_bytes", test_unexpected_large, 2, 120, 2 },
	{ "posted_wildcards", test_wild, 2, 120, true },
	{ "unexpected_wildcards", test_wild, 2, 120, false },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
