/* SPDX-License-Identifier: BSD-2-Clause */
/* Which one-sided operations on one host enter the Go runtime in steady state, to be posted, at the target or for the
 * answer, which the counters say. Rank 0 works on memory of rank 1, which polls. */
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "counts.h"

#define LEN ((size_t)1 << 14)
#define KEY 0x79
#define WARM 20
#define ROUNDS 200
#define DELIVERED FI_DELIVERY_COMPLETE

enum kind { WRITE, WRITE_DATA, WRITE_INJECT, READ, READ_BEHIND, WRITE_BEHIND, ATOMIC, ATOMIC_INJECT, FETCH, SWAP };

/* One thing that a client does. */
struct work {
	const char *name;
	enum kind kind;
	size_t len; /* bytes; of atomics elements, 0: one FI_UINT64 */
	uint64_t flags;
	struct node_opts o;
	enum fi_datatype datatype; /* of atomics, with len */
	size_t arrays;		   /* of an atomic, at both sides; 0: 1 */
	uint64_t enters, target;   /* the runtime, each operation, at rank 0 and at rank 1 */
};

static const struct work works[] = {
	{ .name = "write", .kind = WRITE, .len = 8 },
	{ .name = "write_bounce", .kind = WRITE, .len = 1000 },
	{ .name = "write_long", .kind = WRITE, .len = 4096 },
	{ .name = "write_delivered", .kind = WRITE, .len = 8, .flags = DELIVERED },
	{ .name = "write_bounce_delivered", .kind = WRITE, .len = 1000, .flags = DELIVERED },
	{ .name = "write_long_delivered", .kind = WRITE, .len = 4096, .flags = DELIVERED },
	{ .name = "data", .kind = WRITE_DATA, .len = 8 },
	{ .name = "data_delivered", .kind = WRITE_DATA, .len = 8, .flags = DELIVERED },
	{ .name = "data_none", .kind = WRITE_DATA },
	{ .name = "data_copied", .kind = WRITE_DATA, .len = 4096 },
	{ .name = "data_copied_delivered", .kind = WRITE_DATA, .len = 4096, .flags = DELIVERED },
	{ .name = "inject", .kind = WRITE_INJECT, .len = 8, .o = { .counters = true } },
	{ .name = "inject_delivered",
	  .kind = WRITE_INJECT,
	  .len = 8,
	  .o = { .counters = true, .tx_flags = DELIVERED } },
	{ .name = "inject_uncounted", .kind = WRITE_INJECT, .len = 8, .o = { .tx_flags = DELIVERED } },
	{ .name = "counters_delivered", .kind = WRITE, .len = 8, .flags = DELIVERED, .o = { .counters = true } },
	{ .name = "selective_delivered",
	  .kind = WRITE,
	  .len = 8,
	  .flags = DELIVERED | FI_COMPLETION,
	  .o = { .tx_bind = FI_SELECTIVE_COMPLETION } },
	{ .name = "domain_delivered",
	  .kind = WRITE,
	  .len = 8,
	  .flags = DELIVERED,
	  .o = { .threading = FI_THREAD_DOMAIN } },
	{ .name = "read", .kind = READ, .len = 8 },
	{ .name = "read_long", .kind = READ, .len = 4096 },
	{ .name = "read_behind", .kind = READ_BEHIND, .len = 8 },
	{ .name = "read_long_behind", .kind = READ_BEHIND, .len = 4096 },
	{ .name = "write_long_behind", .kind = WRITE_BEHIND, .len = 4096, .flags = DELIVERED },
	{ .name = "atomic", .kind = ATOMIC },
	{ .name = "atomic_delivered", .kind = ATOMIC, .flags = DELIVERED },
	{ .name = "atomic_inject_delivered", .kind = ATOMIC_INJECT, .o = { .counters = true, .tx_flags = DELIVERED } },
	{ .name = "fetch", .kind = FETCH, .flags = DELIVERED },
	{ .name = "swap", .kind = SWAP, .flags = DELIVERED },
	{ .name = "atomic_int8", .kind = ATOMIC, .len = 1, .datatype = FI_INT8 },
	{ .name = "atomic_uint16", .kind = ATOMIC, .len = 3, .datatype = FI_UINT16 },
	{ .name = "atomic_float", .kind = ATOMIC, .len = 1, .datatype = FI_FLOAT },
	{ .name = "atomic_double", .kind = ATOMIC, .len = 1, .datatype = FI_DOUBLE },
	{ .name = "atomic_complex", .kind = ATOMIC, .len = 2, .datatype = FI_DOUBLE_COMPLEX },
	{ .name = "atomic_ints", .kind = ATOMIC, .len = 18, .datatype = FI_INT32 },
	{ .name = "atomic_doubles", .kind = ATOMIC, .len = 256, .datatype = FI_DOUBLE },
	{ .name = "atomic_doubles_delivered", .kind = ATOMIC, .len = 256, .datatype = FI_DOUBLE, .flags = DELIVERED },
	{ .name = "fetch_int16", .kind = FETCH, .len = 1, .datatype = FI_INT16 },
	{ .name = "fetch_floats", .kind = FETCH, .len = 9, .datatype = FI_FLOAT },
	{ .name = "fetch_complexes", .kind = FETCH, .len = 128, .datatype = FI_FLOAT_COMPLEX },
	{ .name = "fetch_doubles", .kind = FETCH, .len = 512, .datatype = FI_DOUBLE },
	{ .name = "swap_float", .kind = SWAP, .len = 1, .datatype = FI_FLOAT },
	{ .name = "fence", .kind = WRITE, .len = 8, .flags = FI_FENCE, .enters = 2 },
	{ .name = "fence_read", .kind = READ, .len = 8, .flags = FI_FENCE, .enters = 2 },
	{ .name = "atomic_arrays",
	  .kind = ATOMIC,
	  .len = 2,
	  .datatype = FI_UINT64,
	  .arrays = 2,
	  .enters = 2,
	  .target = 1 },
	{ .name = "fetch_arrays",
	  .kind = FETCH,
	  .len = 2,
	  .datatype = FI_UINT64,
	  .arrays = 2,
	  .enters = 2,
	  .target = 1 },
	{ .name = "atomic_long_double",
	  .kind = ATOMIC,
	  .len = 1,
	  .datatype = FI_LONG_DOUBLE,
	  .enters = 2,
	  .target = 1 },
	{ .name = "fetch_long_double", .kind = FETCH, .len = 1, .datatype = FI_LONG_DOUBLE, .enters = 2, .target = 1 },
	{ .name = "swap_doubles", .kind = SWAP, .len = 256, .datatype = FI_DOUBLE },
};

