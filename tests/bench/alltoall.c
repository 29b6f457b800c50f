/* SPDX-License-Identifier: BSD-2-Clause
 *
 * All to all: each rank has a slice for each other, and three ways for them to get
 * there:
 *
 *   step      one peer at a time, a send and a receive, as MPI libraries do with
 *             long slices (Thakur et al. 2005, pairwise)
 *   linear    all at once
 *   alltoall  fi_alltoall, or the alltoallv of weft/coll.h if lengths differ
 *
 * A provider has one of them, which its variable BENCH_EXCHANGE names, alltoall if
 * there is none: no way uses connections, and what their congestion control has found
 * out, of another. All providers take turns within each round. Each operation is a line:
 *
 *   exchange WAY ROUND BEGAN LAST MEAN
 *
 * with the time at which it began (CLOCK_MONOTONIC, ns), and how many ns later the
 * last rank had ended, and all ranks in the mean. The data is checked.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_eq.h>

#include "../../include/weft/coll.h"
#include "bench.h"

enum { SLICE = 256 << 10, ROUNDS = 15 };

/* What a rank exchanges. */
struct exchange {
	fi_addr_t group;
	struct weft_coll_ops *ops;		      /* NULL: all lengths are alike */
	uint64_t to[MAX_RANKS], to_at[MAX_RANKS];     /* bytes for each rank, and where in tx */
	uint64_t from[MAX_RANKS], from_at[MAX_RANKS]; /* bytes from each rank, and where in rx */
	uint64_t sent, got;			      /* bytes of all */
};

