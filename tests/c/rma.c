/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads, writes and atomics through the plain calls: rank 0 works on the memory of rank 1. */
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "common.h"

#ifndef FI_MR_SINGLE_USE
#define FI_MR_SINGLE_USE (1ULL << 41) /* not in headers of before libfabric 2 */
#endif
#define LEN ((size_t)1 << 20)
#define KEY 0x77
#define ENABLED_LATER (-1) /* a region's counter is bound before the region is enabled */

struct rma {
	struct node n;
	struct fid_mr *mr;     /* rank 1's memory */
	struct fid_cntr *cntr; /* of remote writes, rank 1 */
	char *mem;	       /* LEN bytes, the target or the local side */
};

static void open_rma_with(struct rma *r, uint64_t access, int mr_mode)
{
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RMA_EVENT, .mr_mode = mr_mode };
	struct fi_info *info = node_info(&o);

	NEED(info != NULL, "one-sided operations");
	fi_freeinfo(info);
	memset(r, 0, sizeof(*r));
	node_open(&r->n, &o);
	node_connect(&r->n);
	r->mem = guard_alloc(LEN);
	if (test_rank == 1)
		OK(fi_mr_reg(r->n.domain, r->mem, LEN, access, 0, KEY, 0, &r->mr, NULL));
	barrier(&r->n);
}

static void open_rma(struct rma *r, uint64_t access)
{
	open_rma_with(r, access, 0);
}

static void close_rma(struct rma *r)
{
	barrier(&r->n);
	if (r->mr)
		OK(fi_close(&r->mr->fid));
	node_close(&r->n);
	guard_free(r->mem, LEN);
}

/* Posts until there is room. */
#define POST(r, call) \
	do { \
		ssize_t rc_; \
		while ((rc_ = (call)) == -FI_EAGAIN) \
			progress(&(r)->n); \
		CHECKF(rc_ == 0, "%s: %zd", #call, rc_); \
	} while (0)

static void done(struct rma *r, uint64_t flags)
{
	struct fi_cq_tagged_entry e;

	wait_ok(&r->n, r->n.txcq, &e);
	CHECK(e.op_context == r);
	CHECK((e.flags & flags) == flags);
}

static const size_t lengths[] = { 0, 1, 8, 72, 73, 2047, 2048, 8192, 8193, 65536, LEN };

/* Every length there and back, with CQ data at the target. */
static void test_write_read(long arg)
{
	struct rma r;

	(void)arg;
	open_rma(&r, FI_REMOTE_WRITE | FI_REMOTE_READ);
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		size_t len = lengths[i];

		if (test_rank == 0) {
			fill(r.mem, len, i);
			POST(&r, fi_write(r.n.ep, r.mem, len, NULL, r.n.peer[1], LEN - len, KEY, &r));
			done(&r, FI_RMA | FI_WRITE);
			memset(r.mem, 0x55, len);
			POST(&r, fi_read(r.n.ep, r.mem, len, NULL, r.n.peer[1], LEN - len, KEY, &r));
			done(&r, FI_RMA | FI_READ);
			verify(r.mem, len, i);
			POST(&r, fi_writedata(r.n.ep, r.mem, len, NULL, 0xABCD0000 + i, r.n.peer[1], 0, KEY, &r));
			done(&r, FI_RMA | FI_WRITE);
		} else {
			struct fi_cq_tagged_entry e;

			wait_ok(&r.n, r.n.rxcq, &e);
			CHECK(e.flags & FI_REMOTE_CQ_DATA);
			CHECK(e.data == 0xABCD0000 + i);
			verify(r.mem, len, i);
		}
		barrier(&r.n);
	}
	close_rma(&r);
}

