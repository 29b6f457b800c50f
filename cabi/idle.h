/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a thread remembers between polls that find nothing.
 *
 * More threads that poll than processors stand in each other's way: the one
 * that is waited for does not run while those that wait use their time up. So a
 * thread that does nothing but poll, and has found nothing so many times in a
 * row, yields its processor. How many times that is it finds out.
 *
 * A yield that returned at once was of no use, and the next comes later. One that let
 * other threads run that poll was right, and the next comes sooner: whoever polls in
 * its turn yields as well. One to a thread that computes would give away all of the
 * processor, so the next comes later, too. That thread runs for long without a sign
 * of polling; threads that poll leave such a sign for the others of their process
 * (idle.c), so many of them are not mistaken for it, however long all of their turns
 * take.
 *
 * However late, a yield comes before WEFT_TURN has been polled twice. So a thread that has its
 * processor for itself spends a thousandth of its polling on yields, one that polls
 * beside others never looks to them as if it computed, and those that all once were late
 * learn to be early again.
 *
 * Where yields are right, whoever is waited for may all the same be running, on another
 * processor, and then it is better to wait a little more than to be away. So a thread is
 * patient if that was worth it lately, and else tries it now and then.
 */
#ifndef WEFT_IDLE_H
#define WEFT_IDLE_H

#include <stdbool.h>
#include <stdint.h>

/* Polls in a row that find nothing before a yield: at least, if it is worth being
 * patient, and of a new thread. */
#define WEFT_YIELD_MIN 64u
#define WEFT_YIELD_PATIENT 256u
#define WEFT_YIELD_FIRST 1024u

/* Yields for which a thread stays patient after something came late, and of which one
 * is tried with patience otherwise. */
#define WEFT_PATIENCE 4u
#define WEFT_PATIENCE_TRY 16u

/* Times in ns: above which another thread must have run during a yield (a yield
 * to nobody takes 200 to 500, an empty poll some 10), above which one that ran
 * without a sign does not poll, for each poll, above which the thread has done other things than
 * poll, and of polling after which the number of polls is large enough. */
#define WEFT_AWAY 1500u
#define WEFT_AWAY_LONG 1000000u
#define WEFT_DENSE 2000u
#define WEFT_TURN 250000u

struct weft_poller {
	uint32_t random; /* for weft_sometimes */
	uint32_t empty;  /* polls in a row that found nothing, since the last yield at most */
	uint32_t turn;   /* after so many the thread yields; 0: it has not polled yet */
	uint32_t limit;  /* the same without patience: what it has learned */
	uint32_t yields; /* since something came after more than WEFT_YIELD_MIN polls */
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

	if (__builtin_expect(++p->empty > p->turn, 0))
		weft_poller_idle(p);
}

/* A poll found something. */
static inline void weft_found_something(void)
{
	struct weft_poller *p = &weft_this_poller;

	if (__builtin_expect(p->empty > WEFT_YIELD_MIN, 0))
		p->yields = 0;
	p->empty = 0;
}

static inline void weft_found(bool something)
{
	if (something)
		weft_found_something();
	else
		weft_found_nothing();
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

/* Of what weft_sometimes has just told, one in 32. */
static inline bool weft_seldom(void)
{
	return weft_this_poller.random >> 22 == 0;
}

#endif
