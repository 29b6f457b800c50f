/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads, writes and atomic operations on peers' memory by endpoints of FI_PROTO_CXI: regions belong to an endpoint and
 * have keys that the application chooses. Without a NIC of Slingshot, or its model (tests/clients/cxi.sh), all is
 * skipped. */
#include <rdma/fi_atomic.h>

#include "native_rma.h"

/* What is offered, field by field, as far as libfabric's provider fixes it, and what is refused. */
static void test_offer(long arg)
{
	struct fi_info *hints = node_hints(&opts), *info;
	uint64_t caps = FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

	(void)arg;
	hints->domain_attr->mr_mode |= FI_MR_LOCAL | FI_MR_VIRT_ADDR;
	hints->tx_attr->msg_order = FI_ORDER_RMA_WAW | FI_ORDER_RMA_RAR | FI_ORDER_SAS | FI_ORDER_WAW;
	info = node_offered(hints);
	if (!info)
		SKIP("no device here reads and writes memory with FI_PROTO_CXI");
	CHECK((info->caps & caps) == caps && !(info->caps & (FI_RMA_EVENT | FI_FENCE)));
	CHECK(info->domain_attr->mr_mode == (FI_MR_ENDPOINT | FI_MR_ALLOCATED));
	CHECK(info->domain_attr->mr_key_size == 4 && info->domain_attr->mr_iov_limit == 1);
	CHECK(info->domain_attr->mr_cnt == 100 && info->domain_attr->cq_data_size == 8);
	CHECK(info->domain_attr->cq_cnt == 32 && info->domain_attr->ep_cnt == 128 && info->domain_attr->cntr_cnt == 16);
	CHECK(info->tx_attr->rma_iov_limit == 1 && info->tx_attr->inject_size == 192);
	CHECK(info->ep_attr->max_msg_size == 4294967295u && info->ep_attr->max_order_waw_size == SIZE_MAX);
	CHECK(info->ep_attr->max_order_raw_size == 0 && info->ep_attr->max_order_war_size == 0);
	fi_freeinfo(info);
	hints = node_hints(&opts);
	hints->caps |= FI_RMA_EVENT | FI_FENCE;
	hints->domain_attr->mr_mode |= FI_MR_PROV_KEY;
	info = node_offered(hints);
	CHECK(info && info->next && !info->next->next && (info->caps & FI_RMA_EVENT) && (info->caps & FI_FENCE));
	CHECK(info->domain_attr->mr_mode == (FI_MR_ENDPOINT | FI_MR_ALLOCATED | FI_MR_PROV_KEY));
	CHECK(info->domain_attr->mr_key_size == 8 && info->next->domain_attr->mr_key_size == 4);
	CHECK(info->next->domain_attr->mr_mode == (FI_MR_ENDPOINT | FI_MR_ALLOCATED));
	fi_freeinfo(info);
	for (int what = 0; what < 4; what++) {
		hints = node_hints(&opts);
		switch (what) {
		case 0:
			hints->domain_attr->mr_mode = FI_MR_ALLOCATED;
			break;
		case 1:
			hints->domain_attr->mr_key_size = 8;
			break;
		case 2:
			hints->tx_attr->rma_iov_limit = 2;
			break;
		case 3:
			hints->tx_attr->msg_order = FI_ORDER_RAW;
			break;
		}
		CHECKF(!node_offered(hints), "hint %d is met", what);
	}
}