/* The target refuses what the region does not allow and stays as it is. */
static void test_refused(long arg)
{
	struct rma r;

	(void)arg;
	open_rma(&r, FI_REMOTE_READ);
	if (test_rank == 1)
		fill(r.mem, LEN, 3);
	barrier(&r.n);
	if (test_rank == 0) {
		static const struct {
			uint64_t addr, key;
			size_t len;
			int want;
		} bad[] = {
			{ 0, KEY, 8, FI_EACCES },
			{ 0, KEY, 65536, FI_EACCES },
			{ 0, KEY + 1, 8, FI_ENOKEY },
			{ LEN - 7, KEY, 8, FI_EACCES },
		};

		memset(r.mem, 0, LEN);
		for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
			struct fi_cq_tagged_entry e;

			POST(&r, fi_write(r.n.ep, r.mem, bad[i].len, NULL, r.n.peer[1], bad[i].addr, bad[i].key, &r));
			CHECK_RC(wait_for(&r.n, r.n.txcq, &e, 20000), -bad[i].want);
			CHECK(r.n.err.op_context == &r);
		}
	}
	barrier(&r.n);
	if (test_rank == 1)
		verify(r.mem, LEN, 3);
	close_rma(&r);
}

/* The CQ data of a write of several elements comes only if none of them is refused, whichever that would be. */
static void test_refused_data(long len)
{
	struct fi_cq_tagged_entry e;
	struct rma r;

	open_rma(&r, FI_REMOTE_WRITE);
	for (uint64_t bad = 0; test_rank == 0 && bad <= 3; bad++) {
		struct iovec iov = { r.mem, 3 * (size_t)len };
		struct fi_rma_iov there[3];
		struct fi_msg_rma msg = {
			.msg_iov = &iov,
			.iov_count = 1,
			.addr = r.n.peer[1],
			.rma_iov = there,
			.rma_iov_count = 3,
			.context = &r,
			.data = 0x1000 + bad,
		};

		for (uint64_t k = 0; k < 3; k++)
			there[k] = (struct fi_rma_iov){ 2 * k * (uint64_t)len, (size_t)len, k == bad ? KEY + 1 : KEY };
		POST(&r, fi_writemsg(r.n.ep, &msg, FI_REMOTE_CQ_DATA | FI_COMPLETION));
		if (bad == 3)
			done(&r, FI_RMA | FI_WRITE);
		else
			CHECK_RC(wait_for(&r.n, r.n.txcq, &e, 20000), -FI_ENOKEY);
	}
	if (test_rank == 1) {
		wait_ok(&r.n, r.n.rxcq, &e);
		CHECKF(e.data == 0x1003, "data %#llx of a write that is refused", (unsigned long long)e.data);
		CHECK(e.len == 3 * (size_t)len);
	}
	close_rma(&r);
}

/* A vector on both sides in one message. */
static void test_vectors(long arg)
{
	struct rma r;

	(void)arg;
	open_rma(&r, FI_REMOTE_WRITE | FI_REMOTE_READ);
	if (test_rank == 0) {
		struct iovec iov[2] = { { r.mem, 10000 }, { r.mem + 20000, 5000 } };
		struct fi_rma_iov there[3] = {
			{ 100, 1, KEY },
			{ 40000, 9999, KEY },
			{ 70000, 5000, KEY },
		};
		struct fi_msg_rma msg = {
			.msg_iov = iov,
			.iov_count = 2,
			.addr = r.n.peer[1],
			.rma_iov = there,
			.rma_iov_count = 3,
			.context = &r,
		};

		fill(r.mem, 25000, 9);
		POST(&r, fi_writemsg(r.n.ep, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION));
		done(&r, FI_RMA | FI_WRITE);
		memset(r.mem, 0, 10000);
		memset(r.mem + 20000, 0, 5000);
		POST(&r, fi_readmsg(r.n.ep, &msg, FI_COMPLETION));
		done(&r, FI_RMA | FI_READ);
		verify(r.mem, 25000, 9);
	}
	close_rma(&r);
}

