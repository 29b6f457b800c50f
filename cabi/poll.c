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

#include "idle.h"
#include "look.h"
#include "poster.h"
#include "reader.h"

/* Milliseconds between two runs of the timers (dead peers, connection
 * time-outs) while progress has work that no ring shows; else it is the receive
 * context's rest. The clock is looked at once in 32 polls on average: it costs some
 * 10 ns, an empty poll less; a program that sleeps a millisecond between polls
 * still sees a dead peer soon. What counts the polls is the thread's own, so that
 * readers of one queue share no line that they write. */
#define TIMER_MS 20

/* Tells a progress thread that the application looks by itself. */
static inline void look(struct weft_hot_ep *ep)
{
	uint32_t n = atomic_load_explicit(&ep->polled, memory_order_relaxed);

	if (__builtin_expect(n < WEFT_POLLED_ENOUGH, 0))
		atomic_store_explicit(&ep->polled, n + 1, memory_order_relaxed);
}

/* Reads an entry of a list once: a replaced list may be written again while it
 * is walked. */
static inline struct weft_hot_ep *entry(struct weft_hot_ep *const *e)
{
	return *(struct weft_hot_ep *const volatile *)e;
}

/* Whether the timers of a receive context may rest. The caller has the lease. */
static bool resting(struct weft_hot_rx *rx, uint32_t now)
{
	if (!(atomic_load_explicit(&rx->attention, memory_order_relaxed) & WEFT_ATTENTION_GO) &&
	    now - rx->timers < rx->rest)
		return true;
	rx->timers = now;
	return false;
}

static void housekeeping(struct weft_hot_ep *const *eps, uint32_t now)
{
	struct weft_hot_ep *ep;

	for (; (ep = entry(eps)); eps++) {
		struct weft_hot_rx *rx = atomic_load_explicit(&ep->rx, memory_order_acquire);

		if (!weft_take_lease(ep, rx))
			continue;
		bool triggered = !resting(rx, now) && weftGoHousekeeping(rx->handle);
		weft_give_lease(rx);
		if (triggered)
			weftGoTriggered(rx->handle);
	}
}

/* Looks at the clock. */
static bool timers_due(struct weft_idle *idle, uint32_t *now)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	*now = t.tv_sec * 1000 + t.tv_nsec / 1000000;
	if (*now - atomic_load_explicit(&idle->checked, memory_order_relaxed) < TIMER_MS)
		return false;
	atomic_store_explicit(&idle->checked, *now, memory_order_relaxed);
	return true;
}

/* Does the work of an endpoint that has some; returns whether it did any. */
static inline bool work(struct weft_hot_ep *ep, struct weft_hot_rx *rx, struct weft_reader *to)
{
	bool triggered = false;
	enum weft_looked looked;

	if (!weft_take_lease(ep, rx)) {
		weft_count_busy(ep);
		return false;
	}
	looked = weft_work(ep, rx, to);
	if (looked == WEFT_LOOKED_TO_GO)
		triggered = weftGoProgress(rx->handle);
	weft_give_lease(rx);
	if (triggered)
		weftGoTriggered(rx->handle);
	return looked != WEFT_LOOKED_NOTHING;
}

/* Looks for work at every endpoint in a NULL-terminated list and does it;
 * returns whether it did any. Work that another thread does is none. With a look at
 * the clock it runs the timers when they are due. The reader, which may be NULL, found its queue empty and takes
 * completions that come meanwhile. */
static bool progress(struct weft_hot_ep *const *eps, struct weft_idle *idle, struct weft_reader *to,
		     bool clock)
{
	struct weft_hot_ep *const *e;
	struct weft_hot_ep *ep;
	bool found = false;
	uint32_t now;

	if (!eps || !entry(eps))
		return false;
	for (e = eps; (ep = entry(e)); e++) {
		struct weft_hot_rx *rx = atomic_load_explicit(&ep->rx, memory_order_acquire);

		look(ep);
		if (weft_has_work(ep, rx) && work(ep, rx, to))
			found = true;
	}
	if (clock && timers_due(idle, &now)) { /* also with work at hand: it may be waiting for a peer that died */
		housekeeping(eps, now);
		return true;
	}
	return found;
}

/* Whether progress would find no work, and nothing waits for room in the queue. */
static inline bool still(struct weft_hot_cq *cq)
{
	struct weft_hot_ep *const *eps = atomic_load_explicit(&cq->eps, memory_order_acquire);
	struct weft_hot_ep *ep;

	if (atomic_load_explicit(&cq->overflow, memory_order_relaxed))
		return false;
	for (; eps && (ep = entry(eps)); eps++) {
		look(ep);
		if (weft_has_work(ep, atomic_load_explicit(&ep->rx, memory_order_acquire)))
			return false;
	}
	return true;
}