struct pair {
	struct node n;
	struct fid_mr *mr;
	_Alignas(16) uint64_t mem[LEN / 8];
	uint64_t here[LEN / 8], result[LEN / 8], compare[LEN / 8];
	uint64_t data; /* completions with data that rank 1 has had */
};

static ssize_t post(struct pair *p, const struct work *w)
{
	struct node *n = &p->n;
	fi_addr_t peer = n->peer[1];
	struct iovec iov = { p->here, w->len };
	size_t count = w->len ? w->len : 1;
	enum fi_datatype type = w->len ? w->datatype : FI_UINT64;
	size_t arrays = w->arrays ? w->arrays : 1;
	struct fi_ioc ioc[2] = { { p->here, count }, { p->here + 1000, count } };
	struct fi_ioc result[2] = { { p->result, count }, { p->result + 1000, count } };
	struct fi_ioc compare = { p->compare, count };
	struct fi_rma_iov at = { 0, w->len, KEY };
	struct fi_rma_ioc place[2] = { { 0, count, KEY }, { 8000, count, KEY } };
	struct fi_msg_rma rma = { &iov, NULL, 1, peer, &at, 1, p->here, 77 };
	struct fi_msg_atomic atomic = { ioc, NULL, arrays, peer, place, arrays, type, FI_SUM, p->here, 0 };

	switch (w->kind) {
	case WRITE:
		return fi_writemsg(n->ep, &rma, w->flags);
	case WRITE_DATA:
		return fi_writemsg(n->ep, &rma, w->flags | FI_REMOTE_CQ_DATA);
	case WRITE_INJECT:
		return fi_inject_write(n->ep, p->here, w->len, peer, 0, KEY);
	case READ_BEHIND:
		while (fi_inject_write(n->ep, p->here, 8, peer, LEN - 8, KEY) == -FI_EAGAIN)
			progress(n);
		iov.iov_base = p->result;
		return fi_readmsg(n->ep, &rma, w->flags);
	case WRITE_BEHIND:
		while (fi_inject_write(n->ep, p->here, 8, peer, LEN - 8, KEY) == -FI_EAGAIN)
			progress(n);
		return fi_writemsg(n->ep, &rma, w->flags);
	case READ:
		return fi_readmsg(n->ep, &rma, w->flags);
	case ATOMIC:
		return fi_atomicmsg(n->ep, &atomic, w->flags);
	case ATOMIC_INJECT:
		return fi_inject_atomic(n->ep, p->here, count, peer, 0, KEY, type, FI_SUM);
	case FETCH:
		return fi_fetch_atomicmsg(n->ep, &atomic, result, NULL, arrays, w->flags);
	case SWAP:
		atomic.op = FI_CSWAP;
		return fi_compare_atomicmsg(n->ep, &atomic, &compare, NULL, 1, result, NULL, 1, w->flags);
	}
	return -FI_EINVAL;
}

