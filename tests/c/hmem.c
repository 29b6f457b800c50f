/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_HMEM: messages, reads, writes and atomics from, to and between memory of a GPU. Without a GPU
 * the driver is a fake whose memory faults when anybody but the driver touches it.
 */
#include "hmem.h"

#include <sys/mman.h>

#include <rdma/fi_collective.h>
#include <rdma/fi_trigger.h>

enum { SEND_DEVICE = 1, RECV_DEVICE = 2, UNEXPECTED = 4, SYNC = 8, NO_MAP = 16, NO_P2P = 32 };

static const size_t sizes[] = { 0, 1, 8, 104, 112, 113, 4096, 16384, 16385, 65536, 65537, 100000, 300001, LARGEST };

static void messages(long arg)
{
	int p2p = FI_HMEM_P2P_DISABLED;
	struct node n;
	struct buffer b;

	if (arg & NO_MAP)
		setenv("FI_WEFT_HMEM_MAP_SIZE", "0", 1);
	open_node(&n, arg & SYNC ? FI_DELIVERY_COMPLETE : 0);
	if (arg & NO_P2P)
		OK(fi_setopt(&n.ep->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &p2p, sizeof(p2p)));
	b = buffer_open(&n, LARGEST, arg & (test_rank ? RECV_DEVICE : SEND_DEVICE));
	node_connect(&n);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		size_t len = sizes[i];
		struct fi_cq_tagged_entry e;

		if (test_rank == 0) {
			buffer_fill(&b, len, i);
			if (!(arg & UNEXPECTED))
				barrier(&n);
			if (i % 2)
				POST(&n, fi_send(n.ep, b.p, len, b.desc, n.peer[1], NULL));
			else
				POST(&n, fi_tsenddata(n.ep, b.p, len, b.desc, 77 + i, n.peer[1], i, NULL));
			if (arg & UNEXPECTED)
				barrier(&n);
			wait_ok(&n, n.txcq, &e);
		} else {
			buffer_fill(&b, len, 99);
			if (arg & UNEXPECTED)
				barrier(&n);
			if (i % 2)
				POST(&n, fi_recv(n.ep, b.p, LARGEST, b.desc, FI_ADDR_UNSPEC, NULL));
			else
				POST(&n, fi_trecv(n.ep, b.p, LARGEST, b.desc, FI_ADDR_UNSPEC, i, 0, NULL));
			if (!(arg & UNEXPECTED))
				barrier(&n);
			wait_ok(&n, n.rxcq, &e);
			CHECKF(e.len == len, "%zu bytes, want %zu", e.len, len);
			CHECK(i % 2 || (e.data == 77 + i && e.tag == i));
			buffer_verify(&b, len, i);
		}
		barrier(&n);
	}
	if (test_rank == 1 && gpu_is_fake()) {
		bool maps = way_exists(WAY_MEMORY) && arg & SEND_DEVICE && !(arg & (NO_MAP | NO_P2P));
		int want = maps ? 1 : 0; /* for the largest two */

		CHECKF(gpu_imports() == want, "memory mapped %d times, want %d", gpu_imports(), want);
	}
	buffer_close(&b);
	node_close(&n);
}