/* Fetching, comparing and plain atomics on one word lose nothing. */
static void test_atomics(long rounds)
{
	struct rma r;
	uint64_t one = 1, old = 0, seen = 0;

	open_rma(&r, FI_REMOTE_WRITE | FI_REMOTE_READ);
	if (test_rank == 1)
		memset(r.mem, 0, 64);
	barrier(&r.n);
	if (test_rank == 0) {
		for (long i = 0; i < rounds; i++) {
			POST(&r, fi_fetch_atomic(r.n.ep, &one, 1, NULL, &old, NULL, r.n.peer[1], 8, KEY, FI_UINT64,
						 FI_SUM, &r));
			done(&r, FI_ATOMIC);
			CHECKF(old == seen++, "fetched %lu, expected %lu", (unsigned long)old, (unsigned long)seen - 1);
		}
		uint64_t want = (uint64_t)rounds, swap = 4711;
		POST(&r, fi_compare_atomic(r.n.ep, &swap, 1, NULL, &want, NULL, &old, NULL, r.n.peer[1], 8, KEY,
					   FI_UINT64, FI_CSWAP, &r));
		done(&r, FI_ATOMIC);
		CHECK(old == want);
		long double third = 1.0L / 3.0L;
		POST(&r, fi_atomic(r.n.ep, &third, 1, NULL, r.n.peer[1], 16, KEY, FI_LONG_DOUBLE, FI_ATOMIC_WRITE, &r));
		done(&r, FI_ATOMIC);
	}
	barrier(&r.n);
	if (test_rank == 1) {
		long double third;

		memcpy(&old, r.mem + 8, sizeof(old));
		CHECK(old == 4711);
		memcpy(&third, r.mem + 16, sizeof(third));
		CHECK(third == 1.0L / 3.0L);
	}
	close_rma(&r);
}

/* The target does nothing but wait for its region's counter, which is bound to no endpoint. */
static void test_region_counter(long wait)
{
	bool enabled = wait != ENABLED_LATER;
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP,
				     .wait_obj = enabled ? (enum fi_wait_obj)wait : FI_WAIT_NONE };
	struct rma r;

	open_rma_with(&r, FI_REMOTE_WRITE, enabled ? 0 : FI_MR_ENDPOINT);
	if (!(r.n.info->domain_attr->mr_mode & FI_MR_ENDPOINT) && !test_is_weft())
		enabled = true; /* weft takes both calls in any case */
	if (test_rank == 1) {
		OK(fi_cntr_open(r.n.domain, &attr, &r.cntr, NULL));
		CHECK_RC(fi_mr_bind(r.mr, &r.cntr->fid, FI_REMOTE_READ), -FI_EBADFLAGS);
		OK(fi_mr_bind(r.mr, &r.cntr->fid, FI_REMOTE_WRITE));
		if (!enabled) {
			OK(fi_mr_bind(r.mr, &r.n.ep->fid, 0));
			OK(fi_mr_enable(r.mr));
		}
	}
	barrier(&r.n);
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		if (test_rank == 0) {
			fill(r.mem, lengths[i], i);
			POST(&r, fi_write(r.n.ep, r.mem, lengths[i], NULL, r.n.peer[1], 0, KEY, &r));
			done(&r, FI_RMA | FI_WRITE);
		} else {
			CHECKF(!fi_cntr_wait(r.cntr, i + 1, 20000), "write of %zu bytes", lengths[i]);
			verify(r.mem, lengths[i], i);
		}
		barrier(&r.n);
	}
	if (test_rank == 1) {
		CHECK(fi_cntr_read(r.cntr) == ARRAY_LEN(lengths) && fi_cntr_readerr(r.cntr) == 0);
		CHECK_RC(fi_close(&r.cntr->fid), -FI_EBUSY);
		OK(fi_close(&r.mr->fid));
		OK(fi_close(&r.cntr->fid));
		r.mr = NULL;
	}
	close_rma(&r);
}

/* Writes len bytes each of regions a and b of rank 1 as one operation; add_two adds to a word of each. */
static void write_two(struct rma *r, uint64_t a, uint64_t b, size_t len)
{
	struct iovec iov = { r->mem, 2 * len };
	struct fi_rma_iov there[2] = { { 0, len, a }, { 0, len, b } };
	struct fi_msg_rma msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = r->n.peer[1],
		.rma_iov = there,
		.rma_iov_count = 2,
		.context = r,
	};

	POST(r, fi_writemsg(r->n.ep, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION));
}

