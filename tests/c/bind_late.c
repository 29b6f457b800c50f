/* SPDX-License-Identifier: BSD-2-Clause */
/* What is bound to an endpoint that is enabled: counters of every direction, which count from then
 * on whatever path an operation takes, event queues and shared transmit contexts. */
#include <pthread.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <stdatomic.h>

#include "common.h"

#define LEN ((size_t)300000)
#define KEY 0x1A7E
#define ROUNDS 50

static const size_t sizes[] = { 8, 200, 4096, LEN }; /* in C, in Go, copied by the kernel, shared */

enum { SEND, RECV, READ, WRITE, REMOTE_READ, REMOTE_WRITE, DIRECTIONS };

static const uint64_t bits[DIRECTIONS] = {
	FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE,
};

struct pair {
	struct node n;
	struct fid_mr *mr;
	struct fid_cntr *cntr[DIRECTIONS];
	char *mem, *in;
};

static void open_pair(struct pair *p, uint64_t caps)
{
	struct node_opts o = { .caps = caps | FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC,
			       .tx_flags = FI_DELIVERY_COMPLETE };

	memset(p, 0, sizeof(*p));
	node_open(&p->n, &o);
	node_connect(&p->n);
	p->mem = guard_alloc(LEN);
	p->in = guard_alloc(LEN);
	memset(p->mem, 0, LEN);
	OK(fi_mr_reg(p->n.domain, p->mem, LEN, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &p->mr, NULL));
	barrier(&p->n);
}

static void close_pair(struct pair *p)
{
	barrier(&p->n);
	OK(fi_close(&p->mr->fid));
	OK(fi_close(&p->n.ep->fid));
	p->n.ep = NULL;
	for (int i = 0; i < DIRECTIONS; i++)
		if (p->cntr[i])
			OK(fi_close(&p->cntr[i]->fid));
	node_close(&p->n);
	guard_free(p->mem, LEN);
	guard_free(p->in, LEN);
}

#define POST(p, call) \
	do { \
		ssize_t rc_; \
		while ((rc_ = (call)) == -FI_EAGAIN) \
			progress(&(p)->n); \
		CHECKF(rc_ == 0, "%s: %zd", #call, rc_); \
	} while (0)

/* Rank 0 sends, writes, reads, adds and fetches once in each size; rank 1 receives. */
static void once(struct pair *p)
{
	uint64_t one = 1, old;
	fi_addr_t to = p->n.peer[1];

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		if (test_rank == 1) {
			trecv(&p->n, p->in, LEN, p->n.peer[0], i, 0, p);
			wait_ctx(&p->n, p->n.rxcq, p);
			continue;
		}
		tsend(&p->n, p->in, sizes[i], to, i, p);
		wait_ctx(&p->n, p->n.txcq, p);
		POST(p, fi_write(p->n.ep, p->in, sizes[i], NULL, to, 0, KEY, p));
		wait_ctx(&p->n, p->n.txcq, p);
		POST(p, fi_read(p->n.ep, p->in, sizes[i], NULL, to, 0, KEY, p));
		wait_ctx(&p->n, p->n.txcq, p);
		POST(p, fi_atomic(p->n.ep, &one, 1, NULL, to, 0, KEY, FI_UINT64, FI_SUM, p));
		wait_ctx(&p->n, p->n.txcq, p);
		POST(p, fi_fetch_atomic(p->n.ep, &one, 1, NULL, &old, NULL, to, 0, KEY, FI_UINT64, FI_SUM, p));
		wait_ctx(&p->n, p->n.txcq, p);
	}
	barrier(&p->n);
}

static void bind_all(struct pair *p, enum fi_wait_obj wait)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = wait };

	for (int i = 0; i < DIRECTIONS; i++) {
		OK(fi_cntr_open(p->n.domain, &attr, &p->cntr[i], NULL));
		OK(fi_ep_bind(p->n.ep, &p->cntr[i]->fid, bits[i]));
		EXPECT_RC(fi_ep_bind(p->n.ep, &p->cntr[i]->fid, bits[i]), -FI_EINVAL);
	}
	EXPECT_RC(fi_ep_bind(p->n.ep, &p->cntr[0]->fid, bits[1]), -FI_EINVAL); /* another one */
}

/* Compares every counter with what this rank has had of n rounds, waiting for the last. */
static void counted(struct pair *p, uint64_t n, bool sleeps)
{
	uint64_t all = n * ARRAY_LEN(sizes);
	uint64_t want[2][DIRECTIONS] = {
		{ [SEND] = all, [WRITE] = 2 * all, [READ] = 2 * all },
		{ [RECV] = all, [REMOTE_WRITE] = 3 * all, [REMOTE_READ] = 2 * all },
	};

	for (int i = 0; i < DIRECTIONS; i++) {
		uint64_t w = want[test_rank][i], got = 0;

		if (sleeps)
			OK(fi_cntr_wait(p->cntr[i], w, 10000));
		for (int k = 0; k < 10000 && (got = fi_cntr_read(p->cntr[i])) < w; k++)
			progress(&p->n);
		EXPECTF(got == w, "counter %d counts %lu, expected %lu", i, (unsigned long)got, (unsigned long)w);
	}
}

