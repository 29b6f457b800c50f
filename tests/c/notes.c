/* SPDX-License-Identifier: BSD-2-Clause */
/* Notifications (weft/token.h): rank 1 owns memory, rank 0 writes to it and says so. */
#include "common.h"
#include "tokens.h"

#define LEN ((size_t)1 << 20)
#define RIGHTS (FI_REMOTE_READ | FI_REMOTE_WRITE)

struct side {
	struct node n;
	struct weft_token_ops *t;
	struct fid_mr *mr;
	struct weft_remote *remote;
	struct weft_remote_info info;
	char *mem;
	char *note;		  /* WEFT_NOTE_MAX bytes */
	struct fid_cntr *counted; /* NULL: notifications are not only counted */
};

static void open_side(struct side *s, struct node_opts o)
{
	memset(s, 0, sizeof(*s));
	o.caps = FI_MSG | FI_TAGGED | FI_RMA;
	node_open(&s->n, &o);
	s->t = token_ops(&s->n.ep->fid);
	if (o.disabled) {
		struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };

		OK(fi_cntr_open(s->n.domain, &attr, &s->counted, NULL));
		OK(s->t->bind(s->n.ep, &s->counted->fid, WEFT_NOTES_COUNTED));
		OK(fi_enable(s->n.ep));
	}
	s->mem = calloc(1, LEN);
	s->note = calloc(1, WEFT_NOTE_MAX);
	if (test_rank == 1) {
		OK(fi_mr_reg(s->n.domain, s->mem, LEN, RIGHTS, 0, 5, 0, &s->mr, NULL));
		token_send(s->t, s->mr, 0);
		return;
	}
	s->remote = token_receive(s->t, s->n.ep, 1, &s->info);
}

static void close_side(struct side *s)
{
	if (s->remote)
		OK(fi_close(&s->remote->fid));
	if (s->mr)
		OK(fi_close(&s->mr->fid));
	if (s->counted) {
		OK(fi_close(&s->n.ep->fid));
		s->n.ep = NULL;
		OK(fi_close(&s->counted->fid));
	}
	node_close(&s->n);
	free(s->mem);
	free(s->note);
}

static struct weft_list *list_of(struct side *s, size_t len)
{
	struct weft_local_piece here = { .addr = s->mem, .len = len };
	struct weft_remote_piece there = { .remote = s->remote, .addr = s->info.base, .len = len };
	struct weft_list *list;

	OK(s->t->list(s->n.ep, &here, &there, 1, 0, &list));
	return list;
}

/* Waits for one notification. */
static struct weft_note take(struct side *s)
{
	struct weft_note e = { .data = s->note, .size = WEFT_NOTE_MAX };
	ssize_t rc;

	while ((rc = s->t->notes(s->n.ep, &e, 1)) == 0)
		progress(&s->n);
	CHECKF(rc == 1, "notes: %zd", rc);
	return e;
}

#define POST(s, call) \
	do { \
		ssize_t rc_; \
		while ((rc_ = (call)) == -FI_EAGAIN) \
			progress(&(s)->n); \
		CHECKF(rc_ == 0, "post: %zd", rc_); \
	} while (0)

static const struct {
	size_t moved, note;
} cases[] = {
	{ 8, 0 }, { 4096, 32 }, { LEN, 3 }, { 70000, WEFT_NOTE_MAX }, { 1, 20000 }, { 0, 300 },
};

