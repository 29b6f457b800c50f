/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random programs of lists with notifications, and notifications alone, by several processes and threads to one owner,
 * which reads each: those of one thread come once each, in the order of its posts, as they were, with the data of
 * their posts in place.
 */
#include "../../include/weft/ext.h"
#include <pthread.h>
#include <stdatomic.h>

#include "common.h"
#include "tokens.h"

#define RIGHTS (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define SLOT ((size_t)16384)
#define OPS 160
#define THREADS 3 /* of a requester, at most */

enum { NO_CMA = 1, NARROW = 2, AUTO = 4, STRANGERS = 8, SEVERAL = 16 };

/* What a notification begins with; the rest is fill() of its seed. */
struct head {
	uint32_t requester, number;
	uint32_t op;
	uint32_t moved;
	uint64_t seed;
};

struct side {
	struct node n;
	struct weft_token_ops *t;
	struct fid_mr *mr;
	struct weft_remote *remote;
	struct weft_remote_info info;
	char *mem;
	size_t requesters; /* threads, of all processes */
	_Atomic long posted, ended;
};

struct requester {
	struct side *s;
	uint32_t number;
	uint64_t state;
	struct weft_list *lists[OPS];
};

static size_t threads_of(long arg)
{
	return arg & SEVERAL ? THREADS : 1;
}

static void open_side(struct side *s, long arg)
{
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED | FI_RMA };

	memset(s, 0, sizeof(*s));
	if (!test_is_weft())
		SKIP("an extension of weft");
	if (arg & NO_CMA)
		setenv("FI_WEFT_USE_CMA", "no", 1);
	if (arg & NARROW)
		setenv("FI_WEFT_NOTE_BYTES", "256k", 1);
	if (arg & AUTO)
		o.data = FI_PROGRESS_AUTO;
	node_open(&s->n, &o);
	if (!(arg & STRANGERS))
		node_connect(&s->n);
	s->t = token_ops(&s->n.ep->fid);
	s->requesters = (test_procs - 1) * threads_of(arg);
	s->mem = calloc(s->requesters * OPS, SLOT);
	CHECK(s->mem);
	if (test_rank == 0) {
		OK(fi_mr_reg(s->n.domain, s->mem, s->requesters * OPS * SLOT, RIGHTS, 0, 5, 0, &s->mr, NULL));
		for (int i = 1; i < test_procs; i++)
			token_send(s->t, s->mr, i);
		return;
	}
	s->remote = token_receive(s->t, s->n.ep, 0, &s->info);
	OK(s->t->agent(s->n.ep, test_rank == 1 ? "" : "another requester"));
}

static void close_side(struct side *s)
{
	if (s->remote)
		OK(fi_close(&s->remote->fid));
	if (s->mr)
		OK(fi_close(&s->mr->fid));
	node_close(&s->n);
	free(s->mem);
}

static void inspect(struct side *s)
{
	struct fi_cq_tagged_entry e[8];
	ssize_t rc = fi_cq_read(s->n.txcq, e, 8);

	CHECKF(rc > 0 || rc == -FI_EAGAIN, "fi_cq_read: %zd", rc);
	if (rc > 0)
		atomic_fetch_add(&s->ended, rc);
}

static size_t some(struct requester *p, size_t most)
{
	return rnd(&p->state) % most;
}

static size_t note_length(struct requester *p)
{
	switch (some(p, 25)) {
	case 0:
		return sizeof(struct head) + some(p, 40000);
	case 1:
	case 2:
		return sizeof(struct head) + some(p, 3000);
	default:
		return sizeof(struct head) + some(p, 60);
	}
}

/* A list of one element, or of four, at a slot of its own. */
static struct weft_list *list_of(struct requester *p, uint32_t number, size_t moved, bool several)
{
	size_t at = (p->number * OPS + number) * SLOT, count = several ? 4 : 1;
	struct weft_local_piece here = { .addr = p->s->mem + at, .len = moved / count, .count = count };
	struct weft_remote_piece there = {
		.remote = p->s->remote,
		.addr = p->s->info.base + at,
		.len = moved / count,
		.count = count,
	};
	struct weft_list *list;

