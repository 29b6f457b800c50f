/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Posting messages. A small message to a peer whose inbound ring
 * this process can write goes out from here; everything else is one call into
 * Go. No protocol, matching or policy lives in this file: it acts on the
 * tables of plain words in hot.h.
 *
 * Order of steps for a message: room for the message and for its completion is
 * looked for first, and nothing is taken of either if one has none. So a post
 * that is refused leaves no trace, however often it is tried. Then the message
 * goes out and the completion is written. Should another thread have taken its
 * place meanwhile, Go keeps it until there is room: it is never lost.
 */
#include <string.h>
#include <time.h>
#include <rdma/fi_errno.h>

#include "bounce.h"
#include "posting.h"
#include "trace.h"

/* Flags of a call that the fast path understands; any other goes to Go. */
#define FAST_TX_FLAGS                                                                              \
	(FI_COMPLETION | FI_MORE | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |         \
	 FI_REMOTE_CQ_DATA)

/* One transmit, as all entry points of this file see it. */
struct post {
	const void *buf;
	size_t len;
	fi_addr_t dest;
	uint64_t tag;
	uint64_t data;
	uint64_t flags;
	void *context;
	bool tagged;
	bool has_data;
	bool inject; /* fi_inject forms: no completion, whatever the flags */
};

static inline uint32_t am_id(const struct post *p)
{
	uint32_t id = p->tagged ? WEFT_AM_TAG : WEFT_AM_MSG;
	return id + p->has_data;
}

static inline void copy_small(uint8_t *dst, const void *src, size_t len)
{
	if (len == 8)
		memcpy(dst, src, 8);
	else
		memcpy(dst, src, len);
}

/* Writes the message into the peer's ring. Returns 0 or -FI_EAGAIN, then
 * nothing happened. */
static inline int push(const struct weft_ring *ring, const struct weft_hot_peer *peer,
		       const struct post *p, struct weft_bounce *bounce, uint32_t bounce_index)
{
	uint32_t owner = peer->owner;
	uint64_t pos;
	struct weft_slot *slot = weft_lane_claim(peer, ring, &pos);
	uint8_t *body;

	if (!slot)
		return -FI_EAGAIN;
	slot->am_id = am_id(p);
	slot->flags = bounce ? WEFT_SLOT_BOUNCE : 0;
	slot->head = p->has_data ? sizeof(p->data) : 0;
	slot->length = p->len;
	slot->header = p->tag;
	body = slot->body;
	if (p->has_data) {
		memcpy(body, &p->data, sizeof(p->data));
		body += sizeof(p->data);
	}
	if (bounce) {
		struct weft_bounce_ref ref = { .index = bounce_index };
		memcpy(body, &ref, sizeof(ref));
		atomic_store_explicit(&bounce->state, owner, memory_order_release); /* ↔ freeDeadBounces: for whom it is */
	} else {
		copy_small(body, p->buf, p->len);
	}
	weft_ring_publish(ring, &slot->seq, owner, pos);
	weft_prefetch_write(weft_ring_slot(ring, pos + WEFT_PREFETCH_SLOTS));
	return 0;
}

/* Counts a push: what and the word after it are the messages and bytes of its kind. */
static inline void count_sent(const struct weft_hot_ep *ep, const struct post *p, int rc,
			      enum weft_stat_thread what)
{
	if (__builtin_expect(rc != 0, 0)) {
		weft_post_count(ep, WEFT_STAT_EAGAIN_RING, 1);
		return;
	}
	weft_post_count(ep, what, 1);
	weft_post_count(ep, what + 1, p->len);
}

/* What posting returns when the message is out and triggers may have fired, and when Go is to
 * send it. */
#define TRIGGERED 1
#define TO_GO 2

/* No bounce buffer is free: once that has been so for long, Go announces the message
 * (provider/starved.go, which reckons like this). */
