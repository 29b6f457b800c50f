/* SPDX-License-Identifier: BSD-2-Clause */
/* Which posts of prepared lists (weft/token.h) enter the Go runtime in steady state on one host, which the counters
 * say. Rank 0 posts to memory of rank 1; they keep in step beside the endpoints. */
#include <poll.h>
#include <sched.h>

#include "common.h"
#include "tokens.h"

#define LEN ((size_t)1 << 21)
#define RIGHTS (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define WARM 20
#define ROUNDS 50
#define MOST 3000

/* What is posted: elements of so many bytes, or some of them. */
struct what {
	const char *name;
	size_t len, count;
	uint32_t op;
	uint64_t flags;
	size_t note;		      /* bytes of the notification behind it, 0: there is none */
	bool scattered;		      /* at no regular distances */
	bool regions;		      /* of two regions by turns */
	bool picked;		      /* by number, every second of them, the last first; with WEFT_PICK_BITS by bits */
	bool runtime;		      /* the runtime posts it */
	bool counted;		      /* the runtime posts one in 4 MiB, which it counts for huge pages */
	const char *variable, *value; /* in the environment */
	enum fi_threading threading;
};

static const struct what whats[] = {
	{ .name = "write", .len = 64, .count = 100 },
	{ .name = "read", .len = 64, .count = 100, .op = WEFT_READ },
	{ .name = "scattered", .len = 100, .count = 1000, .scattered = true },
	{ .name = "many", .len = 8, .count = MOST, .scattered = true },
	{ .name = "large", .len = 100000, .count = 10, .scattered = true, .op = WEFT_READ, .counted = true },
	{ .name = "two_regions", .len = 64, .count = 100, .regions = true },
	{ .name = "delivery", .len = 64, .count = 100, .flags = FI_DELIVERY_COMPLETE },
	{ .name = "numbers", .len = 64, .count = 100, .picked = true },
	{ .name = "bits", .len = 64, .count = 200, .picked = true, .op = WEFT_PICK_BITS, .scattered = true },
	{ .name = "note", .len = 64, .count = 100, .note = 8 },
	{ .name = "note_read", .len = 64, .count = 100, .note = 8, .op = WEFT_READ, .scattered = true },
	{ .name = "domain", .len = 64, .count = 100, .threading = FI_THREAD_DOMAIN },
	{ .name = "ways", .len = 64, .count = 100, .variable = "FI_WEFT_TOKEN_WAYS", .value = "ipc,message" },
	{ .name = "shared", .len = 200000, .count = 10, .runtime = true },
	{ .name = "no_ipc",
	  .len = 64,
	  .count = 10,
	  .variable = "FI_WEFT_TOKEN_WAYS",
	  .value = "message",
	  .runtime = true },
	{ .name = "no_cma", .len = 64, .count = 10, .variable = "FI_WEFT_USE_CMA", .value = "no", .runtime = true },
	{ .name = "fence", .len = 64, .count = 10, .flags = FI_FENCE, .runtime = true },
};

struct side {
	struct node n;
	struct weft_token_ops *t;
	struct fid_mr *mr[2];
	struct weft_remote *remote[2];
	struct weft_list *list;
	struct weft_remote_info info[2];
	char *mem;
	size_t at[MOST]; /* of each element */
	uint32_t picks[MOST];
	uint64_t bits[MOST / 64 + 1];
	size_t picked;
};

/* Where the elements are, on both sides. */
static void place(struct side *s, const struct what *w)
{
	size_t step = w->scattered ? LEN / w->count & ~(size_t)7 : w->len + 16;

	for (size_t i = 0; i < w->count; i++)
		s->at[i] = w->scattered ? (i * 7919 % w->count) * step : i * step;
	for (size_t i = w->count; w->picked && i-- > 0;)
		if (i % 2) {
			s->picks[s->picked++] = (uint32_t)i;
			s->bits[i / 64] |= 1ull << i % 64;
		}
}

static void prepare(struct side *s, const struct what *w)
{
	static struct weft_local_piece here[MOST];
	static struct weft_remote_piece there[MOST];

	for (size_t i = 0; i < w->count; i++) {
		size_t r = w->regions ? i % 2 : 0;

		here[i] = (struct weft_local_piece){ .addr = s->mem + s->at[i], .len = w->len };
		there[i] = (struct weft_remote_piece){
			.remote = s->remote[r],
			.addr = s->info[r].base + s->at[i],
			.len = w->len,
		};
	}
	OK(s->t->list(s->n.ep, here, there, w->count, 0, &s->list));
}

static void open_side(struct side *s, const struct what *w)
{
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED | FI_RMA, .threading = w->threading };

	if (w->variable)
		setenv(w->variable, w->value, 1);
	else
		NEED_WAY(WAY_MEMORY, "lists that enter no runtime");
	node_open(&s->n, &o);
	s->t = token_ops(&s->n.ep->fid);
	node_connect(&s->n);
	s->mem = calloc(1, LEN);
	place(s, w);
	for (int r = 0; r < 2; r++) {
		if (test_rank == 1) {
			OK(fi_mr_reg(s->n.domain, s->mem, LEN, RIGHTS, 0, 5 + (uint64_t)r, 0, &s->mr[r], NULL));
			token_send(s->t, s->mr[r], 0);
		} else {
			s->remote[r] = token_receive(s->t, s->n.ep, 1, &s->info[r]);
		}
	}
	if (test_rank == 0)
		prepare(s, w);
}

