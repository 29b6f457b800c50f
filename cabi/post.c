/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Posting messages: struct fi_ops_msg and struct fi_ops_tagged. What the data plane does not post is one call into
 * the runtime.
 */
#include "posting.h"

#define EP(fid_ep) container_of(fid_ep, struct weft_ep_obj, fid)

ssize_t weft_post_slow(struct weft_ep_obj *o, const struct iovec *iov, size_t count,
		       const fi_addr_t *dest, uint64_t tag, uint64_t data, uint64_t flags,
		       void *context, uint32_t kind)
{
	struct weft_send_args args = {
		.iov = iov, .count = count, .dest = *dest, .tag = tag, .data = data,
		.flags = flags, .context = (uintptr_t)context, .kind = kind,
	};

	return weftGoSend(o->handle, &args);
}

/* A message of one piece. kind is WEFT_POST_*. */
static inline __attribute__((always_inline)) ssize_t send_one(struct fid_ep *ep, const void *buf, size_t len,
							      fi_addr_t dest, uint64_t tag, uint64_t data,
							      uint64_t flags, void *context, uint32_t kind)
{
	struct iovec iov = { (void *)buf, len };
	struct weft_post p; /* the data plane reads nothing that is not set here */
	ssize_t rc;

	p.buf = buf;
	p.len = len;
	p.dest = dest;
	p.header = tag;
	p.data = data;
	p.flags = flags;
	p.context = (uintptr_t)context;
	p.kind = kind;
	rc = weft_post(EP(ep), WEFT_PLANE_SEND, &p);
	if (__builtin_expect(rc != WEFT_POST_TO_GO, 1))
		return rc;
	return weft_post_slow(EP(ep), &iov, 1, &dest, tag, data, flags, context, kind);
}

static ssize_t send_vector(struct fid_ep *ep, const struct iovec *iov, size_t count, fi_addr_t dest, uint64_t tag,
			   uint64_t data, uint64_t flags, void *context, uint32_t kind)
{
	if (!iov && count)
		return -FI_EINVAL;
	if (count == 1)
		return send_one(ep, iov->iov_base, iov->iov_len, dest, tag, data, flags, context, kind);
	return weft_post_slow(EP(ep), iov, count, &dest, tag, data, flags, context, kind);
}

/* ---- tagged ---- */

static ssize_t tsend(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest,
		     uint64_t tag, void *context)
{
	(void)desc;
	return send_one(ep, buf, len, dest, tag, 0, EP(ep)->tx_op_flags, context, WEFT_POST_TAGGED);
}

static ssize_t tsenddata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
			 fi_addr_t dest, uint64_t tag, void *context)
{
	(void)desc;
	return send_one(ep, buf, len, dest, tag, data, EP(ep)->tx_op_flags, context,
			WEFT_POST_TAGGED | WEFT_POST_DATA);
}

static ssize_t tinject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest, uint64_t tag)
{
	return send_one(ep, buf, len, dest, tag, 0, weft_inject_flags(EP(ep), true), NULL,
			WEFT_POST_TAGGED | WEFT_POST_INJECT);
}

static ssize_t tinjectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
			   fi_addr_t dest, uint64_t tag)
{
	return send_one(ep, buf, len, dest, tag, data, weft_inject_flags(EP(ep), true), NULL,
			WEFT_POST_TAGGED | WEFT_POST_DATA | WEFT_POST_INJECT);
}

static ssize_t tsendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
		      fi_addr_t dest, uint64_t tag, void *context)
{
	(void)desc;
	return send_vector(ep, iov, count, dest, tag, 0, EP(ep)->tx_op_flags, context, WEFT_POST_TAGGED);
}

static ssize_t tsendmsg(struct fid_ep *ep, const struct fi_msg_tagged *m, uint64_t flags)
{
	if (!m)
		return -FI_EINVAL;
	return send_vector(ep, m->msg_iov, m->iov_count, m->addr, m->tag, m->data, flags, m->context,
			   WEFT_POST_TAGGED | (flags & FI_REMOTE_CQ_DATA ? WEFT_POST_DATA : 0));
}

/* ---- untagged ---- */

static ssize_t msg_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest,
			void *context)
{
	(void)desc;
	return send_one(ep, buf, len, dest, 0, 0, EP(ep)->tx_op_flags, context, 0);
}

static ssize_t msg_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			    uint64_t data, fi_addr_t dest, void *context)
{
	(void)desc;
	return send_one(ep, buf, len, dest, 0, data, EP(ep)->tx_op_flags, context, WEFT_POST_DATA);
}

static ssize_t msg_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest)
{
	return send_one(ep, buf, len, dest, 0, 0, weft_inject_flags(EP(ep), true), NULL, WEFT_POST_INJECT);
}

static ssize_t msg_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
			      fi_addr_t dest)
{
	return send_one(ep, buf, len, dest, 0, data, weft_inject_flags(EP(ep), true), NULL,
			WEFT_POST_DATA | WEFT_POST_INJECT);
}

static ssize_t msg_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t dest, void *context)
{
	(void)desc;
	return send_vector(ep, iov, count, dest, 0, 0, EP(ep)->tx_op_flags, context, 0);
}

static ssize_t msg_sendmsg(struct fid_ep *ep, const struct fi_msg *m, uint64_t flags)
{
	if (!m)
		return -FI_EINVAL;
	return send_vector(ep, m->msg_iov, m->iov_count, m->addr, 0, m->data, flags, m->context,
			   flags & FI_REMOTE_CQ_DATA ? WEFT_POST_DATA : 0);
}

WEFT_TRACED(msg_send); WEFT_TRACED(msg_sendv); WEFT_TRACED(msg_sendmsg); WEFT_TRACED(msg_inject);
WEFT_TRACED(msg_senddata); WEFT_TRACED(msg_injectdata); WEFT_TRACED(tsend); WEFT_TRACED(tsendv);
WEFT_TRACED(tsendmsg); WEFT_TRACED(tinject); WEFT_TRACED(tsenddata); WEFT_TRACED(tinjectdata);

struct fi_ops_msg weft_ops_msg = {
	.size = sizeof(struct fi_ops_msg),
	.recv = weft_msg_recv,
	.recvv = weft_msg_recvv,
	.recvmsg = weft_msg_recvmsg,
	.send = msg_send,
	.sendv = msg_sendv,
	.sendmsg = msg_sendmsg,
	.inject = msg_inject,
	.senddata = msg_senddata,
	.injectdata = msg_injectdata,
};

struct fi_ops_tagged weft_ops_tagged = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = weft_trecv,
	.recvv = weft_trecvv,
	.recvmsg = weft_trecvmsg,
	.send = tsend,
	.sendv = tsendv,
	.sendmsg = tsendmsg,
	.inject = tinject,
	.senddata = tsenddata,
	.injectdata = tinjectdata,
};
