/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Posting a receive: a push on the receive context's ring. What needs a check or memory is the runtime's. This is here
 * and not in the data plane because half a round trip of 8 bytes would take 4 % longer (docs/decisions.md, D33).
 */
#ifndef WEFT_RECV_H
#define WEFT_RECV_H

#include "posting.h"

/* Whether the progress thread sleeps, and what was posted is work for it. The fence pairs with the one between its
 * arming the bell and its last look. */
static inline bool weft_recv_rings(struct weft_hot_rx *rx)
{
	_Atomic uint32_t *bell = atomic_load_explicit(&rx->bell, memory_order_acquire);

	if (__builtin_expect(!bell, 1))
		return false;
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load_explicit(&rx->want_posts, memory_order_relaxed) &&
	       atomic_load_explicit(bell, memory_order_relaxed) == WEFT_BELL_ASLEEP;
}

/* Posts a receive. 0 or a negative errno. */
static inline ssize_t weft_post_recv(struct weft_ep_obj *o, const struct weft_post *p)
{
	struct weft_hot_rx *rx = o->rx;
	struct weft_recv_entry *e;
	uint64_t pos;

	if (__builtin_expect(!rx, 0))
		return o->deaf ? -FI_ENOCQ : -FI_EOPBADSTATE;
	if (p->kind & ~WEFT_POST_TAGGED || p->flags & ~(FI_COMPLETION | FI_MORE) || (!p->buf && p->len) ||
	    (p->dest == FI_ADDR_UNSPEC && rx->flags & WEFT_RX_EXACT))
		return weftGoRecv(o->handle, rx->handle, (struct weft_post *)p);
	e = (void *)weft_ring_claim(&rx->posts, 0, rx->flags & WEFT_EXCLUSIVE, &pos);
	if (!e)
		return weftGoRecv(o->handle, rx->handle, (struct weft_post *)p); /* full: it drains it if nobody else does */
	e->flags = p->flags | (p->kind & WEFT_POST_TAGGED ? WEFT_RECV_TAGGED : 0);
	e->buf = (uintptr_t)p->buf;
	e->len = p->len;
	e->src = p->dest;
	e->tag = p->header;
	e->ignore = p->data;
	e->context = p->context;
	weft_ring_publish(&rx->posts, &e->seq, 0, pos);
	if (weft_recv_rings(rx))
		weftGoRecvRing(rx->handle);
	return 0;
}

#endif