static void test_counters(long wait)
{
	struct pair p;

	open_pair(&p, FI_RMA_EVENT);
	once(&p); /* every path is in use, and counts nothing */
	barrier(&p.n);
	bind_all(&p, (enum fi_wait_obj)wait);
	barrier(&p.n);
	for (int i = 0; i < ROUNDS; i++)
		once(&p);
	counted(&p, ROUNDS, wait != FI_WAIT_NONE);
	close_pair(&p);
}

/* What sleeps on a late counter wakes for a message that comes then. */
static void test_wakes(long arg)
{
	struct pair p;

	(void)arg;
	open_pair(&p, FI_RMA_EVENT);
	once(&p);
	bind_all(&p, FI_WAIT_FD);
	barrier(&p.n);
	for (uint64_t i = 1; i <= 5; i++) {
		uint64_t word = i;

		if (test_rank == 0) {
			usleep(20000);
			POST(&p, fi_write(p.n.ep, &word, sizeof(word), NULL, p.n.peer[1], 0, KEY, &p));
			wait_ctx(&p.n, p.n.txcq, &p);
			tsend(&p.n, &word, sizeof(word), p.n.peer[1], 1, &p);
			wait_ctx(&p.n, p.n.txcq, &p);
		} else {
			trecv(&p.n, p.in, LEN, p.n.peer[0], 1, 0, &p);
			OK(fi_cntr_wait(p.cntr[REMOTE_WRITE], i, 10000));
			CHECK(*(uint64_t *)p.mem == i);
			OK(fi_cntr_wait(p.cntr[RECV], i, 10000));
			wait_ctx(&p.n, p.n.rxcq, &p);
		}
		barrier(&p.n);
	}
	close_pair(&p);
}

static struct pair shared;
static atomic_bool bound, over;

/* Writes without end, while the other thread binds, and counts those that began when it had. */
static void *traffic(void *arg)
{
	atomic_ulong *after = arg;
	uint64_t word = 0;

	while (!atomic_load(&over)) {
		bool counts = atomic_load(&bound);

		POST(&shared, fi_write(shared.n.ep, &word, sizeof(word), NULL, shared.n.peer[1], 0, KEY, &shared));
		wait_ctx(&shared.n, shared.n.txcq, &shared);
		atomic_fetch_add(after, counts);
	}
	return NULL;
}

static void test_meanwhile(long arg)
{
	atomic_ulong after = 0;
	pthread_t t;

	(void)arg;
	open_pair(&shared, FI_RMA_EVENT);
	if (test_rank == 0) {
		CHECK(pthread_create(&t, NULL, traffic, &after) == 0);
		usleep(20000);
		bind_all(&shared, FI_WAIT_NONE);
		atomic_store(&bound, true);
		for (uint64_t end = now_ms() + 60000; atomic_load(&after) < 10 && now_ms() < end;)
			usleep(1000);
		atomic_store(&over, true);
		CHECK(pthread_join(t, NULL) == 0);
		EXPECTF(after >= 10, "%lu writes in a minute", after);
		EXPECTF(fi_cntr_read(shared.cntr[WRITE]) >= after, "%lu of at least %lu",
			(unsigned long)fi_cntr_read(shared.cntr[WRITE]), after);
	}
	barrier(&shared.n);
	close_pair(&shared);
}

/* An endpoint without a place for receives gets one. */
static void test_receives(long arg)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED | FI_RMA };
	uint64_t out = 5, in = 0;
	struct fid_cntr *cntr;
	struct fid_ep *alias = NULL;
	struct node n;

	(void)arg;
	node_open_domain(&n, &o);
	OK(fi_cq_open(n.domain, &cq_attr, &n.txcq, NULL));
	OK(fi_av_open(n.domain, &av_attr, &n.av, NULL));
	OK(fi_cntr_open(n.domain, &attr, &cntr, NULL));
	OK(fi_endpoint(n.domain, n.info, &n.ep, NULL));
	OK(fi_ep_bind(n.ep, &n.av->fid, 0));
	OK(fi_ep_bind(n.ep, &n.txcq->fid, FI_TRANSMIT));
	OK(fi_enable(n.ep));
	n.rxcq = n.txcq;
	n.peer[0] = node_insert(&n, &n);
	OK(fi_ep_alias(n.ep, &alias, 0));
	EXPECT_RC(fi_trecv(n.ep, &in, sizeof(in), NULL, FI_ADDR_UNSPEC, 0, 0, &in), -FI_ENOCQ);
	OK(fi_ep_bind(n.ep, &cntr->fid, FI_RECV));
	OK(fi_trecv(alias, &in, sizeof(in), NULL, FI_ADDR_UNSPEC, 0, 0, &in));
	OK(fi_tsend(n.ep, &out, sizeof(out), NULL, n.peer[0], 0, &out));
	wait_ctx(&n, n.txcq, &out);
	for (int i = 0; i < 100000 && fi_cntr_read(cntr) == 0; i++)
		progress(&n);
	CHECK(fi_cntr_read(cntr) == 1 && in == out);
	OK(fi_close(&alias->fid));
	OK(fi_close(&n.ep->fid));
	OK(fi_close(&cntr->fid));
	OK(fi_close(&n.txcq->fid));
	OK(fi_close(&n.av->fid));
	node_close_domain(&n);
}