/* Memory is written in every way and read back; nothing beside it changes, and data comes with its write. */
static void test_transfers(long order)
{
	static const size_t sizes[] = { 0, 1, 8, 192, 193, 4096, 70001, LARGE };
	struct node_opts o = opts;
	struct fi_cq_tagged_entry e;

	o.order = (uint64_t)order;
	open_node(o);
	node_connect(&n);
	for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
		struct fid_mr *mr = test_rank ? expose(memory, sizeof(memory), ALL, keys[k]) : NULL;

		for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
			size_t len = sizes[s];
			uint64_t off = 3 + s;

			for (enum call w = 0; w < WAYS; w++) {
				uint64_t seed = keys[k] + 10 * len + w;

				if (injects(w) && len > 192)
					continue;
				if (test_rank)
					memset(memory, 0x77, sizeof(memory));
				barrier(&n);
				if (test_rank == 0) {
					fill(local, len, seed);
					do_write(w, len, off, keys[k]);
					do_read((int)w % 3, len, off, keys[k]); /* behind an injected write, too */
					if (completes(w) || order)
						verify(back, len, seed);
					if (has_data(w))
						barrier(&n);
					barrier(&n);
					continue;
				}
				if (has_data(w)) {
					wait_ok(&n, n.rxcq, &e);
					CHECK(e.flags == (FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA));
					CHECK(e.data == ~keys[k] && e.len == len && e.op_context == &n);
					barrier(&n);
				}
				barrier(&n);
				if (completes(w) || has_data(w))
					verify(memory + off, len, seed);
				CHECK(memory[off - 1] == 0x77 && memory[off + len] == 0x77);
			}
		}
		if (mr)
			OK(fi_close(&mr->fid));
	}
	barrier(&n);
	node_close(&n);
}

/* Bounds and rights hold, a closed key is one no more, and it may be another region's afterwards. */
static void test_rights(long arg)
{
	(void)arg;
	open_node(opts);
	node_connect(&n);
	for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
		static unsigned char first[4096], second[4096];
		struct fid_mr *mr = NULL;

		if (test_rank) {
			memset(first, 1, sizeof(first));
			memset(second, 2, sizeof(second));
			mr = expose(first, sizeof(first), FI_REMOTE_READ, keys[k]);
		}
		barrier(&n);
		if (test_rank == 0) {
			refused(false, 8, 0, keys[k]);
			refused(true, 8, 4089, keys[k]);
			refused(true, 300, 1ull << 40, keys[k]);
			do_read(0, 4096, 0, keys[k]);
			CHECK(back[0] == 1 && back[4095] == 1);
		}
		barrier(&n);
		if (test_rank) {
			OK(fi_close(&mr->fid));
			mr = NULL;
		}
		barrier(&n);
		if (test_rank == 0)
			refused(true, 8, 0, keys[k]);
		barrier(&n);
		if (test_rank)
			mr = expose(second, sizeof(second), FI_REMOTE_WRITE, keys[k]);
		barrier(&n);
		if (test_rank == 0) {
			refused(true, 8, 0, keys[k]);
			refused(false, 4096, 1, keys[k]);
			memset(local, 9, 8);
			do_write(WRITE, 8, 4088, keys[k]);
		}
		barrier(&n);
		if (test_rank) {
			CHECK(first[0] == 1 && first[4095] == 1 && second[4087] == 2 && second[4095] == 9);
			OK(fi_close(&mr->fid));
		}
	}
	barrier(&n);
	node_close(&n);
}

