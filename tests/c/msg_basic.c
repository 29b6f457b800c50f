/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every form of send into every form of receive, over the sizes around each protocol switch, posted
 * before and after the message arrives, between two processes both ways and within one process.
 */
#include "common.h"

#define SEND_FORMS 7 /* the six of enum form, and fi_sendmsg with FI_REMOTE_CQ_DATA | FI_INJECT */
#define RECV_FORMS 3
#define BATCH (2 * SEND_FORMS * RECV_FORMS)

struct slot {
	struct op send, recv;
	char *out, *in;
	uint64_t seed;
	bool used, completes, arrives, carries_data;
};

static struct slot slots[BATCH];
static const size_t edges[] = { 0, 1, 8, 24, 25, 4095, 4096, 4097, 16383, 16384, 16385, 65536, 65537, (1 << 20) + 3 };

static bool with_completion(const struct slot *s)
{
	return s->send.form != F_INJECT && s->send.form != F_INJECTDATA;
}

static void plan_send(struct node *n, struct slot *s, int form, size_t len, uint64_t salt)
{
	static const enum form forms[] = { F_PLAIN, F_V, F_MSG, F_INJECT, F_DATA, F_INJECTDATA, F_MSG };
	size_t limit = n->info->tx_attr->iov_limit, pieces = 1 + salt % (limit ? limit : 1);

	s->used = true;
	s->send.form = forms[form];
	s->completes = with_completion(s);
	s->carries_data = s->send.form == F_DATA || s->send.form == F_INJECTDATA || form == 6;
	if (form == 6)
		s->send.flags = FI_REMOTE_CQ_DATA | FI_INJECT;
	if ((form == 6 || !s->completes) && len > n->info->tx_attr->inject_size)
		s->used = false;
	s->arrives = s->used;
	op_split(&s->send, s->out, len, pieces > XFER_IOV ? XFER_IOV : pieces, salt & 1);
}

/* Fills slots for one size; both sides call it with the same salt and so agree on everything. */
static void plan(struct node *n, size_t len, uint64_t salt)
{
	size_t limit = n->info->rx_attr->iov_limit;

	for (int i = 0; i < BATCH; i++) {
		struct slot *s = &slots[i];
		bool tagged = i >= BATCH / 2;
		int form = i / RECV_FORMS % SEND_FORMS;
		size_t pieces = 1 + (salt + (size_t)i) % (limit ? limit : 1);

		memset(s, 0, sizeof(*s));
		s->out = guard_alloc(len);
		s->in = guard_alloc(len);
		s->seed = salt * BATCH + (uint64_t)i;
		s->send.tagged = s->recv.tagged = tagged;
		plan_send(n, s, form, len, salt + (uint64_t)i);
		op_split(&s->recv, s->in, len, pieces > XFER_IOV ? XFER_IOV : pieces, i & 1);
		s->recv.form = (enum form)(i % RECV_FORMS);
		s->send.tag = s->recv.tag = 0xabcd000000000000ull + s->seed;
		s->send.data = s->seed * 0x0101010101010101ull;
		s->recv.addr = FI_ADDR_UNSPEC;
		s->send.ctx = &s->send;
		s->recv.ctx = &s->recv;
	}
}

static void unplan(size_t len)
{
	for (int i = 0; i < BATCH; i++) {
		guard_free(slots[i].out, len);
		guard_free(slots[i].in, len);
	}
}

static void post_all_recv(struct node *n)
{
	for (int i = 0; i < BATCH; i++)
		if (slots[i].used)
			post_recv(n, &slots[i].recv);
}

static void post_all_send(struct node *n, fi_addr_t to)
{
	for (int i = 0; i < BATCH; i++) {
		struct slot *s = &slots[i];

		if (!s->used)
			continue;
		fill(s->out, s->send.len, s->seed);
		s->send.addr = to;
		post_send(n, &s->send);
		/* Injected buffers belong to the caller again. */
		if (!s->completes || (s->send.flags & FI_INJECT))
			memset(s->out, 0x11, s->send.len);
	}
}

static void check_flags(const struct slot *s, uint64_t flags, uint64_t want)
{
	if (deviates("cq-flags"))
		flags &= want;
	CHECKF(flags == want, "form %d->%d len %zu: flags %#llx, want %#llx", s->send.form, s->recv.form, s->send.len,
	       (unsigned long long)flags, (unsigned long long)want);
}