/* All of a post is there when its notification is; a case of no bytes is a notification alone. */
static void test_behind(long arg)
{
	struct fi_cq_tagged_entry done;
	struct side s;

	(void)arg;
	open_side(&s, (struct node_opts){ .mr_mode = 0 });
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *want = malloc(LEN > WEFT_NOTE_MAX ? LEN : WEFT_NOTE_MAX);

		if (test_rank == 0) {
			struct weft_list *list = NULL;

			OK(s.t->agent(s.n.ep, "rank 0"));
			fill(s.mem, LEN, 10 + i);
			fill(s.note, WEFT_NOTE_MAX, 20 + i);
			if (cases[i].moved) {
				list = list_of(&s, cases[i].moved);
				OK(s.t->tag(list, 100 + i));
				POST(&s, s.t->post(list, WEFT_WRITE, NULL, 0, s.note, cases[i].note, 0, &s));
			} else {
				POST(&s, s.t->notify(s.n.ep, s.info.addr, 100 + i, s.note, cases[i].note, 0, &s));
			}
			memset(s.note, 0, WEFT_NOTE_MAX);
			wait_ok(&s.n, s.n.txcq, &done);
			CHECK(done.op_context == &s);
			if (list)
				OK(fi_close(&list->fid));
			barrier(&s.n);
		} else {
			struct weft_note e = take(&s);

			fill(want, LEN, 10 + i);
			CHECKF(!memcmp(s.mem, want, cases[i].moved), "case %zu: data", i);
			fill(want, WEFT_NOTE_MAX, 20 + i);
			CHECKF(e.len == cases[i].note && !memcmp(s.note, want, e.len), "case %zu: %zu bytes", i, e.len);
			CHECK(e.tag == 100 + i && e.err == 0 && !strcmp(e.agent, "rank 0") && e.namelen != 0);
			CHECK(e.op == (cases[i].moved ? WEFT_WRITE : WEFT_ALONE));
			barrier(&s.n);
		}
		free(want);
	}
	close_side(&s);
}

static void test_bad(long arg)
{
	struct weft_note e = { .data = NULL, .size = 4 };
	struct weft_list *list;
	struct side s;

	(void)arg;
	open_side(&s, (struct node_opts){ .mr_mode = 0 });
	if (test_rank == 0) {
		char *big = calloc(1, WEFT_NOTE_MAX + 1);

		list = list_of(&s, 8);
		EXPECT_RC(s.t->post(list, WEFT_WRITE, NULL, 0, NULL, 3, 0, NULL), -FI_EINVAL);
		EXPECT_RC(s.t->post(list, WEFT_WRITE, NULL, 0, big, WEFT_NOTE_MAX + 1, 0, NULL), -FI_EMSGSIZE);
		EXPECT_RC(s.t->notify(s.n.ep, s.info.addr, 0, big, WEFT_NOTE_MAX + 1, 0, NULL), -FI_EMSGSIZE);
		EXPECT_RC(s.t->notify(s.n.ep, s.info.addr, 0, big, (size_t)-1, 0, NULL), -FI_EMSGSIZE);
		EXPECT_RC(s.t->notify(s.n.ep, s.info.addr, 0, NULL, 1, 0, NULL), -FI_EINVAL);
		EXPECT_RC(s.t->notify(s.n.ep, s.info.addr + 99, 0, "x", 1, 0, NULL), -FI_EINVAL);
		EXPECT_RC(s.t->notify(s.n.ep, s.info.addr, 0, "x", 1, FI_INJECT, NULL), -FI_EBADFLAGS);
		EXPECT_RC(s.t->notify(NULL, s.info.addr, 0, "x", 1, 0, NULL), -FI_EINVAL);
		EXPECT_RC(s.t->notes(s.n.ep, &e, 1), -FI_EINVAL);
		EXPECT_RC(s.t->notes(s.n.ep, NULL, 1), -FI_EINVAL);
		EXPECT_RC(s.t->notes(s.n.ep, NULL, 0), 0);
		EXPECT_RC(s.t->tag(NULL, 1), -FI_EINVAL);
		EXPECT_RC(s.t->agent(s.n.ep, NULL), -FI_EINVAL);
		memset(big, 'a', WEFT_AGENT_MAX + 1);
		EXPECT_RC(s.t->agent(s.n.ep, big), -FI_EINVAL);
		EXPECT_RC(s.t->bind(s.n.ep, &s.n.txcq->fid, 0), -FI_EOPBADSTATE);
		EXPECT_RC(s.t->bind(s.n.ep, &s.n.txcq->fid, WEFT_NOTES_COUNTED), -FI_EBADFLAGS);
		EXPECT_RC(s.t->bind(s.n.ep, &s.n.av->fid, 0), -FI_EINVAL);
		EXPECT_RC(s.t->bind(s.n.ep, NULL, 0), -FI_EINVAL);
		OK(fi_close(&list->fid));
		POST(&s, s.t->notify(s.n.ep, s.info.addr, 0, "twelve bytes", 12, 0, NULL));
		free(big);
	} else {
		char room[5];
		ssize_t rc;

		e = (struct weft_note){ .data = room, .size = sizeof(room) };
		while ((rc = s.t->notes(s.n.ep, &e, 1)) == 0)
			progress(&s.n);
		CHECKF(rc == -FI_ETOOSMALL && e.len == 12, "notes: %zd, %zu", rc, e.len);
		e = take(&s);
		CHECK(e.len == 12 && !memcmp(s.note, "twelve bytes", 12));
	}
	barrier(&s.n);
	close_side(&s);
}