/* What no region can be, and what no call's argument is. */
static void test_bad(long arg)
{
	struct iovec iov[2] = { { local, 8 }, { local + 8, 8 } };
	struct fi_rma_iov remote[2] = { { 0, 8, 5 }, { 8, 8, 5 } };
	struct fi_msg_rma m = {
		.msg_iov = iov, .iov_count = 1, .rma_iov = remote, .rma_iov_count = 2, .context = local
	};
	struct fi_mr_attr attr = { .mr_iov = iov, .iov_count = 2, .access = ALL, .requested_key = 70 };
	struct fi_cntr_attr counts = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_mr *mr, *other;
	struct fid_cntr *cntr;

	(void)arg;
	open_node(opts);
	node_connect(&n);
	m.addr = n.peer[0];
	EXPECT_RC(fi_mr_reg(n.domain, local, 8, ALL, 0, 1ull << 32, 0, &mr, NULL), -FI_EKEYREJECTED);
	EXPECT_RC(fi_mr_reg(n.domain, local, 8, ALL, 0, FI_KEY_NOTAVAIL, 0, &mr, NULL), -FI_EKEYREJECTED);
	EXPECT_RC(fi_mr_regattr(n.domain, &attr, 0, &mr), -FI_ENOSYS);
	OK(fi_mr_reg(n.domain, local, 8, FI_SEND | FI_RECV, 0, 1ull << 40, 0, &mr, NULL)); /* its key is no one's */
	OK(fi_close(&mr->fid));
	OK(fi_mr_reg(n.domain, local, 8, ALL, 0, 70, 0, &mr, NULL));
	EXPECT_RC(fi_mr_reg(n.domain, local, 8, ALL, 0, 70, 0, &other, NULL), -FI_ENOKEY);
	EXPECT_RC(fi_mr_enable(mr), -FI_EINVAL);
	OK(fi_cntr_open(n.domain, &counts, &cntr, NULL));
	EXPECT_RC(fi_ep_bind(n.ep, &cntr->fid, FI_REMOTE_READ), -FI_EOPNOTSUPP);
	EXPECT_RC(fi_ep_bind(n.ep, &cntr->fid, FI_REMOTE_WRITE), -FI_EINVAL); /* without FI_RMA_EVENT */
	OK(fi_mr_reg(n.domain, local, 8, ALL, 0, 71, 0, &other, NULL));
	OK(fi_mr_bind(other, &cntr->fid, FI_REMOTE_WRITE));
	OK(fi_mr_bind(other, &n.ep->fid, 0));
	EXPECT_RC(fi_mr_enable(other), -FI_EINVAL); /* the endpoint is without FI_RMA_EVENT */
	OK(fi_close(&other->fid));
	OK(fi_mr_bind(mr, &n.ep->fid, 0));
	EXPECT_RC(fi_mr_bind(mr, &n.ep->fid, 0), -FI_EINVAL);
	OK(fi_mr_enable(mr));
	OK(fi_mr_enable(mr));
	EXPECT_RC(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), -FI_EOPBADSTATE);
	OK(fi_close(&cntr->fid));
	EXPECT_RC(fi_close(&n.ep->fid), -FI_EBUSY);
	OK(fi_close(&mr->fid));

	EXPECT_RC(fi_writemsg(n.ep, &m, 0), -FI_EINVAL);
	m.rma_iov_count = 1;
	m.iov_count = 2;
	EXPECT_RC(fi_readmsg(n.ep, &m, 0), -FI_EINVAL);
	m.iov_count = 1;
	EXPECT_RC(fi_writemsg(n.ep, &m, FI_FENCE), -FI_EINVAL); /* without the capability */
	EXPECT_RC(fi_readmsg(n.ep, &m, FI_REMOTE_CQ_DATA), -FI_EBADFLAGS);
	remote[0].len = 7;
	EXPECT_RC(fi_writemsg(n.ep, &m, 0), -FI_EINVAL);
	EXPECT_RC(fi_write(n.ep, local, 8, NULL, n.peer[0], 0, 1ull << 32, local), -FI_EKEYREJECTED);
	EXPECT_RC(fi_write(n.ep, local, 8, NULL, 99, 0, 5, local), -FI_EINVAL);
	EXPECT_RC(fi_write(n.ep, NULL, 8, NULL, n.peer[0], 0, 5, local), -FI_EINVAL);
	EXPECT_RC(fi_inject_write(n.ep, local, 193, n.peer[0], 0, 5), -FI_EMSGSIZE);
	wait_none(&n, n.txcq, 10);
	node_close(&n);
}

/* Operations, failures and bytes are counted apart for reads and writes; a region without bytes is one. */
static void test_counters(long arg)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct node_opts o = opts;
	struct fid_cntr *reads, *writes;
	struct fid_mr *mr;

	(void)arg;
	o.disabled = true;
	open_node(o);
	OK(fi_cntr_open(n.domain, &attr, &reads, NULL));
	OK(fi_cntr_open(n.domain, &attr, &writes, NULL));
	OK(fi_ep_bind(n.ep, &reads->fid, FI_READ));
	OK(fi_ep_bind(n.ep, &writes->fid, FI_WRITE));
	OK(fi_enable(n.ep));
	n.peer[1] = node_insert(&n, &n);
	mr = expose(NULL, 0, ALL, 150);
	do_write(WRITE, 0, 0, 150);
	do_read(0, 0, 0, 150);
	refused(false, 1, 0, 150);
	OK(fi_close(&mr->fid));
	mr = expose(memory, sizeof(memory), ALL, 15);
	for (int k = 0; k < 20; k++)
		do_write(k % 2 ? INJECT : WRITE, 100, 0, 15);
	do_read(0, 1000, 0, 15);
	refused(true, 8, 0, 16);
	OK(fi_cntr_wait(writes, 21, 60000));
	CHECK(fi_cntr_readerr(writes) == 1);
	CHECK(fi_cntr_read(reads) == 2 && fi_cntr_readerr(reads) == 1);
	if (test_is_weft()) {
		CHECK(node_counter(&n, "matched_writes") == 21 && node_counter(&n, "matched_write_bytes") == 2000);
		CHECK(node_counter(&n, "matched_reads") == 2 && node_counter(&n, "matched_read_bytes") == 1000);
		CHECK(node_counter(&n, "matched_sent") == 0);
	}
	OK(fi_close(&mr->fid));
	n.txcntr = reads; /* closed with the node */
	n.rxcntr = writes;
	node_close(&n);
}

