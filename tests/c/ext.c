/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_open_ops: the counters of a process and of its endpoints. */
#include "counts.h"

static void test_names(long arg)
{
	struct weft_stats_ops *ops;
	struct node n;
	void *none = &n;

	(void)arg;
	node_open(&n, NULL);
	EXPECT_RC(fi_open_ops(&n.ep->fid, "no such operations", 0, &none, NULL), -FI_ENOSYS);
	EXPECT(none == &n);
	ops = open_stats(&n.ep->fid);
	EXPECT(open_stats(&n.domain->fid) == ops && open_stats(&n.fabric->fid) == ops);
	EXPECT_RC(fi_open_ops(&n.ep->fid, WEFT_STATS_OPS, 1, &none, NULL), -FI_EBADFLAGS);
	EXPECT_RC(fi_open_ops(&n.ep->fid, NULL, 0, &none, NULL), -FI_EINVAL);
	EXPECT_RC(fi_open_ops(&n.ep->fid, WEFT_STATS_OPS, 0, NULL, NULL), -FI_EINVAL);
	EXPECT_RC(fi_open_ops(&n.av->fid, WEFT_STATS_OPS, 0, &none, NULL), -FI_ENOSYS);
	EXPECT_RC(fi_open_ops(&n.txcq->fid, WEFT_STATS_OPS, 0, &none, NULL), -FI_ENOSYS);
	EXPECT_RC(ops->find("no such counter"), -FI_ENOENT);
	EXPECT_RC(ops->find(NULL), -FI_EINVAL);
	for (size_t i = 0; i < ops->count; i++) {
		const struct weft_counter *c = &ops->counters[i];

		CHECK(ops->find(c->name) == (int)i);
		CHECK(c->unit[0] && c->help[0]);
		CHECK(c->kind <= WEFT_COUNTER_PEAK && c->level <= WEFT_COUNTER_ENDPOINT);
	}
	node_close(&n);
}

static void test_bad_reads(long arg)
{
	struct node_opts o = { .disabled = true };
	struct weft_stats_ops *ops;
	struct node n;
	uint64_t v[2] = { 7, 7 };

	(void)arg;
	node_open(&n, &o);
	ops = open_stats(&n.ep->fid);
	EXPECT_RC(ops->read(&n.ep->fid, 0, 1, v), -FI_EOPBADSTATE);
	OK(fi_enable(n.ep));
	EXPECT_RC(ops->read(&n.ep->fid, -1, 1, v), -FI_EINVAL);
	EXPECT_RC(ops->read(&n.ep->fid, (int)ops->count, 1, v), -FI_EINVAL);
	EXPECT_RC(ops->read(&n.ep->fid, 1, ops->count, v), -FI_EINVAL);
	EXPECT_RC(ops->read(&n.ep->fid, 1, SIZE_MAX, v), -FI_EINVAL);
	EXPECT_RC(ops->read(&n.ep->fid, 0, 1, NULL), -FI_EINVAL);
	EXPECT_RC(ops->read(&n.av->fid, 0, 1, v), -FI_EINVAL);
	EXPECT_RC(ops->read(NULL, 0, 1, v), -FI_EINVAL);
	EXPECT(v[0] == 7 && v[1] == 7);
	OK(ops->read(&n.ep->fid, (int)ops->count, 0, v));
	OK(ops->read(&n.ep->fid, 0, 1, v));
	EXPECT(v[0] == 0 && v[1] == 7); /* a counter of the process */
	node_close(&n);
}

/* Rank 0 sends, rank 1 receives; both count what the program did. */
static void test_counts(long messages)
{
	struct weft_stats_ops *ops;
	struct node n, other;
	char buf[64] = "";

	node_open(&n, NULL);
	node_connect(&n);
	ops = open_stats(&n.ep->fid);
	for (long i = 0; i < messages; i++) {
		if (test_rank == 0) {
			tsend(&n, buf, sizeof(buf), n.peer[1], i, &n);
			wait_ctx(&n, n.txcq, &n);
		} else {
			trecv(&n, buf, sizeof(buf), n.peer[0], i, 0, &n);
			wait_ctx(&n, n.rxcq, &n);
		}
	}
	if (test_rank == 0) {
		uint64_t sent = value(ops, &n.ep->fid, "tx_inline") + value(ops, &n.ep->fid, "tx_eager") +
				value(ops, &n.ep->fid, "tx_sync");
		uint64_t bytes = value(ops, &n.ep->fid, "tx_inline_bytes") + value(ops, &n.ep->fid, "tx_eager_bytes") +
				 value(ops, &n.ep->fid, "tx_sync_bytes");

		CHECKF(sent == (uint64_t)messages, "%lu sent", (unsigned long)sent);
		CHECKF(bytes == messages * sizeof(buf), "%lu bytes", (unsigned long)bytes);
		CHECK(value(ops, &n.domain->fid, "tx_inline") == value(ops, &n.ep->fid, "tx_inline"));
	} else {
		uint64_t got = value(ops, &n.ep->fid, "rx_direct") + value(ops, &n.ep->fid, "rx_eager");

		CHECKF(got == (uint64_t)messages, "%lu received", (unsigned long)got);
	}
	CHECK(value(ops, &n.domain->fid, "endpoints") == 1);
	node_open(&other, NULL);
	CHECK(value(ops, &n.fabric->fid, "endpoints") == 2);
	CHECK(value(ops, &n.fabric->fid, "endpoints_opened") == 2);
	CHECK(value(ops, &other.ep->fid, "tx_inline") == 0);
	node_close(&other);
	CHECK(value(ops, &n.fabric->fid, "endpoints") == 1);
	barrier(&n);
	node_close(&n);
}

