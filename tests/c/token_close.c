/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists (weft/token.h) that are closed while their owner, rank 1, makes no call, so that posts of them do not end: the
 * application of rank 0 gets its endpoint closed and its memory back all the same. */
#include "common.h"
#include "tokens.h"

#define LEN ((size_t)1 << 22)
#define KEY 0x35
#define RIGHTS (FI_REMOTE_READ | FI_REMOTE_WRITE)

enum { READ = 1, LONG = 2, NO_CMA = 4, NOTED = 8, MANY = 16 };

struct side {
	struct node n;
	struct weft_token_ops *t;
	struct fid_mr *mr;
	char *mem;
	struct weft_remote *remote;
	struct weft_list *list;
	size_t count, total;
	long how;
};

/* What nothing but a copy to the wrong place would change. */
static void all(const char *mem, char is)
{
	for (size_t i = 0; i < LEN; i++)
		CHECKF(mem[i] == is, "byte %zu is %#x", i, mem[i]);
}

static void open_sides(struct side *s, long how)
{
	struct weft_local_piece here = { .len = 64, .stride = 128, .count = 8192 };
	struct weft_remote_piece there = { .len = 64, .stride = 256, .count = 8192 };
	struct weft_remote_info info;

	memset(s, 0, sizeof(*s));
	setenv("FI_WEFT_TOKEN_WAYS", "message", 1);
	if (how & NO_CMA)
		setenv("FI_WEFT_USE_CMA", "no", 1);
	node_open(&s->n, &(struct node_opts){ .caps = FI_MSG | FI_RMA, .data = FI_PROGRESS_MANUAL });
	s->t = token_ops(&s->n.ep->fid);
	s->mem = guard_alloc(LEN);
	s->how = how;
	memset(s->mem, 1 + test_rank, LEN);
	if (test_rank == 1) {
		OK(fi_mr_reg(s->n.domain, s->mem, LEN, RIGHTS, 0, KEY, 0, &s->mr, NULL));
		token_send(s->t, s->mr, 0);
		return;
	}
	s->remote = token_receive(s->t, s->n.ep, 1, &info);
	if (how & LONG) {
		here.len = here.stride = there.len = there.stride = LEN / 8;
		here.count = there.count = 8;
	}
	if (how & MANY) { /* more than are under way at a time, however many go in one message */
		here.len = there.len = 1;
		here.stride = 2;
		there.stride = 8;
		here.count = there.count = LEN / 8;
	}
	here.addr = s->mem;
	there.remote = s->remote;
	there.addr = info.base;
	OK(s->t->list(s->n.ep, &here, &there, 1, 0, &s->list));
	s->count = here.count;
	s->total = here.count * here.len;
}

static void post(struct side *s, void *context)
{
	const char *note = s->how & NOTED ? "all is there" : NULL;
	ssize_t rc;

	while ((rc = s->t->post(s->list, s->how & READ ? WEFT_READ : WEFT_WRITE, NULL, 0, note, note ? 12 : 0, 0,
				context)) == -FI_EAGAIN)
		progress(&s->n);
	CHECKF(rc == 0, "post: %zd", rc);
}

/* Owner or not: progress for some time. */
static void go_on(struct side *s, uint64_t ms)
{
	for (uint64_t end = now_ms() + ms; now_ms() < end;)
		progress(&s->n);
}

/* The endpoint closes while nothing has been taken in; what the owner does later reaches nothing of rank 0. */
static void test_idle(long how)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err = { 0 };
	struct side s;
	ssize_t rc;
	char go = 0;

	open_sides(&s, how);
	if (test_rank == 0) {
		post(&s, &s);
		post(&s, &e);
		go_on(&s, 50);
		EXPECT_RC(fi_cq_read(s.n.txcq, &e, 1), -FI_EAGAIN);
		EXPECT_RC(fi_close(&s.remote->fid), -FI_EBUSY);
		EXPECT_RC(fi_close(&s.n.ep->fid), -FI_EBUSY);
		OK(fi_close(&s.list->fid));
		go_on(&s, 50);
		while ((rc = fi_cq_readerr(s.n.txcq, &err, 0)) == 1) /* a post of which nothing was under way */
			CHECK(err.err == FI_ECANCELED && (err.op_context == &s || err.op_context == &e) && !err.len);
		CHECKF(rc == -FI_EAGAIN, "readerr: %zd", rc);
		OK(fi_close(&s.remote->fid));
		OK(fi_close(&s.n.ep->fid));
		EXPECT_RC(fi_cq_read(s.n.txcq, &e, 1), -FI_EAGAIN); /* what is under way is dropped */
		s.n.ep = NULL;
		memset(s.mem, 3, LEN);
		link_send(1, &go, 1);
		link_recv(1, &go, 1);
		all(s.mem, 3);
	} else {
		link_recv(0, &go, 1);
		go_on(&s, 200);
		for (size_t i = 0; i < LEN; i++)
			CHECKF(s.mem[i] == 2 || (!(how & READ) && s.mem[i] == 1), "byte %zu is %#x", i, s.mem[i]);
		OK(fi_close(&s.mr->fid));
		link_send(0, &go, 1);
	}
	node_close(&s.n);
	guard_free(s.mem, LEN);
}

/* The owner goes on before the endpoint is closed: what was under way is done, and the post ends as canceled. */
static void test_resumed(long how)
{
	struct fi_cq_tagged_entry e;
	struct side s;
	char go = 0;

	open_sides(&s, how);
	if (test_rank == 0) {
		post(&s, &s);
		go_on(&s, 50);
		OK(fi_close(&s.list->fid));
		OK(fi_close(&s.remote->fid));
		link_send(1, &go, 1);
		CHECK(wait_for(&s.n, s.n.txcq, &e, -1) == -FI_ECANCELED);
		CHECK(s.n.err.op_context == &s && s.n.err.len < s.total && s.n.err.data < s.count);
		barrier(&s.n);
	} else {
		struct weft_note note = { .size = 0 };

		link_recv(0, &go, 1);
		barrier(&s.n);
		EXPECT_RC(s.t->notes(s.n.ep, &note, 1), 0);
		OK(fi_close(&s.mr->fid));
	}
	node_close(&s.n);
	guard_free(s.mem, LEN);
}

static const struct test tests[] = {
	{ "idle_write", test_idle, 2, 0, 0 },
	{ "idle_read", test_idle, 2, 0, READ },
	{ "idle_write_long", test_idle, 2, 0, LONG },
	{ "idle_read_long", test_idle, 2, 0, READ | LONG },
	{ "idle_write_copied", test_idle, 2, 0, NO_CMA },
	{ "idle_read_copied", test_idle, 2, 0, READ | LONG | NO_CMA },
	{ "idle_noted", test_idle, 2, 0, NOTED },
	{ "resumed_write", test_resumed, 2, 0, NOTED | MANY },
	{ "resumed_read", test_resumed, 2, 0, READ | MANY },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