/* Vectors of which some parts are in device memory, and truncation. */
static void test_vectors(long unused)
{
	struct node n;
	struct buffer host, device;
	struct iovec iov[3];
	void *desc[3];
	struct fi_cq_tagged_entry e;

	(void)unused;
	open_node(&n, 0);
	host = buffer_open(&n, LARGEST, false);
	device = buffer_open(&n, LARGEST, true);
	node_connect(&n);
	for (size_t len = 30; len < LARGEST; len *= 30) {
		size_t part = len / 3;
		char *all = malloc(len), *end = (char *)device.p + LARGEST / 2;

		iov[0] = (struct iovec){ device.p, part };
		iov[1] = (struct iovec){ host.p, part };
		iov[2] = (struct iovec){ end, len - 2 * part };
		desc[0] = desc[2] = device.desc;
		desc[1] = host.desc;
		fill(all, len, len);
		if (test_rank == 0) {
			gpu_put(device.p, all, part);
			memcpy(host.p, all + part, part);
			gpu_put(end, all + 2 * part, len - 2 * part);
			POST(&n, fi_tsendv(n.ep, iov, desc, 3, n.peer[1], 5, NULL));
			wait_ok(&n, n.txcq, &e);
		} else {
			struct fi_msg_tagged msg = { iov, desc, 3, FI_ADDR_UNSPEC, 5, 0, NULL, 0 };

			POST(&n, fi_trecvmsg(n.ep, &msg, 0));
			wait_ok(&n, n.rxcq, &e);
			CHECK(e.len == len);
			memcpy(all + part, host.p, part);
			gpu_get(all, device.p, part);
			gpu_get(all + 2 * part, end, len - 2 * part);
			verify(all, len, len);
		}
		free(all);
		barrier(&n);
	}
	if (test_rank == 0) {
		buffer_fill(&device, 5000, 1);
		POST(&n, fi_tsend(n.ep, device.p, 5000, device.desc, n.peer[1], 6, NULL));
		wait_ok(&n, n.txcq, &e);
	} else {
		POST(&n, fi_trecv(n.ep, device.p, 4000, device.desc, FI_ADDR_UNSPEC, 6, 0, NULL));
		wait_err(&n, n.rxcq, FI_ETRUNC);
		CHECK(n.err.olen == 1000);
		buffer_verify(&device, 4000, 1);
	}
	barrier(&n);
	buffer_close(&host);
	buffer_close(&device);
	node_close(&n);
}

static void test_multi_recv(long unused)
{
	struct node n;
	struct buffer b;
	struct fi_cq_tagged_entry e;
	size_t at = 0;

	(void)unused;
	open_node(&n, 0);
	b = buffer_open(&n, 100000, true);
	node_connect(&n);
	if (test_rank == 0) {
		for (size_t i = 0; i < 9; i++) {
			buffer_fill(&b, 11000, i);
			POST(&n, fi_send(n.ep, b.p, i % 2 ? 11000 : 100, b.desc, n.peer[1], NULL));
			wait_ok(&n, n.txcq, &e);
			barrier(&n);
		}
	} else {
		struct iovec iov = { b.p, b.len };
		struct fi_msg msg = { &iov, &b.desc, 1, FI_ADDR_UNSPEC, NULL, 0 };

		POST(&n, fi_recvmsg(n.ep, &msg, FI_MULTI_RECV));
		for (size_t i = 0; i < 9; i++) {
			size_t len = i % 2 ? 11000 : 100;
			char tmp[11000];

			wait_ok(&n, n.rxcq, &e);
			CHECK(e.len == len);
			CHECKF(e.buf == (char *)b.p + at, "message at %p, want %p", e.buf, (void *)((char *)b.p + at));
			gpu_get(tmp, e.buf, len);
			verify(tmp, len, i);
			at += len;
			barrier(&n);
		}
	}
	barrier(&n);
	OK(fi_close(&n.ep->fid)); /* with the buffer posted */
	n.ep = NULL;
	buffer_close(&b);
	node_close(&n);
}

/* ---- one-sided operations ---- */

/* A read or write in one piece or, with a split, in two on either side, cut at different places; a write with data. */
static void one_sided(struct node *n, struct buffer *b, struct remote *r, size_t len, bool read, size_t split,
		      uint64_t data)
{
	struct iovec iov[2] = { { b->p, split }, { (char *)b->p + split, len - split } };
	struct fi_rma_iov at[2] = { { r->addr, len - split, r->key }, { r->addr + len - split, split, r->key } };
	void *desc[2] = { b->desc, b->desc };
	struct fi_msg_rma msg = { iov, desc, 2, n->peer[1], at, 2, n, data };
	struct fi_cq_tagged_entry e;

	if (read && split)
		POST(n, fi_readmsg(n->ep, &msg, FI_COMPLETION));
	else if (read)
		POST(n, fi_read(n->ep, b->p, len, b->desc, n->peer[1], r->addr, r->key, n));
	else if (split)
		POST(n, fi_writemsg(n->ep, &msg, FI_COMPLETION | FI_REMOTE_CQ_DATA));
	else
		POST(n, fi_writedata(n->ep, b->p, len, b->desc, data, n->peer[1], r->addr, r->key, n));
	wait_ok(n, n->txcq, &e);
	CHECK(e.op_context == n);
	CHECK((e.flags & (FI_RMA | FI_READ | FI_WRITE)) == (FI_RMA | (read ? FI_READ : FI_WRITE)));
}

