/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Posting of reads and writes: struct fi_ops_rma.
 */
#include "posting.h"
#include "rma.h"

#define EP(fid_ep) WEFT_OBJ(fid_ep, struct weft_ep_obj)

ssize_t weft_rma_vec(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags, uint32_t kind)
{
	struct fi_rma_iov remote = *msg->rma_iov;
	struct fi_msg_rma whole = *msg;

	if (!msg->msg_iov && msg->iov_count)
		return -FI_EINVAL;
	for (size_t i = 0; i < msg->iov_count; i++)
		remote.len += msg->msg_iov[i].iov_len;
	whole.rma_iov = &remote;
	whole.rma_iov_count = 1;
	return weftGoRMA(EP(ep)->handle, &whole, flags, kind);
}

/* A read or a write of one piece. kind is WEFT_POST_*; the data plane tries a message, then a copy. */
static ssize_t post_one(struct fid_ep *ep, const struct iovec *iov, fi_addr_t dest, uint64_t addr, uint64_t key,
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
		rc = weft_post(EP(ep), WEFT_PLANE_WRITE, &p);
	if (rc == WEFT_POST_TO_GO && !(kind & WEFT_POST_DATA))
		rc = weft_post(EP(ep), WEFT_PLANE_COPY, &p);
	if (__builtin_expect(rc != WEFT_POST_TO_GO, 1))
		return rc;
	return weft_rma_vec(ep, &(struct fi_msg_rma){ .msg_iov = iov, .iov_count = 1, .addr = dest,
		.rma_iov = &(struct fi_rma_iov){ .addr = addr, .key = key }, .context = context, .data = data },
		flags, kind);
}

/* The form that names the remote side, too: of one piece here and there, or Go's. */
static ssize_t post_message(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags, uint32_t kind)
{
	if (!msg || (!msg->msg_iov && msg->iov_count) || (!msg->rma_iov && msg->rma_iov_count))
		return -FI_EINVAL;
	if (msg->iov_count == 1 && msg->rma_iov_count == 1 && msg->msg_iov->iov_len == msg->rma_iov->len)
		return post_one(ep, msg->msg_iov, msg->addr, msg->rma_iov->addr, msg->rma_iov->key, msg->data,
				msg->context, flags, kind);
	return weftGoRMA(EP(ep)->handle, (struct fi_msg_rma *)msg, flags, kind);
}

#include "rma_gen.h"
