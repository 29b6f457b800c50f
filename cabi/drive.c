/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Progress threads' data path. They belong to Go (package proxy), which starts,
 * places and ends them, lets them sleep and runs their timers. What arrives
 * while one is awake it takes in here, as a poll of the application would, and
 * it looks for more without going back to Go for each message: a fetching
 * atomic is answered as fast as by a target that polls.
 */
#include <time.h>

#include "drive.h"
#include "look.h"

/* Looks between two looks at the clock, which costs as much as three of them. */
#define LOOKS 16

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* Does an endpoint's work, if there is some. */
static enum weft_looked drive_one(struct weft_hot_ep *ep)
{
	struct weft_hot_rx *rx = atomic_load_explicit(&ep->rx, memory_order_acquire);
	enum weft_looked looked;

	if (!weft_has_work(ep, rx))
		return WEFT_LOOKED_NOTHING;
	if (!weft_take_lease(ep, rx)) {
		weft_count_busy(ep);
		return WEFT_LOOKED_TO_GO; /* which lets the thread have the processor that is at it */
	}
	looked = weft_work(ep, rx, NULL);
	weft_give_lease(rx);
	return looked;
}

bool weft_drive(struct weft_hot_ep *const *eps, size_t n, uint64_t idle, uint64_t most)
{
	uint64_t begin = 0, last = 0, t;
	bool worked = false, fresh = true;

	for (uint32_t looks = 0;; looks++) {
		for (size_t i = 0; i < n; i++) {
			enum weft_looked looked = drive_one(eps[i]);
			if (looked == WEFT_LOOKED_TO_GO)
				return worked;
			if (looked == WEFT_LOOKED_DELIVERED)
				worked = fresh = true;
		}
		if (!idle)
			return worked;
		if (looks % LOOKS) {
			weft_pause();
			continue;
		}
		t = now();
		if (!begin)
			begin = t;
		if (fresh)
			last = t;
		fresh = false;
		if (t - last >= idle || t - begin >= most)
			return worked;
	}
}