/* An atomic operation that ends with these flags. */
static void ended(ssize_t rc, uint64_t flags)
{
	struct fi_cq_tagged_entry e;

	CHECK_RC(rc, 0);
	wait_ok(&n, n.txcq, &e);
	CHECK(e.op_context == back && e.flags == flags);
}

/* Elements of peers change, are fetched and compared; what there is not is not valid, and rights hold. */
static void test_atomics(long order)
{
	struct node_opts o = opts;
	uint64_t *there = (uint64_t *)memory, was = 0, operand = 5, compare = 12;
	double real = 1.5;
	struct fi_atomic_attr attr;
	size_t count = 0;
	fi_addr_t to;

	o.order = (uint64_t)order;
	open_node(o);
	to = node_insert(&n, &n);
	OK(fi_atomicvalid(n.ep, FI_UINT64, FI_SUM, &count));
	CHECK(count == 1);
	OK(fi_fetch_atomicvalid(n.ep, FI_DOUBLE, FI_ATOMIC_READ, &count));
	OK(fi_compare_atomicvalid(n.ep, FI_INT32, FI_MSWAP, &count));
	EXPECT_RC(fi_atomicvalid(n.ep, FI_UINT64, FI_PROD, &count), -FI_EOPNOTSUPP);
	EXPECT_RC(fi_atomicvalid(n.ep, FI_UINT64, FI_CSWAP, &count), -FI_EOPNOTSUPP);
	EXPECT_RC(fi_compare_atomicvalid(n.ep, FI_UINT64, FI_SUM, &count), -FI_EOPNOTSUPP);
	EXPECT_RC(fi_atomicvalid(n.ep, FI_DOUBLE, FI_BOR, &count), -FI_EOPNOTSUPP);
	OK(fi_query_atomic(n.domain, FI_FLOAT, FI_MAX, &attr, FI_FETCH_ATOMIC));
	CHECK(attr.count == 1 && attr.size == 4);
	EXPECT_RC(fi_query_atomic(n.domain, FI_LONG_DOUBLE, FI_SUM, &attr, 0), -FI_EOPNOTSUPP);
	for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
		struct fid_mr *mr = expose(memory, 4096, ALL, keys[k]);

		there[2] = 7;
		ended(fi_atomic(n.ep, &operand, 1, NULL, to, 16, keys[k], FI_UINT64, FI_SUM, back),
		      FI_ATOMIC | FI_WRITE);
		CHECK(there[2] == 12);
		ended(fi_compare_atomic(n.ep, &operand, 1, NULL, &compare, NULL, &was, NULL, to, 16, keys[k], FI_UINT64,
					FI_CSWAP, back),
		      FI_ATOMIC | FI_READ);
		CHECK(was == 12 && there[2] == 5);
		ended(fi_fetch_atomic(n.ep, NULL, 1, NULL, &was, NULL, to, 16, keys[k], FI_UINT64, FI_ATOMIC_READ,
				      back),
		      FI_ATOMIC | FI_READ);
		CHECK(was == 5);
		memcpy(&there[3], &real, 8);
		ended(fi_fetch_atomic(n.ep, &real, 1, NULL, &was, NULL, to, 24, keys[k], FI_DOUBLE, FI_SUM, back),
		      FI_ATOMIC | FI_READ);
		CHECK(!memcmp(&was, &real, 8) && *(double *)&there[3] == 3.0);
		OK(fi_inject_atomic(n.ep, &operand, 1, to, 32, keys[k], FI_UINT64, FI_ATOMIC_WRITE));
		for (int tries = 0; ((volatile uint64_t *)there)[4] != 5; tries++) {
			CHECK(tries < 1000);
			wait_none(&n, n.txcq, 1);
		}
		there[4] = 0;
		EXPECT_RC(fi_atomic(n.ep, &operand, 2, NULL, to, 16, keys[k], FI_UINT64, FI_SUM, back), -FI_EINVAL);
		EXPECT_RC(fi_atomic(n.ep, &operand, 1, NULL, to, 16, 1ull << 32, FI_UINT64, FI_SUM, back),
			  -FI_EKEYREJECTED);
		EXPECT_RC(fi_atomic(n.ep, &operand, 1, NULL, to, 16, keys[k], FI_UINT64, FI_PROD, back),
			  -FI_EOPNOTSUPP);
		OK(fi_atomic(n.ep, &operand, 1, NULL, to, 17, keys[k], FI_UINT64, FI_SUM, back)); /* out of alignment */
		wait_err(&n, n.txcq, FI_EIO);
		CHECK(n.err.flags == (FI_ATOMIC | FI_WRITE));
		OK(fi_close(&mr->fid));
		mr = expose(memory, 4096, FI_REMOTE_READ, keys[k]);
		OK(fi_atomic(n.ep, &operand, 1, NULL, to, 16, keys[k], FI_UINT64, FI_SUM, back));
		wait_err(&n, n.txcq, FI_EIO);
		CHECK(there[2] == 5);
		OK(fi_close(&mr->fid));
	}
	if (test_is_weft())
		CHECK(node_counter(&n, "matched_atomics") == 5 * ARRAY_LEN(keys) &&
		      node_counter(&n, "matched_atomic_bytes") == 40 * ARRAY_LEN(keys));
	node_close(&n);
}

