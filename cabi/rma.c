/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Posting of reads and writes: struct fi_ops_rma.
 */
#include "bounce.h"
#include "rma.h"
#include "rma_copy.h"
#include "rma_posting.h"
#include "trace.h"

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

static ssize_t rma_read(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src,
			uint64_t addr, uint64_t key, void *context)
{
	struct iovec iov = { buf, len };
	struct weft_copy c = {
		.buf = buf, .len = len, .dest = src, .addr = addr, .key = key, .context = context,
		.flags = EP(ep)->tx_op_flags & ~NOT_FOR_READS, .read = true,
	};
	ssize_t rc = weft_rma_copy(EP(ep), &c);

	if (rc != WEFT_RMA_TO_GO)
		return rc;
	return rma_readv(ep, &iov, &desc, 1, src, addr, key, context);
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
	ssize_t rc = WEFT_RMA_TO_GO;

	if (one_piece(msg)) {
		struct weft_copy c = {
			.buf = msg->msg_iov->iov_base, .len = msg->msg_iov->iov_len, .dest = msg->addr,
			.addr = msg->rma_iov->addr, .key = msg->rma_iov->key, .context = msg->context,
			.flags = flags, .read = true,
		};
		rc = weft_rma_copy(EP(ep), &c);
	}
	if (rc != WEFT_RMA_TO_GO)
		return rc;
	return post_msg(ep, msg, flags, WEFT_RMA_READ);
}

static ssize_t rma_writev(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			  fi_addr_t dest, uint64_t addr, uint64_t key, void *context)
{
	(void)desc;
	return post_vec(EP(ep), iov, count, dest, addr, key, 0, context,
			EP(ep)->tx_op_flags & ~NOT_FOR_WRITES, 0);
}

/* A write of one piece. */
struct put {
	const void *buf;
	size_t len;
	fi_addr_t dest;
	uint64_t addr;
	uint64_t key;
	uint64_t data;
	uint64_t flags;
	void *context;
	bool has_data;
	bool inject; /* fi_inject forms: no completion, whatever the flags */
};

/* Sends a write whose payload lies in a bounce buffer. Returns what weft_rma_send does, or WEFT_RMA_TO_GO
 * if none is free. */
static int send_bounced(struct weft_hot_ep *ep, struct weft_hot_peer *peer, const struct weft_ring *ring,
			struct weft_message *m, const struct put *p)
{
	struct weft_hot_stripe *stripe = weft_stripe_take(ep);
	struct weft_bounce_ref ref = { 0 };
	struct weft_bounce *bounce;
	int rc = WEFT_RMA_TO_GO;

	if (!stripe)
		return -FI_EAGAIN;
	bounce = weft_bounce_free(stripe, &ref.index);
	if (bounce) {
		m->flags = WEFT_SLOT_BOUNCE;
		m->part[0] = &ref;
		m->bytes[0] = sizeof(ref);
		bounce->peer = peer->peer;
		memcpy(bounce->payload, p->buf, p->len);
		atomic_store_explicit(&bounce->state, peer->owner, memory_order_release); /* ↔ freeDeadBounces: for whom it is */
		rc = weft_rma_send(ep, peer, ring, m, p->flags, p->context, p->inject);
		if (rc == -FI_EAGAIN)
			atomic_store_explicit(&bounce->state, 0, memory_order_release);
		weft_bounce_prefetch(stripe);
	}
	weft_stripe_give(ep, stripe);
	return rc;
}

/* Posts a write as a message: one that fits a slot of the peer's ring, or bounced: one that does not, and
 * for which a system call is too much. It completes when it is there, so
 * one that is to complete later is Go's. 0, -FI_EAGAIN or WEFT_RMA_TO_GO. */
