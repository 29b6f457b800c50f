/* SPDX-License-Identifier: BSD-2-Clause */
#include "posting.h"

/* Asks for a line that is to be written soon; __builtin_prefetch fetches it to be read. A no-op on some processors. */
static inline void prefetch_write(const void *line)
{
#if defined(__x86_64__)
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
	__builtin_prefetch(line, 1);
#endif
}

/* Does what the data plane asks for, and calls it again, until it has posted, or asks for the doorbell. */
static __attribute__((noinline)) unsigned go_on(enum weft_plane_function f, struct weft_post *p, unsigned code)
{
	for (;; code = weft_plane_call(f, p))
		if (code == WEFT_POST_TIME)
			p->now = (uint32_t)(weft_clock_ns(CLOCK_MONOTONIC_COARSE) / 1000000) | 1;
		else if (code == WEFT_POST_PATH)
			p->sent = p->path->send(p->path, &p->message);
		else if (code == WEFT_POST_COPY)
			weft_vm_copy(&p->copy);
		else
			return code;
}

ssize_t weft_post(struct weft_ep_obj *o, enum weft_plane_function f, struct weft_post *p)
{
	unsigned code;

	if (__builtin_expect(!o->hot || !weft_thread_posts(), 0))
		return weftGoPost(o->handle, f, p, WEFT_POST_GO);
	p->ep = o->hot;
	p->self = &weft_self;
	p->step = p->now = 0;
	code = weft_plane_call(f, p);
	if (__builtin_expect(code > WEFT_POST_RETURN, 0)) {
		if (code != WEFT_POST_RING)
			code = go_on(f, p, code);
		if (code == WEFT_POST_RING) {
			p->ep->match->ring(p->ep->match, &p->bell, true);
			code = p->code;
		}
	}
	if (p->next)
		prefetch_write(p->next);
	if (__builtin_expect(p->todo != 0, 0))
		weftGoAfterPost(p);
	return __builtin_expect(code <= WEFT_POST_AGAIN, 1) ? -(ssize_t)code : weftGoPost(o->handle, f, p, code);
}
