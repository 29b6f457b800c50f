/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Posting of short writes and of atomic operations on one integer: one message
 * in the peer's ring each, as provider/rma_wire.go has them.
 *
 * The peer's key table is mapped here, so a key, a range or a right that the
 * peer does not have is found before anything is sent; such an operation is
 * Go's, which has the peer refuse it in so many words. The peer looks again when
 * the message arrives. What it refuses then, because the region was closed in
 * between, is known to nobody here any more if the operation has completed: that
 * is what FI_TRANSMIT_COMPLETE promises, and FI_DELIVERY_COMPLETE is Go's.
 */
#include <string.h>

#include "posting.h"
#include "rma.h"
#include "rma_post.h"

/* Flags of operations that are posted here. */
#define PUT_FLAGS                                                                                  \
	(FI_COMPLETION | FI_MORE | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |         \
	 FI_REMOTE_CQ_DATA)
/* A fetched result is as complete as can be when it is here. */
#define FETCH_FLAGS (FI_COMPLETION | FI_MORE | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE)

/* A message to be. */
struct message {
	uint8_t am_id;
	uint64_t addr;
	const void *head;
	uint32_t head_bytes;
	const void *part[2];
	uint32_t bytes[2];
};

static void push(const struct weft_ring *ring, const struct weft_hot_peer *peer,
		 const struct message *m, _Atomic uint64_t *at, uint64_t pos)
{
	struct weft_slot *slot = (struct weft_slot *)at;
	uint8_t *body = slot->body;

	slot->am_id = m->am_id;
	slot->flags = 0;
	slot->head = m->head_bytes;
	slot->length = m->bytes[0] + m->bytes[1];
	slot->header = m->addr;
	memcpy(body, m->head, m->head_bytes);
	body += m->head_bytes;
	if (m->bytes[0] == sizeof(uint64_t))
		memcpy(body, m->part[0], sizeof(uint64_t));
	else if (m->bytes[0])
		memcpy(body, m->part[0], m->bytes[0]);
	if (m->bytes[1])
		memcpy(body + m->bytes[0], m->part[1], m->bytes[1]);
	weft_ring_publish(ring, at, peer->owner, pos);
	weft_prefetch_write(weft_ring_slot(ring, pos + WEFT_PREFETCH_SLOTS));
}

/* Tells whether the peer has a region of this key, range and rights now. */
static bool allowed(const struct weft_hot_peer *peer, uint64_t key, uint64_t addr, uint64_t len,
		    uint32_t rights)
{
	uint32_t count = peer->key_count, place = weft_key_place(key, count);

	for (uint32_t n = 0; n < WEFT_KEY_PROBES && n < count; n++) {
		const volatile struct weft_key *k = &peer->keys[(place + n) & (count - 1)];
		uint64_t offset;

		if (k->name != key || !(atomic_load_explicit(&k->state, memory_order_relaxed) & 1))
			continue;
		offset = addr - k->base;
		return (k->access & rights) == rights && offset <= k->len && len <= k->len - offset;
	}
	return false;
}

/* What send_completing returns besides errors and WEFT_RMA_TO_GO. */
#define TRIGGERED 2

/* Opens the peer's ring, between weft_post_begin and weft_post_end. */
static bool open_ring(struct weft_hot_peer *peer, struct weft_ring *ring)
{
	unsigned char *slots = atomic_load_explicit(&peer->slots, memory_order_acquire);

	if (!slots || atomic_load_explicit(peer->rx_state, memory_order_acquire) & WEFT_RX_GONE)
		return false;
	*ring = (struct weft_ring){ slots, peer->tail, peer->log2_slots, WEFT_SLOT_BYTES };
	return true;
}

/* Sends a message whose operation completes now. 0, -FI_EAGAIN, or TRIGGERED when
 * it is out and triggers may have fired. */