/* With selective completion only what asks for it completes, but for failures. */
static void test_selective(long arg)
{
	struct node_opts o = opts;
	struct fid_mr *mr;

	(void)arg;
	o.tx_bind = FI_SELECTIVE_COMPLETION;
	open_node(o);
	n.peer[1] = node_insert(&n, &n);
	mr = expose(memory, sizeof(memory), ALL, 99);
	OK(fi_write(n.ep, local, 300, NULL, n.peer[1], 0, 99, local));
	OK(fi_inject_write(n.ep, local, 30, n.peer[1], 0, 99));
	do_write(MESSAGE, 400, 0, 99);
	wait_none(&n, n.txcq, 20);
	OK(fi_inject_write(n.ep, local, 30, n.peer[1], 0, 98));
	wait_err(&n, n.txcq, FI_EIO);
	OK(fi_close(&mr->fid));
	node_close(&n);
}

/* An endpoint is closed with transfers under way, again and again. */
static void test_close(long arg)
{
	(void)arg;
	for (int round = 0; round < 10; round++) {
		struct fid_mr *mr;

		open_node(opts);
		node_connect(&n);
		mr = expose(memory, sizeof(memory), ALL, 7);
		barrier(&n);
		for (int k = 0; k < 16; k++) {
			(void)fi_write(n.ep, local, LARGE, NULL, n.peer[!test_rank], 0, 7, local);
			(void)fi_read(n.ep, back, LARGE, NULL, n.peer[!test_rank], 0, 7, back);
		}
		if (round % 2)
			barrier(NULL);
		OK(fi_close(&mr->fid)); /* the peer's transfers end with or without an error */
		node_close(&n);
		barrier(NULL);
	}
}

/* Entries into Go to post and for progress. */
static uint64_t entries(void)
{
	return node_counter(&n, "matched_posts") + node_counter(&n, "matched_progress");
}

enum steady {
	S_WRITE,
	S_DELIVERED,
	S_INJECT,
	S_FENCED,
	S_DATA,
	S_INJECT_DATA,
	S_READ,
	S_FETCH_READ,
	/* those that count at their target */
	S_ATOMIC,
	S_INJECT_ATOMIC,
	S_FETCH,
	S_FETCH_DELIVERED,
	S_SWAP,
};

/* The target of writes with data, whose owner enters Go for each. */
static struct node owner;