/* A target that reads none makes its sender, what sleeps, wait: until it reads. It makes no call of its own
 * meanwhile, but has automatic progress. */
static void test_unread(long arg)
{
	enum { TOTAL = 40 };
	struct side s;

	(void)arg;
	setenv("FI_WEFT_NOTE_BYTES", "256k", 1);
	open_side(&s, (struct node_opts){ .wait = FI_WAIT_UNSPEC, .data = FI_PROGRESS_AUTO });
	if (test_rank == 0) {
		int posted = 0, ended = 0, go = 0;

		while (ended < TOTAL) {
			struct fi_cq_tagged_entry e;
			ssize_t rc = 0;

			while (posted < TOTAL) {
				fill(s.note, WEFT_NOTE_MAX, posted);
				rc = s.t->notify(s.n.ep, s.info.addr, posted, s.note, 60000, 0, &s);
				if (rc)
					break;
				posted++;
			}
			CHECKF(posted == TOTAL || rc == -FI_EAGAIN, "notify: %zd", rc);
			rc = fi_cq_sread(s.n.txcq, &e, 1, NULL, posted == ended ? 1 : 200);
			if (rc == -FI_EAGAIN) {
				if (!go && posted != ended) { /* it waits */
					CHECK(ended < 8 && posted < TOTAL);
					link_send(1, &go, sizeof(go));
					go = 1;
				}
				continue;
			}
			CHECKF(rc == 1, "sread: %zd", rc);
			ended++;
		}
		CHECK(go);
	} else {
		char want[60000];
		int go;

		link_recv(0, &go, sizeof(go));
		for (int i = 0; i < TOTAL; i++) {
			struct weft_note e = take(&s);

			fill(want, sizeof(want), i);
			CHECKF(e.tag == (uint64_t)i && e.len == sizeof(want) && !memcmp(s.note, want, e.len),
			       "notification %d is %lu", i, (unsigned long)e.tag);
		}
	}
	barrier(&s.n);
	close_side(&s);
}

/* A target that only counts notifications: more arrive than it could keep, each is counted once, after the bytes of
 * its post, and notes() has none of them. */
static void test_counted(long arg)
{
	enum { TOTAL = 40 };
	struct side s;

	(void)arg;
	setenv("FI_WEFT_NOTE_BYTES", "256k", 1);
	open_side(&s, (struct node_opts){ .disabled = test_rank == 1 });
	if (test_rank == 0) {
		struct weft_list *list = list_of(&s, LEN);
		struct fi_cq_tagged_entry e;

		for (int i = 0; i < TOTAL; i++)
			POST(&s, s.t->notify(s.n.ep, s.info.addr, i, s.note, 60000, 0, &s));
		fill(s.mem, LEN, 7);
		POST(&s, s.t->post(list, WEFT_WRITE, NULL, 0, "x", 1, 0, &s));
		for (int i = 0; i <= TOTAL; i++)
			wait_ok(&s.n, s.n.txcq, &e);
		OK(fi_close(&list->fid));
	} else {
		struct weft_note e = { .data = s.note, .size = WEFT_NOTE_MAX };

		while (fi_cntr_read(s.counted) < TOTAL + 1)
			progress(&s.n);
		verify(s.mem, LEN, 7);
		for (int i = 0; i < 100; i++)
			CHECK(s.t->notes(s.n.ep, &e, 1) == 0);
		CHECK(fi_cntr_read(s.counted) == TOTAL + 1 && fi_cntr_readerr(s.counted) == 0);
	}
	barrier(&s.n);
	close_side(&s);
}

static const struct test tests[] = {
	{ "behind", test_behind, 2, 0, 0 },
	{ "bad", test_bad, 2, 0, 0 },
	{ "unread", test_unread, 2, 0, 0 },
	{ "counted", test_counted, 2, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
