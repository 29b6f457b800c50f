/* SPDX-License-Identifier: BSD-2-Clause
 *
 * When a thread that polls yields (idle.h).
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sched.h>
#include <time.h>

#include "idle.h"

__thread struct weft_poller weft_this_poller
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The number of polls to the next yield, from that to this one and from how long
 * this one took. */
static uint32_t next_limit(uint32_t limit, uint64_t away)
{
	if (away > WEFT_AWAY && away < WEFT_AWAY_LONG)
		return limit > 2 * WEFT_YIELD_MIN ? limit / 2 : WEFT_YIELD_MIN;
	return limit < WEFT_YIELD_MAX / 2 ? limit * 2 : WEFT_YIELD_MAX;
}

void weft_poller_idle(struct weft_poller *p)
{
	uint64_t began = now_ns();
	bool dense = began - p->since < (uint64_t)p->limit * WEFT_DENSE;

	p->empty = 0;
	p->since = began;
	if (!p->limit)
		p->limit = WEFT_YIELD_FIRST;
	if (!dense)
		return;
	sched_yield();
	p->since = now_ns();
	p->limit = next_limit(p->limit, p->since - began);
}
