/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Polling: fi_cq_read, fi_cq_readfrom, fi_cntr_read. An empty queue and a
 * queue with completions are both served without entering Go and, when empty,
 * without a locked instruction. Go is entered by the one thread that takes an
 * endpoint's progress lease, once for all that has arrived.
 */
#include <string.h>
#include <time.h>
#include <rdma/fi_errno.h>

#include "hotpath.h"

/* Polls of an empty queue between two looks at the clock, and ms between two looks
 * at the timers (dead peers, connection time-outs). The clock costs some 10 ns,
 * an empty poll as much; a program that sleeps a millisecond between polls still
 * sees a dead peer soon. */
#define IDLE_POLLS 32
#define TIMER_MS 20

static inline bool has_work(const struct weft_hot_ep *ep, const struct weft_hot_rx *rx)
{
	if (weft_ring_ready(&ep->inbound,
			    atomic_load_explicit(&ep->inbound_head, memory_order_relaxed)))
		return true;
	if (atomic_load_explicit(&rx->attention, memory_order_relaxed))
		return true;
	return atomic_load_explicit(&rx->want_posts, memory_order_relaxed) &&
	       weft_ring_ready(&rx->posts,
			       atomic_load_explicit(&rx->posts_head, memory_order_relaxed));
}

static inline void give_lease(struct weft_hot_rx *rx)
{
	if (!(rx->flags & WEFT_EXCLUSIVE))
		atomic_store_explicit(&rx->lease, 0, memory_order_release);
}

/* Takes the lease of the receive context that ep was seen to deliver into. The
 * endpoint may have been closed, and its memory and the context's given to
 * others, since the list was read: closing takes the context away from the
 * endpoint under the lease, so whoever still sees it there may go on. */
static inline bool take_lease(struct weft_hot_ep *ep, struct weft_hot_rx *rx)
{
	uint32_t free = 0;

	if (!(rx->flags & WEFT_EXCLUSIVE) &&
	    (atomic_load_explicit(&rx->lease, memory_order_relaxed) != 0 ||
	     !atomic_compare_exchange_strong_explicit(&rx->lease, &free, 1, memory_order_acquire,
						      memory_order_relaxed)))
		return false;
	if (atomic_load_explicit(&ep->rx, memory_order_acquire) == rx)
		return true;
	give_lease(rx);
	return false;
}

/* Reads an entry of a list once: a replaced list may be written again while it
 * is walked. */
static inline struct weft_hot_ep *entry(struct weft_hot_ep *const *e)
{
	return *(struct weft_hot_ep *const volatile *)e;
}

static void housekeeping(struct weft_hot_ep *const *eps)
{
	struct weft_hot_ep *ep;

	for (; (ep = entry(eps)); eps++) {
		struct weft_hot_rx *rx = atomic_load_explicit(&ep->rx, memory_order_acquire);

		if (!take_lease(ep, rx))
			continue;
		weftGoHousekeeping(rx->handle);
		give_lease(rx);
	}
}

static bool timers_due(struct weft_idle *idle)
{
	struct timespec t;
	uint32_t now;

	if (++idle->polls % IDLE_POLLS)
		return false;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	now = t.tv_sec * 1000 + t.tv_nsec / 1000000;
	if (now - idle->checked < TIMER_MS)
		return false;
	idle->checked = now;
	return true;
}

bool weft_progress(struct weft_hot_ep *const *eps, struct weft_idle *idle)
{
	struct weft_hot_ep *const *e;
	struct weft_hot_ep *ep;
	bool found = false;

	if (!eps || !entry(eps))
		return false;
	for (e = eps; (ep = entry(e)); e++) {
		struct weft_hot_rx *rx = atomic_load_explicit(&ep->rx, memory_order_acquire);

		if (!has_work(ep, rx))
			continue;
		found = true;
		if (!take_lease(ep, rx))
			continue;
		if (!weft_deliver(ep) || has_work(ep, rx))
			weftGoProgress(rx->handle);
		give_lease(rx);
	}
	if (timers_due(idle)) { /* also with work at hand: it may be waiting for a peer that died */
		housekeeping(eps);
		return true;
	}
	return found;
}

