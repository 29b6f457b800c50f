/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tag matching against a model: random exact tags, ignore masks and wildcards; posted receives are
 * searched in posting order, arrived messages in arrival order. Directed receives take only their
 * sender's messages.
 */
#include "common.h"

#define COUNT 400
#define MARK 0xfc0000000000ull /* within the 48 bits that tags have at some endpoints */
#define NONE (-1)

struct recv {
	uint64_t tag, ignore, value;
	int got; /* model: the message it must take */
};

static struct recv recvs[COUNT];
static uint64_t tags[COUNT]; /* of the messages, in sending order */

/* Few distinct tags, so that receives overlap in every way. */
static void plan(uint64_t seed)
{
	for (int i = 0; i < COUNT; i++) {
		uint64_t r = rnd(&seed);

		tags[i] = ((r >> 8) & 7) | ((r >> 20) & 3) << 40;
		recvs[i].tag = ((r >> 30) & 7) | ((r >> 40) & 3) << 40;
		recvs[i].ignore = 0;
		if (r % 4 == 1)
			recvs[i].ignore = 7;
		else if (r % 4 == 2)
			recvs[i].ignore = 3ull << 40;
		else if (r % 16 == 3)
			recvs[i].ignore = ~MARK;
		recvs[i].value = ~0ull;
		recvs[i].got = NONE;
	}
}

static bool matches(const struct recv *r, uint64_t tag)
{
	return ((r->tag ^ tag) & ~r->ignore) == 0;
}

/* Each message takes the first posted receive that matches. */
static void model_posted(void)
{
	for (int m = 0; m < COUNT; m++)
		for (int r = 0; r < COUNT; r++)
			if (recvs[r].got == NONE && matches(&recvs[r], tags[m])) {
				recvs[r].got = m;
				break;
			}
}

/* Each receive takes the first arrived message that matches. */
static void model_unexpected(void)
{
	bool taken[COUNT] = { false };

	for (int r = 0; r < COUNT; r++)
		for (int m = 0; m < COUNT; m++)
			if (!taken[m] && matches(&recvs[r], tags[m])) {
				taken[m] = true;
				recvs[r].got = m;
				break;
			}
}

static void post_recvs(struct node *n)
{
	for (int r = 0; r < COUNT; r++)
		trecv(n, &recvs[r].value, sizeof(recvs[r].value), FI_ADDR_UNSPEC, recvs[r].tag, recvs[r].ignore,
		      &recvs[r]);
}

/* Sends everything, then a marker that is matched only after all before it has arrived. */
static void send_all(struct node *n)
{
	static uint64_t values[COUNT + 1];
	struct fi_cq_tagged_entry e;

	for (uint64_t m = 0; m <= COUNT; m++) {
		values[m] = m;
		tsend(n, &values[m], sizeof(values[m]), n->peer[1], m < COUNT ? tags[m] : MARK, &values[m]);
	}
	for (int m = 0; m <= COUNT; m++)
		wait_ok(n, n->txcq, &e);
}

static void await_mark(struct node *n, uint64_t *value)
{
	struct fi_cq_tagged_entry e;

	do
		wait_ok(n, n->rxcq, &e);
	while (e.op_context != value); /* receives may complete before it */
	CHECK(*value == COUNT);
}

/* What the model left over is taken by what matches anything, or canceled. */
static void check(struct node *n, int done)
{
	struct fi_cq_tagged_entry e;
	int want = 0;

	for (int r = 0; r < COUNT; r++)
		want += recvs[r].got != NONE;
	for (; done < want; done++)
		wait_ok(n, n->rxcq, &e);
	for (int r = 0; r < COUNT; r++)
		CHECKF(recvs[r].value == (uint64_t)recvs[r].got,
		       "receive %d (tag %#llx ignore %#llx) has message %lld, want %d", r,
		       (unsigned long long)recvs[r].tag, (unsigned long long)recvs[r].ignore, (long long)recvs[r].value,
		       recvs[r].got);
	for (int r = 0; r < COUNT; r++)
		if (recvs[r].got == NONE) {
			OK(fi_cancel(&n->ep->fid, &recvs[r]));
			wait_err(n, n->rxcq, FI_ECANCELED);
			CHECK(n->err.op_context == &recvs[r]);
		}
	for (; want < COUNT; want++) {
		uint64_t value;

		trecv(n, &value, sizeof(value), FI_ADDR_UNSPEC, 0, ~0ull, &value);
		wait_ctx(n, n->rxcq, &value);
	}
	wait_none(n, n->rxcq, 1);
}

