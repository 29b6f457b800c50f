/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Rates over the number of threads: 1 to 16 threads in each of two processes,
 * free to run on any core, under FI_THREAD_SAFE.
 *
 *   own      every thread has an endpoint and a completion queue; its peer is the
 *            thread of the same number in the other process
 *   shared   all threads of a process share one of each
 *   readers  one thread sends, and in the other process 1 to 16 threads read one
 *            completion queue
 *
 * A sender sends a window of 8 byte messages and waits for a word that all have
 * been received. What reads a completion counts it for the link that it is of.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rdma/fi_cm.h>

#include "bench.h"

enum { ACK_TAG = 1 << 20, TAKEN = 64 };

struct link;

/* A receive, its buffer and what it counts for. */
struct slot {
	struct fi_context2 context; /* first: what completions name */
	struct link *link;
	bool ack;
	uint64_t bytes;
};

/* What one thread drives: its own endpoint, or a share of one. */
struct link {
	struct node *n;
	int number;
	struct fid_ep *ep;
	struct fid_cq *cq;
	fi_addr_t peer;
	struct slot data[WINDOW], ack;
	_Alignas(128) _Atomic uint64_t received, acks; /* added to by what reads the queue */
	uint64_t sent;				       /* messages, by the link's thread */
	bool posted;				       /* its receives are, between measurements */
	pthread_t thread;
};

/* take reads completions and counts each for its link; readers post the receive
 * again at once if repost. */
static void post_slot(struct slot *s);

static void take(struct fid_cq *cq, bool repost)
{
	struct fi_cq_tagged_entry e[TAKEN];
	ssize_t got = fi_cq_read(cq, e, TAKEN);

	if (got == -FI_EAGAIN)
		return;
	if (got < 0)
		die("completion", (int)got);
	for (ssize_t i = 0; i < got; i++) {
		struct slot *s = e[i].op_context;
		struct link *link = s->link; /* of another thread, perhaps */

		if (repost)
			post_slot(s);
		atomic_fetch_add(s->ack ? &link->acks : &link->received, 1);
	}
}

static void post_slot(struct slot *s)
{
	struct link *link = s->link;
	uint64_t tag = (uint64_t)link->number + (s->ack ? ACK_TAG : 0);
	ssize_t ret;

	while ((ret = fi_trecv(link->ep, &s->bytes, sizeof(s->bytes), NULL, FI_ADDR_UNSPEC, tag, 0, &s->context)) ==
	       -FI_EAGAIN)
		take(link->cq, false);
	must((int)ret, "fi_trecv");
}

static void send_word(struct link *link, uint64_t tag)
{
	uint64_t word = 1;
	ssize_t ret;

	while ((ret = fi_tinject(link->ep, &word, sizeof(word), link->peer, tag)) == -FI_EAGAIN)
		take(link->cq, false);
	must((int)ret, "fi_tinject");
}

/* ---- threads ---- */

static void *send_link(void *arg)
{
	struct link *link = arg;
	struct deadline end = deadline_in(link->n->opt->seconds);

	for (uint64_t rounds = 1; !passed(end); rounds++) {
		post_slot(&link->ack);
		for (int i = 0; i < WINDOW; i++)
			send_word(link, (uint64_t)link->number);
		link->sent += WINDOW;
		while (atomic_load(&link->acks) < rounds)
			take(link->cq, false);
	}
	return NULL;
}

static void *receive_link(void *arg)
{
	struct link *link = arg;

	for (uint64_t rounds = 1;; rounds++) {
		for (int i = 0; i < WINDOW && rounds > 1; i++)
			post_slot(&link->data[i]);
		if (rounds > 1)
			send_word(link, ACK_TAG + (uint64_t)link->number);
		while (atomic_load(&link->received) < rounds * WINDOW) {
			if (atomic_load(&link->n->shared->stop))
				return NULL;
			take(link->cq, false);
		}
	}
}

/* One of several readers of link 0. The one that completes a window acknowledges. */
static void *read_link(void *arg)
{
	struct link *link = arg, *first = link - link->number;
	uint64_t acked;

	while (!atomic_load(&link->n->shared->stop)) {
		take(first->cq, true);
		acked = atomic_load(&first->acks);
		if (atomic_load(&first->received) >= (acked + 1) * WINDOW &&
		    atomic_compare_exchange_strong(&first->acks, &acked, acked + 1))
			send_word(first, ACK_TAG);
	}
	return NULL;
}

/* ---- setting up ---- */

/* Any core, whatever the rank was pinned to. */
static void unpin(void)
{
	cpu_set_t all;

	CPU_ZERO(&all);
	for (long i = 0; i < sysconf(_SC_NPROCESSORS_CONF) && i < CPU_SETSIZE; i++)
		CPU_SET(i, &all);
	must(sched_setaffinity(0, sizeof(all), &all) ? -FI_EINVAL : 0, "unpinning");
}

