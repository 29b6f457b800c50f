/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Calls that make progress: fi_cq_read and its like, fi_cntr_read, and what progress threads do. The data plane
 * (package dataplane) does it all and says where it needs the runtime, a system call or a pause.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <sched.h>
#include <sys/uio.h>
#include <rdma/fi_errno.h>

#include "hotpath.h"
#include "peer.h"
#include "plane.h"

/* A copy that is made in part is as one that is not made. */
void weft_vm_copy(struct weft_copy *c)
{
	ssize_t n = (c->write ? process_vm_writev : process_vm_readv)((pid_t)c->pid, c->here, c->pieces, c->there,
								      c->pieces, 0);

	c->error = n == (ssize_t)c->len ? 0 : n < 0 ? errno : EFAULT;
}

/* Does what a poll asks for: what needs a system call, a pause or a transport's function. The rest is the runtime's. */
static __attribute__((noinline)) void perform(struct weft_poll *p, unsigned code)
{
	switch (code) {
	case WEFT_DELIVERY_PAUSE: /* the thread waits for another, which may be on the same core */
#if defined(__x86_64__)
		__builtin_ia32_pause();
#elif defined(__aarch64__)
		__asm__ volatile("isb" ::: "memory");
#endif
		return;
	case WEFT_DELIVERY_READ:
		return weft_vm_copy(&p->delivery.copy);
	case WEFT_POLL_YIELD:
		sched_yield();
		__attribute__((fallthrough));
	case WEFT_POLL_CLOCK:
		p->clock = weft_clock_ns(CLOCK_MONOTONIC);
		p->processor = (uint32_t)sched_getcpu();
		return;
	case WEFT_POLL_NEXT:
		p->answer = p->transport->next(p->transport, &p->message);
		return;
	case WEFT_POLL_RING:
		return p->delivery.ep->match->ring(p->delivery.ep->match, &p->bell, false);
	case WEFT_POLL_SILENT:
		p->answer = p->transport->peek(p->transport, &p->message);
		return;
	case WEFT_POLL_TAKE:
		p->answer = p->transport->take(p->transport);
		return;
	case WEFT_POLL_FLUSH_TRANSPORT:
		return p->transport->flush(p->transport);
	default:
		weftGoForPoll(p, code);
	}
}

/* Counts a poll down to the one that is due, which has WEFT_POLLS_OVER left. */
static inline bool due(void)
{
	return __builtin_expect((int32_t)--weft_self.left < 0, 0);
}

/* Calls a function of the data plane until it has done all. The caller has set what stands before flags and what only
 * that function takes. */
static inline void run(enum weft_plane_function f, struct weft_poll *p, uint32_t flags)
{
	unsigned code;

	p->thread = &weft_self;
	p->flags = flags;
	p->step = p->phase = p->gated = 0;
	if (flags & WEFT_POLL_DUE)
		p->now = weft_clock_ns(CLOCK_MONOTONIC_COARSE) / 1000000;
	weft_thread_posts();
	while ((code = weft_plane_call(f, p)) != WEFT_DELIVERY_DONE)
		perform(p, code);
}

/* Goes on with a read by what WEFT_PLANE_TRY has said: it has read entries, or found an endpoint with work. */
static __attribute__((noinline)) ssize_t read_on(struct weft_poll *p, uintptr_t said)
{
	if (said & WEFT_TRY_ENTRIES)
		return (ssize_t)(said >> WEFT_TRY_SHIFT);
	p->at = (struct weft_hot_ep *const *)said;
	run(WEFT_PLANE_READ, p, said == WEFT_TRY_DUE ? WEFT_POLL_DUE : said == WEFT_TRY_READ ? 0 : WEFT_POLL_WORK);
	return p->result;
}

/* Most reads find nothing, and end behind the first call. */
static inline __attribute__((always_inline)) ssize_t read_entries(struct weft_cq_obj *o, void *buf, size_t count,
								  fi_addr_t *src)
{
	struct weft_poll p;
	uintptr_t said = WEFT_TRY_DUE;

	p.reader = (struct weft_reader){ .cq = o->hot, .src = src, .buf = buf, .left = count };
	if (__builtin_expect(!buf, 0) && count)
		return -FI_EINVAL;
	if (!due())
		said = weft_plane.enter(weft_plane.entries[WEFT_PLANE_TRY], (uintptr_t)&p.reader, (uintptr_t)&weft_self,
					0, 0);
	return __builtin_expect((intptr_t)said < 0, 1) ? (ssize_t)said : read_on(&p, said);
}

