/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Many peers: one endpoint of rank 0 and up to MANY_PEERS of rank 1, which share
 * a completion queue.
 *
 *   out  rank 0 sends to all of them in turn
 *   in   all of them send to rank 0
 *
 * Messages of 8 bytes, in windows of WINDOW; the last of a window is answered.
 */
#include <stdio.h>

#include <rdma/fi_cm.h>

#include "bench.h"

enum { DATA_TAG = 1, ANSWER_TAG = 2 };

/* Rank 1's endpoints; ep[0] is the node's own. */
struct crowd {
	struct fid_ep *ep[MANY_PEERS];
	fi_addr_t addr[MANY_PEERS]; /* rank 0's view of them */
};

static void crowd_open(struct node *n, struct crowd *c)
{
	struct shared *s = n->shared;

	if (n->rank == 1) {
		for (int i = 0; i < MANY_PEERS; i++) {
			c->ep[i] = i ? open_endpoint(n) : n->ep;
			s->crowd[i].size = sizeof(s->crowd[i].bytes);
			if (fi_getname(&c->ep[i]->fid, s->crowd[i].bytes, &s->crowd[i].size))
				die("fi_getname", -FI_EOTHER);
		}
	}
	node_connect(n);
	for (int i = 0; n->rank == 0 && i < MANY_PEERS; i++)
		if (fi_av_insert(n->av, s->crowd[i].bytes, 1, &c->addr[i], 0, NULL) != 1)
			die("fi_av_insert", -FI_EADDRNOTAVAIL);
	meet(n);
}

/* with does something as if the node's endpoint were another. */
#define WITH(n, endpoint, what) \
	do { \
		struct fid_ep *own = (n)->ep; \
		(n)->ep = (endpoint); \
		what; \
		(n)->ep = own; \
	} while (0)

static void answer(struct node *n)
{
	send_to(n, 1 - n->rank, 0, ANSWER_TAG);
}

static void wait_answer(struct node *n)
{
	wait_sent(n);
	wait_received(n, 1);
	post_recv(n, 0, ANSWER_TAG);
}

/* out: receives are posted on every endpoint for its share of a window. */
static void out_windows(struct node *n, struct crowd *c, int peers, int count)
{
	for (int w = 0; w < count; w++) {
		if (n->rank == 0) {
			for (int i = 0; i < WINDOW; i++) {
				n->peer[1] = c->addr[i % peers];
				send_to(n, 1, 8, DATA_TAG);
			}
			wait_answer(n);
			continue;
		}
		wait_received(n, WINDOW);
		for (int i = 0; i < WINDOW; i++)
			WITH(n, c->ep[i % peers], post_recv(n, 8, DATA_TAG));
		answer(n);
	}
}

static void in_windows(struct node *n, struct crowd *c, int peers, int count)
{
	for (int w = 0; w < count; w++) {
		if (n->rank == 1) {
			for (int i = 0; i < WINDOW; i++)
				WITH(n, c->ep[i % peers], send_to(n, 0, 8, DATA_TAG));
			wait_answer(n);
			continue;
		}
		wait_received(n, WINDOW);
		for (int i = 0; i < WINDOW; i++)
			post_recv(n, 8, DATA_TAG);
		answer(n);
	}
}

typedef void windows_fn(struct node *n, struct crowd *c, int peers, int count);

/* One number of peers. The receives of the windows are posted before and taken
 * back by as many messages as are missing: none, as every window posts its own. */
static void measure(struct node *n, struct crowd *c, windows_fn *run, int peers, const char *name)
{
	enum { BATCH = 10 };
	char figure[32];

	meet(n);
	run(n, c, peers, BATCH); /* connects */
	clear_samples();
	struct deadline end = deadline_in(n->opt->seconds);
	while (agree(n, passed(end) ? 0 : BATCH)) {
		uint64_t t0 = ticks();
		run(n, c, peers, BATCH);
		sample((double)(ticks() - t0) * tick_ns() / BATCH / WINDOW);
	}
	snprintf(figure, sizeof(figure), "%s_%d_mps", name, peers);
	if (n->rank == 0)
		report(figure, 1e3 / quantile(0.5));
	meet(n);
}

static void peers_test(struct node *n, bool out)
{
	struct crowd *c = &(struct crowd){ 0 };

	node_open(n, &(struct wish){ .threading = FI_THREAD_DOMAIN, .rx_size = 2 * WINDOW });
	crowd_open(n, c);
	if (n->rank == (out ? 0 : 1))
		post_recv(n, 0, ANSWER_TAG);
	else if (!out)
		for (int i = 0; i < WINDOW; i++)
			post_recv(n, 8, DATA_TAG);
	for (int peers = 1; peers <= MANY_PEERS; peers *= 8) {
		/* the receives of the last number of peers are on other endpoints: more than enough stay */
		if (out && n->rank == 1)
			for (int i = 0; i < WINDOW; i++)
				WITH(n, c->ep[i % peers], post_recv(n, 8, DATA_TAG));
		measure(n, c, out ? out_windows : in_windows, peers, out ? "peers_out" : "peers_in");
	}
	meet(n);
}

void test_peers_out(struct node *n)
{
	peers_test(n, true);
}

void test_peers_in(struct node *n)
{
	peers_test(n, false);
}
