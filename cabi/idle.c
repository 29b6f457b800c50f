/* SPDX-License-Identifier: BSD-2-Clause
 *
 * When a thread that polls yields (idle.h).
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "idle.h"

__thread struct weft_poller weft_this_poller
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* A processor, as threads of this process that poll see it. Written and read by those
 * that begin or end a yield there; relaxed: a look at an old time costs a wrong guess.
 * Processors with the same number modulo SEATS share one. */
#define SEATS 256

static struct seat {
	_Alignas(64) _Atomic uint64_t seen; /* when one was last there, ns */
} seats[SEATS];

static struct seat *my_seat(void)
{
	return &seats[(unsigned)sched_getcpu() % SEATS];
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Yields at the time began; *ran is for how long, in the end, nobody who polls was seen. */
static uint64_t yield(uint64_t began, uint64_t *ran)
{
	struct seat *seat = my_seat();
	uint64_t now, seen;

	atomic_store_explicit(&seat->seen, began, memory_order_relaxed);
	sched_yield();
	now = now_ns();
	seat = my_seat(); /* perhaps another one */
	seen = atomic_load_explicit(&seat->seen, memory_order_relaxed);
	atomic_store_explicit(&seat->seen, now, memory_order_relaxed);
	*ran = now - (seen > began && seen < now ? seen : began);
	return now;
}

/* The limit for the next yield, from how long this one took, how long somebody
 * ran without a sign, and for how long the thread had polled. */
static uint32_t next_limit(uint32_t limit, uint64_t away, uint64_t ran, uint64_t polled)
{
	if (away > WEFT_AWAY && ran < WEFT_AWAY_LONG)
		return limit > 2 * WEFT_YIELD_MIN ? limit / 2 : WEFT_YIELD_MIN;
	return polled < WEFT_TURN ? limit * 2 : limit;
}

static uint32_t next_turn(struct weft_poller *p)
{
	uint32_t n = p->yields++;

	if (p->limit < WEFT_YIELD_PATIENT && (n < WEFT_PATIENCE || n % WEFT_PATIENCE_TRY == 0))
		return WEFT_YIELD_PATIENT;
	return p->limit;
}

void weft_poller_idle(struct weft_poller *p)
{
	uint64_t began = now_ns(), polled = began - p->since, ran;
	bool dense = polled < (uint64_t)p->turn * WEFT_DENSE;

	p->empty = 0;
	p->since = began;
	if (!p->turn)
		p->turn = p->limit = WEFT_YIELD_FIRST;
	if (!dense)
		return;
	p->since = yield(began, &ran);
	p->limit = next_limit(p->limit, p->since - began, ran, polled);
	p->turn = next_turn(p);
}
