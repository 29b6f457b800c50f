/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The cost of posting: bursts of injected messages to peers that sleep while
 * the burst is timed and take the messages afterwards. One thread posts to one
 * peer, or several threads to a peer each, on one endpoint: 2, and 4, 8 and 16
 * where there are as many cores.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "bench.h"
#include "pin.h"

enum { BURST = 128 };

/* What the posting threads share. */
struct burst {
	struct node *n;
	int threads; /* that post in this burst, of those that there are */
	_Atomic int ready;
	_Atomic bool stop;
	pthread_barrier_t start, end; /* of all threads, blocking */
	uint64_t began[MAX_REQUESTERS], ended[MAX_REQUESTERS];
	bool full[MAX_REQUESTERS];
};

struct requester {
	struct burst *burst;
	int number;
	pthread_t thread;
};

int requesters(void)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	return cores < 2 ? 2 : cores > MAX_REQUESTERS ? MAX_REQUESTERS : (int)cores;
}

/* The first two requesters have the cores that were asked for, the others what is left. */
static int core_of(const struct options *opt, int requester)
{
	int core = 0;

	if (requester < 2)
		return opt->cores[requester];
	for (int left = requester - 2;; core++)
		if (core != opt->cores[0] && core != opt->cores[1] && left-- == 0)
			return core;
}

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

static void *other_thread(void *arg)
{
	struct requester *p = arg;
	struct burst *b = p->burst;

	pin_to(core_of(b->n->opt, p->number));
	for (;;) {
		pthread_barrier_wait(&b->start);
		if (b->stop)
			return NULL;
		if (p->number < b->threads)
			run_burst(b, p->number);
		pthread_barrier_wait(&b->end);
	}
}

/* time_burst returns nanoseconds per message over all threads, or a negative
 * number when the burst did not fit. */
static double time_burst(struct burst *b, int threads)
{
	b->threads = threads;
	atomic_store(&b->ready, 0);
	if (threads > 1)
		pthread_barrier_wait(&b->start);
	run_burst(b, 0);
	if (threads > 1)
		pthread_barrier_wait(&b->end);

	uint64_t from = b->began[0], to = b->ended[0];
	bool full = b->full[0];
	for (int i = 1; i < threads; i++) {
		from = b->began[i] < from ? b->began[i] : from;
		to = b->ended[i] > to ? b->ended[i] : to;
		full |= b->full[i];
	}
	if (full)
		return -1;
	return (double)(to - from) * tick_ns() / (b->threads * BURST);
}

/* complete_burst posts what is missing and drives progress until the receivers
 * have all of it. */
static void complete_burst(struct node *n, int peers)
{
	while (atomic_load(&n->shared->answer) < (uint64_t)peers) {
		poll_cq(n);
		sched_yield();
	}
}

static void post_rounds(struct node *n, struct burst *b, int threads, const char *name)
{
	int missed = 0;
	struct deadline end = deadline_in(n->opt->seconds);

	clear_samples();
	for (int round = 0; !passed(end); round++) {
		atomic_store(&n->shared->answer, 0);
		atomic_store(&n->shared->turn, (uint64_t)threads);
		pthread_barrier_wait(&n->shared->sleepers);
		double ns = time_burst(b, threads);
		if (ns >= 0 && round >= 5)
			sample(ns);
		missed += ns < 0;
		if (missed > 20)
			die("the provider does not take a burst", -FI_EAGAIN);
		if (ns < 0)
			atomic_store(&n->shared->stop, 1);
		pthread_barrier_wait(&n->shared->sleepers);
		complete_burst(n, threads);
		atomic_store(&n->shared->stop, 0);
		pthread_barrier_wait(&n->shared->sleepers);
	}
	report(name, 1e3 / quantile(0.5));
}

/* most is the number of threads up to which it goes, by doubling. */
static void requester(struct node *n, int most, const char *level)
{
	struct burst b = { .n = n };
	struct requester others[MAX_REQUESTERS];
	char name[64];

	pthread_barrier_init(&b.start, NULL, (unsigned int)most);
	pthread_barrier_init(&b.end, NULL, (unsigned int)most);
	for (int i = 1; i < most; i++) {
		others[i] = (struct requester){ .burst = &b, .number = i };
		if (pthread_create(&others[i].thread, NULL, other_thread, &others[i]))
			die("pthread_create", -FI_EOTHER);
	}
	for (int threads = 1; threads <= most; threads *= 2) {
		snprintf(name, sizeof(name), "post_%d_%s_mps", threads, level);
		post_rounds(n, &b, threads, name);
	}
	b.stop = true;
	if (most > 1)
		pthread_barrier_wait(&b.start);
	for (int i = 1; i < most; i++)
		pthread_join(others[i].thread, NULL);
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

static void post_test(struct node *n, enum fi_threading threading, int most, const char *level)
{
	node_open(n, &(struct wish){ .threading = threading, .rx_size = 2 * BURST });
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
		requester(n, most, level);
	else
		receiver(n);
}

void test_post_safe(struct node *n)
{
	post_test(n, FI_THREAD_SAFE, requesters(), "safe");
}

void test_post_domain(struct node *n)
{
	post_test(n, FI_THREAD_DOMAIN, 1, "domain");
}
