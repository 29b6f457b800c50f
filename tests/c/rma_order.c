/* SPDX-License-Identifier: BSD-2-Clause */
/* Order among one-sided operations and sends: none is waited for, the rings are full, and all is as
 * if each had been done after the one before it. */
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <stdlib.h>
#include <unistd.h>

#include "common.h"

#define LEN ((size_t)32768) /* bytes that the operations meet in */
#define STAMP LEN	    /* behind them: a word that only grows */
#define KEY 0x79
#define SLOTS 64 /* operations that are not taken in at a time */
#define ORDER \
	(FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_RAS | FI_ORDER_WAR | FI_ORDER_WAW | FI_ORDER_WAS | FI_ORDER_SAR | \
	 FI_ORDER_SAW)

/* An operation under way. */
struct pending {
	struct fi_context2 context;
	bool busy, checked;
	size_t len;
	char *buf;
	char *want; /* what buf holds at the end, if checked */
};

struct side {
	struct node n;
	struct fid_mr *mr;
	char *mem; /* rank 1: the target; rank 0: the model */
	struct pending ops[SLOTS];
	size_t under_way;
	uint64_t state, stamp;
};

static void open_side(struct side *s)
{
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC, .order = ORDER };

	memset(s, 0, sizeof(*s));
	setenv("FI_WEFT_RING_SLOTS", "32", 1);
	/* long operations are several messages, which do not all find room in the ring */
	setenv("FI_WEFT_BOUNCE_SIZE", "4096", 1);
	setenv("FI_WEFT_BOUNCE_COUNT", "2048", 1);
	node_open(&s->n, &o);
	CHECK((s->n.info->tx_attr->msg_order & ORDER) == ORDER);
	CHECK(s->n.info->ep_attr->max_order_raw_size >= LEN && s->n.info->ep_attr->max_order_war_size >= LEN &&
	      s->n.info->ep_attr->max_order_waw_size >= LEN);
	node_connect(&s->n);
	s->mem = calloc(1, LEN + sizeof(uint64_t));
	CHECK(s->mem);
	s->state = 20261122;
	for (size_t i = 0; i < SLOTS; i++) {
		s->ops[i].buf = malloc(LEN);
		s->ops[i].want = malloc(LEN);
		CHECK(s->ops[i].buf && s->ops[i].want);
	}
	if (test_rank == 1)
		OK(fi_mr_reg(s->n.domain, s->mem, LEN + sizeof(uint64_t), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0,
			     &s->mr, NULL));
	barrier(&s->n);
}

static void close_side(struct side *s)
{
	barrier(&s->n);
	if (s->mr)
		OK(fi_close(&s->mr->fid));
	node_close(&s->n);
	for (size_t i = 0; i < SLOTS; i++) {
		free(s->ops[i].buf);
		free(s->ops[i].want);
	}
	free(s->mem);
}

static size_t pick(struct side *s, size_t below)
{
	return (rnd(&s->state) >> 16) % below;
}

/* Takes a completion in, if there is one. */
static bool take(struct side *s)
{
	struct fi_cq_tagged_entry e;
	struct pending *p;

	if (!wait_for(&s->n, s->n.txcq, &e, 0))
		return false;
	p = e.op_context;
	CHECK(p->busy);
	CHECKF(!p->checked || !memcmp(p->buf, p->want, p->len), "an operation that read %zu bytes, flags %#lx", p->len,
	       (unsigned long)e.flags);
	p->busy = false;
	s->under_way--;
	return true;
}

/* A free one. Mostly without progress: what could not be sent is still there then, though there may
 * be room by now. */
static struct pending *slot(struct side *s)
{
	while (!pick(s, 8) && take(s))
		;
	for (;;) {
		for (size_t i = 0; i < SLOTS; i++)
			if (!s->ops[i].busy)
				return &s->ops[i];
		take(s);
	}
}