/* Reads and writes, the longer ones by mappings between processes of a host: counters say so, and none of their bytes
 * is in a message. */
static void test_rma(long arg)
{
	size_t mapped = 0, bytes = 0;
	struct fi_cq_tagged_entry e;
	struct node n;
	struct buffer b;
	struct remote r;

	if (arg & NO_MAP)
		setenv("FI_WEFT_HMEM_MAP_SIZE", "0", 1);
	open_node(&n, FI_DELIVERY_COMPLETE);
	b = buffer_open(&n, LARGEST, arg & (test_rank ? RECV_DEVICE : SEND_DEVICE));
	node_connect(&n);
	exchange(&n, &b, &r);
	for (size_t i = 1; i < ARRAY_LEN(sizes); i++) {
		size_t len = sizes[i], split = i % 2 ? len / 3 : 0;

		if (len >= 262144) {
			mapped += 2;
			bytes += 2 * len;
		}
		if (test_rank == 0) {
			buffer_fill(&b, len, i);
			one_sided(&n, &b, &r, len, false, split, i);
			barrier(&n); /* written */
			barrier(&n); /* changed by the target */
			one_sided(&n, &b, &r, len, true, split, 0);
			buffer_verify(&b, len, i + 50);
		} else {
			wait_ok(&n, n.rxcq, &e);
			CHECK(e.flags & FI_REMOTE_CQ_DATA && e.data == i);
			barrier(&n);
			buffer_verify(&b, len, i);
			buffer_fill(&b, len, i + 50);
			barrier(&n);
		}
		barrier(&n);
	}
	if (arg & NO_MAP || getenv("WEFT_TEST_NETNS"))
		mapped = bytes = 0;
	if (test_is_weft() && test_rank == 0) {
		uint64_t count = node_counter(&n, "rma_mapped"), sum = node_counter(&n, "rma_mapped_bytes");

		CHECKF(count == mapped && sum == bytes, "%lu operations of %lu bytes were mapped, want %zu of %zu",
		       (unsigned long)count, (unsigned long)sum, mapped, bytes);
	}
	if (test_is_weft() && gpu_is_fake()) {
		int want = mapped && (test_rank ? !(arg & RECV_DEVICE) : (arg & RECV_DEVICE) != 0);

		CHECKF(gpu_imports() == want, "memory mapped %d times, want %d", gpu_imports(), want);
	}
	barrier(&n);
	buffer_close(&b);
	node_close(&n);
}