static int no_bounce(const struct weft_hot_ep *ep, struct weft_hot_stripe *stripe)
{
	struct timespec t;
	uint32_t now;

	weft_post_count(ep, WEFT_STAT_EAGAIN_BOUNCE, 1);
	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	now = (uint32_t)(t.tv_sec * 1000 + t.tv_nsec / 1000000) | 1;
	if (!stripe->starved)
		stripe->starved = now;
	return now - stripe->starved >= WEFT_STARVED_MS ? TO_GO : -FI_EAGAIN;
}

/* Sends p, through a bounce buffer if it is too long for the ring's slot. */
static int transmit(struct weft_hot_ep *ep, struct weft_hot_peer *peer, const struct weft_ring *ring,
		    const struct post *p)
{
	struct weft_hot_stripe *stripe;
	struct weft_bounce *bounce;
	uint32_t index;
	int rc;

	if (p->len + (p->has_data ? sizeof(p->data) : 0) <= WEFT_SLOT_BODY) {
		rc = push(ring, peer, p, NULL, 0);
		count_sent(ep, p, rc, WEFT_STAT_TX_INLINE);
		return rc;
	}
	stripe = weft_stripe_take(ep);
	if (!stripe)
		return -FI_EAGAIN;
	bounce = weft_bounce_free(stripe, &index);
	if (bounce) {
		bounce->peer = peer->peer;
		memcpy(bounce->payload, p->buf, p->len);
		rc = push(ring, peer, p, bounce, index);
		count_sent(ep, p, rc, WEFT_STAT_TX_BOUNCE);
		weft_bounce_prefetch(stripe);
	} else {
		rc = no_bounce(ep, stripe);
	}
	weft_stripe_give(ep, stripe);
	return rc;
}

/* Completes a message that is out. 0 or TRIGGERED. */
static inline int finish(const struct weft_hot_ep *ep, const struct weft_end *end, const struct post *p)
{
	return weft_end_done(end, ep->tx_cntr, FI_SEND | (p->tagged ? FI_TAGGED : FI_MSG), p->context,
			     p->len) ? TRIGGERED : 0;
}

static int post_fast(struct weft_hot_ep *ep, struct weft_hot_peer *peer, unsigned char *slots,
		     const struct post *p)
{
	struct weft_ring ring = { slots, peer->tail, peer->log2_slots, WEFT_SLOT_BYTES };
	struct weft_end end;
	int rc;

	if (!weft_ring_room(&ring)) {
		weft_post_count(ep, WEFT_STAT_EAGAIN_RING, 1);
		return -FI_EAGAIN;
	}
	if (!weft_end_room(ep, p->flags, p->inject, &end))
		return -FI_EAGAIN;
	rc = transmit(ep, peer, &ring, p);
	if (rc)
		return rc;
	rc = finish(ep, &end, p);
	weft_peer_wake(ep, peer);
	return rc;
}

/* Whether a message to another host may be held until the next read of the queue that it
 * completes on: who waits for its completion sends it so. */
static uint8_t may_hold(const struct weft_hot_ep *ep, const struct weft_hot_rx *rx, const struct weft_end *end,
			const struct post *p)
{
	if (!end->cq || ep->tx_cntr || !(end->cq->flags & WEFT_CQ_EXCLUSIVE) || !(rx->flags & WEFT_EXCLUSIVE))
		return WEFT_HOLD_NEVER;
	return p->flags & FI_MORE ? WEFT_HOLD_MORE : WEFT_HOLD_IN_ROW;
}

/* Sends to a peer that is reached by a port of C's, if polls look at it for this endpoint's sake: its
 * answers are worth looking for. That they do for another one with the same receive context may end
 * before what is held here is sent. */
