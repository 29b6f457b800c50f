/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Posting of reads and writes: struct fi_ops_rma.
 */
#include "posting.h"
#include "rma.h"

#define EP(fid_ep) WEFT_OBJ(fid_ep, struct weft_ep_obj)

/* Defaults of a context that mean nothing for an operation of this kind. */
#define NOT_FOR_READS (FI_INJECT | FI_MATCH_COMPLETE)
#define NOT_FOR_WRITES FI_MATCH_COMPLETE

static ssize_t post(struct weft_ep_obj *o, struct weft_rma_args *args)
{
	return weftGoRMA(o->handle, args);
}

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
	return post(o, &args);
}

static ssize_t rma_readv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t src, uint64_t addr, uint64_t key, void *context)
{
	(void)desc;
	return post_vec(EP(ep), iov, count, src, addr, key, 0, context,
			EP(ep)->tx_op_flags & ~NOT_FOR_READS, WEFT_RMA_READ);
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
	return post_vec(o, iov, 1, dest, addr, key, data, context, flags,
			(kind & WEFT_POST_READ ? WEFT_RMA_READ : 0) | (kind & WEFT_POST_DATA ? WEFT_RMA_DATA : 0) |
				(kind & WEFT_POST_INJECT ? WEFT_RMA_INJECT : 0));
}

static ssize_t rma_read(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src,
			uint64_t addr, uint64_t key, void *context)
{
	struct iovec iov = { buf, len };

	(void)desc;
	return post_one(EP(ep), &iov, src, addr, key, 0, context, EP(ep)->tx_op_flags & ~NOT_FOR_READS,
			WEFT_POST_READ);
}

static ssize_t post_msg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags,
			uint32_t kind)
{
	struct weft_rma_args args;

	if (!msg || (!msg->msg_iov && msg->iov_count) || (!msg->rma_iov && msg->rma_iov_count))
		return -FI_EINVAL;
	args = (struct weft_rma_args){
		.iov = msg->msg_iov, .count = msg->iov_count, .remote = msg->rma_iov,
		.remote_count = msg->rma_iov_count, .dest = msg->addr, .data = msg->data,
		.flags = flags, .context = (uintptr_t)msg->context, .kind = kind,
	};
	return post(EP(ep), &args);
}

/* Tells whether a message is of one piece here and there. */
static bool one_piece(const struct fi_msg_rma *m)
{
	return m && m->msg_iov && m->iov_count == 1 && m->rma_iov && m->rma_iov_count == 1 &&
	       m->msg_iov->iov_len == m->rma_iov->len;
}

static ssize_t rma_readmsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	if (one_piece(msg))
		return post_one(EP(ep), msg->msg_iov, msg->addr, msg->rma_iov->addr, msg->rma_iov->key, 0,
				msg->context, flags, WEFT_POST_READ);
	return post_msg(ep, msg, flags, WEFT_RMA_READ);
}

static ssize_t rma_writev(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			  fi_addr_t dest, uint64_t addr, uint64_t key, void *context)
{
	(void)desc;
	return post_vec(EP(ep), iov, count, dest, addr, key, 0, context,
			EP(ep)->tx_op_flags & ~NOT_FOR_WRITES, 0);
}

static ssize_t rma_write(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			 fi_addr_t dest, uint64_t addr, uint64_t key, void *context)
{
	struct iovec iov = { (void *)buf, len };

	(void)desc;
	return post_one(EP(ep), &iov, dest, addr, key, 0, context, EP(ep)->tx_op_flags & ~NOT_FOR_WRITES, 0);
}

static ssize_t rma_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	bool data = flags & FI_REMOTE_CQ_DATA;

	if (one_piece(msg))
		return post_one(EP(ep), msg->msg_iov, msg->addr, msg->rma_iov->addr, msg->rma_iov->key, msg->data,
				msg->context, flags, data ? WEFT_POST_DATA : 0);
	return post_msg(ep, msg, flags, data ? WEFT_RMA_DATA : 0);
}

static ssize_t rma_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest,
			  uint64_t addr, uint64_t key)
{
	struct iovec iov = { (void *)buf, len };

	return post_one(EP(ep), &iov, dest, addr, key, 0, NULL, weft_inject_flags(EP(ep), false), WEFT_POST_INJECT);
}

static ssize_t rma_writedata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			     uint64_t data, fi_addr_t dest, uint64_t addr, uint64_t key,
			     void *context)
{
	struct iovec iov = { (void *)buf, len };

	(void)desc;
	return post_one(EP(ep), &iov, dest, addr, key, data, context, EP(ep)->tx_op_flags & ~NOT_FOR_WRITES,
			WEFT_POST_DATA);
}

static ssize_t rma_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
			      fi_addr_t dest, uint64_t addr, uint64_t key)
{
	struct iovec iov = { (void *)buf, len };

	return post_one(EP(ep), &iov, dest, addr, key, data, NULL, weft_inject_flags(EP(ep), false),
			WEFT_POST_DATA | WEFT_POST_INJECT);
}

WEFT_TRACED(rma_read); WEFT_TRACED(rma_readv); WEFT_TRACED(rma_readmsg); WEFT_TRACED(rma_write);
WEFT_TRACED(rma_writev); WEFT_TRACED(rma_writemsg); WEFT_TRACED(rma_inject);
WEFT_TRACED(rma_writedata); WEFT_TRACED(rma_injectdata);

struct fi_ops_rma weft_ops_rma = {
	.size = sizeof(struct fi_ops_rma),
	.read = rma_read,
	.readv = rma_readv,
	.readmsg = rma_readmsg,
	.write = rma_write,
	.writev = rma_writev,
	.writemsg = rma_writemsg,
	.inject = rma_inject,
	.writedata = rma_writedata,
	.injectdata = rma_injectdata,
};