static int send_completing(struct weft_hot_ep *ep, struct weft_hot_peer *peer,
			   const struct weft_ring *ring, const struct message *m, uint64_t flags,
			   void *context, bool inject)
{
	uint32_t cq_ring = 0;
	struct weft_hot_cq *cq = NULL;
	_Atomic uint64_t *slot;
	uint64_t pos;
	int rc;

	if (!inject && (ep->flags & WEFT_EP_TX_ALWAYS || flags & FI_COMPLETION) && ep->tx_cq) {
		cq = ep->tx_cq;
		cq_ring = weft_cq_stripe_ring(cq, weft_preferred_stripe(ep));
		if (!weft_cq_room(cq, cq_ring)) {
			weft_post_count(ep, WEFT_STAT_EAGAIN_CQ, 1);
			return -FI_EAGAIN;
		}
	}
	slot = weft_ring_claim(ring, peer->owner, peer->exclusive, &pos);
	if (!slot) {
		weft_post_count(ep, WEFT_STAT_EAGAIN_RING, 1);
		return -FI_EAGAIN;
	}
	push(ring, peer, m, slot, pos);
	atomic_store_explicit(&peer->put, pos + 1, memory_order_relaxed);
	if (cq) {
		struct weft_cqe e = {
			.context = (uintptr_t)context,
			.flags = FI_WRITE | (m->am_id == WEFT_AM_WRITE ? FI_RMA : FI_ATOMIC),
			.src = FI_ADDR_NOTAVAIL,
		};
		if (!weft_cq_push(cq, cq_ring, &e))
			weftGoComplete(cq->handle, e.context, e.flags);
		else if (weft_cq_wake_needed(cq))
			weftGoWakeCQ(cq->handle);
	}
	rc = ep->write_cntr && weft_cntr_add(ep->write_cntr, 1) ? TRIGGERED : 0;
	weft_peer_wake(ep, peer);
	return rc;
}

/* Has triggers that fired posted, now that the thread holds nothing. */
static inline ssize_t settle(const struct weft_hot_ep *ep, ssize_t rc)
{
	if (__builtin_expect(rc != TRIGGERED, 1))
		return rc;
	weftGoTriggered(ep->handle);
	return 0;
}

/* The line of the peer if the endpoint posts here, else NULL. */
static inline struct weft_hot_peer *peer_of(const struct weft_hot_ep *ep, fi_addr_t dest)
{
	uint64_t line;

	if (!ep || !(ep->flags & WEFT_EP_FAST) || !ep->fetch_count)
		return NULL;
	line = weft_peer_line(ep, dest);
	return line == UINT64_MAX ? NULL : &ep->peers[line];
}

ssize_t weft_rma_put(struct weft_ep_obj *o, const struct weft_put *p)
{
	struct weft_hot_ep *ep = o->hot;
	struct weft_hot_peer *peer = peer_of(ep, p->dest);
	struct weft_write_head head = {
		.key = p->key, .flags = WEFT_WRITE_LAST | (p->has_data ? WEFT_WRITE_DATA : 0),
		.data = p->data, .length = p->len,
	};
	struct message m = {
		.am_id = WEFT_AM_WRITE, .addr = p->addr, .head = &head,
		.head_bytes = p->has_data ? WEFT_WRITE_HEAD_DATA : WEFT_WRITE_HEAD,
		.part = { p->buf }, .bytes = { p->len },
	};
	struct weft_poster *me;
	struct weft_ring ring;
	ssize_t rc = WEFT_RMA_TO_GO;

	if (!peer || !p->buf || !p->len || p->len > WEFT_SLOT_BODY - m.head_bytes ||
	    p->flags & ~PUT_FLAGS || ((p->inject || p->flags & FI_INJECT) && p->len > ep->inject_max))
		return WEFT_RMA_TO_GO;
	me = weft_post_begin();
	if (!me)
		return WEFT_RMA_TO_GO;
	if (open_ring(peer, &ring) && allowed(peer, p->key, p->addr, p->len, WEFT_KEY_WRITE))
		rc = send_completing(ep, peer, &ring, &m, p->flags, p->context, p->inject);
	weft_post_end(me);
	rc = settle(ep, rc);
	if (!rc) {
		weft_post_count(ep, WEFT_STAT_TX_WRITE, 1);
		weft_post_count(ep, WEFT_STAT_TX_WRITE_BYTES, p->len);
	}
	return rc;
}

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
		      uint32_t stripe, const struct message *m, struct weft_atomic_head *head,
		      const struct weft_atomic_post *p)
{
	struct weft_hot_fetch *f = take_fetch(ep, stripe, &head->request);
	_Atomic uint64_t *slot;
	uint64_t pos;

	if (!f)
		return -FI_EAGAIN;
	slot = weft_ring_claim(ring, peer->owner, peer->exclusive, &pos);
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
	push(ring, peer, m, slot, pos);
	/* Should the peer be lost now, either Go sees this entry when it has taken the ring out of
	 * the line, or this sees that it has. */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&peer->slots, memory_order_relaxed) != ring->slots)
		weftGoFetchLost(ep->handle);
	weft_peer_wake(ep, peer);
	return 0;
}