static void close_side(struct side *s)
{
	if (s->list)
		OK(fi_close(&s->list->fid));
	for (int r = 0; r < 2; r++)
		OK(fi_close(test_rank ? &s->mr[r]->fid : &s->remote[r]->fid));
	node_close(&s->n);
	free(s->mem);
}

static void post_one(struct side *s, const struct what *w, uint64_t round)
{
	bool bits = w->op & WEFT_PICK_BITS;
	const void *picks = !w->picked ? NULL : bits ? (const void *)s->bits : s->picks;
	size_t count = !w->picked ? 0 : bits ? w->count : s->picked;
	struct fi_cq_tagged_entry done;
	ssize_t rc;

	fill(s->mem, LEN, 2 * round);
	do {
		rc = s->t->post(s->list, w->op, picks, count, w->note ? &round : NULL, w->note, w->flags, s);
		sched_yield();
	} while (rc == -FI_EAGAIN);
	CHECKF(rc == 0, "post: %zd", rc);
	wait_ok(&s->n, s->n.txcq, &done);
	CHECK(done.op_context == s);
}

/* Whether rank 0 has sent something. */
static bool ready(void)
{
	struct pollfd p = { .fd = link_fd(0), .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* Only the elements that were posted have moved. */
static void verify_all(struct side *s, const struct what *w, uint64_t mine, uint64_t other)
{
	static char want[LEN], from[LEN];

	fill(want, LEN, mine);
	fill(from, LEN, other);
	for (size_t i = 0; i < w->count; i++)
		if (!w->picked || i % 2)
			memcpy(want + s->at[i], from + s->at[i], w->len);
	CHECK(!memcmp(want, s->mem, LEN));
}

static void take_one(struct side *s, const struct what *w, uint64_t round)
{
	uint64_t got = 0;
	struct weft_note e = { .data = &got, .size = sizeof(got) };
	ssize_t rc;

	while ((rc = s->t->notes(s->n.ep, &e, 1)) == 0)
		sched_yield();
	CHECKF(rc == 1 && got == round && e.len == w->note, "notes: %zd, round %lu", rc, (unsigned long)got);
	CHECK(e.op == (w->op & WEFT_READ));
}

static void run(struct side *s, const struct what *w, uint64_t from, uint64_t count)
{
	char go = 0;

	for (uint64_t i = from; i < from + count; i++) {
		if (test_rank == 0) {
			link_recv(1, &go, 1);
			post_one(s, w, i);
			link_send(1, &go, 1);
			if (w->op & WEFT_READ)
				verify_all(s, w, 2 * i, 2 * i + 1);
			progress(&s->n);
			continue;
		}
		fill(s->mem, LEN, 2 * i + 1);
		link_send(0, &go, 1);
		if (w->note)
			take_one(s, w, i);
		while (!ready())
			progress(&s->n);
		link_recv(0, &go, 1);
		if (!(w->op & WEFT_READ))
			verify_all(s, w, 2 * i + 1, 2 * i);
	}
}

static void test_steady(long arg)
{
	static const char *const names[] = { "lists_direct", "list_ipc", "list_ipc_bytes", "notes_sent_direct" };
	const struct what *w = &whats[arg];
	uint64_t n[ARRAY_LEN(names)], elements = w->picked ? w->count / 2 : w->count;
	struct side *s = calloc(1, sizeof(*s));

	if (!test_is_weft())
		SKIP("an extension of weft");
	open_side(s, w);
	run(s, w, 0, WARM);
	for (size_t i = 0; i < ARRAY_LEN(n); i++)
		n[i] = node_counter(&s->n, names[i]);
	run(s, w, WARM, ROUNDS);
	for (size_t i = 0; i < ARRAY_LEN(n); i++)
		n[i] = node_counter(&s->n, names[i]) - n[i];
	if (test_rank == 0) {
		uint64_t most = w->runtime ? 0 : ROUNDS, counted = w->counted ? ROUNDS * elements * w->len >> 22 : 0;

		EXPECTF(n[0] <= most && n[0] + counted >= most, "%lu posts without the runtime", (unsigned long)n[0]);
		if (!w->runtime)
			EXPECTF(n[1] == ROUNDS * elements && n[2] == n[1] * w->len, "%lu elements, %lu bytes",
				(unsigned long)n[1], (unsigned long)n[2]);
		EXPECTF(n[3] == (w->note ? ROUNDS : 0), "%lu notifications without the runtime", (unsigned long)n[3]);
	}
	barrier(&s->n);
	close_side(s);
	free(s);
}

int main(int argc, char **argv)
{
	struct test tests[ARRAY_LEN(whats)];

	for (size_t i = 0; i < ARRAY_LEN(whats); i++)
		tests[i] = (struct test){ .name = whats[i].name, .run = test_steady, .procs = 2, .arg = (long)i };
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
