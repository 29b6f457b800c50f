/* SPDX-License-Identifier: BSD-2-Clause */
/* What a message costs its receiver in steady state, for what clients ask of endpoints, and a rendezvous its sender as
 * well: no entry into the Go runtime, which the counters say (docs/clients.md is the table of it). */
#include "../../include/weft/ext.h"

#include "common.h"

#define ROUNDS 200
#define BURST 10

#define LONG 80000 /* a rendezvous, of whose memory one in 4 MiB is counted by the runtime */

static char in[BURST][LONG], out[LONG];

/* One thing that a client asks. */
struct ask {
	const char *name;
	struct node_opts o;
	bool signals;     /* receives carry FI_COMPLETION */
	bool from;        /* receives name their source */
	bool reversed;    /* BURST receives, whose messages come in the opposite order */
	bool any_tag;
	bool unexpected;  /* the message is there before its receive */
	bool ahead;       /* other receives stay posted, which no message fits */
	size_t len;       /* 0: 8 */
	enum form form;   /* of a send with a len */
	uint64_t flags;   /* of F_MSG */
	bool untagged;
	bool multi;       /* an untagged buffer with FI_MULTI_RECV stays posted, for what is untagged */
	bool accesses;    /* a counter of reads and writes */
	bool data;        /* injected with data */
	int contexts;     /* not 0: of a scalable endpoint, to the last of whose receive contexts the messages go */
	bool enters;      /* each message enters the runtime, to be delivered */
	int entries;      /* into the runtime, of a message in all */
	int pieces;       /* of the buffer of a receive, 0: 1 */
	int parts;        /* of a message's buffer, 0: 1 */
	bool short_of;    /* the receive's buffer is too short */
	bool user_id;     /* the sender has a number of the receiver's (FI_AV_USER_ID), which its completions name */
	uint64_t search[2]; /* flags of searches, the last of which ends the message if it claims or discards */
	bool misses;      /* the search finds nothing */
	bool shared;      /* two endpoints with a shared receive context, to which the messages go in turn */
};