static void took_data(size_t len, uint64_t key)
{
	struct fi_cq_tagged_entry e;

	wait_ok(&owner, owner.rxcq, &e);
	CHECK(e.flags == (FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA));
	CHECK(e.data == ~key && e.len == len && e.op_context == &owner);
}

/* An atomic operation that fetches the number of those before it. */
static void fetch(enum steady what, uint64_t round, uint64_t key)
{
	uint64_t one = 1, next = round + 1, was = ~0ull;
	struct fi_ioc operand = { &one, 1 }, result = { &was, 1 };
	struct fi_rma_ioc remote = { 8, 1, key };
	struct fi_msg_atomic m = { .msg_iov = &operand,
				   .iov_count = 1,
				   .addr = n.peer[1],
				   .rma_iov = &remote,
				   .rma_iov_count = 1,
				   .datatype = FI_UINT64,
				   .op = FI_SUM,
				   .context = back };
	ssize_t rc;

	switch (what) {
	case S_SWAP:
		rc = fi_compare_atomic(n.ep, &next, 1, NULL, &round, NULL, &was, NULL, n.peer[1], 8, key, FI_UINT64,
				       FI_CSWAP, back);
		break;
	case S_FETCH_DELIVERED:
		rc = fi_fetch_atomicmsg(n.ep, &m, &result, NULL, 1, FI_COMPLETION | FI_DELIVERY_COMPLETE);
		break;
	case S_FETCH:
		rc = fi_fetch_atomic(n.ep, &one, 1, NULL, &was, NULL, n.peer[1], 8, key, FI_UINT64, FI_SUM, back);
		break;
	default:
		round = *(volatile uint64_t *)(memory + 8);
		rc = fi_fetch_atomic(n.ep, NULL, 1, NULL, &was, NULL, n.peer[1], 8, key, FI_UINT64, FI_ATOMIC_READ,
				     back);
	}
	ended(rc, FI_ATOMIC | FI_READ);
	CHECKF(was == round, "%llu, not %llu", (unsigned long long)was, (unsigned long long)round);
}

/* One operation, until it has ended as far as it says so. */
static void steadily(enum steady what, size_t len, uint64_t round, uint64_t key)
{
	static const uint64_t one = 1;
	ssize_t rc;

	switch (what) {
	case S_DATA:
	case S_INJECT_DATA:
		do_write(what == S_DATA ? DATA : INJECT_DATA, len, 8, key);
		took_data(len, key);
		break;
	case S_FETCH_READ:
	case S_FETCH:
	case S_FETCH_DELIVERED:
	case S_SWAP:
		fetch(what, round, key);
		break;
	case S_READ:
		do_read(0, len, 8, key);
		break;
	case S_ATOMIC:
		ended(fi_atomic(n.ep, &one, 1, NULL, n.peer[1], 8, key, FI_UINT64, FI_SUM, back), FI_ATOMIC | FI_WRITE);
		break;
	case S_INJECT_ATOMIC:
		while ((rc = fi_inject_atomic(n.ep, &one, 1, n.peer[1], 8, key, FI_UINT64, FI_SUM)) == -FI_EAGAIN)
			progress(&n);
		CHECK_RC(rc, 0);
		break;
	default:
		do_write(what == S_INJECT      ? INJECT
			 : what == S_DELIVERED ? DELIVERED
			 : what == S_FENCED    ? FENCED
					       : WRITE,
			 len, 8, key);
	}
}

/* What was written is there, and what is there is read. */
static void verify_steady(enum steady what, size_t len, uint64_t key)
{
	fill(what == S_READ ? memory + 8 : local, len, key);
	steadily(what, len, 0, key);
	verify(what == S_READ ? back : memory + 8, len, key);
}

