/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_ORDER_SAS: the k-th message between two endpoints lands in the k-th matching receive, whatever
 * the sizes (inline, buffered, rendezvous) and whichever thread sent it after a hand-over.
 */
#include "common.h"

#include <pthread.h>

#define COUNT 6000
#define WINDOW 64
#define MAX_SIZE 200000
#define TAG 0x77

/* The size of message k: mostly small, with every protocol in between. */
static size_t size_of(uint64_t k)
{
	static const size_t sizes[] = { 8, 0, 100, 3000, 1, 65536, 80000, 64, MAX_SIZE, 4097, 16, 65537, 70000, 12 };
	uint64_t s = k * 2654435761u;

	return sizes[(k + (s >> 13)) % ARRAY_LEN(sizes)];
}

struct window {
	struct node *n;
	char *buf[WINDOW];
	void *ctx[WINDOW]; /* its address is the context; busy while set */
};

static void window_open(struct window *w, struct node *n)
{
	memset(w, 0, sizeof(*w));
	w->n = n;
	for (int i = 0; i < WINDOW; i++) {
		w->buf[i] = malloc(MAX_SIZE);
		CHECK(w->buf[i] != NULL);
	}
}

static void window_close(struct window *w)
{
	for (int i = 0; i < WINDOW; i++)
		free(w->buf[i]);
}

/* Takes one completion of cq and frees its slot. */
static size_t reap_one(struct window *w, struct fid_cq *cq, size_t *len)
{
	struct fi_cq_tagged_entry e;
	size_t slot;

	wait_ok(w->n, cq, &e);
	slot = (size_t)((void **)e.op_context - w->ctx);
	CHECK(slot < WINDOW && w->ctx[slot]);
	w->ctx[slot] = NULL;
	if (len)
		*len = e.len;
	return slot;
}

static void send_all(struct node *n, bool tagged)
{
	struct window w;

	window_open(&w, n);
	for (uint64_t k = 0; k < COUNT; k++) {
		size_t slot = k % WINDOW;
		struct op o = { .form = k % 3 ? F_PLAIN : F_INJECT,
				.tagged = tagged,
				.tag = TAG,
				.buf = w.buf[slot],
				.len = size_of(k),
				.addr = n->peer[1],
				.ctx = &w.ctx[slot] };

		while (w.ctx[slot])
			reap_one(&w, n->txcq, NULL);
		if (o.len > n->info->tx_attr->inject_size)
			o.form = F_PLAIN;
		fill(o.buf, o.len, k);
		post_send(n, &o);
		w.ctx[slot] = o.form == F_INJECT ? NULL : &w;
	}
	for (size_t i = 0; i < WINDOW; i++)
		while (w.ctx[i])
			reap_one(&w, n->txcq, NULL);
	window_close(&w);
}

/* Receives in a window that is refilled in order; now and then everything is let arrive first. */
static void recv_all(struct node *n, bool tagged)
{
	struct window w;
	uint64_t posted = 0, done = 0, seq[WINDOW];

	window_open(&w, n);
	while (done < COUNT) {
		size_t len, slot;

		while (posted < COUNT && !w.ctx[posted % WINDOW]) {
			struct op o = { .tagged = tagged,
					.tag = TAG,
					.buf = w.buf[posted % WINDOW],
					.len = MAX_SIZE,
					.addr = FI_ADDR_UNSPEC,
					.ignore = posted % 5 ? 0 : ~0ull,
					.ctx = &w.ctx[posted % WINDOW] };

			if (posted % 500 == 499)
				usleep(2000); /* the sender runs ahead */
			w.ctx[posted % WINDOW] = &w;
			seq[posted % WINDOW] = posted;
			post_recv(n, &o);
			posted++;
		}
		slot = reap_one(&w, n->rxcq, &len);
		CHECKF(len == size_of(seq[slot]), "receive %llu got %zu bytes, want %zu", (unsigned long long)seq[slot],
		       len, size_of(seq[slot]));
		verify(w.buf[slot], len, seq[slot]);
		done++;
	}
	window_close(&w);
}