/* The flags of the completion. */
static uint64_t kind_of(const struct work *w)
{
	switch (w->kind) {
	case ATOMIC:
		return FI_ATOMIC | FI_WRITE;
	case FETCH:
	case SWAP:
		return FI_ATOMIC | FI_READ;
	case READ:
	case READ_BEHIND:
		return FI_RMA | FI_READ;
	default:
		return FI_RMA | FI_WRITE;
	}
}

static bool injected(const struct work *w)
{
	return w->kind == WRITE_INJECT || w->kind == ATOMIC_INJECT;
}

/* One operation, until it has completed. */
static void one(struct pair *p, const struct work *w, struct fid_cntr *writes)
{
	struct node *n = &p->n;
	uint64_t before = writes ? fi_cntr_read(writes) : 0;
	struct fi_cq_tagged_entry e;
	ssize_t rc;

	p->here[0]++;
	while ((rc = post(p, w)) == -FI_EAGAIN)
		progress(n);
	EXPECTF(!rc, "%zd", rc);
	if (!injected(w)) {
		CHECK(wait_for(n, n->txcq, &e, 1000) == 1);
		EXPECTF(e.op_context == p->here && e.flags == kind_of(w), "flags %#llx", (unsigned long long)e.flags);
	}
	while (writes && fi_cntr_read(writes) == before)
		progress(n);
}

/* What has entered the runtime in this process. */
static uint64_t entered(struct node *n)
{
	return node_counter(n, "progress_arrivals");
}

/* How often operations of this process have entered the runtime. */
static uint64_t entries(struct node *n)
{
	return value(open_stats(&n->domain->fid), &n->domain->fid, "runtime_entries");
}

/* Compares what the rounds have cost this process. */
static void check(const struct work *w, uint64_t arrivals, uint64_t calls)
{
	/* The runtime is entered now and then for its timers, which no call counts, and takes in what is there at that
	 * moment. Posts that find no room for long enter it, and no arrival counts them. Each array has an answer,
	 * which enters it alone or with others. */
	const uint64_t more = ROUNDS / 20, again = ROUNDS / 4 + ROUNDS * w->arrays;
	uint64_t want = ROUNDS * (test_rank ? w->target : w->enters);

	if (!w->enters)
		EXPECTF(arrivals <= more || calls <= more, "%llu arrivals entered the runtime, by %llu calls",
			(unsigned long long)arrivals, (unsigned long long)calls);
	else
		EXPECTF(calls + more >= want && calls <= want + again, "%llu entries into the runtime",
			(unsigned long long)calls);
}