static const struct ask asks[] = {
	{ .name = "tagged" },
	{ .name = "bounce", .len = 4096 },
	{ .name = "selective", .o = { .rx_bind = FI_SELECTIVE_COMPLETION }, .signals = true },
	{ .name = "counters", .o = { .counters = true } },
	{ .name = "source", .o = { .caps = FI_MSG | FI_TAGGED | FI_SOURCE } },
	{ .name = "source_err", .o = { .caps = FI_MSG | FI_TAGGED | FI_SOURCE | FI_SOURCE_ERR } },
	{ .name = "directed", .o = { .caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV }, .from = true },
	{ .name = "av_map", .o = { .av_type = FI_AV_MAP } },
	{ .name = "wait_fd", .o = { .wait = FI_WAIT_FD } },
	{ .name = "one_queue", .o = { .one_cq = true } },
	{ .name = "safe", .o = { .threading = FI_THREAD_SAFE } },
	{ .name = "domain", .o = { .threading = FI_THREAD_DOMAIN } },
	{ .name = "completion", .o = { .threading = FI_THREAD_COMPLETION } },
	{ .name = "context_format", .o = { .format = FI_CQ_FORMAT_CONTEXT } },
	{ .name = "reversed", .reversed = true },
	{ .name = "wildcard", .any_tag = true },
	{ .name = "unexpected", .unexpected = true },
	{ .name = "unexpected_bounce", .unexpected = true, .len = 4096 },
	{ .name = "peek", .unexpected = true, .search = { FI_PEEK } },
	{ .name = "peek_long", .unexpected = true, .len = LONG, .search = { FI_PEEK } },
	{ .name = "peek_miss", .search = { FI_PEEK }, .misses = true },
	{ .name = "peek_miss_ahead", .search = { FI_PEEK | FI_CLAIM }, .misses = true, .ahead = true },
	{ .name = "peek_miss_counters", .o = { .counters = true }, .search = { FI_PEEK }, .misses = true },
	{ .name = "peek_miss_wait_fd", .o = { .wait = FI_WAIT_FD }, .search = { FI_PEEK }, .misses = true },
	{ .name = "claim", .unexpected = true, .search = { FI_PEEK | FI_CLAIM, FI_CLAIM } },
	{ .name = "claim_bounce", .unexpected = true, .len = 4096, .search = { FI_PEEK | FI_CLAIM, FI_CLAIM } },
	{ .name = "claim_long", .unexpected = true, .len = LONG, .search = { FI_PEEK | FI_CLAIM, FI_CLAIM } },
	{ .name = "claim_discard", .unexpected = true, .search = { FI_PEEK | FI_CLAIM, FI_CLAIM | FI_DISCARD } },
	{ .name = "claim_match", .unexpected = true, .len = 8, .form = F_MSG, .flags = FI_MATCH_COMPLETE,
	  .search = { FI_PEEK | FI_CLAIM, FI_CLAIM } },
	{ .name = "discard", .unexpected = true, .search = { FI_PEEK | FI_DISCARD } },
	{ .name = "discard_match", .unexpected = true, .len = 8, .form = F_MSG, .flags = FI_MATCH_COMPLETE,
	  .search = { FI_PEEK | FI_DISCARD } },
	/* As MPICH and Open MPI probe. */
	{ .name = "peek_miss_mpich", .contexts = 1, .search = { FI_PEEK }, .misses = true, .multi = true,
	  .o = { .tx_flags = FI_DELIVERY_COMPLETE, .tx_bind = FI_SELECTIVE_COMPLETION,
		 .caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_RMA | FI_MULTI_RECV,
		 .threading = FI_THREAD_DOMAIN } },
	{ .name = "claim_mpich", .contexts = 1, .unexpected = true, .data = true,
	  .search = { FI_PEEK | FI_CLAIM, FI_CLAIM },
	  .o = { .tx_flags = FI_DELIVERY_COMPLETE, .tx_bind = FI_SELECTIVE_COMPLETION,
		 .caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_RMA | FI_MULTI_RECV,
		 .threading = FI_THREAD_DOMAIN } },
	{ .name = "peek_miss_mpi", .from = true, .search = { FI_PEEK }, .misses = true,
	  .o = { .caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV, .rx_bind = FI_SELECTIVE_COMPLETION, .one_cq = true,
		 .tx_bind = FI_SELECTIVE_COMPLETION, .threading = FI_THREAD_DOMAIN } },
	{ .name = "posted_ahead", .ahead = true },
	{ .name = "inject_data", .data = true },
	/* Posting the buffer enters the runtime once, which rx_eager does not count. */
	{ .name = "multi_recv", .o = { .caps = FI_MSG | FI_TAGGED | FI_MULTI_RECV }, .untagged = true, .multi = true },
	{ .name = "multi_recv_bounce", .o = { .caps = FI_MSG | FI_TAGGED | FI_MULTI_RECV }, .untagged = true, .multi = true,
	  .len = 2048 },
	{ .name = "multi_recv_data", .o = { .caps = FI_MSG | FI_TAGGED | FI_MULTI_RECV }, .untagged = true, .multi = true,
	  .data = true },
	{ .name = "delivery", .len = 8, .form = F_MSG, .flags = FI_DELIVERY_COMPLETE },
	{ .name = "match", .len = 8, .form = F_MSG, .flags = FI_MATCH_COMPLETE },
	{ .name = "delivery_bounce", .len = 4096, .form = F_MSG, .flags = FI_DELIVERY_COMPLETE },
	{ .name = "delivery_counters", .len = 8, .form = F_MSG, .flags = FI_DELIVERY_COMPLETE,
	  .o = { .counters = true } },
	{ .name = "delivery_unexpected", .len = 8, .form = F_MSG, .flags = FI_DELIVERY_COMPLETE, .unexpected = true },
	{ .name = "match_unexpected", .len = 8, .form = F_MSG, .flags = FI_MATCH_COMPLETE, .unexpected = true },
	{ .name = "match_unexpected_bounce", .len = 4096, .form = F_MSG, .flags = FI_MATCH_COMPLETE,
	  .unexpected = true },
	{ .name = "inject_delivery", .o = { .tx_flags = FI_DELIVERY_COMPLETE } },
	{ .name = "user_id", .o = { .caps = FI_MSG | FI_TAGGED | FI_SOURCE | FI_AV_USER_ID }, .user_id = true,
	  .enters = true, .entries = 1 },
	{ .name = "pieces", .pieces = 3, .enters = true, .entries = 2 },
	{ .name = "truncated", .short_of = true, .enters = true, .entries = 2 },
	{ .name = "long_parts", .len = LONG, .form = F_MSG, .parts = 2 },
	{ .name = "long_parts_unexpected", .len = LONG, .form = F_MSG, .parts = 4, .unexpected = true },
	{ .name = "shared", .shared = true },
	{ .name = "shared_bounce", .shared = true, .len = 4096 },
	{ .name = "shared_reversed", .shared = true, .reversed = true },
	{ .name = "scalable", .contexts = 1 },
	{ .name = "scalable_bounce", .contexts = 2, .len = 4096 },
	{ .name = "scalable_delivery", .contexts = 1, .len = 8, .form = F_MSG, .flags = FI_DELIVERY_COMPLETE },
	{ .name = "scalable_delivery_bounce", .contexts = 2, .len = 4096, .form = F_MSG, .flags = FI_DELIVERY_COMPLETE },
	{ .name = "scalable_match", .contexts = 2, .len = 8, .form = F_MSG, .flags = FI_MATCH_COMPLETE },
	{ .name = "scalable_match_unexpected", .contexts = 1, .len = 8, .form = F_MSG, .flags = FI_MATCH_COMPLETE,
	  .unexpected = true },
	{ .name = "scalable_long", .contexts = 1, .len = LONG },
	{ .name = "scalable_long_second", .contexts = 2, .len = LONG },
	{ .name = "scalable_long_unexpected", .contexts = 2, .len = LONG, .unexpected = true },
	/* As MPICH opens and posts: contexts, everything delivered, injected with data where it is short, a counter of
	 * reads and writes, a buffer for several of its own messages. */
	{ .name = "mpich", .contexts = 1, .multi = true, .accesses = true, .data = true,
	  .o = { .tx_flags = FI_DELIVERY_COMPLETE, .tx_bind = FI_SELECTIVE_COMPLETION,
		 .caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_RMA | FI_MULTI_RECV,
		 .threading = FI_THREAD_DOMAIN } },
	{ .name = "mpich_multi", .contexts = 1, .multi = true, .accesses = true, .untagged = true,
	  .o = { .tx_flags = FI_DELIVERY_COMPLETE, .tx_bind = FI_SELECTIVE_COMPLETION,
		 .caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_RMA | FI_MULTI_RECV,
		 .threading = FI_THREAD_DOMAIN } },
	{ .name = "mpi", /* as Open MPI's mtl opens and posts */
	  .o = { .caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV, .rx_bind = FI_SELECTIVE_COMPLETION, .one_cq = true,
		 .tx_bind = FI_SELECTIVE_COMPLETION, .threading = FI_THREAD_DOMAIN },
	  .signals = true, .reversed = true, .ahead = true },
	{ .name = "long_plain", .len = LONG },
	{ .name = "long_untagged", .len = LONG, .untagged = true },
	{ .name = "long_data", .len = LONG, .form = F_DATA },
	{ .name = "long_msg", .len = LONG, .form = F_MSG },
	{ .name = "long_delivery", .len = LONG, .form = F_MSG, .flags = FI_DELIVERY_COMPLETE },
	{ .name = "long_match", .len = LONG, .form = F_MSG, .flags = FI_MATCH_COMPLETE },
	{ .name = "long_selective", .len = LONG, .form = F_MSG, .flags = FI_COMPLETION,
	  .o = { .tx_bind = FI_SELECTIVE_COMPLETION } },
	{ .name = "long_counters", .len = LONG, .o = { .counters = true } },
	{ .name = "long_av_map", .len = LONG, .o = { .av_type = FI_AV_MAP } },
	{ .name = "long_wait_fd", .len = LONG, .o = { .wait = FI_WAIT_FD } },
	{ .name = "long_domain", .len = LONG, .o = { .threading = FI_THREAD_DOMAIN } },
	{ .name = "long_context", .len = LONG, .o = { .format = FI_CQ_FORMAT_CONTEXT } },
	{ .name = "long_reversed", .len = LONG, .reversed = true },
	{ .name = "long_unexpected", .len = LONG, .unexpected = true },
	{ .name = "long_unexpected_untagged", .len = LONG, .untagged = true, .unexpected = true },
	{ .name = "long_unexpected_data", .len = LONG, .form = F_DATA, .unexpected = true },
	{ .name = "long_unexpected_mpi", .len = LONG, .form = F_MSG, .flags = FI_COMPLETION,
	  .o = { .caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV, .rx_bind = FI_SELECTIVE_COMPLETION, .one_cq = true,
		 .tx_bind = FI_SELECTIVE_COMPLETION, .threading = FI_THREAD_DOMAIN },
	  .signals = true, .unexpected = true, .ahead = true },
	{ .name = "long_mpi", .len = LONG, .form = F_MSG, .flags = FI_COMPLETION,
	  .o = { .caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV, .rx_bind = FI_SELECTIVE_COMPLETION, .one_cq = true,
		 .tx_bind = FI_SELECTIVE_COMPLETION, .threading = FI_THREAD_DOMAIN },
	  .signals = true, .reversed = true, .ahead = true },
};

