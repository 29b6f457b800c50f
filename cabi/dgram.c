/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Posting of datagrams (FI_EP_DGRAM). They go the way of all messages; what
 * finds no room there goes to Go, which decides whether to drop it.
 */
#include "connected.h"
#include "hotpath.h"

ssize_t weft_dgram_again(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest, uint64_t data,
			 uint64_t flags, void *context, uint32_t kind)
{
	struct iovec iov = { (void *)buf, len };

	return weft_post_slow(WEFT_OBJ(ep, struct weft_ep_obj), &iov, 1, &dest, 0, data, flags, context, kind);
}

/* Vectors of one element take the fast path; longer ones are Go's already. */
ssize_t weft_dgram_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t dest, void *context)
{
	if (count == 1 && iov)
		return weft_dgram_msg.send(ep, iov->iov_base, iov->iov_len, NULL, dest, context);
	return weft_ops_msg.sendv(ep, iov, desc, count, dest, context);
}

ssize_t weft_dgram_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	ssize_t rc = weft_ops_msg.sendmsg(ep, msg, flags);

	if (rc != -FI_EAGAIN || msg->iov_count != 1)
		return rc;
	return weft_dgram_again(ep, msg->msg_iov->iov_base, msg->msg_iov->iov_len, msg->addr, msg->data, flags,
				msg->context, flags & FI_REMOTE_CQ_DATA ? WEFT_POST_DATA : 0);
}
