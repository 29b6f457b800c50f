/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the tests of memory of a GPU have in common.
 */
#ifndef HMEM_H
#define HMEM_H

#include "common.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "gpu.h"

#ifndef FI_HMEM_HOST_ALLOC
#define FI_HMEM_HOST_ALLOC (1ULL << 45)
#endif
#ifndef FI_HMEM_DEVICE_ONLY
#define FI_HMEM_DEVICE_ONLY (1ULL << 46)
#endif
#define OPT_CUDA_API_PERMITTED 10 /* FI_OPT_CUDA_API_PERMITTED of 1.18 */

#define CAPS (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_HMEM)
#define LARGEST (3 << 20)

/* A registered buffer of either kind. */
struct buffer {
	void *p;
	size_t len;
	bool device;
	struct fid_mr *mr;
	void *desc;
};

static inline int reg(struct node *n, void *p, size_t len, enum fi_hmem_iface iface, uint64_t flags, struct fid_mr **mr)
{
	static uint64_t key = 1000;
	struct iovec iov = { p, len };
	struct fi_mr_attr attr = {
		.mr_iov = &iov,
		.iov_count = 1,
		.access = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE,
		.requested_key = key++,
		.iface = iface,
	};

	return fi_mr_regattr(n->domain, &attr, flags, mr);
}

static inline struct buffer buffer_open(struct node *n, size_t len, bool device)
{
	struct buffer b = { .len = len, .device = device };

	b.p = device ? gpu_alloc(len) : calloc(1, len);
	CHECK(b.p != NULL);
	OK(reg(n, b.p, len, device ? FI_HMEM_CUDA : FI_HMEM_SYSTEM, device ? FI_HMEM_DEVICE_ONLY : 0, &b.mr));
	b.desc = fi_mr_desc(b.mr);
	return b;
}

static inline void buffer_close(struct buffer *b)
{
	OK(fi_close(&b->mr->fid));
	if (b->device)
		gpu_free(b->p);
	else
		free(b->p);
}

static inline void buffer_fill(struct buffer *b, size_t len, uint64_t seed)
{
	void *tmp = b->device ? malloc(len + 1) : b->p;

	fill(tmp, len, seed);
	if (b->device && len)
		gpu_put(b->p, tmp, len);
	if (b->device)
		free(tmp);
}

static inline void buffer_verify(struct buffer *b, size_t len, uint64_t seed)
{
	void *tmp = b->device ? malloc(len + 1) : b->p;

	if (b->device && len)
		gpu_get(tmp, b->p, len);
	verify(tmp, len, seed);
	if (b->device)
		free(tmp);
}

static inline void open_node(struct node *n, uint64_t tx_flags)
{
	struct node_opts o = { .caps = CAPS, .mr_mode = FI_MR_HMEM, .tx_flags = tx_flags };

	gpu_open();
	node_open(n, &o);
	CHECK(n->info->caps & FI_HMEM);
	CHECK(n->info->domain_attr->mr_mode & FI_MR_HMEM);
}

/* Posts until there is room. */
#define POST(n, call) \
	do { \
		ssize_t rc_; \
		while ((rc_ = (call)) == -FI_EAGAIN) \
			progress(n); \
		CHECKF(rc_ == 0, "%s = %zd (%s)", #call, rc_, fi_strerror((int)-rc_)); \
	} while (0)
#define DO(n, call) \
	do { \
		POST(n, call); \
		wait_ctx(n, (n)->txcq, NULL); \
	} while (0)

struct remote {
	uint64_t key;
	uint64_t addr;
};

static inline void exchange(struct node *n, struct buffer *target, struct remote *r)
{
	if (test_rank == 1) {
		r->key = fi_mr_key(target->mr);
		r->addr = n->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)target->p : 0;
		link_send(0, r, sizeof(*r));
	} else {
		link_recv(1, r, sizeof(*r));
	}
}

#endif