static void collect_sent(struct node *n)
{
	struct fi_cq_tagged_entry e;

	for (int i = 0; i < BATCH; i++) {
		struct slot *s;

		if (!slots[i].used || !with_completion(&slots[i]))
			continue;
		wait_ok(n, n->txcq, &e);
		s = (struct slot *)((char *)e.op_context - offsetof(struct slot, send));
		CHECK(s >= slots && s < slots + BATCH && s->used && s->completes);
		s->completes = false; /* each context once */
		check_flags(s, e.flags, FI_SEND | (s->send.tagged ? FI_TAGGED : FI_MSG));
	}
}

static void check_received(struct node *n, struct slot *s, const struct fi_cq_tagged_entry *e)
{
	uint64_t want = FI_RECV | (s->recv.tagged ? FI_TAGGED : FI_MSG);
	uint64_t mask =
		n->info->domain_attr->cq_data_size < 8 ? (1ull << 8 * n->info->domain_attr->cq_data_size) - 1 : ~0ull;

	if (s->carries_data) {
		want |= FI_REMOTE_CQ_DATA;
		CHECKF(e->data == (s->send.data & mask), "form %d, %zu bytes: data %#llx, want %#llx", s->send.form,
		       s->send.len, (unsigned long long)e->data, (unsigned long long)s->send.data);
	}
	check_flags(s, e->flags, want);
	CHECKF(e->len == s->send.len, "len %zu, want %zu", e->len, s->send.len);
	if (s->recv.tagged)
		CHECK(e->tag == s->send.tag);
	verify(s->in, s->send.len, s->seed);
}

static void collect_received(struct node *n)
{
	struct fi_cq_tagged_entry e;

	for (int i = 0; i < BATCH; i++) {
		struct slot *s;

		if (!slots[i].used)
			continue;
		wait_ok(n, n->rxcq, &e);
		s = (struct slot *)((char *)e.op_context - offsetof(struct slot, recv));
		CHECK(s >= slots && s < slots + BATCH && s->arrives);
		s->arrives = false;
		check_received(n, s, &e);
	}
}

static void one_size(struct node *n, size_t len, uint64_t salt, int sender, bool unexpected)
{
	bool self = test_procs == 1;

	plan(n, len, salt);
	if (self || test_rank != sender) {
		if (!unexpected)
			post_all_recv(n);
		barrier(n);
	} else {
		barrier(n);
	}
	if (self || test_rank == sender)
		post_all_send(n, n->peer[self ? 0 : !sender]);
	if (unexpected) {
		barrier(n);
		if (self || test_rank != sender)
			post_all_recv(n);
	}
	if (self || test_rank != sender)
		collect_received(n);
	if (self || test_rank == sender)
		collect_sent(n);
	barrier(n);
	unplan(len);
}

static void sizes(struct node *n, int sender, bool unexpected)
{
	uint64_t salt = 1 + (uint64_t)sender * 1000;

	for (size_t i = 0; i < ARRAY_LEN(edges); i++)
		one_size(n, edges[i], salt++, sender, unexpected);
	for (size_t len = 63; len <= 130; len++)
		one_size(n, len, salt++, sender, unexpected);
	wait_none(n, n->rxcq, 1);
	wait_none(n, n->txcq, 1);
}

/* arg: the threading model, plus 0x100 when the receives are posted late. */
static void test_forms(long arg)
{
	struct node_opts o = { .threading = (enum fi_threading)(arg & 0xff) };
	struct node n;

	node_open(&n, &o);
	node_connect(&n);
	for (int sender = 0; sender < test_procs; sender++)
		sizes(&n, sender, arg & 0x100);
	node_close(&n);
}

static const struct test tests[] = {
	{ "pair_posted", test_forms, 2, 120, FI_THREAD_UNSPEC },
	{ "pair_unexpected", test_forms, 2, 120, FI_THREAD_UNSPEC | 0x100 },
	{ "pair_posted_thread_safe", test_forms, 2, 120, FI_THREAD_SAFE },
	{ "pair_unexpected_thread_domain", test_forms, 2, 120, FI_THREAD_DOMAIN | 0x100 },
	{ "self_posted", test_forms, 1, 120, FI_THREAD_UNSPEC },
	{ "self_unexpected", test_forms, 1, 120, FI_THREAD_UNSPEC | 0x100 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
