/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <time.h>

#include "posting.h"
#include "poster.h"
#include "rma.h"
#include "vmcopy.h"

static uint32_t coarse_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (uint32_t)(t.tv_sec * 1000 + t.tv_nsec / 1000000) | 1;
}

/* Hands the message to the backend that reaches its peer. */
static uint32_t give_path(struct weft_post *p)
{
	uint32_t head = p->kind & WEFT_POST_DATA ? sizeof(p->data) : 0;
	struct weft_port_message m = {
		.header = p->header, .head = (const void *)&p->data, .payload = p->buf,
		.length = (uint32_t)p->len, .head_bytes = (uint16_t)head, .hold = (uint8_t)p->hold,
		.id = (uint8_t)((p->kind & WEFT_POST_TAGGED ? WEFT_AM_TAG : WEFT_AM_MSG) + (head ? 1 : 0)),
	};

	return p->path->send(p->path, &m);
}

/* Does what the data plane asks for, and calls it again. */
static __attribute__((noinline)) enum weft_post_code go_on(enum weft_plane_function f, struct weft_post *p,
							   enum weft_post_code code)
{
	do {
		if (code == WEFT_POST_TIME)
			p->now = coarse_ms();
		else if (code == WEFT_POST_PATH)
			p->sent = give_path(p);
		else
			p->sent = weft_vm_copy(&p->ep->peers[p->line], (void *)p->buf, p->at, p->len,
					       p->kind & WEFT_POST_READ);
		code = (enum weft_post_code)weft_plane_call(f, p);
	} while (code > WEFT_POST_NOTE);
	return code;
}

ssize_t weft_post(struct weft_ep_obj *o, enum weft_plane_function f, struct weft_post *p)
{
	struct weft_hot_ep *ep = o->hot;
	struct weft_poster *me;
	enum weft_post_code code;

	if (__builtin_expect(!ep || !(me = weft_post_begin()), 0))
		return WEFT_POST_TO_GO;
	p->ep = ep;
	p->thread = weft_thread_number();
	p->step = p->now = 0;
	code = (enum weft_post_code)weft_plane_call(f, p);
	if (__builtin_expect(code > WEFT_POST_NOTE, 0))
		code = go_on(f, p, code);
	if (p->next)
		weft_prefetch_write(p->next);
	weft_post_end(me);
	if (__builtin_expect(p->todo != 0, 0))
		weftGoAfterPost(p);
	if (__builtin_expect(code == WEFT_POST_DONE, 1))
		return 0;
	if (code == WEFT_POST_AGAIN)
		return -FI_EAGAIN;
	return code == WEFT_POST_NOTE ? WEFT_POST_TO_NOTE : WEFT_POST_TO_GO;
}