/* Whether a send may complete as late as its receive. */
static bool late(const struct ask *a)
{
	return a->len >= LONG || a->flags & (FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE);
}

/* The scalable endpoint and its contexts, which all have n's queues. */
#define CTX_BITS 1
static struct fid_ep *sep, *tx[2], *rx[2];
static struct fid_ep *receiver; /* the context that messages go to, NULL: the endpoint */
static struct fid_cntr *accesses; /* of reads and writes, NULL: none */

static void open_contexts(struct node *n, const struct ask *a)
{
	struct fi_av_attr av = { .type = FI_AV_TABLE, .rx_ctx_bits = CTX_BITS };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED };

	node_open_domain(n, &a->o);
	NEED(n->info->domain_attr->max_ep_rx_ctx >= 2, "scalable endpoints");
	n->info->ep_attr->tx_ctx_cnt = n->info->ep_attr->rx_ctx_cnt = (size_t)a->contexts;
	OK(fi_av_open(n->domain, &av, &n->av, NULL));
	OK(fi_cq_open(n->domain, &cq, &n->txcq, NULL));
	OK(fi_cq_open(n->domain, &cq, &n->rxcq, NULL));
	if (a->accesses) {
		struct fi_cntr_attr cntr = { .events = FI_CNTR_EVENTS_COMP };

		OK(fi_cntr_open(n->domain, &cntr, &accesses, NULL));
	}
	OK(fi_scalable_ep(n->domain, n->info, &sep, NULL));
	OK(fi_scalable_ep_bind(sep, &n->av->fid, 0));
	for (int i = 0; i < a->contexts; i++) {
		OK(fi_tx_context(sep, i, NULL, &tx[i], NULL));
		OK(fi_rx_context(sep, i, NULL, &rx[i], NULL));
		OK(fi_ep_bind(tx[i], &n->txcq->fid, FI_TRANSMIT | a->o.tx_bind));
		OK(fi_ep_bind(rx[i], &n->rxcq->fid, FI_RECV));
		if (a->accesses)
			OK(fi_ep_bind(tx[i], &accesses->fid, FI_READ | FI_WRITE));
		OK(fi_enable(tx[i]));
		OK(fi_enable(rx[i]));
	}
	OK(fi_enable(sep));
	n->ep = sep;
	node_connect(n);
	n->ep = tx[a->contexts - 1];
	receiver = rx[a->contexts - 1];
	n->peer[0] = fi_rx_addr(n->peer[0], a->contexts - 1, CTX_BITS);
}