static void open_own(struct node *n, struct link *link, struct fid_av **av)
{
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE, .count = 1 };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE, .size = 4 * WINDOW };

	must(fi_av_open(n->domain, &av_attr, av, NULL), "fi_av_open");
	must(fi_cq_open(n->domain, &cq_attr, &link->cq, NULL), "fi_cq_open");
	must(fi_endpoint(n->domain, n->info, &link->ep, NULL), "fi_endpoint");
	must(fi_ep_bind(link->ep, &(*av)->fid, 0), "bind av");
	must(fi_ep_bind(link->ep, &link->cq->fid, FI_TRANSMIT | FI_RECV), "bind cq");
	must(fi_enable(link->ep), "fi_enable");
}

/* Opens the links of all thread counts at once, and joins them to the peer's. */
static struct link *open_links(struct node *n, bool own)
{
	struct link *links = aligned_alloc(128, SCALE_THREADS * sizeof(*links));
	struct fid_av *av[SCALE_THREADS];
	int other = 1 - n->rank;

	if (!links)
		die("links", -FI_ENOMEM);
	for (int i = 0; i < SCALE_THREADS; i++) {
		struct link *l = &links[i];

		*l = (struct link){ .n = n, .number = i, .ep = n->ep, .cq = n->cq };
		av[i] = n->av;
		if (own)
			open_own(n, l, &av[i]);
		for (int k = 0; k < WINDOW; k++)
			l->data[k].link = l;
		l->ack.link = l;
		l->ack.ack = true;
		n->shared->link[n->rank][i].size = sizeof(n->shared->link[0][0].bytes);
		must(fi_getname(&l->ep->fid, n->shared->link[n->rank][i].bytes, &n->shared->link[n->rank][i].size),
		     "fi_getname");
	}
	meet(n);
	for (int i = 0; i < SCALE_THREADS; i++) {
		if (!own && i > 0)
			links[i].peer = links[0].peer;
		else if (fi_av_insert(av[i], n->shared->link[other][i].bytes, 1, &links[i].peer, 0, NULL) != 1)
			die("fi_av_insert", -FI_EADDRNOTAVAIL);
	}
	meet(n);
	return links;
}

static void start(struct link *link, void *(*body)(void *))
{
	if (pthread_create(&link->thread, NULL, body, link))
		die("pthread_create", -FI_EOTHER);
}

static void join(struct link *link)
{
	if (pthread_join(link->thread, NULL))
		die("pthread_join", -FI_EOTHER);
}

/* One measurement: the threads of both ranks run from meeting to meeting. */
static void measure(struct node *n, struct link *links, int threads, int senders, void *(*receiver)(void *),
		    const char *name)
{
	int count = n->rank == 0 ? senders : threads;
	uint64_t began, sent = 0;
	char figure[64];

	for (int i = 0; i < SCALE_THREADS; i++) {
		atomic_store(&links[i].received, 0);
		atomic_store(&links[i].acks, 0);
		links[i].sent = 0;
	}
	for (int i = 0; n->rank == 1 && i < senders; i++)
		for (int k = 0; k < WINDOW && !links[i].posted; k++)
			post_slot(&links[i].data[k]);
	for (int i = 0; i < senders; i++)
		links[i].posted = true;
	/* Not meet(), which reads the queue. */
	pthread_barrier_wait(&n->shared->sleepers);
	began = ticks();
	for (int i = 0; i < count; i++)
		start(&links[i], n->rank == 0 ? send_link : receiver);
	for (int i = 0; n->rank == 0 && i < count; i++)
		join(&links[i]);
	if (n->rank == 0) {
		for (int i = 0; i < count; i++)
			sent += links[i].sent;
		snprintf(figure, sizeof(figure), "%s_%d_mps", name, threads);
		report(figure, (double)sent * 1e3 / ((double)(ticks() - began) * tick_ns()));
		atomic_store(&n->shared->stop, 1);
	}
	for (int i = 0; n->rank == 1 && i < count; i++)
		join(&links[i]);
	pthread_barrier_wait(&n->shared->sleepers);
	atomic_store(&n->shared->stop, 0);
}

static void scale(struct node *n, bool own, const char *name)
{
	node_open(n, &(struct wish){ .threading = FI_THREAD_SAFE, .rx_size = SCALE_THREADS * 2 * WINDOW });
	unpin();
	struct link *links = open_links(n, own);

	for (int threads = 1; threads <= SCALE_THREADS; threads *= 2)
		measure(n, links, threads, threads, receive_link, name);
	meet(n);
}

void test_scale_own(struct node *n)
{
	scale(n, true, "scale_own");
}

void test_scale_shared(struct node *n)
{
	scale(n, false, "scale_shared");
}

void test_scale_readers(struct node *n)
{
	node_open(n, &(struct wish){ .threading = FI_THREAD_SAFE, .rx_size = 4 * WINDOW });
	unpin();
	struct link *links = open_links(n, false);

	for (int threads = 1; threads <= SCALE_THREADS; threads *= 2)
		measure(n, links, threads, 1, read_link, "scale_readers");
	meet(n);
}
