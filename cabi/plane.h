/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Calls of the data plane: Go functions that need nothing of the runtime (packages direct and dataplane). They go
 * without the runtime where that is possible, else by a callback.
 */
#ifndef WEFT_PLANE_H
#define WEFT_PLANE_H

#include "../include/weft/poll.h"

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
