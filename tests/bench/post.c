/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The cost of posting: bursts of injected messages to peers that sleep while
 * the burst is timed and take the messages afterwards. One thread posts to one
 * peer, or two threads to a peer each, on one endpoint.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sched.h>

#include "bench.h"
#include "pin.h"

enum { BURST = 128 };

/* What the two posting threads share. */
struct burst {
	struct node *n;
	int threads;
	_Atomic int ready;
	_Atomic bool stop;
	pthread_barrier_t start, end; /* of both threads, blocking */
	uint64_t began[2], ended[2];
	bool full[2];
};

/* post_burst posts to one peer; false when the provider would not take all. */
static bool post_burst(struct node *n, int rank)
{
	for (int i = 0; i < BURST; i++) {
		ssize_t ret = fi_tinject(n->ep, n->tx, 8, n->peer[rank], 1);
		if (ret == -FI_EAGAIN)
			return false;
		if (ret)
			die("fi_tinject", (int)ret);
	}
	return true;
}

/* run_burst starts all threads within a few nanoseconds of each other. */
static void run_burst(struct burst *b, int thread)
{
	atomic_fetch_add(&b->ready, 1);
	while (atomic_load(&b->ready) < b->threads)
		;
	b->began[thread] = ticks();
	b->full[thread] = !post_burst(b->n, 1 + thread);
	b->ended[thread] = ticks();
}

static void *second_thread(void *arg)
{
	struct burst *b = arg;

	pin_to(b->n->opt->cores[1]);
	for (;;) {
		pthread_barrier_wait(&b->start);
		if (b->stop)
			return NULL;
		run_burst(b, 1);
		pthread_barrier_wait(&b->end);
	}
}

/* time_burst returns nanoseconds per message over all threads, or a negative
 * number when the burst did not fit. */
static double time_burst(struct burst *b, bool both)
{
	b->threads = both ? 2 : 1;
	atomic_store(&b->ready, 0);
	if (both)
		pthread_barrier_wait(&b->start);
	run_burst(b, 0);
	if (both)
		pthread_barrier_wait(&b->end);

	uint64_t from = b->began[0], to = b->ended[0];
	bool full = b->full[0];
	if (both) {
		from = b->began[1] < from ? b->began[1] : from;
		to = b->ended[1] > to ? b->ended[1] : to;
		full |= b->full[1];
	}
	if (full)
		return -1;
	return (double)(to - from) * tick_ns() / (b->threads * BURST);
}

/* finish_burst posts what is missing and drives progress until the receivers
 * have all of it. */
static void finish_burst(struct node *n, int peers)
{
	while (atomic_load(&n->shared->answer) < (uint64_t)peers) {
		poll_cq(n);
		sched_yield();
	}
}

static void post_rounds(struct node *n, struct burst *b, bool both, const char *name)
{
	int missed = 0;
	struct deadline end = deadline_in(n->opt->seconds);

	clear_samples();
	for (int round = 0; !passed(end); round++) {
		atomic_store(&n->shared->answer, 0);
		atomic_store(&n->shared->turn, both ? 2 : 1);
		pthread_barrier_wait(&n->shared->sleepers);
		double ns = time_burst(b, both);
		if (ns >= 0 && round >= 5)
			sample(ns);
		missed += ns < 0;
		if (missed > 20)
			die("the provider does not take a burst", -FI_EAGAIN);
		if (ns < 0)
			atomic_store(&n->shared->stop, 1);
		pthread_barrier_wait(&n->shared->sleepers);
		finish_burst(n, both ? 2 : 1);
		atomic_store(&n->shared->stop, 0);
		pthread_barrier_wait(&n->shared->sleepers);
	}
	if (name)
		report(name, 1e3 / quantile(0.5));
}

static void poster(struct node *n, const char *one, const char *two)
{
	struct burst b = {.n = n};
	pthread_t thread;

	pthread_barrier_init(&b.start, NULL, 2);
	pthread_barrier_init(&b.end, NULL, 2);
	if (two && pthread_create(&thread, NULL, second_thread, &b))
		die("pthread_create", -FI_EOTHER);
	post_rounds(n, &b, false, one);
	if (two) {
		post_rounds(n, &b, true, two);
		b.stop = true;
		pthread_barrier_wait(&b.start);
		pthread_join(thread, NULL);
	}
	atomic_store(&n->shared->turn, 0);
	pthread_barrier_wait(&n->shared->sleepers);
}

/* A receiver takes what a burst brought. Of a burst that did not fit it cannot
 * know the number: it reads until nothing has come for a while. */
static void receiver(struct node *n)
{
	struct shared *s = n->shared;

	for (;;) {
		pthread_barrier_wait(&s->sleepers);
		uint64_t peers = atomic_load(&s->turn);
		if (!peers)
			return;
		pthread_barrier_wait(&s->sleepers);
		if ((uint64_t)n->rank <= peers) {
			uint64_t posted = n->rx_want;
			n->rx_want += BURST;
			struct deadline quiet = deadline_in(0.005);
			while (n->rx_done < n->rx_want && !(atomic_load(&s->stop) && passed(quiet)))
				poll_cq(n);
			n->rx_want = n->rx_done;
			for (; posted < n->rx_done; posted++)
				post_recv(n, 8, 1);
			atomic_fetch_add(&s->answer, 1);
		}
		pthread_barrier_wait(&s->sleepers);
	}
}

static void post_test(struct node *n, enum fi_threading threading, const char *one, const char *two)
{
	node_open(n, &(struct wish){.threading = threading, .rx_size = 2 * BURST});
	for (int i = 0; n->rank != 0 && i < BURST; i++)
		post_recv(n, 8, 1);
	node_connect(n);
	for (int i = 1; n->rank == 0 && i < n->ranks; i++) /* the first message may connect */
		send_to(n, i, 8, 1);
	if (n->rank != 0) {
		wait_received(n, 1);
		post_recv(n, 8, 1);
	}
	meet(n);
	if (n->rank == 0)
		poster(n, one, two);
	else
		receiver(n);
}

void test_post_safe(struct node *n)
{
	post_test(n, FI_THREAD_SAFE, "post_1_safe_mps", "post_2_safe_mps");
}

void test_post_domain(struct node *n)
{
	post_test(n, FI_THREAD_DOMAIN, "post_1_domain_mps", NULL);
}
