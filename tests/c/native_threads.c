/* SPDX-License-Identifier: BSD-2-Clause */
/* Several threads over endpoints of FI_PROTO_CXI whose calls the application serialises: an endpoint for each thread,
 * or endpoints that threads take in turn. Without a NIC of Slingshot, or its model (tests/clients/cxi.sh), all is
 * skipped. */
#include <pthread.h>
#include <sched.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "common.h"

#define THREADS 4
#define ROUNDS 200
#define LONGEST 40000

static const size_t lengths[] = { 8, 0, 192, 193, 2048, 5000, LONGEST };

/* A thread, which sends to the next, and receives from the one before. */
struct worker {
	pthread_t id;
	uint64_t rank;
	struct node *n; /* whose endpoint it uses */
	fi_addr_t to;	/* the next one's endpoint */
	uint64_t key;	/* of the next one's region */
	int ended;	/* atomic: operations of a round */
	uint64_t word;
	unsigned char out[LONGEST], in[LONGEST];
};

/* A node, and what its peers write to: a sum, and a word for each of them. */
struct place {
	struct node n;
	struct fid_mr *mr;
	uint64_t memory[1 + THREADS];
};

static struct worker workers[THREADS];
static struct place places[THREADS];
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static bool in_turn;
static int over; /* atomic: threads whose rounds are over */

/* Serialises calls, where several threads make them for one domain or endpoint. */
static void enter(void)
{
	if (in_turn)
		pthread_mutex_lock(&turn);
}

static void leave(void)
{
	if (in_turn)
		pthread_mutex_unlock(&turn);
}

/* Takes completions in, perhaps of other threads. */
static void take(struct worker *w)
{
	struct fi_cq_tagged_entry e[4];
	ssize_t rc;

	enter();
	rc = fi_cq_read(w->n->txcq, e, ARRAY_LEN(e));
	leave();
	CHECKF(rc > 0 || rc == -FI_EAGAIN, "fi_cq_read = %zd", rc);
	for (ssize_t i = 0; i < rc; i++)
		__atomic_add_fetch((int *)e[i].op_context, 1, __ATOMIC_RELEASE);
	if (rc < 0)
		sched_yield();
}

/* Makes a call until it is not -FI_EAGAIN. */
#define POST(w, call) \
	do { \
		ssize_t rc_; \
		for (;;) { \
			enter(); \
			rc_ = (call); \
			leave(); \
			if (rc_ != -FI_EAGAIN) \
				break; \
			take(w); \
		} \
		CHECKF(rc_ == 0, "%s = %zd", #call, rc_); \
	} while (0)

static void *work(void *arg)
{
	struct worker *w = arg;
	struct fid_ep *ep = w->n->ep;
	uint64_t before = (w->rank + THREADS - 1) % THREADS, one = 1;

	for (uint64_t round = 0; round < ROUNDS; round++) {
		size_t len = lengths[round % ARRAY_LEN(lengths)];

		fill(w->out, len, w->rank * ROUNDS + round);
		__atomic_store_n(&w->ended, 0, __ATOMIC_RELAXED);
		w->word = round;
		POST(w, fi_trecv(ep, w->in, len, NULL, FI_ADDR_UNSPEC, before << 32 | round, 0, &w->ended));
		POST(w, fi_tsend(ep, w->out, len, NULL, w->to, w->rank << 32 | round, &w->ended));
		POST(w, fi_write(ep, &w->word, sizeof(w->word), NULL, w->to, 8 + 8 * w->rank, w->key, &w->ended));
		POST(w, fi_atomic(ep, &one, 1, NULL, w->to, 0, w->key, FI_UINT64, FI_SUM, &w->ended));
		while (__atomic_load_n(&w->ended, __ATOMIC_ACQUIRE) < 4)
			take(w);
		verify(w->in, len, before * ROUNDS + round);
	}
	__atomic_add_fetch(&over, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&over, __ATOMIC_ACQUIRE) < THREADS) /* whose messages may need this one's progress */
		take(w);
	return NULL;
}

static void open_place(struct place *p, const struct place *base, const struct node_opts *o, uint64_t key)
{
	if (base)
		node_open_on(&p->n, &base->n, o);
	else
		node_open(&p->n, o);
	OK(fi_mr_reg(p->n.domain, p->memory, sizeof(p->memory), FI_REMOTE_WRITE, 0, key, 0, &p->mr, NULL));
	OK(fi_mr_bind(p->mr, &p->n.ep->fid, 0));
	OK(fi_mr_enable(p->mr));
}

enum share { NOTHING, DOMAIN, ENDPOINT };

/* Threads with FI_THREAD_COMPLETION or FI_THREAD_DOMAIN, which share domain or endpoint or nothing, and take turns. */
static void test_threads(enum fi_threading threading, enum share share, bool turns, uint64_t caps)
{
	struct node_opts o = {
		.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | caps,
		.mr_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED,
		.addr_format = FI_ADDR_CXI,
		.threading = threading,
		.one_cq = true,
	};
	size_t count = share == ENDPOINT ? 1 : THREADS;
	uint64_t sum = 0;

	node_need(&o);
	in_turn = turns;
	for (size_t k = 0; k < count; k++) {
		open_place(&places[k], share == NOTHING || k == 0 ? NULL : &places[0], &o, 100 + k);
		CHECK(places[k].n.info->domain_attr->threading == threading);
	}
	for (size_t k = 0; k < THREADS; k++) {
		size_t own = k % count, next = (k + 1) % count;

		workers[k].rank = k;
		workers[k].n = &places[own].n;
		workers[k].to = node_insert(&places[own].n, &places[next].n);
		workers[k].key = 100 + next;
	}
	for (size_t k = 0; k < THREADS; k++)
		OK(-pthread_create(&workers[k].id, NULL, work, &workers[k]));
	for (size_t k = 0; k < THREADS; k++)
		OK(-pthread_join(workers[k].id, NULL));
	for (size_t k = 0; k < THREADS; k++) {
		CHECK(places[(k + 1) % count].memory[1 + k] == ROUNDS - 1);
		sum += places[k].memory[0];
	}
	CHECKF(sum == (uint64_t)THREADS * ROUNDS, "%lu", (unsigned long)sum);
	for (size_t k = count; k-- > 0;)
		OK(fi_close(&places[k].mr->fid));
	for (size_t k = count; k-- > 0;)
		node_close(&places[k].n);
}

/* An endpoint for each thread, of one domain. */
static void test_completion(long caps)
{
	test_threads(FI_THREAD_COMPLETION, DOMAIN, false, (uint64_t)caps);
}

/* An endpoint, with its queue, that threads take in turn. */
static void test_completion_turns(long caps)
{
	test_threads(FI_THREAD_COMPLETION, ENDPOINT, true, (uint64_t)caps);
}

/* A domain for each thread. */
static void test_domain(long caps)
{
	test_threads(FI_THREAD_DOMAIN, NOTHING, false, (uint64_t)caps);
}

/* A domain with an endpoint for each thread, which take turns. */
static void test_domain_turns(long caps)
{
	test_threads(FI_THREAD_DOMAIN, DOMAIN, true, (uint64_t)caps);
}

static const struct test tests[] = {
	{ "completion", test_completion, 1, 60, 0 },
	{ "completion_turns", test_completion_turns, 1, 60, 0 },
	{ "domain", test_domain, 1, 60, 0 },
	{ "domain_turns", test_domain_turns, 1, 60, 0 },
	{ "completion_collective", test_completion, 1, 60, FI_COLLECTIVE },
	{ "domain_collective", test_domain_turns, 1, 60, FI_COLLECTIVE },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