/* The second endpoint of a shared receive context, which is receiver, and its address. */
static struct node second;
static fi_addr_t first_addr, second_addr;

static void open_shared(struct node *n, struct node *base, const struct ask *a)
{
	memset(n, 0, sizeof(*n));
	n->o = a->o;
	n->domain = base->domain;
	n->info = fi_dupinfo(base->info);
	n->info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	n->av = base->av;
	n->txcq = base->txcq;
	n->rxcq = base->rxcq;
	OK(fi_endpoint(n->domain, n->info, &n->ep, NULL));
	OK(fi_ep_bind(n->ep, &receiver->fid, 0));
	OK(fi_ep_bind(n->ep, &n->av->fid, 0));
	OK(fi_ep_bind(n->ep, &n->txcq->fid, FI_TRANSMIT));
	OK(fi_ep_bind(n->ep, &n->rxcq->fid, FI_RECV));
	OK(fi_enable(n->ep));
}

static void open_pair(struct node *n, const struct ask *a)
{
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED };
	struct node one;

	node_open_domain(n, &a->o);
	OK(fi_av_open(n->domain, &av, &n->av, NULL));
	OK(fi_cq_open(n->domain, &cq, &n->txcq, NULL));
	OK(fi_cq_open(n->domain, &cq, &n->rxcq, NULL));
	OK(fi_srx_context(n->domain, n->info->rx_attr, &receiver, NULL));
	open_shared(&one, n, a);
	open_shared(&second, n, a);
	n->ep = one.ep;
	fi_freeinfo(one.info);
	first_addr = n->peer[0] = node_insert(n, n);
	second_addr = node_insert(n, &second);
}