static int with_stripe(struct weft_hot_ep *ep, struct weft_hot_peer *peer, const struct weft_ring *ring,
		       const struct message *m, struct weft_atomic_head *head,
		       const struct weft_atomic_post *p)
{
	bool exclusive = ep->flags & WEFT_EP_EXCLUSIVE;
	uint32_t preferred = weft_preferred_stripe(ep);

	for (uint32_t n = 0; n <= ep->stripe_mask; n++) {
		uint32_t number = (preferred + n) & ep->stripe_mask;
		int rc;

		if (!weft_stripe_lease(&ep->stripes[number], exclusive))
			continue;
		rc = send_fetch(ep, peer, ring, number, m, head, p);
		weft_stripe_unlease(&ep->stripes[number], exclusive);
		return rc;
	}
	weft_post_count(ep, WEFT_STAT_EAGAIN_STRIPE, 1);
	return -FI_EAGAIN;
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
	struct weft_hot_peer *peer = peer_of(ep, p->dest);
	uint32_t size = weft_atomic_size(p->kind, p->datatype, p->op);
	bool plain = p->kind == WEFT_ATOMIC_PLAIN;
	struct weft_atomic_head head = {
		.key = p->key, .op = p->op, .datatype = p->datatype, .kind = p->kind, .last = 1, .count = 1,
	};
	struct message m = {
		.am_id = WEFT_AM_ATOMIC, .addr = p->addr, .head = &head, .head_bytes = sizeof(head),
		.part = { p->operand, p->compare },
		.bytes = { p->op == FI_ATOMIC_READ ? 0 : size, p->kind == WEFT_ATOMIC_COMPARE ? size : 0 },
	};
	struct weft_poster *me;
	struct weft_ring ring;
	ssize_t rc = WEFT_RMA_TO_GO;

	if (!peer || !size || (m.bytes[0] && !p->operand) || (m.bytes[1] && !p->compare) ||
	    (!plain && !p->result) || p->flags & ~(plain ? PUT_FLAGS & ~FI_REMOTE_CQ_DATA : FETCH_FLAGS) ||
	    ((p->inject || p->flags & FI_INJECT) && size > ep->inject_max))
		return WEFT_RMA_TO_GO;
	me = weft_post_begin();
	if (!me)
		return WEFT_RMA_TO_GO;
	if (open_ring(peer, &ring) && allowed(peer, p->key, p->addr, size, rights_of(p)))
		rc = plain ? send_completing(ep, peer, &ring, &m, p->flags, p->context, p->inject) :
			     with_stripe(ep, peer, &ring, &m, &head, p);
	weft_post_end(me);
	rc = settle(ep, rc);
	if (!rc)
		weft_post_count(ep, WEFT_STAT_TX_ATOMIC, 1);
	return rc;
}