static __attribute__((noinline)) int post_path(struct weft_hot_ep *ep, uint64_t line,
					       const struct post *p)
{
	struct weft_hot_path *path = atomic_load_explicit(&ep->paths[line], memory_order_acquire);
	struct weft_hot_rx *rx = atomic_load_explicit(&ep->rx, memory_order_acquire);
	uint32_t head = p->has_data ? sizeof(p->data) : 0;
	struct weft_end end;
	struct weft_port_message m = { .header = p->tag, .head = (const void *)&p->data,
				       .payload = p->buf, .length = p->len, .head_bytes = head,
				       .id = am_id(p) };
	int rc;

	if (!path || p->len + head > path->max || p->flags & FI_TRANSMIT_COMPLETE ||
	    !atomic_load_explicit(&ep->port_active, memory_order_relaxed))
		return TO_GO;
	if (!weft_end_room(ep, p->flags, p->inject, &end))
		return -FI_EAGAIN;
	m.hold = may_hold(ep, rx, &end, p);
	rc = path->send(path, &m);
	if (rc == WEFT_PATH_GO)
		return TO_GO;
	if (rc == WEFT_PATH_HELD)
		atomic_store_explicit(&end.cq->held, 1, memory_order_relaxed);
	rc = rc == WEFT_PATH_FULL ? -FI_EAGAIN : 0;
	count_sent(ep, p, rc, WEFT_STAT_TX_INLINE);
	return rc ? rc : finish(ep, &end, p);
}

static inline __attribute__((always_inline)) ssize_t post(struct weft_ep_obj *o, struct post p)
{
	struct weft_hot_ep *ep = o->hot;
	uint64_t line;

	if (ep && weft_ep_fast(ep) && (line = weft_peer_line(ep, p.dest)) != UINT64_MAX &&
	    p.len <= ep->eager_max && (p.buf || !p.len) && !(p.flags & ~FAST_TX_FLAGS) &&
	    !((p.inject || p.flags & FI_INJECT) && p.len > ep->inject_max)) {
		struct weft_hot_peer *peer = &ep->peers[line];
		struct weft_poster *me = weft_post_begin();
		unsigned char *slots =
			me ? atomic_load_explicit(&peer->slots, memory_order_acquire) : NULL;

		int rc = TO_GO;

		if (slots) {
			uint32_t state = atomic_load_explicit(peer->rx_state, memory_order_acquire);
			if ((state & (WEFT_RX_OPEN | WEFT_RX_GONE)) == WEFT_RX_OPEN)
				rc = post_fast(ep, peer, slots, &p);
		} else if (me && ep->paths) {
			rc = post_path(ep, line, &p);
		}
		if (me)
			weft_post_end(me);
		if (__builtin_expect(rc == TRIGGERED, 0)) {
			weftGoTriggered(ep->handle);
			return 0;
		}
		if (__builtin_expect(rc != TO_GO, 1))
			return rc;
	}
	struct iovec iov = { (void *)p.buf, p.len };
	return weft_post_slow(o, &iov, 1, &p.dest, p.tag, p.data, p.flags, p.context,
			      (p.tagged ? WEFT_SEND_TAGGED : 0) | (p.has_data ? WEFT_SEND_DATA : 0) |
				      (p.inject ? WEFT_SEND_INJECT : 0));
}

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

#define EP(fid_ep) container_of(fid_ep, struct weft_ep_obj, fid)

/* ---- tagged ---- */

static ssize_t tsend(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest,
		     uint64_t tag, void *context)
{
	(void)desc;
	return post(EP(ep), (struct post){ .buf = buf, .len = len, .dest = dest, .tag = tag,
					   .flags = EP(ep)->tx_op_flags, .context = context,
					   .tagged = true });
}

static ssize_t tsenddata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
			 fi_addr_t dest, uint64_t tag, void *context)
{
	(void)desc;
	return post(EP(ep), (struct post){ .buf = buf, .len = len, .dest = dest, .tag = tag,
					   .data = data, .has_data = true,
					   .flags = EP(ep)->tx_op_flags, .context = context,
					   .tagged = true });
}

static ssize_t tinject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest, uint64_t tag)
{
	return post(EP(ep), (struct post){ .buf = buf, .len = len, .dest = dest, .tag = tag,
					   .tagged = true, .inject = true,
					   .flags = weft_inject_flags(EP(ep), true) });
}

