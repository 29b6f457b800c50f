/* SPDX-License-Identifier: BSD-2-Clause
 *
 * All to all: RANKS ranks, each of which has SLICE bytes for each other, and two
 * ways for them to get there, in turn; and all at once to rank 0.
 *
 *   step      one peer at a time, a send and a receive, as MPI libraries do with
 *             long slices (Thakur et al. 2005, pairwise)
 *   alltoall  fi_alltoall
 *   incast    a slice from each rank to rank 0
 *
 * A figure is the time until the last rank has ended, in milliseconds. The data is
 * checked.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_eq.h>

#include "bench.h"

enum { SLICE = 256 << 10 };

static void must(int ret, const char *what)
{
	if (ret)
		die(what, ret);
}

/* join returns the address of the group of all ranks. */
static fi_addr_t join(struct node *n)
{
	struct fi_av_set_attr attr = {.count = (size_t)n->ranks, .start_addr = n->peer[0], .end_addr = n->peer[n->ranks - 1], .stride = 1};
	struct fid_av_set *set;
	struct fid_mc *mc;
	struct fi_eq_entry entry;
	fi_addr_t addr;
	uint32_t event;
	ssize_t ret;

	must(fi_av_set(n->av, &attr, &set, NULL), "fi_av_set");
	must(fi_av_set_addr(set, &addr), "fi_av_set_addr");
	must(fi_join_collective(n->ep, addr, set, 0, &mc, NULL), "fi_join_collective");
	while ((ret = fi_eq_read(n->eq, &event, &entry, sizeof(entry), 0)) == -FI_EAGAIN)
		poll_cq(n);
	if (ret < 0 || event != FI_JOIN_COMPLETE)
		die("the join", ret < 0 ? (int)ret : -FI_EOTHER);
	return fi_mc_addr(mc);
}

/* A slice's content: who sends it to whom. */
static uint8_t content(int from, int to) { return (uint8_t)(from * 16 + to); }

static void receive(struct node *n, int from)
{
	must((int)fi_trecv(n->ep, n->rx + (size_t)from * SLICE, SLICE, NULL, n->peer[from], (uint64_t)from, 0, next_context(n)), "fi_trecv");
	n->rx_want++;
}

static void give(struct node *n, int to)
{
	ssize_t ret;

	while ((ret = fi_tsend(n->ep, n->tx + (size_t)to * SLICE, SLICE, NULL, n->peer[to], (uint64_t)n->rank, next_context(n))) == -FI_EAGAIN)
		poll_cq(n);
	must((int)ret, "fi_tsend");
	n->sent++;
}

static void complete(struct node *n)
{
	wait_received(n, 0);
	wait_sent(n);
}

static void step(struct node *n, fi_addr_t group)
{
	(void)group;
	for (int i = 1; i < n->ranks; i++) {
		receive(n, (n->rank - i + n->ranks) % n->ranks);
		give(n, (n->rank + i) % n->ranks);
		complete(n);
	}
}

static void alltoall(struct node *n, fi_addr_t group)
{
	must((int)fi_alltoall(n->ep, n->tx, SLICE, NULL, n->rx, NULL, group, FI_UINT8, 0, next_context(n)), "fi_alltoall");
	n->sent++; /* its completion is no receive's */
	complete(n);
}

static void incast(struct node *n, fi_addr_t group)
{
	(void)group;
	if (n->rank)
		give(n, 0);
	for (int i = 1; !n->rank && i < n->ranks; i++)
		receive(n, i);
	complete(n);
}

static const struct way {
	const char *name;
	void (*run)(struct node *n, fi_addr_t group);
	bool to_all;
} ways[] = {
	{"step_ms", step, true},
	{"alltoall_ms", alltoall, true},
	{"incast_ms", incast, false},
};

enum { WAYS = sizeof(ways) / sizeof(*ways) };

/* check dies unless every slice that this rank should have got is right. */
static void check(const struct node *n, const struct way *w)
{
	for (int from = 0; from < n->ranks; from++) {
		const uint8_t *slice = n->rx + (size_t)from * SLICE;

		if (from == n->rank || !(w->to_all || n->rank == 0))
			continue;
		for (size_t i = 0; i < SLICE; i++)
			if (slice[i] != content(from, n->rank))
				die(w->name, -FI_EIO);
	}
}

/* once runs a way and reports it. */
static void once(struct node *n, const struct way *w, fi_addr_t group)
{
	uint64_t start, last = 0;

	memset(n->rx, 0xFF, (size_t)n->ranks * SLICE);
	meet(n);
	start = ticks();
	w->run(n, group);
	n->shared->ended[n->rank] = ticks();
	meet(n);
	check(n, w);
	for (int i = 0; i < n->ranks; i++)
		last = n->shared->ended[i] > last ? n->shared->ended[i] : last;
	if (!n->rank)
		report(w->name, (double)(last - start) * tick_ns() * 1e-6);
}

/* Every round has all ways, each the first in turn. */
void test_alltoall(struct node *n)
{
	fi_addr_t group;
	struct deadline end;

	node_open(n, &(struct wish){.threading = FI_THREAD_DOMAIN, .collective = true});
	node_connect(n);
	roomy_buffers(n, (size_t)n->ranks * SLICE);
	for (int to = 0; to < n->ranks; to++)
		memset(n->tx + (size_t)to * SLICE, content(n->rank, to), SLICE);
	group = join(n);
	end = deadline_in(n->opt->seconds);
	for (int round = 0; !atomic_load(&n->shared->stop); round++) {
		for (int i = 0; i < WAYS; i++)
			once(n, &ways[(round + i) % WAYS], group);
		meet(n);
		if (!n->rank && passed(end))
			atomic_store(&n->shared->stop, 1);
		meet(n);
	}
}
