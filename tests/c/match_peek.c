/* SPDX-License-Identifier: BSD-2-Clause */
/* FI_PEEK, FI_CLAIM and FI_DISCARD as fi_tagged(3) has them, over small and rendezvous messages. */
#include "common.h"

#define MARK 0xeeee00000000ull /* no more bits than tags of FI_PROTO_CXI have */

static struct fi_context2 ctx[8]; /* FI_CLAIM asks for a struct fi_context */

static int recvmsg_flags(struct node *n, void *buf, size_t len, uint64_t tag, uint64_t ignore, uint64_t flags,
			 void *context)
{
	struct op o = { .form = F_MSG,
			.tagged = true,
			.addr = FI_ADDR_UNSPEC,
			.tag = tag,
			.ignore = ignore,
			.flags = flags,
			.ctx = context };
	ssize_t rc;

	op_split(&o, buf, len, 1, false);
	while ((rc = op_recv(n->ep, &o)) == -FI_EAGAIN)
		progress(n);
	return (int)rc;
}

static void peek(struct node *n, uint64_t tag, uint64_t ignore, uint64_t flags, void *context)
{
	CHECK_RC(recvmsg_flags(n, NULL, 0, tag, ignore, FI_PEEK | flags, context), 0);
}

/* A peek that finds a message of this tag and length. */
static void peek_finds(struct node *n, uint64_t tag, uint64_t ignore, uint64_t flags, void *context, uint64_t want_tag,
		       size_t want_len)
{
	struct fi_cq_tagged_entry e;

	peek(n, tag, ignore, flags, context);
	wait_ok(n, n->rxcq, &e);
	CHECK(e.op_context == context);
	CHECK(e.flags & FI_RECV);
	CHECK(e.flags & FI_TAGGED);
	CHECKF(e.tag == want_tag, "tag %#llx, want %#llx", (unsigned long long)e.tag, (unsigned long long)want_tag);
	CHECKF(e.len == want_len, "length %zu, want %zu", e.len, want_len);
}

static void peek_misses(struct node *n, uint64_t tag, uint64_t ignore, uint64_t flags, void *context)
{
	peek(n, tag, ignore, flags, context);
	wait_err(n, n->rxcq, FI_ENOMSG);
	CHECK(n->err.op_context == context);
}

static void plain_receive(struct node *n, uint64_t tag, size_t len, uint64_t seed)
{
	char *buf = guard_alloc(len);
	struct fi_cq_tagged_entry e;

	trecv(n, buf, len, FI_ADDR_UNSPEC, tag, 0, buf);
	wait_ok(n, n->rxcq, &e);
	CHECK(e.op_context == buf && e.len == len && e.tag == tag);
	verify(buf, len, seed);
	guard_free(buf, len);
}

/* The sender: messages of tags 1 .. count with the seed of their tag, then the marker. */
struct sent {
	char *buf[16];
	int count;
};

static void send_tags(struct node *n, struct sent *s, int count, size_t len, uint64_t flags)
{
	s->count = count;
	for (int i = 1; i <= count; i++) {
		struct op o = { .form = F_MSG,
				.tagged = true,
				.addr = n->peer[1],
				.tag = (uint64_t)i,
				.data = 0xda7a0000ull + (uint64_t)i,
				.flags = flags | FI_COMPLETION,
				.ctx = s };

		s->buf[i] = malloc(len);
		CHECK(s->buf[i] != NULL);
		fill(s->buf[i], len, (uint64_t)i);
		op_split(&o, s->buf[i], len, 1, false);
		post_send(n, &o);
	}
	tsend(n, NULL, 0, n->peer[1], MARK, s);
}

static void sends_done(struct node *n, struct sent *s)
{
	for (int i = 0; i <= s->count; i++)
		wait_ctx(n, n->txcq, s);
	for (int i = 1; i <= s->count; i++)
		free(s->buf[i]);
}

static void await_mark(struct node *n)
{
	char nothing;

	trecv(n, &nothing, 0, FI_ADDR_UNSPEC, MARK, 0, &nothing);
	wait_ctx(n, n->rxcq, &nothing);
}

static void peeks(struct node *n, size_t len)
{
	struct fi_cq_tagged_entry e;

	peek_misses(n, 99, 0, 0, &ctx[0]);
	peek_finds(n, 2, 0, 0, &ctx[0], 2, len);
	peek_finds(n, 2, 0, 0, &ctx[1], 2, len);     /* a peek takes nothing away */
	peek_finds(n, 0, ~MARK, 0, &ctx[0], 1, len); /* the first that arrived */
	plain_receive(n, 1, len, 1);
	peek_misses(n, 1, 0, 0, &ctx[0]);
	peek_finds(n, 0, ~MARK, 0, &ctx[0], 2, len);
	peek(n, 3, 0, 0, &ctx[2]);
	wait_ok(n, n->rxcq, &e);
	CHECK(e.flags & FI_REMOTE_CQ_DATA);
	CHECK(e.data == 0xda7a0003ull);
	plain_receive(n, 3, len, 3);
	plain_receive(n, 2, len, 2);
}

