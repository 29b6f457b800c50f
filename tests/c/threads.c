/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One FI_THREAD_SAFE endpoint, many threads: some send to two peers, others read its CQs. Nothing is
 * lost or doubled, and what one thread sends to one peer arrives in that order.
 */
#include "common.h"

#include <pthread.h>

#define PER_THREAD 4000
#define MAX_THREADS 8
#define MAX_LEN 80000

struct message {
	uint32_t thread, number;
};

struct shared {
	struct node *n;
	long threads;
	uint64_t completed;				/* atomic: tx completions read */
	unsigned char done[2][MAX_THREADS][PER_THREAD]; /* atomic: completions by context */
	struct message out[2][MAX_THREADS][PER_THREAD];
	char large[MAX_LEN];
	int stop; /* atomic */
};

static struct shared sh;

struct worker {
	pthread_t id;
	uint32_t index;
};

static void read_tx(void)
{
	struct fi_cq_tagged_entry e[8];
	ssize_t rc = fi_cq_read(sh.n->txcq, e, ARRAY_LEN(e));

	if (rc == -FI_EAGAIN)
		return;
	CHECKF(rc > 0, "fi_cq_read = %zd (%s)", rc, fi_strerror((int)-rc));
	for (ssize_t i = 0; i < rc; i++) {
		size_t at = (size_t)((struct message *)e[i].op_context - &sh.out[0][0][0]);
		unsigned char *done = &sh.done[0][0][0] + at;

		CHECK(at < sizeof(sh.done));
		CHECKF(__atomic_fetch_add(done, 1, __ATOMIC_RELAXED) == 0, "completion of %zu came twice", at);
	}
	__atomic_add_fetch(&sh.completed, (uint64_t)rc, __ATOMIC_RELAXED);
}

/* Every fifth message is of another size, so that rendezvous and copies mix in. */
static size_t size_of(uint32_t number)
{
	static const size_t sizes[] = { 8, 200, 5000, MAX_LEN };

	return number % 5 ? 8 : sizes[number / 5 % ARRAY_LEN(sizes)];
}

static void *sender(void *p)
{
	struct worker *w = p;

	for (uint32_t k = 0; k < PER_THREAD; k++)
		for (int peer = 0; peer < 2; peer++) {
			struct message *m = &sh.out[peer][w->index][k];
			struct op o = { .form = F_V,
					.tagged = true,
					.addr = sh.n->peer[peer + 1],
					.tag = w->index | (uint64_t)k << 8,
					.ctx = m,
					.count = 2 };
			ssize_t rc;

			m->thread = w->index;
			m->number = k;
			o.iov[0].iov_base = m;
			o.iov[0].iov_len = sizeof(*m);
			o.iov[1].iov_base = sh.large;
			o.iov[1].iov_len = size_of(k) - sizeof(*m);
			if (sh.n->info->tx_attr->iov_limit < 2) {
				o.count = 1;
				o.iov[0] =
					(struct iovec){ size_of(k) == sizeof(*m) ? (void *)m : sh.large, size_of(k) };
			}
			while ((rc = op_send(sh.n->ep, &o)) == -FI_EAGAIN)
				read_tx();
			CHECKF(rc == 0, "send = %zd (%s)", rc, fi_strerror((int)-rc));
		}
	return NULL;
}

static void *reader(void *p)
{
	while (!__atomic_load_n(&sh.stop, __ATOMIC_ACQUIRE))
		read_tx();
	return p;
}

static void send_side(struct node *n, long threads)
{
	struct worker w[MAX_THREADS], r[2];
	uint64_t total = 2ull * (uint64_t)threads * PER_THREAD;

	sh.n = n;
	for (long i = 0; i < threads; i++) {
		w[i].index = (uint32_t)i;
		CHECK(pthread_create(&w[i].id, NULL, sender, &w[i]) == 0);
	}
	for (int i = 0; i < 2; i++)
		CHECK(pthread_create(&r[i].id, NULL, reader, &r[i]) == 0);
	for (long i = 0; i < threads; i++)
		pthread_join(w[i].id, NULL);
	while (__atomic_load_n(&sh.completed, __ATOMIC_RELAXED) < total)
		read_tx();
	__atomic_store_n(&sh.stop, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 2; i++)
		pthread_join(r[i].id, NULL);
	CHECK(sh.completed == total);
}