static void add_two(struct rma *r, uint64_t a, uint64_t b)
{
	uint64_t ones[2] = { 1, 1 };
	struct fi_ioc ioc = { ones, 2 };
	struct fi_rma_ioc there[2] = { { 0, 1, a }, { 0, 1, b } };
	struct fi_msg_atomic msg = {
		.msg_iov = &ioc,
		.iov_count = 1,
		.addr = r->n.peer[1],
		.rma_iov = there,
		.rma_iov_count = 2,
		.datatype = FI_UINT64,
		.op = FI_SUM,
		.context = r,
	};

	POST(r, fi_atomicmsg(r->n.ep, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION));
	done(r, FI_ATOMIC | FI_WRITE);
}

/* Each element of an operation counts for its own region, and ends a key that is for one operation. */
static void test_region_elements(long arg)
{
	size_t len = (size_t)arg;
	struct fi_cq_tagged_entry e;
	struct rma r;

	open_rma(&r, FI_REMOTE_WRITE);
	if (test_rank == 0) {
		barrier(&r.n);
		write_two(&r, KEY + 1, KEY + 2, len);
		done(&r, FI_RMA | FI_WRITE);
		write_two(&r, KEY + 1, KEY + 1, len);
		done(&r, FI_RMA | FI_WRITE);
		add_two(&r, KEY + 1, KEY + 2);
		for (int k = 0; k < 2; k++) {
			write_two(&r, KEY + 3, k ? KEY + 3 : KEY + 2, len);
			CHECK_RC(wait_for(&r.n, r.n.txcq, &e, 20000), k ? -FI_ENOKEY : 1);
		}
		write_two(&r, KEY + 4, KEY + 4, len); /* both elements are one operation */
		done(&r, FI_RMA | FI_WRITE);
		write_two(&r, KEY + 4, KEY + 2, len);
		CHECK_RC(wait_for(&r.n, r.n.txcq, &e, 20000), -FI_ENOKEY);
	} else {
		struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
		struct fid_cntr *cntr[2];
		struct fid_mr *mr[4];

		for (int k = 0; k < 4; k++)
			OK(fi_mr_reg(r.n.domain, r.mem + (size_t)k % 3 * len, len, FI_REMOTE_WRITE, 0,
				     KEY + 1 + (uint64_t)k, k >= 2 ? FI_MR_SINGLE_USE : 0, &mr[k], NULL));
		for (int k = 0; k < 2; k++) {
			OK(fi_cntr_open(r.n.domain, &attr, &cntr[k], NULL));
			OK(fi_mr_bind(mr[k], &cntr[k]->fid, FI_REMOTE_WRITE));
		}
		barrier(&r.n);
		CHECKF(!fi_cntr_wait(cntr[0], 4, 20000), "%llu of 4 elements",
		       (unsigned long long)fi_cntr_read(cntr[0]));
		CHECK(!fi_cntr_wait(cntr[1], 3, 20000));
		barrier(&r.n);
		CHECK(fi_cntr_read(cntr[0]) == 4);
		for (int k = 0; k < 4; k++)
			OK(fi_close(&mr[k]->fid));
		for (int k = 0; k < 2; k++)
			OK(fi_close(&cntr[k]->fid));
	}
	if (test_rank == 0)
		barrier(&r.n);
	close_rma(&r);
}