static void test_atomics(long unused)
{
	struct node n;
	struct buffer b;
	struct remote r;
	uint64_t words[4] = { 10, 20, 30, 40 };
	uint64_t *d;

	(void)unused;
	open_node(&n, FI_DELIVERY_COMPLETE);
	b = buffer_open(&n, 4096, true);
	d = b.p;
	node_connect(&n);
	exchange(&n, &b, &r);
	if (test_rank == 1) {
		gpu_put(b.p, words, sizeof(words));
		barrier(&n);
		barrier(&n);
		gpu_get(words, b.p, sizeof(words));
		CHECKF(words[0] == 11 && words[1] == 120 && words[2] == 30 && words[3] == 7, "%lu %lu %lu %lu",
		       (unsigned long)words[0], (unsigned long)words[1], (unsigned long)words[2],
		       (unsigned long)words[3]);
	} else {
		uint64_t in[8] = { 1, 100, 7, 40, 0, 0, 0, 0 };

		gpu_put(d, in, sizeof(in));
		barrier(&n);
		DO(&n, fi_atomic(n.ep, d, 2, b.desc, n.peer[1], r.addr, r.key, FI_UINT64, FI_SUM, NULL));
		DO(&n, fi_compare_atomic(n.ep, d + 2, 1, b.desc, d + 3, b.desc, d + 4, b.desc, n.peer[1], r.addr + 24,
					 r.key, FI_UINT64, FI_CSWAP, NULL));
		DO(&n, fi_fetch_atomic(n.ep, NULL, 3, NULL, d + 5, b.desc, n.peer[1], r.addr, r.key, FI_UINT64,
				       FI_ATOMIC_READ, NULL));
		gpu_get(in, d, sizeof(in));
		CHECKF(in[4] == 40 && in[5] == 11 && in[6] == 120 && in[7] == 30, "%lu %lu %lu %lu",
		       (unsigned long)in[4], (unsigned long)in[5], (unsigned long)in[6], (unsigned long)in[7]);
		barrier(&n);
	}
	barrier(&n);
	buffer_close(&b);
	node_close(&n);
}

static void later(struct node *n, struct fid_cntr *on, struct fid_cntr *done, enum fi_op_type type, void *op)
{
	static struct fi_deferred_work work[8];
	static int used;
	struct fi_deferred_work *w = &work[used++];

	*w = (struct fi_deferred_work){
		.threshold = 1, .triggering_cntr = on, .completion_cntr = done, .op_type = type
	};
	w->op.msg = op;
	OK(fi_control(&n->domain->fid, FI_QUEUE_WORK, w));
}

/* Deferred work names device memory by descriptors as other operations do. */
static void test_deferred(long unused)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	uint64_t words[4] = { 10, 20, 30, 40 }, got[4] = { 0 };
	struct fid_cntr *on, *done;
	struct remote r;
	struct buffer b;
	struct node_opts o = { .caps = CAPS | FI_TRIGGER, .mr_mode = FI_MR_HMEM };
	struct node n;
	uint64_t *d;

	(void)unused;
	gpu_open();
	node_open(&n, &o);
	b = buffer_open(&n, 4096, true);
	d = b.p;
	node_connect(&n);
	exchange(&n, &b, &r);
	OK(fi_cntr_open(n.domain, &attr, &on, NULL));
	OK(fi_cntr_open(n.domain, &attr, &done, NULL));
	gpu_put(d, words, sizeof(words));
	barrier(&n);
	if (test_rank == 1) {
		struct iovec iov = { d + 8, 8 };
		struct fi_op_tagged recv = { n.ep, { &iov, &b.desc, 1, FI_ADDR_UNSPEC, 5, 0, NULL, 0 }, 0 };

		later(&n, on, done, FI_OP_TRECV, &recv);
		OK(fi_cntr_add(on, 1));
		OK(fi_cntr_wait(done, 1, 20000));
		gpu_get(got, d + 8, 8);
		CHECK(got[0] == 10);
		barrier(&n);
		gpu_get(got, d, sizeof(got));
		CHECKF(got[0] == 30 && got[1] == 60 && got[2] == 30, "%lu %lu %lu", (unsigned long)got[0],
		       (unsigned long)got[1], (unsigned long)got[2]);
	} else {
		struct iovec send = { d, 8 }, write = { d + 2, 8 };
		struct fi_rma_iov to = { r.addr, 8, r.key };
		struct fi_ioc add = { d + 3, 1 }, result = { d + 8, 1 };
		struct fi_rma_ioc there = { r.addr + 8, 1, r.key };
		struct fi_op_tagged tsend = { n.ep, { &send, &b.desc, 1, n.peer[1], 5, 0, NULL, 0 }, 0 };
		struct fi_op_rma rma = { n.ep,
					 { &write, &b.desc, 1, n.peer[1], &to, 1, NULL, 0 },
					 FI_DELIVERY_COMPLETE };
		struct fi_op_fetch_atomic fetch = { n.ep,
						    { &add, &b.desc, 1, n.peer[1], &there, 1, FI_UINT64, FI_SUM, NULL,
						      0 },
						    { &result, &b.desc, 1 },
						    0 };

		later(&n, on, done, FI_OP_TSEND, &tsend);
		later(&n, on, done, FI_OP_WRITE, &rma);
		later(&n, on, done, FI_OP_FETCH_ATOMIC, &fetch);
		OK(fi_cntr_add(on, 1));
		OK(fi_cntr_wait(done, 3, 20000));
		gpu_get(got, d + 8, 8);
		CHECK(got[0] == 20);
		barrier(&n);
	}
	barrier(&n);
	OK(fi_close(&on->fid));
	OK(fi_close(&done->fid));
	buffer_close(&b);
	node_close(&n);
}

