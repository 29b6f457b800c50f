/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Looking for work at an endpoint, and doing it under the lease of its receive
 * context: what polls of the application (poll.c) and progress threads (drive.c)
 * have in common.
 */
#ifndef WEFT_LOOK_H
#define WEFT_LOOK_H

#include "hotpath.h"
#include "port.h"

static inline bool weft_rings_have_work(const struct weft_hot_ep *ep)
{
	uint32_t lanes = weft_lanes_in_use(ep);

	for (const struct weft_inbound *in = ep->inbound; in < ep->inbound + lanes; in++)
		if (weft_ring_ready(&in->ring, atomic_load_explicit(&in->head, memory_order_relaxed)))
			return true;
	return false;
}

static inline bool weft_posts_are_work(const struct weft_hot_rx *rx)
{
	return atomic_load_explicit(&rx->want_posts, memory_order_relaxed) &&
	       weft_ring_ready(&rx->posts,
			       atomic_load_explicit(&rx->posts_head, memory_order_relaxed));
}

/* Whether there is work, or a port at which a look under the lease tells. */
static inline bool weft_has_work(const struct weft_hot_ep *ep, const struct weft_hot_rx *rx)
{
	return weft_rings_have_work(ep) || atomic_load_explicit(&rx->attention, memory_order_relaxed) ||
	       weft_posts_are_work(rx);
}

static inline void weft_give_lease(struct weft_hot_rx *rx)
{
	if (!(rx->flags & WEFT_EXCLUSIVE))
		atomic_store_explicit(&rx->lease, 0, memory_order_release);
}

/* Takes the lease of the receive context that ep was seen to deliver into. The
 * endpoint may have been closed, and its memory and the context's given to
 * others, since the list was read: closing takes the context away from the
 * endpoint under the lease, so whoever still sees it there may go on. */
static inline bool weft_take_lease(struct weft_hot_ep *ep, struct weft_hot_rx *rx)
{
	uint32_t free = 0;

	if (!(rx->flags & WEFT_EXCLUSIVE) &&
	    (atomic_load_explicit(&rx->lease, memory_order_relaxed) != 0 ||
	     !atomic_compare_exchange_strong_explicit(&rx->lease, &free, 1, memory_order_acquire,
						      memory_order_relaxed)))
		return false;
	if (atomic_load_explicit(&ep->rx, memory_order_acquire) == rx)
		return true;
	weft_give_lease(rx);
	return false;
}

/* Counts a look that found work while another thread makes progress. The
 * endpoint may have been closed since the list was read, and have no counters
 * or those of another. */
static inline void weft_count_busy(struct weft_hot_ep *ep)
{
	weft_stat *lines = *(weft_stat *volatile *)&ep->stats_threads;

	if (lines)
		weft_thread_count(lines, WEFT_STAT_LEASE_BUSY, 1);
}

/* Does the work of an endpoint that has some, as far as C can. The caller holds
 * the lease. */
static inline enum weft_looked weft_work(struct weft_hot_ep *ep, struct weft_hot_rx *rx,
					 struct weft_reader *to)
{
	if (__builtin_expect(atomic_load_explicit(&rx->attention, memory_order_relaxed) &
				     WEFT_ATTENTION_PORTS, 0))
		return weft_work_with_port(ep, rx, to);
	return !weft_deliver(ep, to) || atomic_load_explicit(&rx->attention, memory_order_relaxed) ?
		       WEFT_LOOKED_TO_GO : WEFT_LOOKED_DELIVERED;
}

#endif