/* The same without a page for others to read. */
static void test_hidden(long messages)
{
	setenv("FI_WEFT_STATS", "no", 1);
	test_counts(messages);
}

/* What a peer sends first. */
enum first { FIRST_PLAIN, FIRST_DATA, FIRST_SYNC, FIRST_LONG };

#define TURNS 200

static void send_first(struct node *n, enum first what, void *buf, size_t len)
{
	struct op o = {
		.form = F_MSG,
		.tagged = true,
		.buf = buf,
		.len = len,
		.addr = n->peer[1],
		.tag = 1,
		.ctx = n,
	};

	if (what == FIRST_DATA) {
		o.flags = FI_REMOTE_CQ_DATA;
		o.data = 5;
	} else if (what == FIRST_SYNC) {
		o.flags = FI_DELIVERY_COMPLETE;
	}
	post_send(n, &o);
	wait_ctx(n, n->txcq, n);
}

/* C delivers the messages of a peer, whatever the first was: not the first ones, and none that
 * comes while the receiver is not searching for more than a moment. */
static void test_direct(long what)
{
	struct weft_stats_ops *ops;
	size_t len = what == FIRST_LONG ? 1 << 20 : 8;
	char *buf = malloc(len);
	uint64_t got;
	struct node n;

	CHECK(buf);
	memset(buf, 1, len);
	node_open(&n, NULL);
	node_connect(&n);
	ops = open_stats(&n.ep->fid);
	if (test_rank == 0) {
		send_first(&n, what, buf, len);
	} else {
		trecv(&n, buf, len, FI_ADDR_UNSPEC, 1, 0, &n);
		wait_ctx(&n, n.rxcq, &n);
	}
	for (int i = 0; i < TURNS; i++) {
		trecv(&n, buf, 8, FI_ADDR_UNSPEC, 2, 0, &n);
		if (test_rank == 0) {
			tsend(&n, buf, 8, n.peer[1], 2, buf);
			wait_ctx(&n, n.txcq, buf);
		}
		wait_ctx(&n, n.rxcq, &n);
		if (test_rank == 1) {
			tsend(&n, buf, 8, n.peer[0], 2, buf);
			wait_ctx(&n, n.txcq, buf);
		}
	}
	got = value(ops, &n.ep->fid, "rx_direct");
	CHECKF(got >= TURNS / 4, "%lu of %d delivered by C", (unsigned long)got, TURNS);
	barrier(&n);
	node_close(&n);
	free(buf);
}

/* C reads rendezvous messages into receives that wait, and takes in their acknowledgements: Go gets
 * few of what arrives. Where the kernel lets nothing read another process, Go gets them all. */
static void test_rendezvous(long len)
{
	struct weft_stats_ops *ops;
	char *in = malloc(len), *out = malloc(len);
	uint64_t arrivals = 0;
	struct node n;

	NEED_WAY(WAY_MEMORY, "messages that the receiver copies from the sender's process");
	CHECK(in && out);
	node_open(&n, NULL);
	node_connect(&n);
	ops = open_stats(&n.ep->fid);
	for (int i = 0; i < TURNS; i++) {
		uint64_t sent = 2 * i + test_rank;

		if (i == TURNS / 4)
			arrivals = value(ops, &n.ep->fid, "progress_arrivals");
		memset(in, 0, len);
		fill(out, len, sent);
		trecv(&n, in, len, FI_ADDR_UNSPEC, i, 0, &n);
		if (test_rank == 0) {
			tsend(&n, out, len, n.peer[1], i, out);
			wait_ctx(&n, n.txcq, out);
		}
		wait_ctx(&n, n.rxcq, &n);
		verify(in, len, sent ^ 1);
		if (test_rank == 1) {
			tsend(&n, out, len, n.peer[0], i, out);
			wait_ctx(&n, n.txcq, out);
		}
	}
	arrivals = value(ops, &n.ep->fid, "progress_arrivals") - arrivals;
	if (value(ops, &n.ep->fid, "rx_fragments")) {
		barrier(&n);
		SKIP("this process may not read another's memory");
	}
	CHECK(value(ops, &n.ep->fid, "rx_rendezvous") == TURNS);
	CHECKF(arrivals <= TURNS, "%lu of %d arrivals went through Go", (unsigned long)arrivals, 3 * TURNS / 2);
	barrier(&n);
	node_close(&n);
	free(in);
	free(out);
}

static const struct test tests[] = {
	{ "names", test_names, 1, 0, 0 },
	{ "bad_reads", test_bad_reads, 1, 0, 0 },
	{ "counts", test_counts, 2, 0, 100 },
	{ "hidden", test_hidden, 2, 0, 100 },
	{ "direct", test_direct, 2, 0, FIRST_PLAIN },
	{ "direct_data", test_direct, 2, 0, FIRST_DATA },
	{ "direct_sync", test_direct, 2, 0, FIRST_SYNC },
	{ "direct_long", test_direct, 2, 0, FIRST_LONG },
	{ "rendezvous_80k", test_rendezvous, 2, 0, 81920 },
	{ "rendezvous_128k", test_rendezvous, 2, 0, 131072 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