static void target(struct pair *p, const struct work *w, int count)
{
	struct fi_cq_tagged_entry e;
	bool over = false;

	while (!over) { /* until rank 0's message */
		int rc = wait_for(&p->n, p->n.rxcq, &e, 0);

		CHECK(rc >= 0);
		if (rc && e.flags & FI_REMOTE_CQ_DATA)
			EXPECTF(e.data == 77, "data %llu", (unsigned long long)e.data);
		if (rc && e.flags & FI_REMOTE_CQ_DATA)
			p->data++;
		else if (rc)
			over = true;
	}
	if (w->kind == WRITE_DATA)
		EXPECTF(p->data == (uint64_t)count, "%llu of %d with data", (unsigned long long)p->data, count);
	p->data = 0;
}

static void run(struct pair *p, const struct work *w, int count, struct fid_cntr *writes)
{
	struct node *n = &p->n;

	if (test_rank == 1) {
		static char byte;

		while (fi_trecv(n->ep, &byte, 1, NULL, FI_ADDR_UNSPEC, 5, 0, NULL) == -FI_EAGAIN)
			progress(n);
		barrier(n);
		target(p, w, count);
	} else {
		barrier(n);
		for (int i = 0; i < count; i++)
			one(p, w, writes);
		while (fi_tinject(n->ep, "x", 1, n->peer[1], 5) == -FI_EAGAIN)
			progress(n);
	}
	barrier(n);
}

static void test_work(long arg)
{
	const struct work *w = &works[arg];
	struct node_opts o = w->o;
	struct fid_cntr *writes = NULL;
	static struct pair pair;
	struct pair *p = &pair;
	uint64_t was, calls;

	if (!test_is_weft())
		SKIP("counters of weft");
	if (w->enters)
		NEED_WAY(WAY_MEMORY, "operations that one entry each posts and serves");
	o.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
	o.disabled = w->o.counters;
	o.counters = false;
	node_open(&p->n, &o);
	if (w->o.counters) {
		struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };

		OK(fi_cntr_open(p->n.domain, &attr, &writes, NULL));
		OK(fi_ep_bind(p->n.ep, &writes->fid, FI_WRITE));
		OK(fi_enable(p->n.ep));
		p->n.o.disabled = false;
	}
	node_connect(&p->n);
	if (test_rank == 1)
		OK(fi_mr_reg(p->n.domain, p->mem, LEN, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &p->mr, NULL));
	barrier(&p->n);
	run(p, w, WARM, writes);
	was = entered(&p->n);
	calls = entries(&p->n);
	run(p, w, ROUNDS, writes);
	was = entered(&p->n) - was;
	calls = entries(&p->n) - calls;
	check(w, was, calls);
	if (test_rank == 1 && w->len && w->kind <= WRITE_INJECT)
		EXPECTF(p->mem[0] == WARM + ROUNDS, "%llu", (unsigned long long)p->mem[0]);
	barrier(&p->n);
	if (p->mr)
		OK(fi_close(&p->mr->fid));
	if (writes) {
		OK(fi_close(&p->n.ep->fid));
		OK(fi_close(&writes->fid));
		p->n.ep = NULL;
	}
	node_close(&p->n);
}

int main(int argc, char **argv)
{
	struct test tests[ARRAY_LEN(works)];

	for (size_t i = 0; i < ARRAY_LEN(works); i++)
		tests[i] = (struct test){ .name = works[i].name, .run = test_work, .arg = (long)i, .procs = 2 };
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