ssize_t weft_cq_read(struct fid_cq *cq, void *buf, size_t count)
{
	return read_entries(container_of(cq, struct weft_cq_obj, fid), buf, count, NULL);
}

ssize_t weft_cq_readfrom(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *src_addr)
{
	return read_entries(container_of(cq, struct weft_cq_obj, fid), buf, count, src_addr);
}

ssize_t weft_cq_sreadfrom(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *src_addr, const void *cond,
			  int timeout)
{
	struct weft_cq_obj *o = container_of(cq, struct weft_cq_obj, fid);
	struct weft_poll p;

	if (o->wait.kind == FI_WAIT_NONE)
		return -FI_ENOSYS;
	if (count && !buf)
		return -FI_EINVAL;
	p.reader = (struct weft_reader){ .cq = o->hot, .src = src_addr, .buf = buf, .left = count };
	p.want = o->wait_cond == FI_CQ_COND_THRESHOLD ? (uintptr_t)cond : 1;
	p.timeout = timeout;
	p.start = 0;
	run(WEFT_PLANE_SREAD, &p, due() ? WEFT_POLL_DUE : 0);
	return p.result;
}

ssize_t weft_cq_sread(struct fid_cq *cq, void *buf, size_t count, const void *cond, int timeout)
{
	return weft_cq_sreadfrom(cq, buf, count, NULL, cond, timeout);
}

ssize_t weft_cq_readerr(struct weft_cq_obj *o, struct weft_cq_err_entry *entry)
{
	uint64_t src = FI_ADDR_NOTAVAIL;
	int rc = 0;

	if (weft_plane.enter(weft_plane.entries[WEFT_PLANE_READ_ERROR], (uintptr_t)o->hot, (uintptr_t)&entry->base, 0,
			     0) == WEFT_DELIVERY_GO)
		rc = weftGoCQReadErr(o->handle, &entry->base, &src);
	entry->src_addr = src;
	return rc ? rc : 1;
}

/* Makes progress at a NULL-terminated list of endpoints. Whether anything was found. */
static bool progress(struct weft_hot_ep *const *eps, uint32_t flags)
{
	struct weft_poll p;

	p.reader.cq = NULL;
	p.eps = eps;
	run(WEFT_PLANE_PROGRESS, &p, flags);
	return p.found;
}

bool weft_drive(struct weft_hot_ep *const *eps, uint64_t idle, uint64_t most)
{
	struct weft_poll p;

	p.reader.cq = NULL;
	p.eps = eps;
	p.idle = idle;
	p.most = most;
	run(WEFT_PLANE_DRIVE, &p, WEFT_POLL_THREAD);
	return p.found;
}

/* The same for a call that finds most often that there is nothing to do. */
static bool progress_if_any(struct weft_hot_ep *const *eps)
{
	if (due())
		return progress(eps, WEFT_POLL_DUE);
	return (intptr_t)weft_plane.enter(weft_plane.entries[WEFT_PLANE_TRY], 0, (uintptr_t)&weft_self, (uintptr_t)eps,
					  0) >= 0 &&
	       progress(eps, 0);
}

bool weft_ep_progress(struct weft_ep_obj *o)
{
	return progress_if_any((struct weft_hot_ep *[]){ o->hot, NULL });
}

/* Makes progress for a counter, and returns its table. */
static struct weft_hot_cntr *progressed(struct fid_cntr *cntr)
{
	struct weft_cntr_obj *o = container_of(cntr, struct weft_cntr_obj, fid);

	progress_if_any(atomic_load_explicit(&o->hot->eps, memory_order_acquire));
	return o->hot;
}

uint64_t weft_cntr_read(struct fid_cntr *cntr)
{
	return atomic_load_explicit(&progressed(cntr)->value, memory_order_acquire);
}

uint64_t weft_cntr_readerr(struct fid_cntr *cntr)
{
	return atomic_load_explicit(&progressed(cntr)->errors, memory_order_acquire);
}