WEFT_POSTED ssize_t write_message(struct weft_ep_obj *o, const struct put *p, bool bounced)
{
	struct weft_hot_ep *ep = o->hot;
	struct weft_hot_peer *peer = weft_rma_peer(ep, p->dest);
	struct weft_write_head head = {
		.key = p->key, .flags = WEFT_WRITE_LAST | (p->has_data ? WEFT_WRITE_DATA : 0),
		.data = p->data, .length = p->len,
	};
	struct weft_message m = {
		.am_id = WEFT_AM_WRITE, .addr = p->addr, .head = &head,
		.head_bytes = p->has_data ? WEFT_WRITE_HEAD_DATA : WEFT_WRITE_HEAD,
		.length = p->len, .part = { p->buf }, .bytes = { p->len },
	};
	struct weft_poster *me;
	struct weft_ring ring;
	ssize_t rc = WEFT_RMA_TO_GO;

	if (!peer || !p->buf || !p->len || (p->len > WEFT_SLOT_BODY - m.head_bytes) != bounced ||
	    (bounced && (p->len >= WEFT_COPY_MIN_WRITE || p->len > ep->eager_max)) ||
	    p->flags & ~WEFT_PUT_FLAGS || ((p->inject || p->flags & FI_INJECT) && p->len > ep->inject_max))
		return WEFT_RMA_TO_GO;
	me = weft_post_begin();
	if (!me)
		return WEFT_RMA_TO_GO;
	if (weft_peer_ring(peer, &ring) && weft_rma_allowed(peer, p->key, p->addr, p->len, WEFT_KEY_WRITE))
		rc = bounced ? send_bounced(ep, peer, &ring, &m, p) :
			       weft_rma_send(ep, peer, &ring, &m, p->flags, p->context, p->inject);
	weft_post_end(me);
	rc = weft_rma_settle(ep, rc);
	if (!rc) {
		weft_post_count(ep, WEFT_STAT_TX_WRITE, 1);
		weft_post_count(ep, WEFT_STAT_TX_WRITE_BYTES, p->len);
	}
	return rc;
}

static __attribute__((noinline)) ssize_t write_long(struct weft_ep_obj *o, const struct put *p)
{
	struct iovec iov = { (void *)p->buf, p->len };
	struct weft_copy c = {
		.buf = iov.iov_base, .len = p->len, .dest = p->dest, .addr = p->addr, .key = p->key,
		.flags = p->flags, .context = p->context, .inject = p->inject,
	};
	ssize_t rc = write_message(o, p, true);

	if (rc == WEFT_RMA_TO_GO && !p->has_data)
		rc = weft_rma_copy(o, &c);
	if (rc != WEFT_RMA_TO_GO)
		return rc;
	return post_vec(o, &iov, 1, p->dest, p->addr, p->key, p->data, p->context, p->flags,
			(p->inject ? WEFT_RMA_INJECT : 0) | (p->has_data ? WEFT_RMA_DATA : 0));
}

WEFT_POSTED ssize_t write_one(struct weft_ep_obj *o, struct put p)
{
	ssize_t rc = write_message(o, &p, false);

	if (__builtin_expect(rc != WEFT_RMA_TO_GO, 1))
		return rc;
	struct put copy = p; /* that p has no address, and stays in registers */
	return write_long(o, &copy);
}

static ssize_t rma_write(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			 fi_addr_t dest, uint64_t addr, uint64_t key, void *context)
{
	(void)desc;
	return write_one(EP(ep), (struct put){
		.buf = buf, .len = len, .dest = dest, .addr = addr, .key = key, .context = context,
		.flags = EP(ep)->tx_op_flags & ~NOT_FOR_WRITES });
}

static ssize_t rma_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	if (one_piece(msg))
		return write_one(EP(ep), (struct put){
			.buf = msg->msg_iov->iov_base, .len = msg->msg_iov->iov_len, .dest = msg->addr,
			.addr = msg->rma_iov->addr, .key = msg->rma_iov->key, .data = msg->data,
			.has_data = flags & FI_REMOTE_CQ_DATA, .flags = flags, .context = msg->context });
	return post_msg(ep, msg, flags, flags & FI_REMOTE_CQ_DATA ? WEFT_RMA_DATA : 0);
}

static ssize_t rma_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest,
			  uint64_t addr, uint64_t key)
{
	return write_one(EP(ep), (struct put){
		.buf = buf, .len = len, .dest = dest, .addr = addr, .key = key,
		.flags = weft_inject_flags(EP(ep), false), .inject = true });
}

static ssize_t rma_writedata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			     uint64_t data, fi_addr_t dest, uint64_t addr, uint64_t key,
			     void *context)
{
	(void)desc;
	return write_one(EP(ep), (struct put){
		.buf = buf, .len = len, .dest = dest, .addr = addr, .key = key, .data = data,
		.has_data = true, .context = context,
		.flags = EP(ep)->tx_op_flags & ~NOT_FOR_WRITES });
}

static ssize_t rma_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
			      fi_addr_t dest, uint64_t addr, uint64_t key)
{
	return write_one(EP(ep), (struct put){
		.buf = buf, .len = len, .dest = dest, .addr = addr, .key = key, .data = data,
		.has_data = true, .flags = weft_inject_flags(EP(ep), false), .inject = true });
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
