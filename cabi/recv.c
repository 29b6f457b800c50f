/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Posting receives: a push on the receive context's ring. What needs a check or
 * memory goes to Go.
 */
#include <unistd.h>
#include <rdma/fi_errno.h>

#include "hotpath.h"

#define EP(fid_ep) container_of(fid_ep, struct weft_ep_obj, fid)

/* Flags of a receive that need no check or memory of Go's when it is posted. */
#define FAST_RX_FLAGS (FI_COMPLETION | FI_MORE)

/* Wakes the progress thread that sleeps, if what was posted is work for it. The
 * fence pairs with the one between its arming the bell and its last look. */
static void wake_thread(struct weft_hot_rx *rx, _Atomic uint32_t *bell)
{
	uint32_t asleep = WEFT_BELL_ASLEEP;
	uint64_t one = 1;

	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&rx->want_posts, memory_order_relaxed) &&
	    atomic_load_explicit(bell, memory_order_relaxed) == WEFT_BELL_ASLEEP &&
	    atomic_compare_exchange_strong_explicit(bell, &asleep, WEFT_BELL_AWAKE,
						    memory_order_acq_rel, memory_order_relaxed) &&
	    write((int)rx->bell_event, &one, sizeof(one)) < 0)
		return; /* the counter is at its end: it is awake */
}

static inline ssize_t post_recv(struct weft_ep_obj *o, void *buf, size_t len, fi_addr_t src,
				uint64_t tag, uint64_t ignore, uint64_t flags, void *context)
{
	struct weft_hot_rx *rx = o->rx;
	struct weft_recv_entry *e;
	uint64_t pos;

	if (!rx || flags & ~(FAST_RX_FLAGS | WEFT_RECV_TAGGED) || (!buf && len))
		goto slow;
	if (src == FI_ADDR_UNSPEC && rx->flags & WEFT_RX_EXACT)
		goto slow;
	e = (void *)weft_ring_claim(&rx->posts, 0, rx->flags & WEFT_EXCLUSIVE, &pos);
	if (!e)
		goto slow; /* full: Go drains it if nobody else does */
	e->flags = flags;
	e->buf = (uintptr_t)buf;
	e->len = len;
	e->src = src;
	e->tag = tag;
	e->ignore = ignore;
	e->context = (uintptr_t)context;
	weft_ring_publish(&rx->posts, &e->seq, 0, pos);
	_Atomic uint32_t *bell = atomic_load_explicit(&rx->bell, memory_order_acquire);
	if (bell)
		wake_thread(rx, bell);
	return 0;
slow:;
	struct iovec iov = { buf, len };
	return weft_recv_slow(o, &iov, 1, src, tag, ignore, flags, context);
}

ssize_t weft_recv_slow(struct weft_ep_obj *o, const struct iovec *iov, size_t count, fi_addr_t src,
		       uint64_t tag, uint64_t ignore, uint64_t flags, void *context)
{
	struct weft_recv_args args = {
		.iov = iov, .count = count, .src = src, .tag = tag, .ignore = ignore,
		.flags = flags, .context = (uintptr_t)context,
	};

	if (!o->rx)
		return o->deaf ? -FI_ENOCQ : -FI_EOPBADSTATE;
	return weftGoRecv(o->rx->handle, &args);
}

static ssize_t recv_vector(struct weft_ep_obj *o, const struct iovec *iov, size_t count, fi_addr_t src,
			   uint64_t tag, uint64_t ignore, uint64_t flags, void *context)
{
	if (!iov && count)
		return -FI_EINVAL;
	if (count == 1)
		return post_recv(o, iov->iov_base, iov->iov_len, src, tag, ignore, flags, context);
	return weft_recv_slow(o, iov, count, src, tag, ignore, flags, context);
}

#include "recv_gen.h"