/* Sends the messages that are held, some of whose completions have just been read: an application
 * that has read them may stop looking. One thread at a time uses such a queue and its endpoints. */
static __attribute__((noinline)) void send_held(struct weft_hot_cq *cq)
{
	struct weft_hot_ep *const *eps = atomic_load_explicit(&cq->eps, memory_order_acquire);
	struct weft_poster *me = weft_post_begin();
	struct weft_hot_ep *ep;

	if (!me)
		return; /* all lines are taken: the word stays, so the next read tries again, and a look sends them in any case */
	atomic_store_explicit(&cq->held, 0, memory_order_relaxed);
	for (; eps && (ep = entry(eps)); eps++)
		if (ep->port)
			ep->port->flush(ep->port);
	weft_post_end(me);
}

/* Pops as many completions as the reader has room for, in batches. Returns
 * whether an error entry stands at the head of a ring. */
static bool pop(struct weft_reader *to)
{
	struct weft_cqe batch[16];
	size_t count = to->left;
	bool error = false;

	while (to->left) {
		size_t want = to->left < 16 ? to->left : 16;
		size_t got = weft_cq_pop(to->cq, batch, want, &error);

		for (size_t i = 0; i < got; i++)
			weft_reader_put(to, &batch[i]);
		if (got < want)
			break;
	}
	if (to->left != count &&
	    __builtin_expect(atomic_load_explicit(&to->cq->held, memory_order_relaxed), 0))
		send_held(to->cq);
	return error;
}

/* A read of no entries: programs make progress with such between tries to send,
 * so there is some even when an error is next. */
static ssize_t read_none(struct weft_cq_obj *o)
{
	struct weft_hot_cq *cq = o->hot;

	weft_found(progress(atomic_load_explicit(&cq->eps, memory_order_acquire), &o->idle, NULL,
			    weft_sometimes()));
	if (atomic_load_explicit(&cq->overflow, memory_order_relaxed))
		weftGoFlushCQ(cq->handle);
	return weft_cq_bad(cq) ? -FI_EAVAIL : -FI_EAGAIN;
}

/* A read whose queue is empty, of endpoints that have work, or that is to look at the clock. */
static __attribute__((noinline)) ssize_t read_progress(struct weft_cq_obj *o, struct weft_reader *to,
						       bool clock)
{
	struct weft_hot_cq *cq = to->cq;
	size_t count = to->left;
	bool error = false;

	if (atomic_load_explicit(&cq->overflow, memory_order_relaxed))
		weftGoFlushCQ(cq->handle);
	else if (!progress(atomic_load_explicit(&cq->eps, memory_order_acquire), &o->idle, to, clock)) {
		weft_found_nothing();
		return -FI_EAGAIN;
	}
	if (to->left == count)
		error = pop(to);
	if (to->left != count) {
		weft_found_something();
		return count - to->left;
	}
	if (error)
		return -FI_EAVAIL;
	weft_found_nothing();
	return -FI_EAGAIN;
}

/* A read of a queue that is not empty. */
static __attribute__((noinline)) ssize_t read_ready(struct weft_cq_obj *o, struct weft_reader *to,
						    bool clock)
{
	size_t count = to->left;
	bool error = pop(to);

	if (to->left != count) {
		weft_found_something();
		if (clock && weft_seldom()) /* or who always finds something would never serve peers */
			progress(atomic_load_explicit(&to->cq->eps, memory_order_acquire), &o->idle, NULL, true);
		return count - to->left;
	}
	return error ? -FI_EAVAIL : read_progress(o, to, clock);
}

/* Most reads find nothing: the look that tells so is all that they do. */
static inline ssize_t read_entries(struct weft_cq_obj *o, void *buf, size_t count, fi_addr_t *src)
{
	struct weft_hot_cq *cq = o->hot;
	struct weft_reader to = { .cq = cq, .buf = buf, .src = src, .left = count };
	bool clock = weft_sometimes();

	if (__builtin_expect(!count, 0))
		return read_none(o);
	if (__builtin_expect(!buf, 0))
		return -FI_EINVAL;
	if (!weft_cq_still(cq))
		return read_ready(o, &to, clock);
	if (!still(cq) || clock)
		return read_progress(o, &to, clock);
	weft_found_nothing();
	return -FI_EAGAIN;
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
	weft_found(progress(atomic_load_explicit(&o->hot->eps, memory_order_acquire), &o->idle, NULL,
			    weft_sometimes()));
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
