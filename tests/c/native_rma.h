/* SPDX-License-Identifier: BSD-2-Clause */
/* What native_rma.c and native_keys.c have in common: a node with an endpoint of FI_PROTO_CXI, its reads and writes. */
#ifndef NATIVE_RMA_H
#define NATIVE_RMA_H

#include <rdma/fi_rma.h>

#include "counts.h"

#define LARGE (1 << 20)
#define ALL (FI_REMOTE_READ | FI_REMOTE_WRITE)

static struct node_opts opts = {
	.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SOURCE,
	.mr_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED,
	.addr_format = FI_ADDR_CXI,
};
static struct node n;
static unsigned char memory[LARGE + 64], local[LARGE], back[LARGE];

/* Keys with indices of their own, and such without. */
static const uint64_t keys[] = { 0, 57, 99, 100, 5000, 0xfffffffe };

static inline void open_node(struct node_opts o)
{
	node_need(&o);
	node_open(&n, &o);
}

/* A region that peers reach through the endpoint of a node. */
static inline struct fid_mr *expose_at(struct node *at, void *buf, size_t len, uint64_t access, uint64_t key)
{
	struct fid_mr *mr;

	OK(fi_mr_reg(at->domain, buf, len, access, 0, key, 0, &mr, at));
	OK(fi_mr_bind(mr, &at->ep->fid, 0));
	OK(fi_mr_enable(mr));
	CHECK(fi_mr_key(mr) == key);
	return mr;
}

static inline struct fid_mr *expose(void *buf, size_t len, uint64_t access, uint64_t key)
{
	return expose_at(&n, buf, len, access, key);
}

/* How a write is called. */
enum call { WRITE, WRITEV, MESSAGE, DELIVERED, INJECT, INJECT_FLAG, DATA, INJECT_DATA, WAYS, FENCED /* of FI_FENCE */ };

static inline bool injects(enum call w)
{
	return w == INJECT || w == INJECT_FLAG || w == INJECT_DATA;
}
static inline bool completes(enum call w)
{
	return w != INJECT && w != INJECT_DATA;
}
static inline bool has_data(enum call w)
{
	return w == DATA || w == INJECT_DATA;
}

static inline ssize_t try_write(enum call w, size_t len, uint64_t off, uint64_t key)
{
	struct iovec iov = { local, len };
	struct fi_rma_iov remote = { off, len, key };
	struct fi_msg_rma m = { .msg_iov = &iov,
				.iov_count = 1,
				.addr = n.peer[1],
				.rma_iov = &remote,
				.rma_iov_count = 1,
				.context = local };

	switch (w) {
	case WRITE:
		return fi_write(n.ep, local, len, NULL, n.peer[1], off, key, local);
	case WRITEV:
		return fi_writev(n.ep, &iov, NULL, 1, n.peer[1], off, key, local);
	case MESSAGE:
		return fi_writemsg(n.ep, &m, FI_COMPLETION);
	case DELIVERED:
		return fi_writemsg(n.ep, &m, FI_COMPLETION | FI_DELIVERY_COMPLETE);
	case FENCED:
		return fi_writemsg(n.ep, &m, FI_COMPLETION | FI_FENCE);
	case INJECT:
		return fi_inject_write(n.ep, local, len, n.peer[1], off, key);
	case INJECT_FLAG:
		return fi_writemsg(n.ep, &m, FI_COMPLETION | FI_INJECT);
	case DATA:
		return fi_writedata(n.ep, local, len, NULL, ~key, n.peer[1], off, key, local);
	default:
		return fi_inject_writedata(n.ep, local, len, ~key, n.peer[1], off, key);
	}
}

/* A write, until there is room; what is injected is the caller's at once. */
static inline void do_write(enum call w, size_t len, uint64_t off, uint64_t key)
{
	struct fi_cq_tagged_entry e;
	ssize_t rc;

	while ((rc = try_write(w, len, off, key)) == -FI_EAGAIN)
		progress(&n);
	CHECK_RC(rc, 0);
	if (injects(w))
		memset(local, 0xee, len);
	if (!completes(w))
		return;
	wait_ok(&n, n.txcq, &e);
	CHECK(e.op_context == local && e.flags == (FI_RMA | FI_WRITE));
}

static inline void do_read(int form, size_t len, uint64_t off, uint64_t key)
{
	struct iovec iov = { back, len };
	struct fi_rma_iov remote = { off, len, key };
	struct fi_msg_rma m = { .msg_iov = &iov,
				.iov_count = 1,
				.addr = n.peer[1],
				.rma_iov = &remote,
				.rma_iov_count = 1,
				.context = back };
	struct fi_cq_tagged_entry e;
	ssize_t rc;

	do {
		rc = form == 0	 ? fi_read(n.ep, back, len, NULL, n.peer[1], off, key, back)
		     : form == 1 ? fi_readv(n.ep, &iov, NULL, 1, n.peer[1], off, key, back)
				 : fi_readmsg(n.ep, &m, FI_COMPLETION);
		if (rc == -FI_EAGAIN)
			progress(&n);
	} while (rc == -FI_EAGAIN);
	CHECK_RC(rc, 0);
	wait_ok(&n, n.txcq, &e);
	CHECK(e.op_context == back && e.flags == (FI_RMA | FI_READ));
}

/* A write or read of rank 1's memory that it refuses. */
static inline void refused(bool read, size_t len, uint64_t off, uint64_t key)
{
	ssize_t rc = read ? fi_read(n.ep, back, len, NULL, n.peer[1], off, key, back)
			  : fi_write(n.ep, back, len, NULL, n.peer[1], off, key, back);

	CHECK_RC(rc, 0);
	wait_err(&n, n.txcq, FI_EIO);
	CHECK(n.err.op_context == back && n.err.flags == (uint64_t)(FI_RMA | (read ? FI_READ : FI_WRITE)));
}

#endif
