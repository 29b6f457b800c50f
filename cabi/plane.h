/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Calls of the data plane: Go functions that need nothing of the runtime (packages direct and dataplane). They go
 * without the runtime where that is possible, else by a callback.
 */
#ifndef WEFT_PLANE_H
#define WEFT_PLANE_H

#include <stdint.h>

/* The functions, in the order of plane.go's table. */
enum weft_plane_function {
	WEFT_PLANE_READ,    /* struct weft_poll, as the next ones: reads a queue */
	WEFT_PLANE_SREAD,   /* the same, and sleeps */
	WEFT_PLANE_PROGRESS,
	WEFT_PLANE_DRIVE,   /* what a progress thread does */
	WEFT_PLANE_RECV,    /* struct weft_post, struct weft_hot_rx or NULL: posts a receive */
	WEFT_PLANE_SEND,    /* struct weft_post, as those below: posts a message */
	WEFT_PLANE_DATAGRAM, /* posts one that may be dropped */
	WEFT_PLANE_RMA,     /* posts a read or a write */
	WEFT_PLANE_ATOMIC,  /* posts an atomic operation on one integer */
	WEFT_PLANE_NOTE,    /* posts a notification, alone or behind a copy */
	WEFT_PLANE_TAKE,    /* struct weft_note_take: takes notifications that have arrived */
	WEFT_PLANE_ENROLL,  /* struct weft_hot_thread: a thread begins to poll and post */
	WEFT_PLANE_FUNCTIONS,
};

/* How they are called. Go writes it (plane.go), before any endpoint exists. */
struct weft_plane {
	uintptr_t (*enter)(uintptr_t entry, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d);
	uintptr_t entries[WEFT_PLANE_FUNCTIONS]; /* what enter takes for each; its number for a callback */
};

extern struct weft_plane weft_plane;

static inline uintptr_t weft_plane_call(enum weft_plane_function f, const void *argument)
{
	return weft_plane.enter(weft_plane.entries[f], (uintptr_t)argument, 0, 0, 0);
}

#endif
