/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a thread remembers between polls that find nothing.
 *
 * More threads that poll than processors stand in each other's way: the one
 * that is waited for does not run while those that wait use their time up. So a
 * thread that does nothing but poll, and has found nothing for a while, yields
 * its processor. How long that while is it finds out. A yield that let another
 * thread run for a moment was right, and the next comes sooner: whoever polls in
 * its turn yields as well. One that returned at once was not, and the next comes
 * later. One that took long was to a thread that computes, which would get all of
 * the processor by it, so the next comes much later. A thread that has its
 * processor for itself so spends less than a thousandth of its polling on yields.
 */
#ifndef WEFT_IDLE_H
#define WEFT_IDLE_H

#include <stdbool.h>
#include <stdint.h>

/* Polls that find nothing between two yields, at least and at most. */
#define WEFT_YIELD_MIN 64u
#define WEFT_YIELD_MAX (1u << 20)
#define WEFT_YIELD_FIRST 1024u /* of a new thread */

/* Times in ns: above which another thread must have run during a yield (a yield
 * to nobody takes 200 to 500, an empty poll some 10), above which that thread
 * does not yield itself, and for each poll, above which the thread has done other
 * things than poll. */
#define WEFT_AWAY 1500u
#define WEFT_AWAY_LONG 1000000u
#define WEFT_DENSE 2000u

struct weft_poller {
	uint32_t random; /* for weft_sometimes */
	uint32_t empty;  /* polls since the last yield */
	uint32_t limit;  /* polls to the next; 0: the thread has not polled yet */
	uint64_t since;  /* time of the last yield, or of the look that found no reason for one; ns */
};

extern __thread struct weft_poller weft_this_poller
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Yields if the thread has done nothing but poll since the last time. */
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