static void close_pair(struct node *n)
{
	OK(fi_close(&n->ep->fid));
	OK(fi_close(&second.ep->fid));
	fi_freeinfo(second.info);
	OK(fi_close(&receiver->fid));
	OK(fi_close(&n->txcq->fid));
	OK(fi_close(&n->rxcq->fid));
	OK(fi_close(&n->av->fid));
	node_close_domain(n);
}

static void close_contexts(struct node *n, const struct ask *a)
{
	for (int i = 0; i < a->contexts; i++) {
		OK(fi_close(&tx[i]->fid));
		OK(fi_close(&rx[i]->fid));
	}
	OK(fi_close(&sep->fid));
	if (a->accesses)
		OK(fi_close(&accesses->fid));
	OK(fi_close(&n->txcq->fid));
	OK(fi_close(&n->rxcq->fid));
	OK(fi_close(&n->av->fid));
	node_close_domain(n);
}

static void receive(struct node *n, const struct ask *a, int k, uint64_t tag)
{
	struct node r = *n;
	struct op o = { .form = F_MSG, .tagged = !a->untagged, .addr = a->from ? n->peer[0] : FI_ADDR_UNSPEC, .tag = tag,
			.ignore = a->any_tag ? ~0ull : 0, .flags = a->signals ? FI_COMPLETION : 0, .ctx = in[k] };

	op_split(&o, in[k], a->short_of ? 4 : sizeof(in[k]), a->pieces ? a->pieces : 1, false);
	if (receiver)
		r.ep = receiver;
	post_recv(&r, &o);
}

