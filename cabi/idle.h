/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a thread remembers between polls that find nothing.
 *
 * More threads that poll than processors stand in each other's way: the one
 * that is waited for does not run while those that wait use their time up. So
 * in a process that has too many of them a thread that has found nothing for a
 * while yields its processor. How long that while is it finds out: a yield that
 * let another thread run was right, and the next comes sooner; one that returned
 * at once was not, and the next comes later. A process whose threads fit on its
 * processors never yields.
 */
#ifndef WEFT_IDLE_H
#define WEFT_IDLE_H

#include <stdbool.h>
#include <stdint.h>

/* Polls that find nothing between two yields, at least and at most; and the time
 * in ns above which another thread must have run. A yield to nobody takes 0.2 to
 * 0.5 us, an empty poll some 10 ns. */
#define WEFT_YIELD_MIN 64u
#define WEFT_YIELD_MAX 16384u
#define WEFT_YIELD_FIRST 1024u /* of a new thread */
#define WEFT_YIELD_NS 1500u

struct weft_poller {
	uint32_t random;  /* for weft_sometimes */
	uint32_t empty;   /* polls since the last yield */
	uint32_t limit;   /* polls to the next; 0: the thread has not polled yet */
};

extern __thread struct weft_poller weft_this_poller
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Counts a thread in that polls for the first time, and yields when it is time. */
void weft_poller_idle(struct weft_poller *p);

/* A poll found nothing. */
static inline void weft_found_nothing(void)
{
	struct weft_poller *p = &weft_this_poller;

	if (__builtin_expect(++p->empty > p->limit, 0))
		weft_poller_idle(p);
}

/* True once in 32 times, at random: a thread that goes through several queues in
 * turn must not always meet the same one. (Numerical Recipes' linear
 * congruential generator; its high bits are good enough.) */
static inline bool weft_sometimes(void)
{
	struct weft_poller *p = &weft_this_poller;

	p->random = p->random * 1664525u + 1013904223u;
	return p->random >> 27 == 0;
}

#endif
