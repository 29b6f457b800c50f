/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Flows over a network: from rank 0 to rank 1, each between endpoints of its
 * own, all driven by the rank's one thread. The receiver knows every byte.
 *
 *   shared   a bulk flow and a ping-pong of 8 bytes
 *   fair     FLOWS bulk flows
 *   goodput  one bulk flow
 *   million  10^6 small messages
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_cm.h>

#include "bench.h"

enum {
	FLOWS = 4,
	DEPTH = 32,    /* messages under way */
	CHUNK = 65536, /* bytes of a bulk message */
	SMALL = 64,    /* bytes of one of a million */
	SHIFTS = 251,  /* contents that messages take in turn */
	MILLION = 1000000,
	DRAIN = 20, /* seconds that the last messages may take */
};

static const double WARM_UP = 1; /* seconds, at most as many as are measured: windows and queues grow */

struct flow;

/* A message under way. */
struct slot {
	struct fi_context2 context; /* first: what completions name */
	struct flow *flow;
	uint8_t *bytes; /* a receive's buffer */
	uint64_t number;
};

struct flow {
	struct node *n;
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_av *av;
	fi_addr_t peer;
	size_t size;
	struct slot slots[DEPTH];
	struct slot *free[DEPTH]; /* of the sender */
	int frees;
	uint64_t posted, done, wrong;
	uint64_t limit; /* messages at most; 0: none */
};

static uint8_t content[CHUNK + SHIFTS]; /* message k is content + k % SHIFTS */

static void fill_content(void)
{
	uint64_t x = 88172645463325252u; /* Marsaglia's xorshift */

	for (size_t i = 0; i < sizeof(content); i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		content[i] = (uint8_t)x;
	}
}

/* ---- one flow ---- */

static void flow_open(struct flow *f, struct node *n, size_t size)
{
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE, .count = 1 };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE, .size = 4 * DEPTH };

	*f = (struct flow){ .n = n, .size = size, .frees = DEPTH };
	must(fi_av_open(n->domain, &av_attr, &f->av, NULL), "fi_av_open");
	must(fi_cq_open(n->domain, &cq_attr, &f->cq, NULL), "fi_cq_open");
	must(fi_endpoint(n->domain, n->info, &f->ep, NULL), "fi_endpoint");
	must(fi_ep_bind(f->ep, &f->av->fid, 0), "bind av");
	must(fi_ep_bind(f->ep, &f->cq->fid, FI_TRANSMIT | FI_RECV), "bind cq");
	must(fi_enable(f->ep), "fi_enable");
	for (int i = 0; i < DEPTH; i++) {
		f->slots[i].flow = f;
		f->free[i] = &f->slots[i];
		if (n->rank == 1 && !(f->slots[i].bytes = malloc(size)))
			die("buffers", -FI_ENOMEM);
	}
}

/* flow_post sends the next message or posts the next receive, which is for the
 * message of the same number. False: not now, or no more. */
static bool flow_post(struct flow *f, struct slot *s)
{
	ssize_t ret;

	if (f->limit && f->posted == f->limit)
		return false;
	s->number = f->posted;
	if (f->n->rank == 0)
		ret = fi_tsend(f->ep, content + s->number % SHIFTS, f->size, NULL, f->peer, s->number, &s->context);
	else
		ret = fi_trecv(f->ep, s->bytes, f->size, NULL, FI_ADDR_UNSPEC, 0, ~0ull, &s->context);
	if (ret == -FI_EAGAIN)
		return false;
	must((int)ret, "posting");
	f->posted++;
	return true;
}

static void flow_check(struct flow *f, const struct slot *s, const struct fi_cq_tagged_entry *e)
{
	if (e->tag != s->number || e->len != f->size || memcmp(s->bytes, content + s->number % SHIFTS, f->size) != 0)
		f->wrong++;
}

