/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes, or threads of one, that share a processor and only poll. Whatever waits gives the
 * processor to the one it waits for: without that an exchange lasts as long as the scheduler lets each
 * of them poll, some milliseconds, and these here would outlast the limit by far. So would those beside
 * a thread that computes, if what waits gave it the processor each time.
 */
#include "common.h"

#include <pthread.h>
#include <sched.h>

#define EXCHANGES 40000

/* To the n-th of the processors that this process may use; false: there are not so many. */
static bool pin_to(int n)
{
	cpu_set_t all, one;
	int cpu = 0;

	CHECK(sched_getaffinity(0, sizeof(all), &all) == 0);
	if (n >= CPU_COUNT(&all))
		return false;
	while (!CPU_ISSET(cpu, &all) || n--)
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	CHECK(sched_setaffinity(0, sizeof(one), &one) == 0);
	return true;
}

static void pin(void)
{
	CHECK(pin_to(0));
}

/* fi_cq_read and nothing else. */
static void poll_one(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry e;
	ssize_t rc;

	while ((rc = fi_cq_read(cq, &e, 1)) == -FI_EAGAIN)
		;
	CHECKF(rc == 1, "fi_cq_read = %zd (%s)", rc, fi_strerror((int)-rc));
}

static void exchange_some(struct node *n, int peer, uint64_t tag, bool first, uint64_t count)
{
	uint64_t in = 0;

	for (uint64_t k = 0; k < count; k++) {
		struct op s = {
			.form = F_INJECT, .tagged = true, .addr = n->peer[peer], .buf = &k, .len = sizeof(k), .tag = tag
		};

		trecv(n, &in, sizeof(in), FI_ADDR_UNSPEC, tag, 0, &in);
		if (first)
			post_send(n, &s);
		poll_one(n->rxcq);
		CHECKF(in == k, "message %llu, want %llu", (unsigned long long)in, (unsigned long long)k);
		if (!first)
			post_send(n, &s);
	}
}

static void exchange(struct node *n, int peer, uint64_t tag, bool first)
{
	exchange_some(n, peer, tag, first, EXCHANGES);
}

/* Ranks 0 and 1, 2 and 3, and so on, all on one processor. */
static void test_processes(long arg)
{
	struct node n;

	(void)arg;
	node_open(&n, NULL);
	node_connect(&n);
	pin();
	exchange(&n, test_rank ^ 1, 7, test_rank % 2 == 0);
	barrier(&n);
	node_close(&n);
}

static struct node pair[2];

static void *answerer(void *p)
{
	pin();
	exchange(&pair[1], 0, 7, false);
	return p;
}

static void test_two_threads(long arg)
{
	pthread_t t;

	(void)arg;
	node_open(&pair[0], NULL);
	node_open(&pair[1], NULL);
	pair[0].peer[1] = node_insert(&pair[0], &pair[1]);
	pair[1].peer[0] = node_insert(&pair[1], &pair[0]);
	CHECK(pthread_create(&t, NULL, answerer, NULL) == 0);
	pin();
	exchange(&pair[0], 1, 7, true);
	pthread_join(t, NULL);
	node_close(&pair[1]);
	node_close(&pair[0]);
}

enum { CROWD = 12 };

static struct node crowd[2 * CROWD];

static void *crowd_thread(void *p)
{
	struct node *n = p;
	long i = n - crowd;

	pin();
	exchange_some(n, 1, 7, i % 2 == 0, EXCHANGES / 8);
	return p;
}

/* Pairs of threads on one processor. All their turns together are longer than those of a thread
 * that computes, for which they must not take each other. */
static void test_crowd(long arg)
{
	pthread_t t[2 * CROWD];

	(void)arg;
	for (int i = 0; i < 2 * CROWD; i++)
		node_open(&crowd[i], NULL);
	for (int i = 0; i < 2 * CROWD; i++)
		crowd[i].peer[1] = node_insert(&crowd[i], &crowd[i ^ 1]);
	for (int i = 0; i < 2 * CROWD; i++)
		CHECK(pthread_create(&t[i], NULL, crowd_thread, &crowd[i]) == 0);
	for (int i = 0; i < 2 * CROWD; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < 2 * CROWD; i++)
		node_close(&crowd[i]);
}

static _Atomic bool computed; /* no more to compute */

/* Where its creator is. */
static void *compute(void *p)
{
	while (!computed)
		;
	return p;
}

/* Two processes on a processor each, which a thread that computes shares with them. */
static void test_beside_computing(long arg)
{
	struct node n;
	pthread_t t;
	bool enough;

	(void)arg;
	if (nic_computes())
		SKIP("a NIC that is a model needs the processors that are taken here");
	node_open(&n, NULL);
	node_connect(&n);
	enough = pin_to(test_rank);
	if (enough) {
		CHECK(pthread_create(&t, NULL, compute, NULL) == 0);
		exchange_some(&n, test_rank ^ 1, 7, test_rank == 0, EXCHANGES / 2);
		computed = true;
		pthread_join(t, NULL);
	}
	barrier(&n);
	node_close(&n);
	if (!enough)
		SKIP("one processor");
}

static const struct test tests[] = {
	{ "processes_2", test_processes, 2, 60, 0 },
	{ "processes_4", test_processes, 4, 60, 0 },
	{ "threads_2", test_two_threads, 1, 60, 0 },
	{ "threads_24", test_crowd, 1, 60, 0 },
	{ "beside_computing", test_beside_computing, 2, 60, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
