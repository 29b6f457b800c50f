/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "posting.h"
#include "vmcopy.h"

/* Asks for a line that is to be written soon. (__builtin_prefetch fetches it to be read, for lack of a compiler flag;
 * the instruction is one of every x86-64 processor since 2005, a no-op on some.) */
static inline void prefetch_write(const void *line)
{
#if defined(__x86_64__)
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
	__builtin_prefetch(line, 1);
#endif
}

/* Does what the data plane asks for, and calls it again. */
static __attribute__((noinline)) enum weft_post_code go_on(enum weft_plane_function f, struct weft_post *p,
							   enum weft_post_code code)
{
	do {
		if (code == WEFT_POST_TIME)
			p->now = (uint32_t)(weft_clock_ns(CLOCK_MONOTONIC_COARSE) / 1000000) | 1;
		else if (code == WEFT_POST_PATH)
			p->sent = p->path->send(p->path, &p->message);
		else
			p->sent = weft_vm_copy(&p->ep->peers[p->line], (void *)p->buf, p->at, p->len,
					       p->kind & WEFT_POST_READ);
		code = (enum weft_post_code)weft_plane_call(f, p);
	} while (code > WEFT_POST_NOTE);
	return code;
}

static inline __attribute__((always_inline)) ssize_t post(struct weft_ep_obj *o, enum weft_plane_function f,
							  struct weft_post *p)
{
	enum weft_post_code code;

	if (__builtin_expect(!o->hot || !weft_thread_posts(), 0))
		return WEFT_POST_TO_GO;
	p->ep = o->hot;
	p->self = &weft_self;
	p->step = p->now = 0;
	code = (enum weft_post_code)weft_plane_call(f, p);
	if (__builtin_expect(code > WEFT_POST_NOTE, 0))
		code = go_on(f, p, code);
	if (p->next)
		prefetch_write(p->next);
	if (__builtin_expect(p->todo != 0, 0))
		weftGoAfterPost(p);
	if (__builtin_expect(code == WEFT_POST_DONE, 1))
		return 0;
	if (code == WEFT_POST_AGAIN)
		return -FI_EAGAIN;
	return code == WEFT_POST_NOTE ? WEFT_POST_TO_NOTE : WEFT_POST_TO_GO;
}

ssize_t weft_post_direct(struct weft_ep_obj *o, enum weft_plane_function f, struct weft_post *p)
{
	return post(o, f, p);
}

ssize_t weft_post(struct weft_ep_obj *o, enum weft_plane_function f, struct weft_post *p)
{
	ssize_t rc = post(o, f, p);

	return __builtin_expect(rc == WEFT_POST_TO_GO, 0) ? weftGoPost(o->handle, f, p) : rc;
}
