/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Posting of datagrams (FI_EP_DGRAM). They go the way of all messages; what
 * finds no room there goes to Go, which decides whether to drop it.
 */
#include "connected.h"
#include "hotpath.h"

#define EP(fid_ep) WEFT_OBJ(fid_ep, struct weft_ep_obj)

static ssize_t again(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest, uint64_t data,
		     uint64_t flags, void *context, uint32_t kind)
{
	struct iovec iov = { (void *)buf, len };

	return weft_post_slow(EP(ep), &iov, 1, &dest, 0, data, flags, context, kind);
}

static ssize_t dgram_send(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			  fi_addr_t dest, void *context)
{
	ssize_t rc = weft_ops_msg.send(ep, buf, len, desc, dest, context);

	return rc == -FI_EAGAIN ?
		       again(ep, buf, len, dest, 0, EP(ep)->tx_op_flags, context, 0) : rc;
}

static ssize_t dgram_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			      uint64_t data, fi_addr_t dest, void *context)
{
	ssize_t rc = weft_ops_msg.senddata(ep, buf, len, desc, data, dest, context);

	return rc == -FI_EAGAIN ? again(ep, buf, len, dest, data, EP(ep)->tx_op_flags, context,
					WEFT_POST_DATA) : rc;
}

static ssize_t dgram_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest)
{
	ssize_t rc = weft_ops_msg.inject(ep, buf, len, dest);

	return rc == -FI_EAGAIN ? again(ep, buf, len, dest, 0, 0, NULL, WEFT_POST_INJECT) : rc;
}

static ssize_t dgram_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
				fi_addr_t dest)
{
	ssize_t rc = weft_ops_msg.injectdata(ep, buf, len, data, dest);

	return rc == -FI_EAGAIN ? again(ep, buf, len, dest, data, 0, NULL,
					WEFT_POST_INJECT | WEFT_POST_DATA) : rc;
}

/* Vectors of one element take the fast path; longer ones are Go's already. */
static ssize_t dgram_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			   fi_addr_t dest, void *context)
{
	if (count == 1 && iov)
		return dgram_send(ep, iov->iov_base, iov->iov_len, NULL, dest, context);
	return weft_ops_msg.sendv(ep, iov, desc, count, dest, context);
}

static ssize_t dgram_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	ssize_t rc = weft_ops_msg.sendmsg(ep, msg, flags);

	if (rc != -FI_EAGAIN || msg->iov_count != 1)
		return rc;
	return again(ep, msg->msg_iov->iov_base, msg->msg_iov->iov_len, msg->addr, msg->data, flags,
		     msg->context, flags & FI_REMOTE_CQ_DATA ? WEFT_POST_DATA : 0);
}

struct fi_ops_msg weft_dgram_msg = {
	.size = sizeof(struct fi_ops_msg),
	.recv = weft_msg_recv,
	.recvv = weft_msg_recvv,
	.recvmsg = weft_msg_recvmsg,
	.send = dgram_send,
	.sendv = dgram_sendv,
	.sendmsg = dgram_sendmsg,
	.inject = dgram_inject,
	.senddata = dgram_senddata,
	.injectdata = dgram_injectdata,
};