/* Posts a buffer for many untagged messages: all that come here, with room. Its context is itself. */
static char many[(ROUNDS + 50) * 2048];

static void receive_many(struct node *n)
{
	struct node r = *n;
	struct op o = { .form = F_MSG, .addr = FI_ADDR_UNSPEC, .flags = FI_MULTI_RECV, .ctx = many };

	op_split(&o, many, sizeof(many), 1, false);
	if (receiver)
		r.ep = receiver;
	post_recv(&r, &o);
}

static uint64_t counter(struct node *n, const char *name)
{
	struct node r = *n;

	r.ep = second.ep ? second.ep : receiver;
	return node_counter(n, name) + (receiver ? node_counter(&r, name) : 0);
}

static void transmit(struct node *n, const struct ask *a, uint64_t tag)
{
	struct op o = { .form = a->len ? a->form : a->data ? F_INJECTDATA : F_INJECT, .tagged = !a->untagged,
			.addr = n->peer[0], .tag = tag,
			.buf = out, .len = a->len ? a->len : 8, .flags = a->flags, .data = tag, .ctx = out };

	if (a->form == F_MSG && a->len)
		op_split(&o, out, a->len, a->parts ? a->parts : 1, false);
	post_send(n, &o);
	if (a->len && !late(a))
		wait_ctx(n, n->txcq, out);
}

#define USER_ID 4711

/* Gives the node, which sends to itself, the number by which its completions name it. */
static void name_user(struct node *n)
{
	fi_addr_t id = USER_ID;
	struct name name;
	struct fi_cq_tagged_entry e;

	CHECK_RC(fi_av_remove(n->av, &n->peer[0], 1, 0), 0);
	node_name(n, &name);
	CHECK_RC(fi_av_insert(n->av, name.bytes, 1, &id, FI_AV_USER_ID, NULL), 1);
	n->peer[0] = 0; /* its index */
	trecv(n, in[0], sizeof(in[0]), FI_ADDR_UNSPEC, 1, 0, in[0]);
	tsend(n, out, 8, n->peer[0], 1, out);
	wait_ctx(n, n->txcq, out);
	for (int k = 0; k < 1000000; k++) {
		fi_addr_t src = FI_ADDR_NOTAVAIL;
		ssize_t rc = fi_cq_readfrom(n->rxcq, &e, 1, &src);

		if (rc == -FI_EAGAIN)
			continue;
		CHECKF(rc == 1 && src == USER_ID, "%zd, from %#llx", rc, (unsigned long long)src);
		return;
	}
	CHECKF(false, "nothing came");
}

/* Takes the completion of a receive, and of a send that completes with it, in whichever order they come. */
static void both(struct node *n, const struct ask *a, void *ctx)
{
	struct fi_cq_tagged_entry e;
	bool sent = !late(a), received = false;

	while (!sent || !received) {
		int rc = wait_for(n, n->rxcq, &e, 0);

		if (!rc && n->txcq != n->rxcq && !sent)
			rc = wait_for(n, n->txcq, &e, 0);
		CHECK(rc >= 0);
		if (rc && e.op_context == out) {
			CHECK(!sent);
			sent = true;
		} else if (rc) {
			CHECK(!received && e.op_context == ctx);
			received = true;
		}
	}
}

/* Whether the last search of a round leaves the message to a receive. */
static bool leaves(const struct ask *a)
{
	return !((a->search[0] | a->search[1]) & (FI_CLAIM | FI_DISCARD));
}

