/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints of FI_PROTO_CXI: streams of operations of which all but the last have FI_MORE, each kind of operation with
 * keys of both kinds, with and without a completion for each; fences in streams. Without a NIC of Slingshot, or its
 * model (tests/clients/cxi.sh), all is skipped. */
#include <rdma/fi_atomic.h>

#include "native_rma.h"

#define COUNT 64 /* operations of a stream */

enum kind { SEND, RECEIVE, WRITTEN, READ, ATOMIC, FETCH, SWAP };

static struct fid_cntr *ends;	  /* of all the endpoint's operations */
static unsigned char *ins, *outs; /* of each operation, len bytes */
static uint64_t counts[COUNT], fetched[COUNT];
static bool selective;

static void open_streams(bool less, size_t len)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct node_opts o = opts;

	selective = less;
	o.caps |= FI_FENCE;
	o.disabled = true;
	if (less)
		o.tx_bind = o.rx_bind = FI_SELECTIVE_COMPLETION;
	open_node(o);
	OK(fi_cntr_open(n.domain, &attr, &ends, NULL));
	OK(fi_ep_bind(n.ep, &ends->fid, FI_SEND | FI_RECV | FI_READ | FI_WRITE));
	OK(fi_enable(n.ep));
	n.peer[1] = node_insert(&n, &n);
	ins = calloc(COUNT, len);
	outs = calloc(COUNT, len);
	CHECK(ins && outs);
}

static void close_streams(void)
{
	free(ins);
	free(outs);
	OK(fi_close(&n.ep->fid));
	n.ep = NULL;
	OK(fi_close(&ends->fid));
	node_close(&n);
}

static ssize_t post_access(enum kind kind, size_t k, size_t len, uint64_t key, uint64_t flags)
{
	static uint64_t one = 1, zero;
	struct iovec iov = { kind == READ ? ins + k * len : outs + k * len, len };
	struct fi_rma_iov remote = { k * len, len, key };
	struct fi_msg_rma m = { .msg_iov = &iov,
				.iov_count = 1,
				.addr = n.peer[1],
				.rma_iov = &remote,
				.rma_iov_count = 1,
				.context = &counts[k] };
	struct fi_ioc operand = { &one, 1 }, compare = { &zero, 1 }, result = { &fetched[k], 1 };
	struct fi_rma_ioc element = { 8 * k, 1, key };
	struct fi_msg_atomic a = { .msg_iov = &operand,
				   .iov_count = 1,
				   .addr = n.peer[1],
				   .rma_iov = &element,
				   .rma_iov_count = 1,
				   .datatype = FI_UINT64,
				   .op = kind == SWAP ? FI_CSWAP : FI_SUM,
				   .context = &counts[k] };

	switch (kind) {
	case WRITTEN:
		return fi_writemsg(n.ep, &m, flags);
	case READ:
		return fi_readmsg(n.ep, &m, flags);
	case ATOMIC:
		return fi_atomicmsg(n.ep, &a, flags);
	case FETCH:
		return fi_fetch_atomicmsg(n.ep, &a, &result, NULL, 1, flags);
	default:
		return fi_compare_atomicmsg(n.ep, &a, &compare, NULL, 1, &result, NULL, 1, flags);
	}
}

static ssize_t post(enum kind kind, size_t k, size_t len, uint64_t key, uint64_t flags)
{
	struct op o = { .form = F_MSG,
			.tagged = true,
			.tag = k,
			.flags = flags,
			.ctx = &counts[k],
			.addr = kind == SEND ? n.peer[1] : FI_ADDR_UNSPEC };

	if (kind != SEND && kind != RECEIVE)
		return post_access(kind, k, len, key, flags);
	op_split(&o, kind == SEND ? outs + k * len : ins + k * len, len, 1, false);
	return kind == SEND ? op_send(n.ep, &o) : op_recv(n.ep, &o);
}

