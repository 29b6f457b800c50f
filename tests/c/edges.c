/* SPDX-License-Identifier: BSD-2-Clause */
/* Truncation (FI_ETRUNC and olen) and zero-length messages. */
#include "common.h"

struct trunc {
	size_t sent, room;
};

static const struct trunc truncs[] = {
	{ 1, 0 },    { 8, 7 },	     { 24, 8 },	       { 100, 99 },  { 130, 64 },      { 4096, 4095 },
	{ 4097, 1 }, { 65536, 100 }, { 65537, 65536 }, { 80000, 0 }, { 80000, 30000 }, { (1 << 20) + 3, 1 << 20 },
};

static void check_truncated(struct node *n, struct op *r, size_t sent, uint64_t seed)
{
	wait_err(n, n->rxcq, FI_ETRUNC);
	CHECK(n->err.op_context == r->ctx);
	CHECKF(n->err.olen == sent - r->len, "olen %zu, want %zu (%zu into %zu)", n->err.olen, sent - r->len, sent,
	       r->len);
	if (!deviates("trunc-len"))
		CHECKF(n->err.len == r->len, "len %zu, want %zu", n->err.len, r->len);
	CHECK(n->err.flags & FI_RECV);
	CHECK(n->err.flags & (r->tagged ? FI_TAGGED : FI_MSG));
	if (r->tagged)
		CHECK(n->err.tag == r->tag);
	verify(r->buf, r->len, seed);
}

static void truncate_one(struct node *n, const struct trunc *t, uint64_t seed, bool tagged, bool late, enum form form)
{
	size_t limit = n->info->rx_attr->iov_limit;
	struct op o = { .form = form, .tagged = tagged, .tag = seed };
	char *buf;

	if (test_rank == 0) {
		buf = malloc(t->sent);
		CHECK(buf != NULL);
		fill(buf, t->sent, seed);
		if (!late)
			barrier(n);
		o.form = F_PLAIN;
		o.buf = o.ctx = buf;
		o.len = t->sent;
		o.addr = n->peer[1];
		post_send(n, &o);
		if (late)
			barrier(n);
		wait_ctx(n, n->txcq, buf); /* the sender's completion is good */
		free(buf);
		return;
	}
	if (late)
		barrier(n);
	buf = guard_alloc(t->room);
	op_split(&o, buf, t->room, limit < 3 ? limit : 3, true);
	o.addr = FI_ADDR_UNSPEC;
	o.ctx = buf;
	post_recv(n, &o);
	if (!late)
		barrier(n);
	check_truncated(n, &o, t->sent, seed);
	guard_free(buf, t->room);
}

static void test_truncation(long late)
{
	struct node n;
	uint64_t seed = 1;

	node_open(&n, NULL);
	node_connect(&n);
	for (size_t i = 0; i < ARRAY_LEN(truncs); i++)
		for (int tagged = 0; tagged <= 1; tagged++)
			for (enum form f = F_PLAIN; f <= F_MSG; f++) {
				char after[8], in[8];

				truncate_one(&n, &truncs[i], seed++, tagged, late, f);
				/* The next message is whole. */
				fill(after, 8, seed);
				if (test_rank == 0) {
					tsend(&n, after, 8, n.peer[1], 0xffff, after);
					wait_ctx(&n, n.txcq, after);
				} else {
					trecv(&n, in, 8, FI_ADDR_UNSPEC, 0xffff, 0, in);
					wait_ctx(&n, n.rxcq, in);
					verify(in, 8, seed);
				}
				seed++;
			}
	barrier(&n);
	wait_none(&n, n.rxcq, 1);
	node_close(&n);
}

/* Every form with no data at all: buffers and iovs may be anything, even NULL. */
static void test_zero(long late)
{
	static const enum form sends[] = { F_PLAIN, F_V, F_MSG, F_INJECT, F_DATA, F_INJECTDATA };
	struct fi_cq_tagged_entry e;
	struct node n;
	int ctx;

	node_open(&n, NULL);
	node_connect(&n);
	for (int tagged = 0; tagged <= 1; tagged++)
		for (size_t s = 0; s < ARRAY_LEN(sends); s++)
			for (enum form r = F_PLAIN; r <= F_MSG; r++) {
				struct op so = { .form = sends[s],
						 .tagged = tagged,
						 .tag = s,
						 .addr = n.peer[0],
						 .data = 0xd,
						 .ctx = &ctx };
				struct op ro = {
					.form = r, .tagged = tagged, .tag = s, .addr = FI_ADDR_UNSPEC, .ctx = &n
				};

				if (!late)
					post_recv(&n, &ro);
				post_send(&n, &so);
				for (int i = 0; late && i < 100; i++)
					progress(&n);
				if (late)
					post_recv(&n, &ro);
				wait_ok(&n, n.rxcq, &e);
				CHECK(e.op_context == &n && e.len == 0);
				if (tagged)
					CHECK(e.tag == s);
				if (sends[s] == F_DATA || sends[s] == F_INJECTDATA) {
					CHECK(e.flags & FI_REMOTE_CQ_DATA);
					CHECK(e.data == 0xd);
				}
				if (sends[s] != F_INJECT && sends[s] != F_INJECTDATA)
					wait_ctx(&n, n.txcq, &ctx);
			}
	wait_none(&n, n.txcq, 1);
	wait_none(&n, n.rxcq, 1);
	node_close(&n);
}

/* Nothing into a receive with room: the room stays untouched. */
static void test_zero_into_room(long arg)
{
	char *in = guard_alloc(100);
	struct fi_cq_tagged_entry e;
	struct node n;

	(void)arg;
	node_open(&n, NULL);
	node_connect(&n);
	memset(in, 0x6b, 100);
	trecv(&n, in, 100, FI_ADDR_UNSPEC, 1, 0, in);
	tsend(&n, NULL, 0, n.peer[0], 1, &n);
	wait_ok(&n, n.rxcq, &e);
	CHECK(e.op_context == in && e.len == 0);
	for (int i = 0; i < 100; i++)
		CHECK(in[i] == 0x6b);
	node_close(&n);
	guard_free(in, 100);
}

static const struct test tests[] = {
	{ "truncation_posted", test_truncation, 2, 0, false },
	{ "truncation_unexpected", test_truncation, 2, 0, true },
	{ "zero_posted", test_zero, 1, 0, false },
	{ "zero_unexpected", test_zero, 1, 0, true },
	{ "zero_into_room", test_zero_into_room, 1, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