static void test_query(long arg)
{
	struct rma r;
	struct fi_atomic_attr attr;
	size_t count;

	(void)arg;
	open_rma(&r, FI_REMOTE_WRITE);
	OK(fi_query_atomic(r.n.domain, FI_DOUBLE, FI_PROD, &attr, 0));
	CHECK(attr.size == sizeof(double) && attr.count > 0);
	CHECK_RC(fi_query_atomic(r.n.domain, FI_DOUBLE, FI_BOR, &attr, 0), -FI_EOPNOTSUPP);
	CHECK_RC(fi_query_atomic(r.n.domain, FI_DOUBLE, FI_SUM, &attr, ~0ull), -FI_EBADFLAGS);
	OK(fi_compare_atomicvalid(r.n.ep, FI_INT32, FI_MSWAP, &count));
	CHECK_RC(fi_fetch_atomicvalid(r.n.ep, FI_INT32, FI_CSWAP, &count), -FI_EOPNOTSUPP);
	close_rma(&r);
}

/* One operation of rank 0 on a region that rank 1 may close meanwhile; false: it is closed. */
static bool touch(struct node *n, uint64_t key, int kind, char *buf)
{
	static const size_t lens[] = { 8, 3000, 200000 };
	size_t len = lens[kind % 3];
	uint64_t one = 1, old;
	struct fi_cq_tagged_entry e;
	ssize_t rc;
	int got;

	do {
		if (kind < 3)
			rc = fi_write(n->ep, buf, len, NULL, n->peer[1], 0, key, buf);
		else if (kind < 6)
			rc = fi_read(n->ep, buf, len, NULL, n->peer[1], 0, key, buf);
		else
			rc = fi_fetch_atomic(n->ep, &one, 1, NULL, &old, NULL, n->peer[1], 0, key, FI_UINT64, FI_SUM,
					     buf);
		progress(n);
	} while (rc == -FI_EAGAIN);
	CHECKF(rc == 0, "post: %zd", rc);
	got = wait_for(n, n->txcq, &e, 20000);
	CHECKF(got == 1 || (got && n->err.err == FI_ENOKEY), "completion: %d, %d", got, n->err.err);
	return got == 1;
}

/* Regions are closed while a peer is at them: it gets an error, and nothing is written after. */
static void test_closed(long rounds)
{
	static char mem[200000], copy[sizeof(mem)];
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC };
	struct fid_mr *mr;
	struct node n;

	node_open(&n, &o);
	node_connect(&n);
	for (long round = 0; round < rounds; round++) {
		uint64_t key = 100 + (uint64_t)round;

		if (test_rank) {
			OK(fi_mr_reg(n.domain, mem, sizeof(mem), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, key, 0, &mr,
				     NULL));
			barrier(&n);
			for (long i = 0; i < round * 20; i++)
				progress(&n);
			OK(fi_close(&mr->fid));
			memcpy(copy, mem, sizeof(mem));
		} else {
			barrier(&n);
			for (int i = 0, failed = 0; failed < 7; i++) { /* until none of the kinds gets there */
				memset(copy, i, sizeof(copy));
				failed = touch(&n, key, i % 7, copy) ? 0 : failed + 1;
			}
		}
		barrier(&n);
		CHECK(!test_rank || !memcmp(copy, mem, sizeof(mem)));
	}
	node_close(&n);
}

static const struct test tests[] = {
	{ "write_read", test_write_read, 2, 0, 0 },
	{ "refused", test_refused, 2, 0, 0 },
	{ "refused_data", test_refused_data, 2, 0, 8 },
	{ "refused_data_bounce", test_refused_data, 2, 0, 4000 },
	{ "refused_data_large", test_refused_data, 2, 0, 150000 },
	{ "vectors", test_vectors, 2, 0, 0 },
	{ "atomics", test_atomics, 2, 0, 2000 },
	{ "region_counter", test_region_counter, 2, 0, FI_WAIT_NONE },
	{ "region_counter_first", test_region_counter, 2, 0, ENABLED_LATER },
	{ "region_counter_sleeps", test_region_counter, 2, 0, FI_WAIT_UNSPEC },
	{ "region_elements", test_region_elements, 2, 0, 8 },
	{ "region_elements_bounce", test_region_elements, 2, 0, 4000 },
	{ "region_elements_long", test_region_elements, 2, 0, 300000 },
	{ "closed", test_closed, 2, 60, 40 },
	{ "query", test_query, 2, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
