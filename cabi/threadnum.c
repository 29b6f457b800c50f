/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Numbers of threads, small and each one's own while it lives: a thread's
 * preferred stripe and its line of counters.
 */
#include <pthread.h>

#include "hotpath.h"

__thread struct weft_hot_thread weft_self __attribute__((tls_model("initial-exec"), visibility("hidden")));

static _Atomic uint64_t taken; /* a bit for each number below the shared one; CAS by threads */
static pthread_key_t at_exit;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool can_return; /* at_exit was made */

/* A thread ends: its number is the next one's. Release, with the acquire of the
 * claim: what this thread added to its lines is there for the next to add to. */
static void leave(void *number)
{
	uint64_t bit = 1ull << ((uintptr_t)number - 1);

	weft_self.number = 0;
	atomic_fetch_and_explicit(&taken, ~bit, memory_order_release);
}

static void make_key(void)
{
	can_return = pthread_key_create(&at_exit, leave) == 0;
}

_Static_assert(WEFT_STAT_LINES - 1 < 64, "a number has a bit");

uint32_t weft_thread_enroll(void)
{
	uint64_t seen = atomic_load_explicit(&taken, memory_order_relaxed);
	uint32_t n;

	pthread_once(&once, make_key);
	do {
		n = __builtin_ctzll(~seen);
		if (n >= WEFT_STAT_LINES - 1 || !can_return) {
			weft_self.number = WEFT_STAT_LINES;
			return WEFT_STAT_LINES - 1;
		}
	} while (!atomic_compare_exchange_weak_explicit(&taken, &seen, seen | 1ull << n,
							memory_order_acquire, memory_order_relaxed));
	weft_self.number = n + 1;
	if (pthread_setspecific(at_exit, (void *)(uintptr_t)(n + 1)) != 0) {
		leave((void *)(uintptr_t)(n + 1));
		weft_self.number = WEFT_STAT_LINES;
		return WEFT_STAT_LINES - 1;
	}
	return n;
}