	OK(p->s->t->list(p->s->n.ep, &here, &there, 1, 0, &list));
	OK(p->s->t->tag(list, number));
	return list;
}

static void post(struct requester *p, uint32_t number)
{
	static const uint64_t flags[] = { FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE, FI_DELIVERY_COMPLETE };
	size_t pick = some(p, 20);
	uint64_t flag = pick < ARRAY_LEN(flags) ? flags[pick] : 0;
	struct side *s = p->s;
	size_t len = note_length(p);
	char *bytes = malloc(len);
	struct head h = { .requester = p->number, .number = number, .op = some(p, 3), .seed = rnd(&p->state) };
	ssize_t rc;

	if (h.op != WEFT_ALONE) {
		bool several = some(p, 10) == 0;

		h.moved = 4 * (1 + (some(p, 2) ? some(p, 16) : some(p, SLOT / 4 - 1)));
		fill(s->mem + (p->number * OPS + number) * SLOT, h.moved, h.seed + 1);
		p->lists[number] = list_of(p, number, h.moved, several);
	}
	memcpy(bytes, &h, sizeof(h));
	fill(bytes + sizeof(h), len - sizeof(h), h.seed);
	for (;;) {
		if (h.op == WEFT_ALONE)
			rc = s->t->notify(s->n.ep, s->info.addr, number, bytes, len, flag, NULL);
		else
			rc = s->t->post(p->lists[number], h.op, NULL, 0, bytes, len, flag, NULL);
		if (rc != -FI_EAGAIN)
			break;
		inspect(s);
	}
	CHECKF(rc == 0, "post %u: %zd", number, rc);
	atomic_fetch_add(&s->posted, 1);
	memset(bytes, 0, len);
	free(bytes);
}

static void *run_requester(void *arg)
{
	struct requester *p = arg;

	for (uint32_t i = 0; i < OPS; i++) {
		post(p, i);
		if (some(p, 3) == 0)
			inspect(p->s);
		if (some(p, 40) == 0)
			usleep((useconds_t)some(p, 3000));
	}
	return NULL;
}

static void run_requesters(struct side *s, long arg, uint64_t seed)
{
	size_t count = threads_of(arg);
	struct requester *list = calloc(count, sizeof(*list));
	pthread_t threads[THREADS];

	for (size_t i = 0; i < count; i++) {
		list[i] = (struct requester){ .s = s,
					      .number = (uint32_t)((test_rank - 1) * count + i),
					      .state = seed + 77 * i };
		CHECK(pthread_create(&threads[i], NULL, run_requester, &list[i]) == 0);
	}
	for (size_t i = 0; i < count; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	while (atomic_load(&s->ended) < atomic_load(&s->posted))
		inspect(s);
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < OPS; k++)
			if (list[i].lists[k])
				OK(fi_close(&list[i].lists[k]->fid));
	free(list);
}

/* Reads a notification, given how many each requester has sent before. */
static void judge(struct side *s, const struct weft_note *e, uint32_t *seen, long arg)
{
	const char *bytes = e->data;
	struct head h;
	char *want;

	CHECKF(e->len >= sizeof(h), "%zu bytes", e->len);
	memcpy(&h, bytes, sizeof(h));
	CHECKF(h.requester < s->requesters && h.number == seen[h.requester], "requester %u: %u came instead of %u",
	       h.requester, h.number, h.requester < s->requesters ? seen[h.requester] : 0);
	seen[h.requester]++;
	want = malloc(WEFT_NOTE_MAX + SLOT);
	fill(want, e->len - sizeof(h), h.seed);
	CHECKF(!memcmp(bytes + sizeof(h), want, e->len - sizeof(h)), "requester %u, %u: other bytes", h.requester,
	       h.number);
	if (h.op == WEFT_WRITE) {
		fill(want, h.moved, h.seed + 1);
		CHECKF(!memcmp(s->mem + (h.requester * OPS + h.number) * SLOT, want, h.moved),
		       "requester %u, %u: came before its %u bytes", h.requester, h.number, h.moved);
	}
	free(want);
	CHECK(e->tag == h.number && e->op == h.op && e->err == 0 && e->namelen != 0);
	if (!(arg & STRANGERS)) {
		size_t rank = 1 + h.requester / threads_of(arg);

		CHECKF(e->src == s->n.peer[rank], "requester %u is at %lu", h.requester, (unsigned long)e->src);
		CHECK(!strcmp(e->agent, rank == 1 ? "" : "another requester"));
	}
}

