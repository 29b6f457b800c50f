/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Posting of reads and writes: struct fi_ops_rma.
 */
#include "posting.h"
#include "rma.h"

#define EP(fid_ep) WEFT_OBJ(fid_ep, struct weft_ep_obj)

/* An operation whose remote side is one piece, as long as the local vector. */
static ssize_t post_vec(struct weft_ep_obj *o, const struct iovec *iov, size_t count,
			fi_addr_t dest, uint64_t addr, uint64_t key, uint64_t data, void *context,
			uint64_t flags, uint32_t kind)
{
	struct fi_rma_iov remote = { .addr = addr, .key = key };
	struct weft_rma_args args = {
		.iov = iov, .count = count, .remote = &remote, .remote_count = 1, .dest = dest,
		.data = data, .flags = flags, .context = (uintptr_t)context, .kind = kind,
	};
	size_t i;

	if (!iov && count)
		return -FI_EINVAL;
	for (i = 0; i < count; i++)
		remote.len += iov[i].iov_len;
	return weftGoRMA(o->handle, &args);
}

/* A read or a write of one piece. kind is WEFT_POST_*; the data plane tries a message, then a copy. */
static ssize_t post_one(struct weft_ep_obj *o, const struct iovec *iov, fi_addr_t dest, uint64_t addr, uint64_t key,
			uint64_t data, void *context, uint64_t flags, uint32_t kind)
{
	struct weft_post p; /* the data plane reads nothing that is not set here */
	ssize_t rc = WEFT_POST_TO_GO;

	p.buf = iov->iov_base;
	p.len = iov->iov_len;
	p.dest = dest;
	p.header = addr;
	p.data = data;
	p.flags = flags;
	p.context = (uintptr_t)context;
	p.kind = kind;
	p.key = key;
	if (!(kind & WEFT_POST_READ))
		rc = weft_post(o, WEFT_PLANE_WRITE, &p);
	if (rc == WEFT_POST_TO_GO && !(kind & WEFT_POST_DATA))
		rc = weft_post(o, WEFT_PLANE_COPY, &p);
	if (__builtin_expect(rc != WEFT_POST_TO_GO, 1))
		return rc;
	return post_vec(o, iov, 1, dest, addr, key, data, context, flags, kind);
}

/* The form that names the remote side, too: of one piece here and there, or Go's. */
static ssize_t post_message(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags, uint32_t kind)
{
	struct weft_rma_args args;

	if (!msg || (!msg->msg_iov && msg->iov_count) || (!msg->rma_iov && msg->rma_iov_count))
		return -FI_EINVAL;
	if (msg->iov_count == 1 && msg->rma_iov_count == 1 && msg->msg_iov->iov_len == msg->rma_iov->len)
		return post_one(EP(ep), msg->msg_iov, msg->addr, msg->rma_iov->addr, msg->rma_iov->key, msg->data,
				msg->context, flags, kind);
	args = (struct weft_rma_args){
		.iov = msg->msg_iov, .count = msg->iov_count, .remote = msg->rma_iov,
		.remote_count = msg->rma_iov_count, .dest = msg->addr, .data = msg->data,
		.flags = flags, .context = (uintptr_t)msg->context, .kind = kind,
	};
	return weftGoRMA(EP(ep)->handle, &args);
}

#include "rma_gen.h"