/* One-sided operations are posted and end without Go, once the address and the memory are known. */
static void test_steady(long arg)
{
	static const struct {
		enum steady what;
		size_t len;
	} works[] = { { S_WRITE, 8 },	      { S_WRITE, 2048 },      { S_WRITE, 100000 }, { S_DELIVERED, 8 },
		      { S_INJECT, 192 },      { S_READ, 8 },	      { S_READ, 100000 },  { S_ATOMIC, 8 },
		      { S_INJECT_ATOMIC, 8 }, { S_FENCED, 8 },	      { S_DATA, 8 },	   { S_DATA, 2048 },
		      { S_DATA, 100000 },     { S_INJECT_DATA, 192 }, { S_FETCH, 8 },	   { S_FETCH_DELIVERED, 8 },
		      { S_FETCH_READ, 8 },    { S_SWAP, 8 } };
	struct node_opts o = opts;
	static const uint64_t regions[] = { 57, 5000 };
	const char *direct = getenv("FI_WEFT_DIRECT");
	volatile uint64_t *there = (uint64_t *)(memory + 8);
	enum steady what = works[arg].what;
	bool data = what == S_DATA || what == S_INJECT_DATA;
	struct node *target = data ? &owner : &n;
	struct fid_mr *mr;

	if (direct && !strcmp(direct, "no"))
		SKIP("the data plane is called by callbacks");
	if (what == S_FENCED)
		o.caps |= FI_FENCE;
	open_node(o);
	if (data)
		node_open_on(&owner, &n, &o);
	n.peer[1] = node_insert(&n, target);
	for (size_t k = 0; k < ARRAY_LEN(regions); k++) {
		uint64_t before = 0, entered;

		*there = 0;
		mr = expose_at(target, memory, sizeof(memory), ALL, regions[k]);
		for (uint64_t round = 0; round < 1000; round++) {
			if (round == 10)
				before = entries();
			steadily(what, works[arg].len, round, regions[k]);
		}
		for (int tries = 0; what >= S_ATOMIC && *there != 1000; tries++) {
			CHECK(tries < 1000);
			wait_none(&n, n.txcq, 1);
		}
		entered = entries() - before;
		CHECK(before > 0);
		CHECKF(entered == 0, "%llu entries into Go", (unsigned long long)entered);
		CHECK_RC(fi_atomic(n.ep, local, 1, NULL, n.peer[1], 16, regions[k], FI_LONG_DOUBLE, FI_SUM, back),
			 -FI_EOPNOTSUPP);
		CHECK(entries() > before); /* that is what Go says */
		if (what == S_WRITE || what == S_READ || what == S_DATA)
			verify_steady(what, works[arg].len, regions[k]);
		OK(fi_close(&mr->fid));
	}
	if (data)
		node_close(&owner);
	node_close(&n);
}

static const struct test tests[] = {
	{ "offer", test_offer, 0, 0, 0 },
	{ "transfers", test_transfers, 2, 0, 0 },
	{ "transfers_ordered", test_transfers, 2, 0, (long)FI_ORDER_RMA_WAW },
	{ "rights", test_rights, 2, 0, 0 },
	{ "bad", test_bad, 0, 0, 0 },
	{ "counters", test_counters, 0, 0, 0 },
	{ "selective", test_selective, 0, 0, 0 },
	{ "atomics", test_atomics, 0, 0, 0 },
	{ "atomics_ordered", test_atomics, 0, 0, (long)(FI_ORDER_ATOMIC_WAW | FI_ORDER_ATOMIC_RAW) },
	{ "close", test_close, 2, 0, 0 },
	{ "steady_write", test_steady, 0, 0, 0 },
	{ "steady_write_copied", test_steady, 0, 0, 1 },
	{ "steady_write_long", test_steady, 0, 0, 2 },
	{ "steady_delivered", test_steady, 0, 0, 3 },
	{ "steady_inject", test_steady, 0, 0, 4 },
	{ "steady_read", test_steady, 0, 0, 5 },
	{ "steady_read_long", test_steady, 0, 0, 6 },
	{ "steady_atomic", test_steady, 0, 0, 7 },
	{ "steady_inject_atomic", test_steady, 0, 0, 8 },
	{ "steady_fenced", test_steady, 0, 0, 9 },
	{ "steady_data", test_steady, 0, 0, 10 },
	{ "steady_data_copied", test_steady, 0, 0, 11 },
	{ "steady_data_long", test_steady, 0, 0, 12 },
	{ "steady_inject_data", test_steady, 0, 0, 13 },
	{ "steady_fetch", test_steady, 0, 0, 14 },
	{ "steady_fetch_delivered", test_steady, 0, 0, 15 },
	{ "steady_fetch_read", test_steady, 0, 0, 16 },
	{ "steady_swap", test_steady, 0, 0, 17 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