static void recv_side(struct node *n, long threads)
{
	uint32_t next[MAX_THREADS] = { 0 };
	char *in = malloc(MAX_LEN);

	CHECK(in != NULL);
	for (long i = 0; i < threads * PER_THREAD; i++) {
		struct fi_cq_tagged_entry e;
		struct message m;

		trecv(n, in, MAX_LEN, FI_ADDR_UNSPEC, 0, ~0ull, in);
		wait_ok(n, n->rxcq, &e);
		m = (struct message){ e.tag & 0xff, (uint32_t)(e.tag >> 8) };
		CHECK(m.thread < MAX_THREADS);
		if (n->info->tx_attr->iov_limit > 1 || e.len == sizeof(m))
			CHECK(!memcmp(in, &m, sizeof(m)));
		CHECKF(m.number == next[m.thread], "thread %u: message %u, want %u", m.thread, m.number,
		       next[m.thread]);
		CHECK(e.len == size_of(m.number));
		next[m.thread]++;
	}
	free(in);
}

static void test_senders(long threads)
{
	struct node_opts o = { .threading = FI_THREAD_SAFE };
	struct node n;

	node_open(&n, &o);
	node_connect(&n);
	if (test_rank == 0)
		send_side(&n, threads);
	else
		recv_side(&n, threads);
	barrier(&n);
	wait_none(&n, n.rxcq, 1);
	node_close(&n);
}

/* ---- receiving: N threads read one CQ ---- */

#define RECEIVES 20000

static struct {
	struct node *n;
	uint64_t value[RECEIVES];
	unsigned char seen[RECEIVES]; /* atomic */
	uint64_t count;		      /* atomic */
} rx;

static void *rx_reader(void *p)
{
	while (__atomic_load_n(&rx.count, __ATOMIC_RELAXED) < RECEIVES) {
		struct fi_cq_tagged_entry e[4];
		ssize_t rc = fi_cq_read(rx.n->rxcq, e, ARRAY_LEN(e));

		if (rc == -FI_EAGAIN) {
			sched_yield();
			continue;
		}
		CHECKF(rc > 0, "fi_cq_read = %zd (%s)", rc, fi_strerror((int)-rc));
		for (ssize_t i = 0; i < rc; i++) {
			size_t k = (size_t)((uint64_t *)e[i].op_context - rx.value);

			CHECK(k < RECEIVES && e[i].tag == k && rx.value[k] == k * 3);
			CHECK(__atomic_fetch_add(&rx.seen[k], 1, __ATOMIC_RELAXED) == 0);
		}
		__atomic_add_fetch(&rx.count, (uint64_t)rc, __ATOMIC_RELAXED);
	}
	return p;
}

static void *rx_requester(void *p)
{
	long which = (long)p;

	for (uint64_t k = (uint64_t)which; k < RECEIVES; k += 2) {
		struct op o = { .tagged = true,
				.buf = &rx.value[k],
				.len = 8,
				.tag = k,
				.addr = FI_ADDR_UNSPEC,
				.ctx = &rx.value[k] };
		ssize_t rc;

		while ((rc = op_recv(rx.n->ep, &o)) == -FI_EAGAIN)
			sched_yield();
		CHECKF(rc == 0, "receive = %zd (%s)", rc, fi_strerror((int)-rc));
	}
	return NULL;
}

static void test_readers(long threads)
{
	struct node_opts o = { .threading = FI_THREAD_SAFE };
	struct node n;

	node_open(&n, &o);
	node_connect(&n);
	if (test_rank == 0) {
		for (uint64_t k = 0; k < RECEIVES; k++) {
			uint64_t v = k * 3;
			struct op s = {
				.form = F_INJECT, .tagged = true, .addr = n.peer[1], .buf = &v, .len = 8, .tag = k
			};

			post_send(&n, &s);
		}
	} else {
		pthread_t t[MAX_THREADS + 2];

		rx.n = &n;
		for (long i = 0; i < threads; i++)
			CHECK(pthread_create(&t[i], NULL, rx_reader, NULL) == 0);
		for (long i = 0; i < 2; i++)
			CHECK(pthread_create(&t[threads + i], NULL, rx_requester, (void *)i) == 0);
		for (long i = 0; i < threads + 2; i++)
			pthread_join(t[i], NULL);
		CHECK(rx.count == RECEIVES);
	}
	barrier(&n);
	wait_none(&n, n.rxcq, 1);
	node_close(&n);
}

static const struct test tests[] = {
	{ "senders_2", test_senders, 3, 120, 2 },
	{ "senders_8", test_senders, 3, 120, 8 },
	{ "readers_2", test_readers, 2, 60, 2 },
	{ "readers_8", test_readers, 2, 60, 8 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