static void claims(struct node *n, size_t len)
{
	char *buf = guard_alloc(len);
	struct fi_cq_tagged_entry e;

	peek_finds(n, 1, 0, FI_CLAIM, &ctx[0], 1, len);
	peek_misses(n, 1, 0, 0, &ctx[1]); /* a claimed message is no other's */
	peek_misses(n, 1, 0, FI_CLAIM, &ctx[1]);
	peek_finds(n, 3, 0, FI_CLAIM, &ctx[3], 3, len);
	plain_receive(n, 2, len, 2);
	/* The claims are retrieved in another order than they were made. */
	for (int i = 0; i < 2; i++) {
		uint64_t tag = i ? 1 : 3;
		void *context = i ? &ctx[0] : &ctx[3];

		CHECK_RC(recvmsg_flags(n, buf, len, tag, 0, FI_CLAIM, context), 0);
		wait_ok(n, n->rxcq, &e);
		CHECK(e.op_context == context && e.len == len && e.tag == tag);
		verify(buf, len, tag);
	}
	guard_free(buf, len);
}

static void discards(struct node *n, size_t len)
{
	peek_finds(n, 2, 0, FI_DISCARD, &ctx[0], 2, len);
	peek_misses(n, 2, 0, 0, &ctx[0]);
	peek_misses(n, 2, 0, FI_DISCARD, &ctx[0]);
	peek_finds(n, 1, 0, FI_CLAIM, &ctx[1], 1, len);
	CHECK_RC(recvmsg_flags(n, NULL, 0, 1, 0, FI_CLAIM | FI_DISCARD, &ctx[1]), 0);
	wait_ctx(n, n->rxcq, &ctx[1]);
	peek_misses(n, 1, 0, 0, &ctx[0]);
	plain_receive(n, 3, len, 3);
}

static void run(size_t len, uint64_t tx_flags, void (*receiver)(struct node *, size_t))
{
	struct sent s;
	struct node n;

	node_open(&n, NULL);
	node_connect(&n);
	if (test_rank == 0) {
		send_tags(&n, &s, 3, len, tx_flags);
		sends_done(&n, &s); /* discarded messages complete too */
	} else {
		await_mark(&n);
		receiver(&n, len);
		peek_misses(&n, 0, ~0ull, 0, &ctx[7]);
		wait_none(&n, n.rxcq, 1);
	}
	barrier(&n);
	node_close(&n);
}

static void test_peek(long len)
{
	run((size_t)len, FI_REMOTE_CQ_DATA, peeks);
}
static void test_claim(long len)
{
	run((size_t)len, 0, claims);
}
/* What the arguments of buffers are to a search that has no use for them: nothing. */
static void search_without_buffers(struct node *n, uint64_t tag, uint64_t flags, void *context, uint64_t want)
{
	struct iovec iov[2] = { { NULL, 100 }, { NULL, SIZE_MAX } };
	const struct fi_msg_tagged list[] = {
		{ .msg_iov = NULL, .iov_count = 1 },
		{ .msg_iov = NULL, .iov_count = 100000, .desc = NULL },
		{ .msg_iov = iov, .iov_count = 1 },
		{ .msg_iov = iov, .iov_count = 2 },
		{ .msg_iov = (struct iovec *)8, .iov_count = 2, .desc = (void **)8 },
	};
	bool takes = (flags & (FI_CLAIM | FI_DISCARD)) != 0;
	struct fi_cq_tagged_entry e;

	for (size_t i = 0; i < ARRAY_LEN(list); i++) {
		struct fi_msg_tagged m = list[i];
		ssize_t rc;

		m.addr = FI_ADDR_UNSPEC;
		m.tag = takes && !(flags & FI_PEEK) ? 0 : tag + (takes ? i : 0);
		m.context = takes && !(flags & FI_PEEK) ? (struct fi_context2 *)context + i : context;
		while ((rc = fi_trecvmsg(n->ep, &m, flags)) == -FI_EAGAIN)
			progress(n);
		CHECK_RC(rc, 0);
		wait_ok(n, n->rxcq, &e);
		CHECK(e.op_context == m.context && e.tag == want + (takes ? i : 0));
	}
}

static void test_buffers_ignored(long hmem)
{
	enum { EACH = 5 };
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED | (hmem ? FI_HMEM : 0) };
	struct fi_info *info = node_info(&o);
	struct sent s;
	struct node n;

	if (hmem && !info)
		SKIP("no memory of devices with this protocol");
	fi_freeinfo(info);
	node_open(&n, &o);
	node_connect(&n);
	if (test_rank == 0) {
		send_tags(&n, &s, 1 + 2 * EACH, 16, 0);
		sends_done(&n, &s);
	} else {
		await_mark(&n);
		search_without_buffers(&n, 1, FI_PEEK, &ctx[0], 1);
		search_without_buffers(&n, 2, FI_PEEK | FI_DISCARD, &ctx[0], 2);
		for (int i = 0; i < EACH; i++)
			peek_finds(&n, (uint64_t)(2 + EACH + i), 0, FI_CLAIM, &ctx[i], (uint64_t)(2 + EACH + i), 16);
		search_without_buffers(&n, 0, FI_CLAIM | FI_DISCARD, ctx, 2 + EACH);
		plain_receive(&n, 1, 16, 1);
	}
	barrier(&n);
	node_close(&n);
}