/* Posts a stream; keys take turns. Every fourth operation completes if they are selective. */
static void stream(enum kind kind, size_t len, const uint64_t *keys_of, size_t keys_count)
{
	for (size_t k = 0; k < COUNT; k++) {
		uint64_t flags = (k + 1 < COUNT ? FI_MORE : 0) | (!selective || k % 4 == 0 ? FI_COMPLETION : 0);
		ssize_t rc;

		while ((rc = post(kind, k, len, keys_count ? keys_of[k % keys_count] : 0, flags)) == -FI_EAGAIN)
			progress(&n);
		CHECK_RC(rc, 0);
	}
}

/* Each operation that is to complete does so once; all are counted. */
static void await(struct fid_cq *cq, uint64_t counted)
{
	struct fi_cq_tagged_entry e;

	memset(counts, 0, sizeof(counts));
	for (size_t k = 0; k < COUNT; k += selective ? 4 : 1) {
		uint64_t *count;

		wait_ok(&n, cq, &e);
		count = e.op_context;
		CHECK(count >= counts && count < counts + COUNT && (!selective || (count - counts) % 4 == 0));
		CHECK((*count)++ == 0);
	}
	for (uint64_t until = now_ms() + 20000; fi_cntr_read(ends) < counted && now_ms() < until;)
		progress(&n);
	CHECKF(fi_cntr_read(ends) == counted && fi_cntr_readerr(ends) == 0, "%llu, not %llu",
	       (unsigned long long)fi_cntr_read(ends), (unsigned long long)counted);
	wait_none(&n, cq, 1);
}

/* Messages of one length, received by a stream, too, that is posted before or after them. */
static void test_messages(long arg)
{
	size_t len = (size_t)(arg / 4);

	open_streams(arg % 2, len);
	for (size_t k = 0; k < COUNT; k++)
		fill(outs + k * len, len, k);
	stream(arg / 2 % 2 ? SEND : RECEIVE, len, NULL, 0);
	stream(arg / 2 % 2 ? RECEIVE : SEND, len, NULL, 0);
	await(n.rxcq, 2 * COUNT);
	await(n.txcq, 2 * COUNT);
	for (size_t k = 0; k < COUNT; k++)
		verify(ins + k * len, len, k);
	close_streams();
}

/* Writes, reads of the same, and atomic operations, by keys with indices of their own, others, and both in turn. */
static void test_memory(long arg)
{
	static const uint64_t both[] = { 57, 5000 };
	size_t len = (size_t)(arg / 8), count = arg / 2 % 4 == 2 ? 2 : 1;
	const uint64_t *by = arg / 2 % 4 == 1 ? both + 1 : both;
	uint64_t counted = 0, *there = (uint64_t *)memory;
	struct fid_mr *mr[2];

	open_streams(arg % 2, len);
	mr[0] = expose(memory, sizeof(memory), ALL, both[0]);
	mr[1] = expose(memory, sizeof(memory), ALL, both[1]);
	for (size_t k = 0; k < COUNT; k++)
		fill(outs + k * len, len, k);
	stream(WRITTEN, len, by, count);
	await(n.txcq, counted += COUNT);
	stream(READ, len, by, count);
	await(n.txcq, counted += COUNT);
	for (size_t k = 0; k < COUNT; k++) {
		verify(memory + k * len, len, k);
		verify(ins + k * len, len, k);
	}
	memset(memory, 0, 8 * COUNT);
	for (enum kind kind = ATOMIC; kind <= SWAP; kind++) {
		memset(fetched, 0xff, sizeof(fetched));
		if (kind == SWAP)
			memset(memory, 0, 8 * COUNT);
		stream(kind, 8, by, count);
		await(n.txcq, counted += COUNT);
		for (size_t k = 0; k < COUNT; k++) {
			CHECK(there[k] == (kind == FETCH ? 2 : 1));
			CHECK(kind == ATOMIC || fetched[k] == (kind == FETCH ? 1 : 0));
		}
	}
	OK(fi_close(&mr[0]->fid));
	OK(fi_close(&mr[1]->fid));
	close_streams();
}