/* ---- what is refused ---- */

/* The members' processors combine what they get, so collectives take host memory only. */
static void test_collective(long unused)
{
	struct node_opts o = { .caps = CAPS | FI_COLLECTIVE, .mr_mode = FI_MR_HMEM };
	uint64_t host[4] = { 0 };
	struct buffer d, h;
	struct node n;

	(void)unused;
	gpu_open();
	node_open(&n, &o);
	d = buffer_open(&n, 4096, true);
	h = buffer_open(&n, 4096, false);
	EXPECT_RC(fi_allreduce(n.ep, d.p, 1, d.desc, host, NULL, 0, FI_UINT64, FI_SUM, 0, NULL), -FI_EOPNOTSUPP);
	EXPECT_RC(fi_allreduce(n.ep, host, 1, NULL, d.p, d.desc, 0, FI_UINT64, FI_SUM, 0, NULL), -FI_EOPNOTSUPP);
	EXPECT_RC(fi_broadcast(n.ep, d.p, 1, d.desc, 0, 0, FI_UINT64, 0, NULL), -FI_EOPNOTSUPP);
	EXPECT_RC(fi_alltoall(n.ep, h.p, 1, h.desc, d.p, d.desc, 0, FI_UINT64, 0, NULL), -FI_EOPNOTSUPP);
	/* host memory is refused for want of a group only */
	EXPECT_RC(fi_allreduce(n.ep, h.p, 1, h.desc, host, NULL, 0, FI_UINT64, FI_SUM, 0, NULL), -FI_EINVAL);
	buffer_close(&d);
	buffer_close(&h);
	node_close(&n);
}

static void test_info(long unused)
{
	struct node_opts o = { .caps = FI_MSG | FI_HMEM };
	struct fi_info *info;

	(void)unused;
	gpu_open();
	info = node_info(&o);
	CHECKF(!info, "FI_HMEM is offered to what does not name device memory");
	o.caps = 0;
	info = node_info(&o);
	CHECK(info && !(info->caps & FI_HMEM) && !(info->domain_attr->mr_mode & FI_MR_HMEM));
	fi_freeinfo(info);
}