static void test_discard(long len)
{
	run((size_t)len, 0, discards);
}

/* FI_MATCH_COMPLETE ends with a discard as well. */
static void test_match_complete(long len)
{
	struct node_opts o = { .tx_flags = FI_MATCH_COMPLETE };
	struct fi_info *info = node_info(&o);

	NEED(info != NULL, "FI_MATCH_COMPLETE");
	fi_freeinfo(info);
	run((size_t)len, FI_MATCH_COMPLETE, discards);
}

/* A peek does not stay behind to swallow a later message, nor does it match a posted receive. */
static void test_leaves_nothing(long arg)
{
	char in[8], out[8];
	struct node n;

	(void)arg;
	node_open(&n, NULL);
	node_connect(&n);
	peek_misses(&n, 4, 0, 0, &ctx[0]);
	trecv(&n, in, sizeof(in), FI_ADDR_UNSPEC, 4, 0, in);
	peek_misses(&n, 4, 0, 0, &ctx[0]);
	fill(out, sizeof(out), 4);
	tsend(&n, out, sizeof(out), n.peer[0], 4, out);
	wait_ctx(&n, n.rxcq, in);
	verify(in, sizeof(in), 4);
	peek_misses(&n, 4, 0, 0, &ctx[0]);
	node_close(&n);
}

/* With manual progress nothing else may need to happen: reads of the CQ bring the answer, at once or when a device has
 * found it, which takes its time. */
static void test_prompt(long arg)
{
	struct fi_cq_tagged_entry e;
	struct node n;

	(void)arg;
	node_open(&n, NULL);
	if (n.info->domain_attr->data_progress != FI_PROGRESS_MANUAL)
		SKIP("progress is automatic");
	node_connect(&n);
	for (int i = 0; i < 200; i++) {
		int reads = 0;
		ssize_t rc;

		peek(&n, 4, 0, 0, &ctx[0]);
		while ((rc = fi_cq_read(n.rxcq, &e, 1)) == -FI_EAGAIN) {
			CHECKF(++reads < 1000, "no answer after %d reads", reads);
			if (reads >= 100 && n.info->ep_attr->protocol == FI_PROTO_CXI)
				usleep(1000);
		}
		CHECK(rc == -FI_EAVAIL);
		wait_err(&n, n.rxcq, FI_ENOMSG);
	}
	node_close(&n);
}

static void *sleeper(void *arg)
{
	struct node *n = arg;
	struct fi_cq_tagged_entry e;

	return (void *)(intptr_t)fi_cq_sread(n->rxcq, &e, 1, NULL, 20000);
}

/* A thread that sleeps on the queue has the answer of a search that another one posts. */
static void test_slept_for(long arg)
{
	struct node_opts o = { .wait = FI_WAIT_UNSPEC, .threading = FI_THREAD_SAFE };
	uint64_t begin;
	struct node n;

	(void)arg;
	node_open(&n, &o);
	node_connect(&n);
	begin = now_ms();
	for (int i = 0; i < 20; i++) {
		pthread_t t;
		void *rc;

		OK(pthread_create(&t, NULL, sleeper, &n));
		usleep((useconds_t)(i % 4) * 5000);
		peek(&n, 4, 0, 0, &ctx[0]);
		OK(pthread_join(t, &rc));
		CHECKF((intptr_t)rc == -FI_EAVAIL, "%zd", (ssize_t)(intptr_t)rc);
		wait_err(&n, n.rxcq, FI_ENOMSG);
	}
	CHECK(now_ms() - begin < 10000); /* sleepers poll once a second */
	node_close(&n);
}

static const struct test tests[] = {
	{ "peek_small", test_peek, 2, 0, 16 },
	{ "peek_4097", test_peek, 2, 0, 4097 },
	{ "peek_large", test_peek, 2, 0, 300000 },
	{ "claim_small", test_claim, 2, 0, 16 },
	{ "claim_large", test_claim, 2, 0, 300000 },
	{ "discard_small", test_discard, 2, 0, 16 },
	{ "discard_4097", test_discard, 2, 0, 4097 },
	{ "discard_large", test_discard, 2, 0, 300000 },
	{ "match_complete_small", test_match_complete, 2, 0, 16 },
	{ "match_complete_large", test_match_complete, 2, 0, 300000 },
	{ "buffers_ignored", test_buffers_ignored, 2, 0, false },
	{ "buffers_ignored_hmem", test_buffers_ignored, 2, 0, true },
	{ "leaves_nothing", test_leaves_nothing, 1, 0, 0 },
	{ "prompt", test_prompt, 1, 0, 0 },
	{ "slept_for", test_slept_for, 1, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