/* Posts a search, and takes what it says. */
static void search(struct node *n, const struct ask *a, uint64_t tag, uint64_t flags)
{
	bool receives = flags == FI_CLAIM;
	struct node r = *n;
	struct op o = { .form = F_MSG, .tagged = true, .addr = a->from ? n->peer[0] : FI_ADDR_UNSPEC, .tag = tag,
			.flags = flags | (a->signals ? FI_COMPLETION : 0), .ctx = in[0] };

	op_split(&o, receives ? in[0] : NULL, receives ? sizeof(in[0]) : 0, 1, false);
	if (receiver)
		r.ep = receiver;
	post_recv(&r, &o);
	if (a->misses) {
		wait_err(n, n->rxcq, FI_ENOMSG);
		CHECK(n->err.op_context == in[0] && n->err.tag == tag);
	} else if (late(a) && (receives || flags & FI_DISCARD)) {
		both(n, a, in[0]);
	} else {
		wait_ctx(n, n->rxcq, in[0]);
	}
}

/* Has what was sent arrive without a receive. */
static void settle(struct node *n, uint64_t before)
{
	for (int i = 0; i < 100000 && counter(n, "rx_unexpected") == before; i++)
		progress(n);
}

static void round_trip(struct node *n, const struct ask *a, int count)
{
	bool kept = a->multi && a->untagged; /* by the buffer that stays posted */

	for (int k = 0; k < count && !a->unexpected && !kept && !a->misses; k++)
		receive(n, a, k, (uint64_t)k);
	if (a->shared)
		n->peer[0] = n->peer[0] == first_addr ? second_addr : first_addr;
	for (int k = 0; k < count; k++) {
		int at = a->reversed ? count - 1 - k : k;

		if (a->unexpected) {
			uint64_t before = counter(n, "rx_unexpected");

			transmit(n, a, (uint64_t)at);
			settle(n, before);
			for (size_t s = 0; s < 2 && a->search[s]; s++)
				search(n, a, (uint64_t)at, a->search[s]);
			if (a->search[0] && !leaves(a))
				continue;
			receive(n, a, at, (uint64_t)at);
		} else if (a->misses) {
			search(n, a, 5000, a->search[0]);
			continue;
		} else {
			transmit(n, a, (uint64_t)at);
		}
		if (a->short_of) {
			wait_err(n, n->rxcq, FI_ETRUNC);
			continue;
		}
		both(n, a, kept ? many : in[a->any_tag ? k : at]);
	}
}

/* What the counters say of a number of messages. */
struct seen {
	uint64_t eager, direct, kept, rendezvous, fetched, acknowledged, arrivals, waits, searches, searched, entries;
};

/* How often operations of the process have entered the runtime. */
static uint64_t entries(struct node *n)
{
	struct weft_stats_ops *ops = NULL;
	uint64_t v = 0;

	OK(fi_open_ops(&n->domain->fid, WEFT_STATS_OPS, 0, (void **)&ops, NULL));
	OK(ops->read(&n->domain->fid, ops->find("runtime_entries"), 1, &v));
	return v;
}

static struct seen inspect(struct node *n)
{
	return (struct seen){
		.eager = counter(n, "rx_eager"), .direct = counter(n, "rx_direct"),
		.kept = counter(n, "rx_unexpected"), .rendezvous = counter(n, "tx_rendezvous_direct"),
		.fetched = counter(n, "rx_rendezvous_direct"), .acknowledged = counter(n, "tx_acks_direct"),
		.arrivals = counter(n, "progress_arrivals"), .waits = counter(n, "tx_sync_direct"),
		.searches = counter(n, "rx_searches"), .searched = counter(n, "rx_searches_direct"),
		.entries = entries(n),
	};
}