/* Waits until a call took effect: the ring of the other, what sleeps, is full. */
#define POST(s, call) \
	do { \
		ssize_t rc_; \
		while ((rc_ = (call)) == -FI_EAGAIN) \
			if (!take(s)) \
				progress(&(s)->n); \
		CHECKF(rc_ == 0, "%s: %zd", #call, rc_); \
	} while (0)

static void begin(struct side *s, struct pending *p, size_t len, bool checked)
{
	p->len = len;
	p->busy = true;
	p->checked = checked;
	s->under_way++;
}

static size_t length(struct side *s)
{
	static const size_t most[] = { 8, 80, 80, 2000, 6000, LEN };

	return 1 + pick(s, most[pick(s, 6)]);
}

static void write_one(struct side *s)
{
	size_t len = length(s), at = pick(s, LEN - len + 1);
	struct pending *p = slot(s);
	uint64_t fill = rnd(&s->state);

	for (size_t i = 0; i < len; i++)
		p->buf[i] = (char)(fill >> i % 57);
	if (len <= s->n.info->tx_attr->inject_size && pick(s, 2)) {
		POST(s, fi_inject_write(s->n.ep, p->buf, len, s->n.peer[1], at, KEY));
	} else {
		begin(s, p, len, false);
		POST(s, fi_write(s->n.ep, p->buf, len, NULL, s->n.peer[1], at, KEY, p));
	}
	memcpy(s->mem + at, p->buf, len);
}

static void read_one(struct side *s)
{
	size_t len = length(s), at = pick(s, LEN - len + 1);
	struct pending *p = slot(s);

	begin(s, p, len, true);
	memcpy(p->want, s->mem + at, len);
	POST(s, fi_read(s->n.ep, p->buf, len, NULL, s->n.peer[1], at, KEY, p));
}

static void add_one(struct side *s, bool fetch)
{
	size_t at = 8 * pick(s, LEN / 8);
	struct pending *p = slot(s);
	uint64_t operand = rnd(&s->state), word;

	memcpy(&word, s->mem + at, 8);
	if (fetch) {
		begin(s, p, 8, true);
		memcpy(p->want, &word, 8);
		POST(s, fi_fetch_atomic(s->n.ep, &operand, 1, NULL, p->buf, NULL, s->n.peer[1], at, KEY, FI_UINT64,
					FI_SUM, p));
	} else {
		POST(s, fi_inject_atomic(s->n.ep, &operand, 1, s->n.peer[1], at, KEY, FI_UINT64, FI_SUM));
	}
	word += operand;
	memcpy(s->mem + at, &word, 8);
}

/* A word that grows, and a message that says how far. */
static void stamp_one(struct side *s)
{
	s->stamp++;
	POST(s, fi_inject_write(s->n.ep, &s->stamp, 8, s->n.peer[1], STAMP, KEY));
	if (pick(s, 2))
		write_one(s);
	POST(s, fi_tinject(s->n.ep, &s->stamp, 8, s->n.peer[1], 1));
}

static void initiate(struct side *s, long count)
{
	uint64_t end = UINT64_MAX;

	for (long i = 0; i < count; i++) {
		size_t what = pick(s, 16);

		if (what < 6)
			write_one(s);
		else if (what < 9)
			read_one(s);
		else if (what < 13)
			add_one(s, what & 1);
		else
			stamp_one(s);
		if (!pick(s, 8)) /* the target makes room, and this side does not know */
			usleep((useconds_t)pick(s, 500));
	}
	for (size_t at = 0; at < LEN; at += LEN / 4) {
		struct pending *p = slot(s);

		begin(s, p, LEN / 4, true);
		memcpy(p->want, s->mem + at, LEN / 4);
		POST(s, fi_read(s->n.ep, p->buf, LEN / 4, NULL, s->n.peer[1], at, KEY, p));
	}
	POST(s, fi_tinject(s->n.ep, &end, 8, s->n.peer[1], 1));
	while (s->under_way)
		take(s);
}

/* The target polls now and then only, so that the ring is full. */
static void serve(struct side *s)
{
	struct fi_cq_tagged_entry e;
	volatile uint64_t *stamp = (uint64_t *)(s->mem + STAMP);
	uint64_t got = 0;

	while (got != UINT64_MAX) {
		trecv(&s->n, &got, sizeof(got), FI_ADDR_UNSPEC, 1, 0, s);
		while (!wait_for(&s->n, s->n.rxcq, &e, 0))
			if (!pick(s, 4))
				usleep((useconds_t)pick(s, 300));
		CHECKF(got == UINT64_MAX || *stamp >= got, "message %lu came before its write, the last was %lu",
		       (unsigned long)got, (unsigned long)*stamp);
	}
}

static void run(long count)
{
	struct side s;

	open_side(&s);
	if (test_rank == 0)
		initiate(&s, count);
	else
		serve(&s);
	close_side(&s);
}

static void test_memory(long count)
{
	run(count);
}

/* Where the kernel lets no process reach another's memory. */
static void test_messages(long count)
{
	setenv("FI_WEFT_USE_CMA", "no", 1);
	run(count);
}

/* While the target does not inspect: a short write, and behind it long ones, which go as messages then,
 * the last not all of them. Then the target makes room that this side does not use, and the next short
 * one goes to where the rest of them goes. */
static void overtake(struct side *s)
{
	char go = 0;

	POST(s, fi_inject_write(s->n.ep, s->mem, 8, s->n.peer[1], 0, KEY));
	for (int i = 0; i < 8; i++) {
		struct pending *p = slot(s);
		ssize_t rc;

		memset(p->buf, (int)rnd(&s->state), LEN);
		rc = fi_write(s->n.ep, p->buf, LEN, NULL, s->n.peer[1], 0, KEY, p);
		if (rc == -FI_EAGAIN)
			break;
		CHECKF(!rc, "fi_write: %zd", rc);
		begin(s, p, LEN, false);
		memcpy(s->mem, p->buf, LEN);
	}
	link_send(1, &go, sizeof(go));
	link_recv(1, &go, sizeof(go));
	s->stamp++;
	POST(s, fi_inject_write(s->n.ep, &s->stamp, 8, s->n.peer[1], LEN - 8, KEY));
	memcpy(s->mem + LEN - 8, &s->stamp, 8);
	initiate(s, 0);
}

static void test_overtake(long count)
{
	struct side s;
	char go;

	open_side(&s);
	for (long i = 0; i < count; i++) {
		if (test_rank == 0) {
			overtake(&s);
		} else {
			link_recv(0, &go, sizeof(go));
			for (int k = 0; k < 200; k++) /* empties the ring */
				progress(&s.n);
			link_send(0, &go, sizeof(go));
			serve(&s);
		}
	}
	close_side(&s);
}

static const struct test tests[] = {
	{ "overtake", test_overtake, 2, 0, 20 },
	{ "memory", test_memory, 2, 0, 4000 },
	{ "messages", test_messages, 2, 0, 3000 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