static void *put_entry(void *dst, uint32_t format, const struct weft_cqe *e)
{
	switch (format) {
	case FI_CQ_FORMAT_CONTEXT: {
		struct fi_cq_entry *c = dst;
		c->op_context = (void *)e->context;
		return c + 1;
	}
	case FI_CQ_FORMAT_MSG: {
		struct fi_cq_msg_entry *c = dst;
		c->op_context = (void *)e->context;
		c->flags = e->flags;
		c->len = e->len;
		return c + 1;
	}
	case FI_CQ_FORMAT_DATA: {
		struct fi_cq_data_entry *c = dst;
		c->op_context = (void *)e->context;
		c->flags = e->flags;
		c->len = e->len;
		c->buf = (void *)e->buf;
		c->data = e->data;
		return c + 1;
	}
	default: {
		struct fi_cq_tagged_entry *c = dst;
		c->op_context = (void *)e->context;
		c->flags = e->flags;
		c->len = e->len;
		c->buf = (void *)e->buf;
		c->data = e->data;
		c->tag = e->tag;
		return c + 1;
	}
	}
}

/* Pops up to count completions in batches. *error tells that an error entry
 * stands at the head of a ring. */
static size_t pop(struct weft_hot_cq *cq, void *buf, size_t count, fi_addr_t *src, bool *error)
{
	struct weft_cqe batch[16];
	size_t done = 0;

	while (done < count) {
		size_t want = count - done < 16 ? count - done : 16;
		size_t got = weft_cq_pop(cq, batch, want, error);

		for (size_t i = 0; i < got; i++) {
			buf = put_entry(buf, cq->format, &batch[i]);
			if (src)
				*src++ = batch[i].src;
		}
		done += got;
		if (got < want)
			break;
	}
	return done;
}

static ssize_t read_entries(struct weft_cq_obj *o, void *buf, size_t count, fi_addr_t *src)
{
	struct weft_hot_cq *cq = o->hot;
	bool error = false;
	size_t got;

	if (!buf && count)
		return -FI_EINVAL;
	got = pop(cq, buf, count, src, &error);
	if (got)
		return got;
	if (error)
		return -FI_EAVAIL;
	if (atomic_load_explicit(&cq->overflow, memory_order_relaxed))
		weftGoFlushCQ(cq->handle);
	else if (!weft_progress(atomic_load_explicit(&cq->eps, memory_order_acquire), &o->idle))
		return -FI_EAGAIN;
	got = pop(cq, buf, count, src, &error);
	if (got)
		return got;
	return error ? -FI_EAVAIL : -FI_EAGAIN;
}

ssize_t weft_cq_read(struct fid_cq *cq, void *buf, size_t count)
{
	return read_entries(container_of(cq, struct weft_cq_obj, fid), buf, count, NULL);
}

ssize_t weft_cq_readfrom(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *src_addr)
{
	return read_entries(container_of(cq, struct weft_cq_obj, fid), buf, count, src_addr);
}

static void cntr_progress(struct weft_cntr_obj *o)
{
	weft_progress(atomic_load_explicit(&o->hot->eps, memory_order_acquire), &o->idle);
}

uint64_t weft_cntr_read(struct fid_cntr *cntr)
{
	struct weft_cntr_obj *o = container_of(cntr, struct weft_cntr_obj, fid);

	cntr_progress(o);
	return atomic_load_explicit(&o->hot->value, memory_order_acquire);
}

uint64_t weft_cntr_readerr(struct fid_cntr *cntr)
{
	struct weft_cntr_obj *o = container_of(cntr, struct weft_cntr_obj, fid);

	cntr_progress(o);
	return atomic_load_explicit(&o->hot->errors, memory_order_acquire);
}