static void test_regions(long unused)
{
	struct node n;
	struct fid_mr *mr;
	struct buffer b;
	char *pinned, plain[64];

	(void)unused;
	open_node(&n, 0);
	b = buffer_open(&n, 4096, true);
	CHECK_RC(reg(&n, plain, sizeof(plain), FI_HMEM_CUDA, 0, &mr), -FI_EINVAL);
	CHECK_RC(reg(&n, b.p, 1 << 30, FI_HMEM_CUDA, 0, &mr), -FI_EINVAL);
	CHECK_RC(reg(&n, b.p, 1ull << 63, FI_HMEM_CUDA, 0, &mr), -FI_EINVAL);
	CHECK_RC(reg(&n, plain, sizeof(plain), FI_HMEM_SYSTEM, FI_HMEM_DEVICE_ONLY, &mr), -FI_EINVAL);
	CHECK_RC(reg(&n, plain, sizeof(plain), FI_HMEM_ZE, 0, &mr), -FI_ENOSYS);
	CHECK_RC(reg(&n, plain, sizeof(plain), FI_HMEM_SYSTEM, FI_RMA_PMEM, &mr), -FI_EBADFLAGS);
	pinned = gpu_alloc_host(4096);
	OK(reg(&n, pinned, 4096, FI_HMEM_CUDA, 0, &mr));
	OK(fi_close(&mr->fid));
	OK(reg(&n, pinned, 4096, FI_HMEM_CUDA, FI_HMEM_HOST_ALLOC, &mr));
	OK(fi_close(&mr->fid));
	node_connect(&n);
	/* beyond the region, injected, a region that is closed */
	CHECK_RC(fi_send(n.ep, (char *)b.p + 4000, 97, b.desc, n.peer[0], NULL), -FI_EINVAL);
	struct iovec iov = { b.p, 8 };
	struct fi_msg msg = { &iov, &b.desc, 1, n.peer[0], NULL, 0 };
	CHECK_RC(fi_sendmsg(n.ep, &msg, FI_INJECT), -FI_EINVAL);
	void *desc = b.desc;
	buffer_close(&b);
	CHECK_RC(fi_send(n.ep, iov.iov_base, 8, desc, n.peer[0], NULL), -FI_EINVAL);
	CHECK_RC(fi_recv(n.ep, iov.iov_base, 8, desc, FI_ADDR_UNSPEC, NULL), -FI_EINVAL);
	node_close(&n);
}

/* Without FI_HMEM the kind of memory is not read, and flags about it are unknown. */
static void test_without(long unused)
{
	struct node n;
	struct fid_mr *mr;
	char plain[64];

	(void)unused;
	node_open(&n, &(struct node_opts){ .caps = FI_MSG | FI_RMA });
	OK(reg(&n, plain, sizeof(plain), FI_HMEM_CUDA, 0, &mr));
	OK(fi_close(&mr->fid));
	CHECK_RC(reg(&n, plain, sizeof(plain), FI_HMEM_SYSTEM, FI_HMEM_DEVICE_ONLY, &mr), -FI_EBADFLAGS);
	node_close(&n);
}

static void test_options(long unused)
{
	struct node n;
	int p2p = -1;
	bool permitted = false;
	size_t len = sizeof(p2p);

	(void)unused;
	open_node(&n, 0);
	OK(fi_getopt(&n.ep->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &p2p, &len));
	CHECK(p2p == FI_HMEM_P2P_ENABLED && len == sizeof(p2p));
	p2p = FI_HMEM_P2P_DISABLED;
	OK(fi_setopt(&n.ep->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &p2p, sizeof(p2p)));
	p2p = FI_HMEM_P2P_REQUIRED;
	CHECK_RC(fi_setopt(&n.ep->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &p2p, sizeof(p2p)), -FI_EOPNOTSUPP);
	p2p = 9;
	CHECK_RC(fi_setopt(&n.ep->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &p2p, sizeof(p2p)), -FI_EINVAL);
	CHECK_RC(fi_setopt(&n.ep->fid, FI_OPT_ENDPOINT, OPT_CUDA_API_PERMITTED, &permitted, sizeof(permitted)),
		 -FI_EOPNOTSUPP);
	permitted = true;
	OK(fi_setopt(&n.ep->fid, FI_OPT_ENDPOINT, OPT_CUDA_API_PERMITTED, &permitted, sizeof(permitted)));
	node_close(&n);
}