static void test_mixed(long arg)
{
	struct node n;

	node_open(&n, NULL);
	node_connect(&n);
	if (test_rank == 0)
		send_all(&n, arg);
	else
		recv_all(&n, arg);
	barrier(&n);
	wait_none(&n, n.rxcq, 1);
	node_close(&n);
}

/* Both sides send to each other at once: neither direction may hold the other up. */
static void test_bidirectional(long arg)
{
	enum { N = 3000, LEN = 80000 };
	struct node n;
	char *in = malloc(LEN * 2), *out = malloc(LEN);
	struct fi_cq_tagged_entry e;
	uint64_t sent = 0, acked = 0, got = 0;

	(void)arg;
	node_open(&n, NULL);
	node_connect(&n);
	CHECK(in && out);
	trecv(&n, in, LEN, FI_ADDR_UNSPEC, TAG, 0, in);
	while (got < N || acked < N) {
		if (sent < N && sent == acked) {
			fill(out, size_of(sent) % LEN, sent);
			tsend(&n, out, size_of(sent) % LEN, n.peer[!test_rank], TAG, out);
			sent++;
		}
		if (wait_for(&n, n.txcq, &e, 0) == 1)
			acked++;
		if (wait_for(&n, n.rxcq, &e, 0) == 1) {
			CHECK(e.len == size_of(got) % LEN);
			verify(in, e.len, got);
			if (++got < N)
				trecv(&n, in, LEN, FI_ADDR_UNSPEC, TAG, 0, in);
		}
	}
	barrier(&n);
	node_close(&n);
	free(in);
	free(out);
}

/* Threads that hand a turn to each other: sends ordered by happens-before match in that order. */
struct turns {
	struct node *n;
	pthread_mutex_t lock;
	uint64_t next; /* guarded by lock: the hand-over */
	struct window w;
};

static void *take_turns(void *p)
{
	struct turns *t = p;

	for (;;) {
		pthread_mutex_lock(&t->lock);
		uint64_t k = t->next;
		size_t slot = k % WINDOW;
		struct op o = { .tagged = true,
				.tag = TAG,
				.buf = t->w.buf[slot],
				.len = size_of(k),
				.addr = t->n->peer[1],
				.ctx = &t->w.ctx[slot] };

		if (k == COUNT) {
			pthread_mutex_unlock(&t->lock);
			return NULL;
		}
		while (t->w.ctx[slot])
			reap_one(&t->w, t->n->txcq, NULL);
		fill(o.buf, o.len, k);
		t->w.ctx[slot] = t;
		post_send(t->n, &o);
		t->next++;
		pthread_mutex_unlock(&t->lock);
		if (k % 7 == 0)
			sched_yield();
	}
}

static void test_threads(long arg)
{
	struct node_opts o = { .threading = FI_THREAD_SAFE };
	static struct turns t = { .lock = PTHREAD_MUTEX_INITIALIZER };
	pthread_t thread[8];
	struct node n;

	node_open(&n, &o);
	node_connect(&n);
	if (test_rank == 0) {
		t.n = &n;
		window_open(&t.w, &n);
		for (long i = 0; i < arg; i++)
			CHECK(pthread_create(&thread[i], NULL, take_turns, &t) == 0);
		for (long i = 0; i < arg; i++)
			pthread_join(thread[i], NULL);
		for (size_t i = 0; i < WINDOW; i++)
			while (t.w.ctx[i])
				reap_one(&t.w, n.txcq, NULL);
		window_close(&t.w);
	} else {
		recv_all(&n, true);
	}
	barrier(&n);
	node_close(&n);
}

static const struct test tests[] = {
	{ "mixed_tagged", test_mixed, 2, 120, true },	    { "mixed_untagged", test_mixed, 2, 120, false },
	{ "bidirectional", test_bidirectional, 2, 120, 0 }, { "handover_2_threads", test_threads, 2, 120, 2 },
	{ "handover_8_threads", test_threads, 2, 120, 8 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