/* Compares what count messages whose sender waits for an acknowledgement have cost. */
static void check_late(const struct seen *was, const struct seen *now, uint64_t count, size_t len)
{
	uint64_t most = count * len / (4u << 20) + 1;

	if (len >= LONG)
		EXPECTF(now->rendezvous - was->rendezvous + most >= count && now->rendezvous - was->rendezvous <= count,
			"%llu of %llu were a rendezvous directly", (unsigned long long)(now->rendezvous - was->rendezvous),
			(unsigned long long)count);
	if (len >= LONG)
		EXPECTF(now->fetched - was->fetched == count, "%llu of %llu were fetched directly",
			(unsigned long long)(now->fetched - was->fetched), (unsigned long long)count);
	else
		EXPECTF(now->waits - was->waits == count, "%llu of %llu were posted directly",
			(unsigned long long)(now->waits - was->waits), (unsigned long long)count);
	EXPECTF(now->acknowledged - was->acknowledged == count, "%llu of %llu were acknowledged directly",
		(unsigned long long)(now->acknowledged - was->acknowledged), (unsigned long long)count);
	/* The runtime is entered now and then for its timers, and takes in what is there at that moment. */
	EXPECTF(now->arrivals - was->arrivals <= count / 50, "%llu arrivals entered the runtime",
		(unsigned long long)(now->arrivals - was->arrivals));
}

/* Compares how often count messages, with all that was posted, searched and read for them, have entered the runtime:
 * several things may be done in one entry, and a few entries are for what else has come meanwhile. */
static void check_entries(const struct ask *a, uint64_t entries, uint64_t count)
{
	uint64_t want = count * (uint64_t)a->entries, more = count / 50;

	if (a->len >= LONG) /* memory is counted for huge pages */
		more += count * a->len / (4u << 20) + 1;
	EXPECTF(entries >= want / 2 && entries <= want + more, "%llu entries into the runtime, of %llu messages",
		(unsigned long long)entries, (unsigned long long)count);
}

static void test_ask(long arg)
{
	const struct ask *a = &asks[arg];
	int count = a->reversed ? BURST : 1;
	struct seen was, now;
	uint64_t searches = 0;
	struct node n;

	if (!test_is_weft())
		SKIP("counters of weft");
	if (a->contexts) {
		open_contexts(&n, a);
	} else if (a->shared) {
		open_pair(&n, a);
	} else {
		node_open(&n, &a->o);
		node_connect(&n);
	}
	if (a->user_id)
		name_user(&n);
	if (a->multi)
		receive_many(&n);
	for (int k = 0; k < BURST && a->ahead; k++)
		receive(&n, a, 0, 1000 + (uint64_t)k);
	for (int i = 0; i < 20; i++) /* sources are met, pools and tables are mapped */
		round_trip(&n, a, count);
	was = inspect(&n);
	for (int i = 0; i < ROUNDS; i++)
		round_trip(&n, a, count);
	now = inspect(&n);
	check_entries(a, now.entries - was.entries, (uint64_t)(ROUNDS * count));
	EXPECTF(now.eager - was.eager == (uint64_t)(a->enters ? ROUNDS * count : 0), "%llu entered the runtime",
		(unsigned long long)(now.eager - was.eager));
	for (size_t s = 0; s < 2 && a->search[s]; s++)
		searches += ROUNDS;
	EXPECTF(now.searches - was.searches == searches && now.searched - was.searched == searches,
		"%llu searches, %llu made directly, of %llu", (unsigned long long)(now.searches - was.searches),
		(unsigned long long)(now.searched - was.searched), (unsigned long long)searches);
	now.direct -= was.direct;
	now.kept -= was.kept;
	if (late(a) && !a->entries)
		check_late(&was, &now, (uint64_t)(ROUNDS * count), a->len);
	if (a->len < LONG && !a->enters && !a->misses)
		EXPECTF(a->unexpected ? now.kept == ROUNDS : now.direct == (uint64_t)(ROUNDS * count) && !now.kept,
			"%llu delivered, %llu kept, of %d", (unsigned long long)now.direct, (unsigned long long)now.kept,
			ROUNDS * count);
	if (a->contexts)
		close_contexts(&n, a);
	else if (a->shared)
		close_pair(&n);
	else
		node_close(&n);
}

int main(int argc, char **argv)
{
	struct test tests[ARRAY_LEN(asks)];

	for (size_t i = 0; i < ARRAY_LEN(asks); i++)
		tests[i] = (struct test){ .name = asks[i].name, .run = test_ask, .arg = (long)i };
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
