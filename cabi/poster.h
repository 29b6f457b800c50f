/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Threads that post say so while they use what they have read in a line of
 * struct weft_hot_peer: slots of another process's segment. Such memory is given
 * to another peer only when none of them is left there (hot.Grace).
 *
 * The two stores go to a line of the thread's own. That the first is seen before
 * the line is read needs no fence here: who waits has every thread pass a
 * barrier (membarrier) after it has cleared the lines.
 */
#ifndef WEFT_POSTER_H
#define WEFT_POSTER_H

#include "hotpath.h"

#define WEFT_POSTERS 4096

extern struct weft_poster weft_posters[WEFT_POSTERS];

/* Gives the thread a line until it ends; NULL when all are taken. */
struct weft_poster *weft_poster_new(void);

/* The thread's line. NULL: there is none left, and this thread may not post but through Go. */
static inline struct weft_poster *weft_post_line(void)
{
	struct weft_poster *me = weft_self.poster;

	return __builtin_expect(me != NULL, 1) ? me : weft_poster_new();
}

/* Says that the thread posts. */
static inline void weft_post_resume(struct weft_poster *me)
{
	atomic_store_explicit(&me->posting,
			      atomic_load_explicit(&me->posting, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
}

/* Both of them. */
static inline struct weft_poster *weft_post_begin(void)
{
	struct weft_poster *me = weft_post_line();

	if (__builtin_expect(me != NULL, 1))
		weft_post_resume(me);
	return me;
}

static inline void weft_post_end(struct weft_poster *me)
{
	atomic_store_explicit(&me->posting,
			      atomic_load_explicit(&me->posting, memory_order_relaxed) + 1,
			      memory_order_release);
}

#endif