/* flow_step takes completions and posts again; the sender not if it is to stop. */
static void flow_step(struct flow *f, bool stop)
{
	struct fi_cq_tagged_entry e[DEPTH];
	ssize_t got = fi_cq_read(f->cq, e, DEPTH);

	if (got < 0 && got != -FI_EAGAIN)
		die("completion", (int)got);
	for (ssize_t i = 0; i < got; i++) {
		struct slot *s = e[i].op_context;

		f->done++;
		if (f->n->rank == 1)
			flow_check(f, s, &e[i]);
		f->free[f->frees++] = s;
	}
	while (!(stop && f->n->rank == 0) && f->frees && flow_post(f, f->free[f->frees - 1]))
		f->frees--;
}

/* flows_open opens count flows and joins them to the peer's. */
static void flows_open(struct node *n, struct flow *flows, const size_t *sizes, int count)
{
	node_open(n, &(struct wish){ .threading = FI_THREAD_DOMAIN });
	fill_content();
	for (int i = 0; i < count; i++) {
		flow_open(&flows[i], n, sizes[i]);
		n->shared->link[n->rank][i].size = sizeof(n->shared->link[0][0].bytes);
		must(fi_getname(&flows[i].ep->fid, n->shared->link[n->rank][i].bytes,
				&n->shared->link[n->rank][i].size),
		     "fi_getname");
	}
	meet(n);
	for (int i = 0; i < count; i++)
		if (fi_av_insert(flows[i].av, n->shared->link[1 - n->rank][i].bytes, 1, &flows[i].peer, 0, NULL) != 1)
			die("fi_av_insert", -FI_EADDRNOTAVAIL);
	meet(n);
}

/* ---- what both ranks do ---- */

/* phase of a run, in shared->turn. Rank 1 sets it, for it sees what arrives. */
enum phase { WARMING, MEASURING, STOPPING };

static enum phase phase_of(struct node *n)
{
	return (enum phase)atomic_load(&n->shared->turn);
}

/* clock_run is rank 1's: it moves the phase on, and has the flows' counts at the
 * begin and the end of the measuring in from and to. */
static void clock_run(struct node *n, const struct flow *flows, int count, uint64_t *from, uint64_t *to,
		      uint64_t *began, double *seconds)
{
	double passed = (double)(ticks() - *began) * tick_ns() / 1e9;

	switch (phase_of(n)) {
	case WARMING:
		for (int i = 0; i < count; i++)
			if (!flows[i].done)
				return;
		if (passed < WARM_UP && passed < n->opt->seconds)
			return;
		break;
	case MEASURING:
		if (passed < n->opt->seconds)
			return;
		*seconds = passed;
		break;
	case STOPPING:
		return;
	}
	for (int i = 0; i < count; i++)
		(phase_of(n) == WARMING ? from : to)[i] = flows[i].done;
	*began = ticks();
	atomic_fetch_add(&n->shared->turn, 1);
}

/* steps reads all flows, and sends nothing new. */
static void steps(struct flow *flows, int count)
{
	for (int i = 0; i < count; i++)
		flow_step(&flows[i], true);
}

/* settle lets what is under way arrive, and returns rank 1's number of messages
 * that came wrong, twice or not at all. Rank 0 stays, for its provider may have
 * something to send yet. */
static uint64_t settle(struct node *n, struct flow *flows, int count)
{
	struct shared *s = n->shared;
	uint64_t wrong = 0;

	for (int i = 0; n->rank == 0 && i < count; i++) {
		while (flows[i].done < flows[i].posted)
			steps(flows, count);
		atomic_store(&s->sent[i], (uint32_t)flows[i].posted);
	}
	if (n->rank == 0) {
		atomic_store(&s->stop, 1);
		while (!atomic_load(&s->answer))
			steps(flows, count);
		return 0;
	}
	while (!atomic_load(&s->stop))
		steps(flows, count);
	for (int i = 0; i < count; i++) {
		struct deadline end = deadline_in(DRAIN);

		while (flows[i].done < atomic_load(&s->sent[i]) && !passed(end))
			steps(flows, count);
		wrong += flows[i].wrong + (flows[i].done != atomic_load(&s->sent[i]));
	}
	atomic_store(&s->answer, 1);
	return wrong;
}

