/* SPDX-License-Identifier: BSD-2-Clause */
/* What a message costs its receiver in steady state, for what clients ask of endpoints: no entry into the Go runtime,
 * which the counters tell (docs/clients.md is the table of it). */
#include "../../include/weft/ext.h"

#include "common.h"

#define ROUNDS 200
#define BURST 10

static char in[BURST][16384], out[16384];

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
	{ .name = "posted_ahead", .ahead = true },
	{ .name = "mpi", /* as Open MPI's mtl opens and posts */
	  .o = { .caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV, .rx_bind = FI_SELECTIVE_COMPLETION, .one_cq = true,
		 .tx_bind = FI_SELECTIVE_COMPLETION, .threading = FI_THREAD_DOMAIN },
	  .signals = true, .reversed = true, .ahead = true },
};

static void receive(struct node *n, const struct ask *a, int k, uint64_t tag)
{
	struct op o = { .form = F_MSG, .tagged = true, .addr = a->from ? n->peer[0] : FI_ADDR_UNSPEC, .tag = tag,
			.ignore = a->any_tag ? ~0ull : 0, .flags = a->signals ? FI_COMPLETION : 0, .ctx = in[k] };

	op_split(&o, in[k], sizeof(in[k]), 1, false);
	post_recv(n, &o);
}

static void transmit(struct node *n, const struct ask *a, uint64_t tag)
{
	struct op o = { .form = a->len ? F_PLAIN : F_INJECT, .tagged = true, .addr = n->peer[0], .tag = tag, .buf = out,
			.len = a->len ? a->len : 8, .ctx = out };

	post_send(n, &o);
	if (a->len)
		wait_ctx(n, n->txcq, out);
}

/* Has what was sent arrive without a receive. */
static void settle(struct node *n, uint64_t before)
{
	for (int i = 0; i < 100000 && node_counter(n, "rx_unexpected") == before; i++)
		progress(n);
}

static void round_trip(struct node *n, const struct ask *a, int count)
{
	for (int k = 0; k < count && !a->unexpected; k++)
		receive(n, a, k, (uint64_t)k);
	for (int k = 0; k < count; k++) {
		int at = a->reversed ? count - 1 - k : k;

		if (a->unexpected) {
			uint64_t before = node_counter(n, "rx_unexpected");

			transmit(n, a, (uint64_t)at);
			settle(n, before);
			receive(n, a, at, (uint64_t)at);
		} else {
			transmit(n, a, (uint64_t)at);
		}
		wait_ctx(n, n->rxcq, in[a->any_tag ? k : at]);
	}
}

static void test_ask(long arg)
{
	const struct ask *a = &asks[arg];
	int count = a->reversed ? BURST : 1;
	uint64_t eager, direct, held;
	struct node n;

	if (!test_is_weft())
		SKIP("counters of weft");
	node_open(&n, &a->o);
	node_connect(&n);
	for (int k = 0; k < BURST && a->ahead; k++)
		receive(&n, a, 0, 1000 + (uint64_t)k);
	for (int i = 0; i < 20; i++) /* sources are met, pools and tables are mapped */
		round_trip(&n, a, count);
	eager = node_counter(&n, "rx_eager");
	direct = node_counter(&n, "rx_direct");
	held = node_counter(&n, "rx_unexpected");
	for (int i = 0; i < ROUNDS; i++)
		round_trip(&n, a, count);
	EXPECTF(node_counter(&n, "rx_eager") == eager, "%llu messages entered the runtime",
		(unsigned long long)(node_counter(&n, "rx_eager") - eager));
	direct = node_counter(&n, "rx_direct") - direct;
	held = node_counter(&n, "rx_unexpected") - held;
	EXPECTF(a->unexpected ? held == ROUNDS : direct == (uint64_t)(ROUNDS * count) && !held,
		"%llu delivered, %llu held, of %d", (unsigned long long)direct, (unsigned long long)held, ROUNDS * count);
	node_close(&n);
}

int main(int argc, char **argv)
{
	struct test tests[ARRAY_LEN(asks)];

	for (size_t i = 0; i < ARRAY_LEN(asks); i++)
		tests[i] = (struct test){ .name = asks[i].name, .run = test_ask, .arg = (long)i };
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