/* Device memory that is freed too early: errors on both sides, nothing crashes, the endpoint goes on. */
static void test_freed(long unused)
{
	struct node n;
	struct buffer b, host;
	struct fi_cq_tagged_entry e;

	(void)unused;
	if (!gpu_is_fake())
		SKIP("a real driver may keep freed memory");
	open_node(&n, 0);
	b = buffer_open(&n, LARGEST, true);
	host = buffer_open(&n, LARGEST, false);
	node_connect(&n);
	gpu_free(b.p);
	if (test_rank == 0) {
		ssize_t rc;

		while ((rc = fi_tsend(n.ep, b.p, 100, b.desc, n.peer[1], 1, NULL)) == -FI_EAGAIN)
			progress(&n); /* the way to the peer may not be there yet */
		CHECK_RC(rc, -FI_EIO);
		for (int i = 0; i < 2; i++) {
			POST(&n, fi_tsend(n.ep, b.p, i ? LARGEST : 100000, b.desc, n.peer[1], 2, NULL));
			wait_err(&n, n.txcq, FI_EIO);
		}
		for (int i = 0; i < 2; i++) {
			POST(&n, fi_tsend(n.ep, host.p, i ? 100000 : 100, NULL, n.peer[1], 3, NULL));
			if (i)
				wait_err(&n, n.txcq, FI_EIO);
			else
				wait_ok(&n, n.txcq, &e);
		}
		fill(host.p, LARGEST, 4);
		POST(&n, fi_tsend(n.ep, host.p, LARGEST, NULL, n.peer[1], 4, NULL));
		wait_ok(&n, n.txcq, &e);
	} else {
		for (int i = 0; i < 2; i++) {
			POST(&n, fi_trecv(n.ep, host.p, LARGEST, NULL, FI_ADDR_UNSPEC, 2, 0, NULL));
			wait_err(&n, n.rxcq, FI_EIO);
		}
		for (int i = 0; i < 2; i++) {
			POST(&n, fi_trecv(n.ep, b.p, LARGEST, b.desc, FI_ADDR_UNSPEC, 3, 0, NULL));
			wait_err(&n, n.rxcq, FI_EIO);
		}
		POST(&n, fi_trecv(n.ep, host.p, LARGEST, NULL, FI_ADDR_UNSPEC, 4, 0, NULL));
		wait_ok(&n, n.rxcq, &e);
		verify(host.p, LARGEST, 4);
	}
	barrier(&n);
	OK(fi_close(&b.mr->fid));
	buffer_close(&host);
	node_close(&n);
}

static const struct test tests[] = {
	{ "collective", test_collective, 1, 0, 0 },
	{ "info", test_info, 1, 30, 0 },
	{ "regions", test_regions, 1, 30, 0 },
	{ "without", test_without, 1, 30, 0 },
	{ "options", test_options, 1, 30, 0 },
	{ "device_to_host", messages, 2, 60, SEND_DEVICE },
	{ "host_to_device", messages, 2, 60, RECV_DEVICE },
	{ "device_to_device", messages, 2, 60, SEND_DEVICE | RECV_DEVICE },
	{ "unexpected", messages, 2, 60, SEND_DEVICE | RECV_DEVICE | UNEXPECTED },
	{ "unexpected_to_device", messages, 2, 60, RECV_DEVICE | UNEXPECTED | SYNC },
	{ "delivery_complete", messages, 2, 60, SEND_DEVICE | RECV_DEVICE | SYNC },
	{ "bounced", messages, 2, 60, SEND_DEVICE | RECV_DEVICE | NO_MAP },
	{ "no_p2p", messages, 2, 60, SEND_DEVICE | RECV_DEVICE | NO_P2P },
	{ "vectors", test_vectors, 2, 60, 0 },
	{ "multi_recv", test_multi_recv, 2, 60, 0 },
	{ "rma_device_host", test_rma, 2, 60, SEND_DEVICE },
	{ "rma_host_device", test_rma, 2, 60, RECV_DEVICE },
	{ "rma_device_device", test_rma, 2, 60, SEND_DEVICE | RECV_DEVICE },
	{ "rma_device_host_bounced", test_rma, 2, 60, SEND_DEVICE | NO_MAP },
	{ "rma_host_device_bounced", test_rma, 2, 60, RECV_DEVICE | NO_MAP },
	{ "atomics", test_atomics, 2, 60, 0 },
	{ "deferred", test_deferred, 2, 60, 0 },
	{ "freed", test_freed, 2, 60, 0 },
};

int main(int argc, char **argv)
{
	gpu_main(argv);
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
