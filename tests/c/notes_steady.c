/* SPDX-License-Identifier: BSD-2-Clause */
/* What a notification costs both sides in steady state on one host: no entry into the Go runtime, which the counters
 * say. Rank 0 posts, rank 1 takes; they keep in step beside the endpoints. */
#include <sched.h>

#include "common.h"
#include "tokens.h"

#define LEN ((size_t)1 << 16)
#define RIGHTS (FI_REMOTE_READ | FI_REMOTE_WRITE)
/* The receiver gives credit within the first of them, and then for some 900 more. */
#define WARM 70
#define ROUNDS 100

/* What is posted with each notification: an element of so many bytes; 0: nothing. */
struct what {
	const char *name;
	size_t len;
	uint32_t op;
	bool queue; /* notifications complete in the queue of receives */
};

static const struct what whats[] = {
	{ .name = "alone" },
	{ .name = "write", .len = 8, .op = WEFT_WRITE },
	{ .name = "write_copied", .len = 16384, .op = WEFT_WRITE },
	{ .name = "read", .len = 4096, .op = WEFT_READ },
	{ .name = "queue", .queue = true },
	{ .name = "queue_write", .len = 100, .op = WEFT_WRITE, .queue = true },
};

struct side {
	struct node n;
	struct weft_token_ops *t;
	struct fid_mr *mr;
	struct weft_remote *remote;
	struct weft_list *list;
	struct weft_remote_info info;
	char *mem;
};

static void open_side(struct side *s, const struct what *w)
{
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED | FI_RMA, .disabled = w->queue };

	NEED_WAY(WAY_MEMORY, "notifications that enter no runtime");
	memset(s, 0, sizeof(*s));
	node_open(&s->n, &o);
	s->t = token_ops(&s->n.ep->fid);
	if (w->queue) {
		OK(s->t->bind(s->n.ep, &s->n.rxcq->fid, 0));
		OK(fi_enable(s->n.ep));
	}
	node_connect(&s->n);
	s->mem = calloc(1, LEN);
	if (test_rank == 1) {
		fill(s->mem, LEN, 3);
		OK(fi_mr_reg(s->n.domain, s->mem, LEN, RIGHTS, 0, 5, 0, &s->mr, NULL));
		token_send(s->t, s->mr, 0);
		return;
	}
	s->remote = token_receive(s->t, s->n.ep, 1, &s->info);
	if (w->len) {
		struct weft_local_piece here = { .addr = s->mem, .len = w->len };
		struct weft_remote_piece there = { .remote = s->remote, .addr = s->info.base, .len = w->len };

		OK(s->t->list(s->n.ep, &here, &there, 1, 0, &s->list));
	}
}

static void close_side(struct side *s)
{
	if (s->list)
		OK(fi_close(&s->list->fid));
	if (s->remote)
		OK(fi_close(&s->remote->fid));
	if (s->mr)
		OK(fi_close(&s->mr->fid));
	node_close(&s->n);
	free(s->mem);
}

static void post_one(struct side *s, const struct what *w, uint64_t round)
{
	struct fi_cq_tagged_entry done;
	ssize_t rc;

	if (w->op == WEFT_WRITE)
		fill(s->mem, w->len, round);
	do {
		rc = w->len ? s->t->post(s->list, w->op, NULL, 0, &round, sizeof(round), 0, s)
			    : s->t->notify(s->n.ep, s->info.addr, 9, &round, sizeof(round), 0, s);
		sched_yield();
	} while (rc == -FI_EAGAIN);
	CHECKF(rc == 0, "post: %zd", rc);
	wait_ok(&s->n, s->n.txcq, &done);
	CHECK(done.op_context == s);
}

static void take_one(struct side *s, const struct what *w, uint64_t round)
{
	uint64_t got = 0;
	struct weft_note e = { .data = &got, .size = sizeof(got) };
	struct fi_cq_tagged_entry done;
	ssize_t rc;

	if (w->queue) {
		uint64_t flags = w->len ? FI_RMA | FI_REMOTE_WRITE : FI_RECV | FI_MSG;

		wait_ok(&s->n, s->n.rxcq, &done);
		CHECK(done.flags == (flags | FI_REMOTE_CQ_DATA) && done.len == sizeof(got));
		CHECK(done.data == (w->len ? 0 : 9));
	}
	while ((rc = s->t->notes(s->n.ep, &e, 1)) == 0)
		sched_yield();
	CHECKF(rc == 1 && got == round, "notes: %zd, round %lu", rc, (unsigned long)got);
	CHECK(e.src == s->n.peer[0] && e.err == 0);
	CHECK(e.op == (w->len ? w->op : WEFT_ALONE));
	if (w->len && w->op == WEFT_WRITE)
		verify(s->mem, w->len, round);
}

static void run(struct side *s, const struct what *w, uint64_t from, uint64_t count)
{
	char go = 0;

	for (uint64_t i = from; i < from + count; i++) {
		if (test_rank == 0) {
			post_one(s, w, i);
			link_recv(1, &go, 1);
			progress(&s->n); /* takes in what credit has come */
		} else {
			take_one(s, w, i);
			link_send(0, &go, 1);
		}
	}
}

static void test_steady(long arg)
{
	static const char *const names[] = { "progress_arrivals", "notes_sent", "notes_sent_direct", "notes_received",
					     "notes_direct" };
	const struct what *w = &whats[arg];
	uint64_t n[ARRAY_LEN(names)];
	struct side s;

	if (!test_is_weft())
		SKIP("an extension of weft");
	open_side(&s, w);
	run(&s, w, 0, WARM);
	for (size_t i = 0; i < ARRAY_LEN(n); i++)
		n[i] = node_counter(&s.n, names[i]);
	run(&s, w, WARM, ROUNDS);
	for (size_t i = 0; i < ARRAY_LEN(n); i++)
		n[i] = node_counter(&s.n, names[i]) - n[i];
	EXPECTF(n[0] == 0, "%lu arrivals entered the runtime", (unsigned long)n[0]);
	if (test_rank == 0)
		EXPECTF(n[1] == ROUNDS && n[2] == ROUNDS, "%lu sent, %lu without the runtime", (unsigned long)n[1],
			(unsigned long)n[2]);
	else
		EXPECTF(n[3] == ROUNDS && n[4] == ROUNDS, "%lu came, %lu without the runtime", (unsigned long)n[3],
			(unsigned long)n[4]);
	if (w->op == WEFT_READ && test_rank == 0)
		verify(s.mem, w->len, 3);
	barrier(&s.n);
	close_side(&s);
}

int main(int argc, char **argv)
{
	struct test tests[ARRAY_LEN(whats)];

	for (size_t i = 0; i < ARRAY_LEN(whats); i++)
		tests[i] = (struct test){ .name = whats[i].name, .run = test_steady, .procs = 2, .arg = (long)i };
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