static ssize_t tinjectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
			   fi_addr_t dest, uint64_t tag)
{
	return post(EP(ep), (struct post){ .buf = buf, .len = len, .dest = dest, .tag = tag,
					   .data = data, .has_data = true, .tagged = true,
					   .inject = true,
					   .flags = weft_inject_flags(EP(ep), true) });
}

static ssize_t tsendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
		      fi_addr_t dest, uint64_t tag, void *context)
{
	(void)desc;
	if (!iov && count)
		return -FI_EINVAL;
	if (count == 1)
		return tsend(ep, iov->iov_base, iov->iov_len, NULL, dest, tag, context);
	return weft_post_slow(EP(ep), iov, count, &dest, tag, 0, EP(ep)->tx_op_flags, context,
			      WEFT_SEND_TAGGED);
}

static ssize_t tsendmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct weft_ep_obj *o = EP(ep);
	bool data = flags & FI_REMOTE_CQ_DATA;

	if (!msg || (!msg->msg_iov && msg->iov_count))
		return -FI_EINVAL;
	if (msg->iov_count == 1)
		return post(o, (struct post){ .buf = msg->msg_iov->iov_base,
					      .len = msg->msg_iov->iov_len, .dest = msg->addr,
					      .tag = msg->tag, .data = msg->data, .has_data = data,
					      .flags = flags, .context = msg->context,
					      .tagged = true });
	return weft_post_slow(o, msg->msg_iov, msg->iov_count, &msg->addr, msg->tag, msg->data,
			      flags, msg->context,
			      WEFT_SEND_TAGGED | (data ? WEFT_SEND_DATA : 0));
}

/* ---- untagged ---- */

static ssize_t msg_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest,
			void *context)
{
	(void)desc;
	return post(EP(ep), (struct post){ .buf = buf, .len = len, .dest = dest,
					   .flags = EP(ep)->tx_op_flags, .context = context });
}

static ssize_t msg_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			    uint64_t data, fi_addr_t dest, void *context)
{
	(void)desc;
	return post(EP(ep), (struct post){ .buf = buf, .len = len, .dest = dest, .data = data,
					   .has_data = true, .flags = EP(ep)->tx_op_flags,
					   .context = context });
}

static ssize_t msg_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest)
{
	return post(EP(ep), (struct post){ .buf = buf, .len = len, .dest = dest, .inject = true,
					   .flags = weft_inject_flags(EP(ep), true) });
}

static ssize_t msg_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
			      fi_addr_t dest)
{
	return post(EP(ep), (struct post){ .buf = buf, .len = len, .dest = dest, .data = data,
					   .has_data = true, .inject = true,
					   .flags = weft_inject_flags(EP(ep), true) });
}

static ssize_t msg_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t dest, void *context)
{
	(void)desc;
	if (!iov && count)
		return -FI_EINVAL;
	if (count == 1)
		return msg_send(ep, iov->iov_base, iov->iov_len, NULL, dest, context);
	return weft_post_slow(EP(ep), iov, count, &dest, 0, 0, EP(ep)->tx_op_flags, context, 0);
}

static ssize_t msg_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	struct weft_ep_obj *o = EP(ep);
	bool data = flags & FI_REMOTE_CQ_DATA;

	if (!msg || (!msg->msg_iov && msg->iov_count))
		return -FI_EINVAL;
	if (msg->iov_count == 1)
		return post(o, (struct post){ .buf = msg->msg_iov->iov_base,
					      .len = msg->msg_iov->iov_len, .dest = msg->addr,
					      .data = msg->data, .has_data = data, .flags = flags,
					      .context = msg->context });
	return weft_post_slow(o, msg->msg_iov, msg->iov_count, &msg->addr, 0, msg->data, flags,
			      msg->context, data ? WEFT_SEND_DATA : 0);
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
