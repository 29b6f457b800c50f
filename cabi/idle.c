/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Threads that poll: how many there are, and when they yield (idle.h).
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "idle.h"

__thread struct weft_poller weft_this_poller
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

static _Atomic uint32_t pollers; /* threads that have polled and not ended; added to once by each */
static _Atomic uint32_t room;    /* pollers that the processors hold, 0: not known yet; relaxed */
static pthread_key_t at_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void thread_ends(void *p)
{
	(void)p;
	atomic_fetch_sub_explicit(&pollers, 1, memory_order_relaxed);
}

/* The threads of one process that can poll without getting into each other's
 * way: as many as it has processors, and half of the host's, because whoever it
 * talks to is on this host and polls, too; but one always may. */
static void find_room(void)
{
	long host = sysconf(_SC_NPROCESSORS_ONLN);
	uint32_t n = host > 1 ? (uint32_t)host / 2 : 1;
	cpu_set_t own;

	if (sched_getaffinity(0, sizeof(own), &own) == 0 && CPU_COUNT(&own) > 0 &&
	    (uint32_t)CPU_COUNT(&own) < n)
		n = (uint32_t)CPU_COUNT(&own);
	atomic_store_explicit(&room, n, memory_order_relaxed);
	if (pthread_key_create(&at_end, thread_ends))
		atomic_store_explicit(&room, UINT32_MAX, memory_order_relaxed); /* cannot count: never yield */
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void first_poll(struct weft_poller *p)
{
	pthread_once(&once, find_room);
	p->limit = WEFT_YIELD_FIRST;
	p->random = (uint32_t)(uintptr_t)p;
	if (pthread_setspecific(at_end, p) == 0)
		atomic_fetch_add_explicit(&pollers, 1, memory_order_relaxed);
}

void weft_poller_idle(struct weft_poller *p)
{
	uint64_t began;

	p->empty = 0;
	if (!p->limit) {
		first_poll(p);
		return;
	}
	if (atomic_load_explicit(&pollers, memory_order_relaxed) <=
	    atomic_load_explicit(&room, memory_order_relaxed)) {
		p->limit = WEFT_YIELD_MAX;
		return;
	}
	began = now_ns();
	sched_yield();
	if (now_ns() - began > WEFT_YIELD_NS)
		p->limit = p->limit / 2 > WEFT_YIELD_MIN ? p->limit / 2 : WEFT_YIELD_MIN;
	else
		p->limit = p->limit * 2 < WEFT_YIELD_MAX ? p->limit * 2 : WEFT_YIELD_MAX;
}