/* join returns the address of the group of all ranks. */
static fi_addr_t join(struct node *n)
{
	struct fi_av_set_attr attr = {
		.count = (size_t)n->ranks,
		.start_addr = n->peer[0],
		.end_addr = n->peer[n->ranks - 1],
		.stride = 1,
	};
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

static uint64_t length(const struct node *n, int from, int to)
{
	switch (n->opt->exchange.lengths) {
	case 0:
		return SLICE;
	case 1:
		return n->opt->exchange.length[0];
	}
	return n->opt->exchange.length[from * n->ranks + to];
}

/* plan fills in lengths and places. */
static void plan(struct node *n, struct exchange *x)
{
	int lengths = n->opt->exchange.lengths;

	if (lengths > 1 && lengths != n->ranks * n->ranks)
		die("-z", -FI_EINVAL);
	for (int r = 0; r < n->ranks; r++) {
		x->to_at[r] = x->sent;
		x->from_at[r] = x->got;
		x->sent += x->to[r] = length(n, n->rank, r);
		x->got += x->from[r] = length(n, r, n->rank);
	}
	if (lengths > 1)
		must(fi_open_ops(&n->ep->fid, WEFT_COLL_OPS, 0, (void **)&x->ops, NULL), "fi_open_ops");
}

/* A slice's content: what sends it to which. */
static uint8_t content(int from, int to)
{
	return (uint8_t)(from * 16 + to);
}

static void receive(struct node *n, const struct exchange *x, int from)
{
	if (!x->from[from])
		return;
	must((int)fi_trecv(n->ep, n->rx + x->from_at[from], x->from[from], NULL, n->peer[from], (uint64_t)from, 0,
			   next_context(n)),
	     "fi_trecv");
	n->rx_want++;
}

static void give(struct node *n, const struct exchange *x, int to)
{
	ssize_t ret;

	if (!x->to[to])
		return;
	while ((ret = fi_tsend(n->ep, n->tx + x->to_at[to], x->to[to], NULL, n->peer[to], (uint64_t)n->rank,
			       next_context(n))) == -FI_EAGAIN)
		poll_cq(n);
	must((int)ret, "fi_tsend");
	n->sent++;
}

static void complete(struct node *n)
{
	wait_received(n, 0);
	wait_sent(n);
}

static void step(struct node *n, const struct exchange *x)
{
	for (int i = 1; i < n->ranks; i++) {
		receive(n, x, (n->rank - i + n->ranks) % n->ranks);
		give(n, x, (n->rank + i) % n->ranks);
		complete(n);
	}
}

static void linear(struct node *n, const struct exchange *x)
{
	for (int i = 1; i < n->ranks; i++)
		receive(n, x, (n->rank - i + n->ranks) % n->ranks);
	for (int i = 1; i < n->ranks; i++)
		give(n, x, (n->rank + i) % n->ranks);
	complete(n);
}

static void alltoall(struct node *n, const struct exchange *x)
{
	struct weft_alltoallv v = {
		.size = sizeof(v),
		.elem = 1,
		.buf = n->tx,
		.counts = x->to,
		.displs = x->to_at,
		.result = n->rx,
		.result_counts = x->from,
		.result_displs = x->from_at,
		.coll_addr = x->group,
		.context = next_context(n),
	};

	if (x->ops)
		must((int)x->ops->alltoallv(n->ep, &v), "alltoallv");
	else
		must((int)fi_alltoall(n->ep, n->tx, x->to[0], NULL, n->rx, NULL, x->group, FI_UINT8, 0, v.context),
		     "fi_alltoall");
	n->sent++; /* its completion is no receive's */
	complete(n);
}

static const struct way {
	const char *name;
	void (*run)(struct node *n, const struct exchange *x);
} ways[] = {
	{ "alltoall", alltoall },
	{ "step", step },
	{ "linear", linear },
};

/* chosen is the way that the provider's variable names. */
static const struct way *chosen(void)
{
	const char *name = getenv("BENCH_EXCHANGE");

	if (!name)
		return &ways[0];
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		if (!strcmp(ways[i].name, name))
			return &ways[i];
	die("BENCH_EXCHANGE", -FI_EINVAL);
}

/* check dies unless every slice that this rank should have got is right. */
static void check(const struct node *n, const struct exchange *x, const struct way *w)
{
	for (int from = 0; from < n->ranks; from++) {
		const uint8_t *slice = n->rx + x->from_at[from];

		if (from == n->rank)
			continue;
		for (size_t i = 0; i < x->from[from]; i++)
			if (slice[i] != content(from, n->rank))
				die(w->name, -FI_EIO);
	}
}

/* once runs a way and reports it. A rank that comes late does nothing before. */
static void once(struct node *n, const struct way *w, const struct exchange *x, int round)
{
	uint64_t start, last = 0, sum = 0;

	memset(n->rx, 0xFF, x->got);
	meet(n);
	start = clock_ns();
	usleep(1000 * n->opt->exchange.late[(n->rank + round) % n->ranks]);
	w->run(n, x);
	n->shared->ended[n->rank] = clock_ns();
	meet(n);
	check(n, x, w);
	for (int i = 0; i < n->ranks; i++) {
		last = n->shared->ended[i] > last ? n->shared->ended[i] : last;
		sum += n->shared->ended[i] - start;
	}
	if (!n->rank && round >= 0)
		printf("%sexchange %s %d %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", reporting_for(), w->name, round, start,
		       last - start, sum / (uint64_t)n->ranks);
}

/* What comes before the first round is not reported: connections begin. */
void test_alltoall(struct node *n)
{
	struct exchange x = { 0 };
	const struct way *way = chosen();
	int rounds = n->opt->exchange.rounds ? n->opt->exchange.rounds : ROUNDS;

	n->yields = n->ranks > 2;
	node_open(n, &(struct wish){ .threading = FI_THREAD_DOMAIN, .collective = true });
	node_connect(n);
	plan(n, &x);
	roomy_buffers(n, x.sent > x.got ? x.sent + 1 : x.got + 1);
	for (int to = 0; to < n->ranks; to++)
		memset(n->tx + x.to_at[to], content(n->rank, to), x.to[to]);
	x.group = join(n);
	for (int round = -1; round < rounds; round++) {
		begin_slice(n);
		once(n, way, &x, round);
		meet(n);
		fflush(stdout);
		end_slice(n);
	}
}
