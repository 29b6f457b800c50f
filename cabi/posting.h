/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The shim of the data plane's functions that post (package dataplane).
 */
#ifndef WEFT_POSTING_H
#define WEFT_POSTING_H

#include "hotpath.h"
#include "plane.h"
#include "../include/weft/post.h"

/* What is returned for an operation that the runtime posts; nothing happened then. */
#define WEFT_POST_TO_GO 1

/* What is returned when the copy is made, and the runtime sends the notification. */
#define WEFT_POST_TO_NOTE 2

/* Posts an operation by one of the data plane's functions. 0, -FI_EAGAIN or WEFT_POST_TO_*. */
ssize_t weft_post(struct weft_ep_obj *o, enum weft_plane_function f, struct weft_post *p);

/* What the fi_inject forms, of messages or of one-sided operations, have of the defaults: they
 * complete nowhere, but a counter counts them, and when is the endpoint's to say. */
static inline uint64_t weft_inject_flags(const struct weft_ep_obj *o, bool message)
{
	uint64_t flags = o->tx_op_flags & FI_DELIVERY_COMPLETE;

	if (__builtin_expect(!flags, 1) || !o->hot)
		return 0;
	return (message ? o->hot->tx_cntr : o->hot->write_cntr) ? flags : 0;
}

#endif
