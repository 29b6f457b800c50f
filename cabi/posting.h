/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Posting: what the functions that applications call (posts_gen.c) have in common. They fill a struct weft_post with
 * their arguments; the data plane posts it, or the runtime.
 */
#ifndef WEFT_POSTING_H
#define WEFT_POSTING_H

#include "hotpath.h"
#include "plane.h"

/* The most elements of each vector of an atomic operation, and of one with memory of devices; more are refused. */
#define WEFT_IOV_LIMIT 4

/* Posts an operation by one of the data plane's functions, or in the runtime. 0 or a negative errno. */
ssize_t weft_post(struct weft_ep_obj *o, enum weft_plane_function f, struct weft_post *p);

/* Posts a receive. 0 or a negative errno. */
static inline ssize_t weft_post_recv(struct weft_ep_obj *o, struct weft_post *p)
{
	uintptr_t code;

	if (__builtin_expect(!o->rx, 0))
		return weft_post(o, WEFT_PLANE_RECEIVE, p);
	code = weft_plane.enter(weft_plane.entries[WEFT_PLANE_RECV], (uintptr_t)p, (uintptr_t)o->rx, (uintptr_t)o->hot,
				0);

	return __builtin_expect(code == WEFT_POST_DONE, 1) ? 0 : weftGoRecv(o->handle, o->rx, p, code);
}

/* WEFT_POST_DEVICE if one of the buffers is memory of a device, as its descriptor says. */
static inline uint32_t weft_on_device(void *const *desc, size_t count)
{
	for (size_t i = 0; desc && i < count && count <= WEFT_IOV_LIMIT; i++)
		if ((uintptr_t)desc[i] & WEFT_DESC_SPECIAL)
			return WEFT_POST_DEVICE;
	return 0;
}

#endif
