/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Whether a poll has nothing to do. This is here and not in the data plane because an empty read would take four times
 * as long (docs/decisions.md, D30).
 */
#ifndef WEFT_IDLE_H
#define WEFT_IDLE_H

#include "hotpath.h"

/* Counts a poll, and returns the flag of one that calls the data plane whatever there is; that draws the next. */
static inline uint32_t weft_due(void)
{
	return __builtin_expect(weft_self.left-- == 0, 0) ? WEFT_POLL_DUE : 0;
}

/* Whether a read of the queue finds nothing: two loads for each ring. */
static inline bool weft_queue_empty(const struct weft_hot_cq *cq)
{
	uint64_t last = (1ull << cq->log2_slots) - 1;
	const unsigned char *at = cq->rings;

	for (uint32_t n = cq->nrings; n; n--, at += cq->ring_stride) {
		const struct weft_cq_ring *r = (const struct weft_cq_ring *)at;
		const struct weft_cqe *slots = (const struct weft_cqe *)(r + 1);
		uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

		if ((atomic_load_explicit(&slots[head & last].seq, memory_order_relaxed) & 3) == WEFT_SLOT_READY)
			return false;
	}
	return !atomic_load_explicit(&cq->overflow, memory_order_relaxed);
}

/* Whether there is nothing to do at the transport of an endpoint whose device matches; the lease guards it. */
static __attribute__((noinline, cold)) bool weft_idle_match(struct weft_hot_ep *ep, struct weft_hot_rx *rx)
{
	bool alone = ep->flags & WEFT_EP_GATED, idle;

	if (!alone && atomic_exchange(&rx->lease, 1))
		return false;
	idle = ep->rx == rx && ep->match && ep->match->quiet(ep->match);
	if (!alone) /* else no other thread reads, and what a control operation does meanwhile changes no word of it */
		atomic_store_explicit(&rx->lease, 0, memory_order_release);
	return idle;
}

/* Whether there is nothing to do at an endpoint. */
static inline __attribute__((always_inline)) bool weft_idle_endpoint(struct weft_hot_ep *ep)
{
	struct weft_hot_rx *rx = atomic_load_explicit(&ep->rx, memory_order_acquire);
	uint32_t rings = atomic_load_explicit(ep->rx_rings, memory_order_relaxed), attention, polled;

	if (rings > WEFT_RX_RINGS)
		rings = WEFT_RX_RINGS;
	for (const struct weft_inbound *in = ep->inbound; in < ep->inbound + rings; in++)
		if (weft_ring_ready(&in->ring, atomic_load_explicit(&in->head, memory_order_relaxed)))
			return false;
	attention = atomic_load_explicit(&rx->attention, memory_order_relaxed);
	if (attention && (attention != WEFT_ATTENTION_TRANSPORTS || !ep->match || !weft_idle_match(ep, rx)))
		return false;
	if (atomic_load_explicit(&rx->want_posts, memory_order_relaxed) &&
	    weft_ring_ready(&rx->posts, atomic_load_explicit(&rx->posts_head, memory_order_relaxed)))
		return false;
	polled = atomic_load_explicit(&ep->polled, memory_order_relaxed);
	if (__builtin_expect(polled < WEFT_POLLED_ENOUGH, 0))
		atomic_store_explicit(&ep->polled, polled + 1, memory_order_relaxed);
	return true;
}

/* The first entry of a list of endpoints, which may be written while it is walked, at which there is something to do;
 * NULL: none. */
static inline __attribute__((always_inline)) struct weft_hot_ep *const *weft_busy_endpoint(
	struct weft_hot_ep **const _Atomic *list)
{
	struct weft_hot_ep *const *eps = atomic_load_explicit(list, memory_order_acquire);

	for (struct weft_hot_ep *ep; eps && (ep = __atomic_load_n(eps, __ATOMIC_RELAXED)); eps++)
		if (!weft_idle_endpoint(ep))
			return eps;
	return NULL;
}

#endif