static void test_posted(long arg)
{
	uint64_t mark = 0;
	struct node n;

	node_open(&n, NULL);
	node_connect(&n);
	for (uint64_t seed = 1; seed <= (uint64_t)arg; seed++) {
		plan(seed);
		if (test_rank) {
			struct fi_cq_tagged_entry e;
			int done = 0;

			model_posted();
			post_recvs(&n);
			trecv(&n, &mark, sizeof(mark), FI_ADDR_UNSPEC, MARK, 0, &mark);
			barrier(&n);
			for (;; done++) {
				wait_ok(&n, n.rxcq, &e);
				if (e.op_context == &mark)
					break;
			}
			check(&n, done);
		} else {
			barrier(&n);
			send_all(&n);
		}
		barrier(&n);
	}
	node_close(&n);
}

static void test_unexpected(long arg)
{
	uint64_t mark = 0;
	struct node n;

	node_open(&n, NULL);
	node_connect(&n);
	for (uint64_t seed = 100; seed < 100 + (uint64_t)arg; seed++) {
		plan(seed);
		if (test_rank) {
			model_unexpected();
			trecv(&n, &mark, sizeof(mark), FI_ADDR_UNSPEC, MARK, 0, &mark);
			await_mark(&n, &mark);
			post_recvs(&n);
			check(&n, 0);
		} else {
			send_all(&n);
		}
		barrier(&n);
	}
	node_close(&n);
}

/* Two senders with the same tags; directed receives sort them out, the wildcard takes the rest. */
static void directed_receiver(struct node *n, bool late)
{
	static uint64_t got[3][COUNT];
	uint64_t next[3] = { 0 };
	struct fi_cq_tagged_entry e;
	uint64_t mark;

	if (late)
		for (int s = 1; s <= 2; s++) {
			trecv(n, &mark, sizeof(mark), n->peer[s], MARK, 0, &mark);
			wait_ctx(n, n->rxcq, &mark);
		}
	for (int i = 0; i < COUNT; i++)
		for (int s = 2; s >= 1; s--)
			trecv(n, &got[s][i], 8, i < COUNT / 2 ? n->peer[s] : FI_ADDR_UNSPEC, 5, 0, &got[s][i]);
	barrier(n);
	for (int i = 0; i < 2 * COUNT; i++)
		wait_ok(n, n->rxcq, &e);
	for (int i = 0; i < COUNT; i++)
		for (int s = 2; s >= 1; s--) {
			uint64_t from = got[s][i] >> 32;

			CHECK(from == 1 || from == 2);
			if (i < COUNT / 2)
				CHECKF(from == (uint64_t)s, "receive from %d got one of %d", s, (int)from);
			CHECKF((uint32_t)got[s][i] == next[from], "sender %d: got %u, want %u", (int)from,
			       (uint32_t)got[s][i], (uint32_t)next[from]);
			next[from]++;
		}
}

static void test_directed(long arg)
{
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV };
	static uint64_t values[COUNT + 1];
	struct fi_cq_tagged_entry e;
	struct node n;

	node_open(&n, &o);
	node_connect(&n);
	if (test_rank == 0) {
		directed_receiver(&n, arg);
	} else {
		if (!arg)
			barrier(&n);
		for (uint64_t i = 0; i <= COUNT; i++) {
			values[i] = (uint64_t)test_rank << 32 | i;
			if (i == COUNT && !arg)
				break;
			tsend(&n, &values[i], 8, n.peer[0], i < COUNT ? 5 : MARK, &values[i]);
		}
		if (arg)
			barrier(&n);
		for (int i = 0; i < COUNT + (arg ? 1 : 0); i++)
			wait_ok(&n, n.txcq, &e);
	}
	barrier(&n);
	node_close(&n);
}

/* Tagged and untagged messages never match each other. */
static void test_kinds_apart(long arg)
{
	struct fi_cq_tagged_entry e;
	uint64_t a = 1, b = 2, got_t = 0, got_m = 0;
	struct op plain = { .buf = &b, .len = 8, .ctx = &b };
	struct op any = { .buf = &got_m, .len = 8, .addr = FI_ADDR_UNSPEC, .ctx = &got_m };
	struct node n;

	(void)arg;
	node_open(&n, NULL);
	node_connect(&n);
	plain.addr = n.peer[0];
	trecv(&n, &got_t, 8, FI_ADDR_UNSPEC, 0, ~0ull, &got_t);
	post_send(&n, &plain);
	wait_none(&n, n.rxcq, 20);
	tsend(&n, &a, 8, n.peer[0], 9, &a);
	wait_ok(&n, n.rxcq, &e);
	CHECK(e.op_context == &got_t && got_t == 1 && e.tag == 9);
	post_recv(&n, &any);
	wait_ctx(&n, n.rxcq, &got_m);
	CHECK(got_m == 2);
	node_close(&n);
}

static const struct test tests[] = {
	{ "model_posted", test_posted, 2, 60, 40 },	    { "model_unexpected", test_unexpected, 2, 60, 40 },
	{ "directed_posted", test_directed, 3, 60, false }, { "directed_unexpected", test_directed, 3, 60, true },
	{ "kinds_apart", test_kinds_apart, 1, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
