/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Posting of atomic operations on one integer (rma_posting.h).
 */
#include "rma_posting.h"

/* A fetched result is as complete as can be when it is here. */
#define FETCH_FLAGS (FI_COMPLETION | FI_MORE | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE)

/* Takes a free entry of a leased stripe, NULL when all wait for answers. */
static struct weft_hot_fetch *take_fetch(const struct weft_hot_ep *ep, uint32_t number, uint64_t *id)
{
	struct weft_hot_stripe *stripe = &ep->stripes[number];

	for (uint32_t n = 0; n < ep->fetch_count; n++) {
		uint32_t i = stripe->fetch_next;
		uint64_t at = (uint64_t)number * ep->fetch_count + i;
		struct weft_hot_fetch *f = &ep->fetches[at];

		stripe->fetch_next = i + 1 == ep->fetch_count ? 0 : i + 1;
		if (atomic_load_explicit(&f->busy, memory_order_acquire))
			continue;
		f->generation = (f->generation + 1) & INT32_MAX;
		*id = WEFT_FETCH_ID | (uint64_t)f->generation << 32 | at;
		return f;
	}
	return NULL;
}

/* Sends a message that is answered. The caller has the stripe's lease. */
static int send_fetch(struct weft_hot_ep *ep, struct weft_hot_peer *peer, const struct weft_ring *ring,
		      uint32_t stripe, const struct weft_message *m, struct weft_atomic_head *head,
		      const struct weft_atomic_post *p)
{
	struct weft_hot_fetch *f = take_fetch(ep, stripe, &head->request);
	struct weft_slot *slot;
	uint64_t pos;

	if (!f)
		return -FI_EAGAIN;
	slot = weft_lane_claim(peer, ring, &pos);
	if (!slot) {
		weft_post_count(ep, WEFT_STAT_EAGAIN_RING, 1);
		return -FI_EAGAIN;
	}
	f->result = (uintptr_t)p->result;
	f->bytes = m->bytes[0] ? m->bytes[0] : weft_atomic_size(p->kind, p->datatype, p->op);
	f->context = (uintptr_t)p->context;
	f->dest = p->dest;
	f->ring = ring->slots;
	f->completes = (ep->flags & WEFT_EP_TX_ALWAYS || p->flags & FI_COMPLETION) && ep->tx_cq;
	atomic_store_explicit(&f->busy, 1, memory_order_release);
	weft_rma_push(ring, peer, m, slot, pos);
	atomic_store_explicit(&peer->put, pos + 1, memory_order_relaxed);
	/* Should the peer be lost now, either Go sees this entry when it has taken the ring out of
	 * the line, or this sees that it has. */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&peer->slots, memory_order_relaxed) != ring->slots)
		weftGoFetchLost(ep->handle);
	weft_peer_wake(ep, peer);
	return 0;
}

static int with_stripe(struct weft_hot_ep *ep, struct weft_hot_peer *peer, const struct weft_ring *ring,
		       const struct weft_message *m, struct weft_atomic_head *head,
		       const struct weft_atomic_post *p)
{
	struct weft_hot_stripe *stripe = weft_stripe_take(ep);
	int rc;

	if (!stripe)
		return -FI_EAGAIN;
	rc = send_fetch(ep, peer, ring, stripe - ep->stripes, m, head, p);
	weft_stripe_give(ep, stripe);
	return rc;
}

static inline uint32_t rights_of(const struct weft_atomic_post *p)
{
	if (p->op == FI_ATOMIC_READ)
		return WEFT_KEY_READ;
	return p->kind == WEFT_ATOMIC_PLAIN ? WEFT_KEY_WRITE : WEFT_KEY_WRITE | WEFT_KEY_READ;
}

ssize_t weft_rma_atomic(struct weft_ep_obj *o, const struct weft_atomic_post *p)
{
	struct weft_hot_ep *ep = o->hot;
	struct weft_hot_peer *peer = weft_rma_peer(ep, p->dest);
	uint32_t size = weft_atomic_size(p->kind, p->datatype, p->op);
	bool plain = p->kind == WEFT_ATOMIC_PLAIN;
	struct weft_atomic_head head = {
		.key = p->key, .op = p->op, .datatype = p->datatype, .kind = p->kind, .last = 1, .count = 1,
	};
	struct weft_message m = {
		.am_id = WEFT_AM_ATOMIC, .addr = p->addr, .head = &head, .head_bytes = sizeof(head),
		.part = { p->operand, p->compare },
		.bytes = { p->op == FI_ATOMIC_READ ? 0 : size, p->kind == WEFT_ATOMIC_COMPARE ? size : 0 },
	};
	struct weft_poster *me;
	struct weft_ring ring;
	ssize_t rc = WEFT_RMA_TO_GO;

	m.length = m.bytes[0] + m.bytes[1];
	if (!peer || !size || (m.bytes[0] && !p->operand) || (m.bytes[1] && !p->compare) ||
	    (!plain && !p->result) || p->flags & ~(plain ? WEFT_PUT_FLAGS & ~FI_REMOTE_CQ_DATA : FETCH_FLAGS) ||
	    ((p->inject || p->flags & FI_INJECT) && size > ep->inject_max))
		return WEFT_RMA_TO_GO;
	me = weft_post_begin();
	if (!me)
		return WEFT_RMA_TO_GO;
	if (weft_peer_ring(peer, &ring) && weft_rma_allowed(peer, p->key, p->addr, size, rights_of(p)))
		rc = plain ? weft_rma_send(ep, peer, &ring, &m, p->flags, p->context, p->inject) :
			     with_stripe(ep, peer, &ring, &m, &head, p);
	weft_post_end(me);
	rc = weft_rma_settle(ep, rc);
	if (!rc)
		weft_post_count(ep, WEFT_STAT_TX_ATOMIC, 1);
	return rc;
}
