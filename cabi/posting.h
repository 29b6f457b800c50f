/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What posting messages (post.c) and posting one-sided operations (rma_post.c)
 * have in common.
 */
#ifndef WEFT_POSTING_H
#define WEFT_POSTING_H

#include "hotpath.h"
#include "lane.h"
#include "poster.h"

/* How far ahead of a message the next slots are fetched. Further ahead the
 * receiver's own prefetching takes them back before they are used. */
#define WEFT_PREFETCH_SLOTS 4

/* A thread keeps to one stripe, so that threads share no cache line in
 * posting. The number is only a preference; the lease gives exclusivity. */
static inline uint32_t weft_preferred_stripe(const struct weft_hot_ep *ep)
{
	return weft_thread_number() & ep->stripe_mask;
}

/* What the fi_inject forms, of messages or of one-sided operations, have of the defaults: they
 * complete nowhere, but a counter counts them, and when is the endpoint's to say. */
static inline uint64_t weft_inject_flags(const struct weft_ep_obj *o, bool message)
{
	uint64_t flags = o->tx_op_flags & FI_DELIVERY_COMPLETE;

	if (__builtin_expect(!flags, 1) || !o->hot)
		return 0;
	return (message ? o->hot->tx_cntr : o->hot->write_cntr) ? flags : 0;
}

/* Counts what became of a post. */
static inline void weft_post_count(const struct weft_hot_ep *ep, enum weft_stat_thread what, uint64_t n)
{
	weft_thread_count(ep->stats_threads, what, n);
}

/* Leases the stripe that the thread prefers, or the next free one. NULL: none is free. */
static inline struct weft_hot_stripe *weft_stripe_take(const struct weft_hot_ep *ep)
{
	uint32_t preferred = weft_preferred_stripe(ep);

	if (ep->flags & WEFT_EP_EXCLUSIVE)
		return &ep->stripes[preferred];
	for (uint32_t n = 0; n <= ep->stripe_mask; n++) {
		struct weft_hot_stripe *s = &ep->stripes[(preferred + n) & ep->stripe_mask];
		uint32_t free = 0;

		if (atomic_compare_exchange_strong_explicit(&s->lease, &free, 1, memory_order_acquire,
							    memory_order_relaxed))
			return s;
	}
	weft_post_count(ep, WEFT_STAT_EAGAIN_STRIPE, 1);
	return NULL;
}

static inline void weft_stripe_give(const struct weft_hot_ep *ep, struct weft_hot_stripe *s)
{
	if (!(ep->flags & WEFT_EP_EXCLUSIVE))
		atomic_store_explicit(&s->lease, 0, memory_order_release);
}

static inline bool weft_ring_room(const struct weft_ring *ring)
{
	uint64_t pos = atomic_load_explicit(ring->tail, memory_order_relaxed);
	uint64_t word = atomic_load_explicit(weft_ring_slot(ring, pos), memory_order_relaxed);

	return (int64_t)((word >> WEFT_SEQ_LAP_SHIFT) - (pos >> ring->log2_slots)) >= 0;
}

/* Opens the inbound ring of a peer that is there, between weft_post_begin and weft_post_end. */
static inline __attribute__((always_inline)) bool weft_peer_ring(struct weft_hot_peer *peer,
								 struct weft_ring *ring)
{
	unsigned char *slots = atomic_load_explicit(&peer->slots, memory_order_acquire);

	if (!slots || atomic_load_explicit(peer->rx_state, memory_order_acquire) & WEFT_RX_GONE)
		return false;
	*ring = (struct weft_ring){ slots, peer->tail, peer->log2_slots, WEFT_SLOT_BYTES };
	return true;
}

/* Rings the receiver's doorbell if it sleeps. The fence pairs with the one
 * between arming and the last look at the ring in the sleeper. That a receiver
 * can sleep at all is looked at without a fence, but after publishing: the
 * receiver has every processor that runs a sender pass a barrier (membarrier)
 * before it may arm for the first time, so either its last look at the ring
 * finds the message, or this finds the bit. */
static inline void weft_peer_wake(struct weft_hot_ep *ep, const struct weft_hot_peer *peer)
{
	if (!(atomic_load_explicit(peer->rx_state, memory_order_relaxed) & WEFT_RX_WAITABLE))
		return;
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(peer->rx_state + 1, memory_order_relaxed))
		weftGoWakePeer(ep->handle, peer->peer);
}

/* Where the completion of a transmit that completes when it is posted goes; cq NULL: nowhere. */
struct weft_end {
	struct weft_hot_cq *cq;
	uint32_t ring;
};

/* Finds that place. False: there is no room. */
static inline __attribute__((always_inline)) bool weft_end_room(const struct weft_hot_ep *ep, uint64_t flags,
								bool inject, struct weft_end *end)
{
	*end = (struct weft_end){ 0 };
	if (inject || !(ep->flags & WEFT_EP_TX_ALWAYS || flags & FI_COMPLETION) || !ep->tx_cq)
		return true;
	end->cq = ep->tx_cq;
	end->ring = weft_cq_stripe_ring(ep->tx_cq, weft_preferred_stripe(ep));
	if (weft_cq_room(end->cq, end->ring))
		return true;
	weft_post_count(ep, WEFT_STAT_EAGAIN_CQ, 1);
	return false;
}

/* Completes a transmit of n bytes there, and counts it. True: triggers may have fired. */
static inline __attribute__((always_inline)) bool weft_end_done(const struct weft_end *end,
								struct weft_hot_cntr *cntr, uint64_t flags,
								void *context, uint64_t n)
{
	if (end->cq) {
		struct weft_cqe e = {
			.context = (uintptr_t)context, .flags = flags, .src = FI_ADDR_NOTAVAIL,
		};
		if (!weft_cq_push(end->cq, end->ring, &e))
			weftGoComplete(end->cq->handle, e.context, e.flags);
		else if (weft_cq_wake_needed(end->cq))
			weftGoWakeCQ(end->cq->handle);
	}
	return cntr && weft_cntr_done(cntr, n);
}

#endif