/* A stream of what goes at once has one doorbell. */
static void test_doorbells(long kind)
{
	static const uint64_t key = 57;
	uint64_t before;
	struct fid_mr *mr;

	open_streams(false, 64);
	mr = expose(memory, sizeof(memory), ALL, key);
	stream((enum kind)kind, kind == SEND ? 64 : 8, &key, 1); /* addresses and memory are known from now on */
	if (kind == SEND) {
		stream(RECEIVE, 64, NULL, 0);
		await(n.rxcq, 2 * COUNT);
	}
	await(n.txcq, kind == SEND ? 2 * COUNT : COUNT);
	before = node_counter(&n, "matched_doorbells");
	stream((enum kind)kind, kind == SEND ? 64 : 8, &key, 1);
	before = node_counter(&n, "matched_doorbells") - before;
	CHECKF(before == 1, "%llu doorbells for %d operations", (unsigned long long)before, COUNT);
	if (kind == SEND)
		stream(RECEIVE, 64, NULL, 0);
	await(n.txcq, kind == SEND ? 4 * COUNT : 2 * COUNT);
	OK(fi_close(&mr->fid));
	close_streams();
}

/* A fenced operation in a stream goes when all before it have ended, which its doorbell has brought about. */
static void test_fence(long kind)
{
	static const uint64_t key = 5000;
	struct fid_mr *mr;
	ssize_t rc;

	open_streams(false, 8);
	mr = expose(memory, sizeof(memory), ALL, key);
	for (size_t k = 0; k < COUNT; k++) {
		uint64_t flags = FI_COMPLETION | (k + 1 < COUNT ? FI_MORE : 0) | (k % 8 == 7 ? FI_FENCE : 0);

		for (uint64_t end = now_ms() + 20000; (rc = post((enum kind)kind, k, 8, key, flags)) == -FI_EAGAIN;) {
			CHECK(now_ms() < end);
			progress(&n);
		}
		CHECK_RC(rc, 0);
		if (k % 8 == 7) /* its turn has come because the others' ends were taken in */
			CHECK(fi_cntr_read(ends) >= k);
	}
	await(n.txcq, COUNT);
	OK(fi_close(&mr->fid));
	close_streams();
}

static const struct test tests[] = {
	{ "messages_eager", test_messages, 1, 0, 4 * 1000 },
	{ "messages_rendezvous", test_messages, 1, 0, 4 * 40000 },
	{ "messages_rendezvous_selective", test_messages, 1, 0, 4 * 40000 + 1 },
	{ "messages_rendezvous_unexpected", test_messages, 1, 0, 4 * 40000 + 2 },
	{ "messages_unexpected_selective", test_messages, 1, 0, 4 * 1000 + 3 },
	{ "memory_optimised", test_memory, 1, 0, 8 * 64 },
	{ "memory_optimised_selective", test_memory, 1, 0, 8 * 64 + 1 },
	{ "memory_standard", test_memory, 1, 0, 8 * 5000 + 2 },
	{ "memory_standard_selective", test_memory, 1, 0, 8 * 64 + 3 },
	{ "memory_mixed", test_memory, 1, 0, 8 * 5000 + 4 },
	{ "memory_mixed_selective", test_memory, 1, 0, 8 * 64 + 5 },
	{ "doorbells_send", test_doorbells, 1, 0, SEND },
	{ "doorbells_write", test_doorbells, 1, 0, WRITTEN },
	{ "doorbells_read", test_doorbells, 1, 0, READ },
	{ "doorbells_atomic", test_doorbells, 1, 0, ATOMIC },
	{ "doorbells_fetch", test_doorbells, 1, 0, FETCH },
	{ "fence_write", test_fence, 1, 0, WRITTEN },
	{ "fence_atomic", test_fence, 1, 0, ATOMIC },
	{ "fence_read", test_fence, 1, 0, READ },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
