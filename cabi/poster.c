/* SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>

#include "poster.h"

struct weft_poster weft_posters[WEFT_POSTERS] __attribute__((aligned(WEFT_CACHE_LINE)));

static pthread_key_t key;
static bool have_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The thread ends, perhaps in the middle of a post. */
static void leave(void *p)
{
	struct weft_poster *me = p;

	weft_self.poster = NULL;
	if (atomic_load_explicit(&me->posting, memory_order_relaxed) & 1)
		weft_post_end(me);
	atomic_store_explicit(&me->taken, 0, memory_order_release);
}

static void make_key(void) { have_key = pthread_key_create(&key, leave) == 0; }

struct weft_poster *weft_poster_new(void)
{
	pthread_once(&once, make_key);
	if (!have_key)
		return NULL;
	for (struct weft_poster *p = weft_posters; p < weft_posters + WEFT_POSTERS; p++) {
		uint32_t free = 0;

		if (atomic_load_explicit(&p->taken, memory_order_relaxed) == 0 &&
		    atomic_compare_exchange_strong_explicit(&p->taken, &free, 1,
							    memory_order_acquire,
							    memory_order_relaxed)) {
			if (pthread_setspecific(key, p)) {
				atomic_store_explicit(&p->taken, 0, memory_order_release);
				return NULL;
			}
			return weft_self.poster = p;
		}
	}
	return NULL;
}