/* What there is one of is refused; event queues replace each other. */
static void test_others(long arg)
{
	struct fi_eq_attr eq_attr = { 0 };
	struct fi_tx_attr ordered;
	struct fid_eq *eq, *other;
	struct fid_stx *stx, *more;
	struct node n, b;

	(void)arg;
	node_open(&n, NULL);
	node_open_on(&b, &n, NULL);
	EXPECT_RC(fi_ep_bind(n.ep, &b.txcq->fid, FI_TRANSMIT), -FI_EINVAL);
	EXPECT_RC(fi_ep_bind(n.ep, &n.txcq->fid, FI_TRANSMIT), -FI_EINVAL);
	EXPECT_RC(fi_ep_bind(n.ep, &b.av->fid, 0), -FI_EINVAL);
	EXPECT_RC(fi_ep_bind(n.ep, &n.av->fid, 0), -FI_EINVAL);
	OK(fi_eq_open(n.fabric, &eq_attr, &eq, NULL));
	OK(fi_eq_open(n.fabric, &eq_attr, &other, NULL));
	OK(fi_ep_bind(n.ep, &eq->fid, 0));
	OK(fi_ep_bind(n.ep, &eq->fid, 0));
	OK(fi_ep_bind(n.ep, &other->fid, 0));
	ordered = *n.info->tx_attr;
	ordered.msg_order |= FI_ORDER_WAW;
	OK(fi_stx_context(n.domain, NULL, &stx, NULL));
	OK(fi_stx_context(n.domain, &ordered, &more, NULL));
	EXPECT_RC(fi_ep_bind(n.ep, &more->fid, 0), -FI_EINVAL); /* nothing was kept in that order before */
	OK(fi_ep_bind(n.ep, &stx->fid, 0));
	EXPECT_RC(fi_ep_bind(n.ep, &stx->fid, 0), -FI_EINVAL);
	node_close(&b);
	OK(fi_close(&n.ep->fid));
	OK(fi_close(&stx->fid));
	OK(fi_close(&more->fid));
	OK(fi_close(&eq->fid));
	OK(fi_close(&other->fid));
	n.ep = NULL;
	node_close(&n);
}

/* What fi_endpoint(3) asks to be bound before fi_enable, and no transfer could use halfway: a first
 * completion queue beside counters, a shared receive context. The endpoint works on without it. */
static void test_too_late(long arg)
{
	struct node_opts o = { .disabled = true, .counters = true };
	char in[8] = "", out[8] = "forever";
	struct fid_ep *ep, *srx;
	struct node n;
	fi_addr_t own;

	(void)arg;
	node_open(&n, &o);
	OK(fi_endpoint(n.domain, n.info, &ep, NULL));
	OK(fi_ep_bind(ep, &n.av->fid, 0));
	OK(fi_ep_bind(ep, &n.txcntr->fid, FI_SEND));
	OK(fi_ep_bind(ep, &n.rxcntr->fid, FI_RECV));
	OK(fi_enable(ep));
	OK(fi_srx_context(n.domain, NULL, &srx, NULL));
	EXPECT_RC(fi_ep_bind(ep, &n.txcq->fid, FI_TRANSMIT), -FI_EOPBADSTATE);
	EXPECT_RC(fi_ep_bind(ep, &n.rxcq->fid, FI_RECV), -FI_EOPBADSTATE);
	EXPECT_RC(fi_ep_bind(ep, &srx->fid, 0), -FI_EOPBADSTATE);
	OK(fi_close(&srx->fid));
	CHECK(!fi_close(&n.ep->fid));
	n.ep = ep;
	own = node_insert(&n, &n);
	OK(fi_trecv(ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
	OK(fi_tsend(ep, out, sizeof(out), NULL, own, 1, NULL));
	for (uint64_t end = now_ms() + 10000;
	     now_ms() < end && (fi_cntr_read(n.rxcntr) < 1 || fi_cntr_read(n.txcntr) < 1);)
		;
	CHECK(fi_cntr_read(n.rxcntr) == 1 && fi_cntr_read(n.txcntr) == 1 && !strcmp(in, out));
	node_close(&n);
}

static const struct test tests[] = {
	{ "counters", test_counters, 2, 0, FI_WAIT_NONE },
	{ "counters with a descriptor", test_counters, 2, 0, FI_WAIT_FD },
	{ "a late counter wakes what sleeps", test_wakes, 2, 0, 0 },
	{ "while there is traffic", test_meanwhile, 2, 0, 0 },
	{ "receives", test_receives, 0, 0, 0 },
	{ "one of each", test_others, 0, 0, 0 },
	{ "too late", test_too_late, 0, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
