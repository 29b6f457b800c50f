/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * seam.h: how C drives an interface (struct weft_hot_transport in weft/hot.h) and sends over a path to a
 * peer (struct weft_hot_path): it calls Go code, which says what it wants of the device, has the device
 * do that, and calls again. The Go code is hw/verbs/internal/transport's.
 */
#ifndef WEFT_SEAM_H
#define WEFT_SEAM_H

#include "../../../../include/weft/hot.h"
#include "ibv.h"

/* What Go wants of the device. */
enum weft_want {
	WEFT_WANT_NOTHING,
	WEFT_WANT_POST, /* n work requests, ring[(from + k) & mask], of a queue pair */
	WEFT_WANT_POLL, /* n receive buffers given back, if n is not 0, then completion queues polled */
};

/* count of a queue that is to be polled. */
#define WEFT_POLL_WANTED (-2)

/* One call of the device. Go fills it, but for what is marked; the addresses are off its heap, or something keeps what
 * is there alive. Package ibv, type Call. */
struct weft_call {
	uint32_t want; /* enum weft_want */
	int32_t n;
	int32_t taken; /* by C: requests taken, or buffers */
	int32_t err;   /* by C: errno value of the first request that was not taken, 0: all were */
	uintptr_t qp, ring;
	uint64_t mask, from;
	uintptr_t buffers, index;   /* struct weft_buffers, and the numbers of those to be given back */
	uintptr_t cqs, done, count; /* of queues, done with max places each; count: how many came, -1: broken */
	uint32_t queues, max;
	uint64_t state[2]; /* Go's, from one call to the next */
};

/* The functions of package transport that C calls. */
enum weft_function {
	WEFT_FUNCTION_SEND,
	WEFT_FUNCTION_NEXT,
	WEFT_FUNCTION_PEEK,
	WEFT_FUNCTION_TAKE,
	WEFT_FUNCTION_FLUSH,
	WEFT_FUNCTION_AGAIN, /* after the device has done what another one wanted */
	WEFT_FUNCTIONS,
};

/* trampoline(entry, a, b, c, d), as in package direct. */
typedef uintptr_t (*weft_enter)(uintptr_t entry, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d);

/* Has C call the functions by a trampoline from now on, NULL: by callbacks, as at first. entry: their entry points, the
 * same each time. */
void weft_ibv_route(weft_enter trampoline, const uintptr_t entry[WEFT_FUNCTIONS]);

/* Has the device do what is wanted. */
void weft_ibv_perform(struct weft_call *c);

/* The functions of a transport and of a path. */
void weft_ibv_transport_init(struct weft_hot_transport *transport);
void weft_ibv_path_init(struct weft_hot_path *path);

#endif