static void run_owner(struct side *s, long arg, uint64_t seed)
{
	enum { MOST = 5 };
	uint32_t *seen = calloc(s->requesters, sizeof(*seen));
	struct weft_note e[MOST];
	size_t left = s->requesters * OPS;

	for (size_t i = 0; i < MOST; i++)
		e[i].data = malloc(WEFT_NOTE_MAX);
	while (left) {
		size_t most = 1 + rnd(&seed) % MOST;
		ssize_t got;

		for (size_t i = 0; i < MOST; i++)
			e[i].size = rnd(&seed) % 4 ? WEFT_NOTE_MAX : 100;
		got = s->t->notes(s->n.ep, e, most);
		if (got == -FI_ETOOSMALL) {
			CHECK(e[0].len > e[0].size);
			continue;
		}
		CHECKF(got >= 0 && got <= (ssize_t)most, "notes: %zd", got);
		for (ssize_t i = 0; i < got; i++)
			judge(s, &e[i], seen, arg);
		left -= (size_t)got;
		if (rnd(&seed) % 100 == 0)
			usleep((useconds_t)(rnd(&seed) % 20000));
	}
	for (size_t i = 0; i < MOST; i++)
		free(e[i].data);
	free(seen);
}

/* All are counted, and those that can be short messages go without the runtime. */
static void check_counters(struct side *s, long arg)
{
	struct weft_stats_ops *stats;
	uint64_t all, direct, want = s->requesters * OPS;

	OK(fi_open_ops(&s->n.ep->fid, WEFT_STATS_OPS, 0, (void **)&stats, NULL));
	OK(stats->read(&s->n.ep->fid, stats->find("notes_received"), 1, &all));
	OK(stats->read(&s->n.ep->fid, stats->find("notes_direct"), 1, &direct));
	CHECKF(all == want, "%lu of %lu", (unsigned long)all, (unsigned long)want);
	if (!(arg & (STRANGERS | NARROW)))
		note("%lu of %lu did not enter the runtime", (unsigned long)direct, (unsigned long)want);
}

/* WEFT_TEST_SEED for another program. */
static void test_program(long arg)
{
	uint64_t seed = test_seed(1);
	struct weft_note none = { .data = NULL };
	struct side s;

	seed = (seed * 0x9E3779B97F4A7C15u) ^ (uint64_t)test_rank << 32;
	open_side(&s, arg);
	if (test_rank == 0) {
		run_owner(&s, arg, seed);
		check_counters(&s, arg);
	} else {
		run_requesters(&s, arg, seed);
	}
	barrier(&s.n);
	CHECK(s.t->notes(s.n.ep, &none, 1) == 0);
	close_side(&s);
}

static const struct test tests[] = {
	{ "one", test_program, 2, 0, 0 },	    { "three", test_program, 4, 0, 0 },
	{ "narrow", test_program, 3, 0, NARROW },   { "messages", test_program, 3, 0, NO_CMA },
	{ "auto", test_program, 3, 0, AUTO },	    { "strangers", test_program, 3, 0, STRANGERS },
	{ "threads", test_program, 2, 0, SEVERAL }, { "threads_narrow", test_program, 3, 0, SEVERAL | NARROW | AUTO },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