struct outcome {
	double rate[FLOWS]; /* MB/s of each flow; rank 1 */
	uint64_t wrong;
};

/* run_flows runs bulk flows; beside is called again and again by both ranks. */
static struct outcome run_flows(struct node *n, struct flow *flows, int count, void (*beside)(struct node *))
{
	uint64_t from[FLOWS] = { 0 }, to[FLOWS] = { 0 }, began = ticks();
	struct outcome out = { .wrong = 0 };
	double seconds = 0;

	while (phase_of(n) != STOPPING) {
		for (int i = 0; i < count; i++)
			flow_step(&flows[i], false);
		if (beside)
			beside(n);
		if (n->rank == 1)
			clock_run(n, flows, count, from, to, &began, &seconds);
	}
	out.wrong = settle(n, flows, count);
	for (int i = 0; n->rank == 1 && i < count; i++)
		out.rate[i] = (double)((to[i] - from[i]) * flows[i].size) / seconds / 1e6;
	return out;
}

static double sum(const double *v, int count)
{
	double s = 0;

	for (int i = 0; i < count; i++)
		s += v[i];
	return s;
}

/* jain is Jain's index of fairness: 1 if all are equal, 1/count if one has all. */
static double jain(const double *v, int count)
{
	double squares = 0, s = sum(v, count);

	for (int i = 0; i < count; i++)
		squares += v[i] * v[i];
	return squares > 0 ? s * s / (squares * count) : 0;
}

/* ---- the tests ---- */

/* ping_step is one inspect of the ping-pong over the node's own endpoint: rank 0
 * sends when it has got an answer, rank 1 answers. */
static void ping_step(struct node *n)
{
	static uint64_t sent_at;
	static bool under_way;

	poll_cq(n);
	if (n->rank == 0 && !under_way) {
		sent_at = phase_of(n) == MEASURING ? ticks() : 0;
		send_to(n, 1, 8, 1);
		under_way = true;
	}
	if (n->rx_done == n->rx_want)
		return;
	n->rx_want++;
	post_recv(n, 8, 1);
	if (n->rank == 1) {
		send_to(n, 0, 8, 1);
		return;
	}
	under_way = false;
	if (sent_at)
		sample((double)(ticks() - sent_at) * tick_ns() / 2e3);
}

void test_shared(struct node *n)
{
	struct flow bulk;

	flows_open(n, &bulk, &(size_t){ CHUNK }, 1);
	node_connect(n);
	post_recv(n, 8, 1);
	clear_samples();
	struct outcome out = run_flows(n, &bulk, 1, ping_step);
	if (n->rank == 0) {
		report("shared_8_p50_us", quantile(0.5));
		report("shared_8_p99_us", quantile(0.99));
	} else {
		report("shared_bulk_mbps", out.rate[0]);
	}
}

void test_fair(struct node *n)
{
	struct flow flows[FLOWS];

	flows_open(n, flows, (size_t[FLOWS]){ CHUNK, CHUNK, CHUNK, CHUNK }, FLOWS);
	struct outcome out = run_flows(n, flows, FLOWS, NULL);
	if (n->rank == 1) {
		report("fair_jain", jain(out.rate, FLOWS));
		report("fair_sum_mbps", sum(out.rate, FLOWS));
	}
}

void test_goodput(struct node *n)
{
	struct flow bulk;

	flows_open(n, &bulk, &(size_t){ CHUNK }, 1);
	struct outcome out = run_flows(n, &bulk, 1, NULL);
	if (n->rank == 1) {
		report("goodput_mbps", out.rate[0]);
		report("goodput_wrong", (double)out.wrong);
	}
}

void test_million(struct node *n)
{
	struct flow f;

	flows_open(n, &f, &(size_t){ SMALL }, 1);
	f.limit = MILLION;
	uint64_t t0 = ticks();
	while (f.done < MILLION)
		flow_step(&f, false);
	uint64_t wrong = settle(n, &f, 1);
	if (n->rank == 1) {
		report("million_kps", MILLION / ((double)(ticks() - t0) * tick_ns() / 1e6));
		report("million_wrong", (double)wrong);
	}
}
