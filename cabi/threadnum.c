/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a thread has of its own while it lives: a number and a line (struct weft_hot_thread). The data plane gives them.
 */
#include <pthread.h>

#include "hotpath.h"
#include "plane.h"

__thread struct weft_hot_thread weft_self __attribute__((tls_model("initial-exec"), visibility("hidden")));

static pthread_key_t at_exit;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool have_key;

/* The thread ends, perhaps in the middle of a post. Not by the data plane: no callback may be made any more. Release,
 * with the acquire of the thread that takes its lines next: what this thread added to them is there for that one. */
static void leave(void *thread)
{
	struct weft_hot_thread *self = thread;
	struct weft_epoch_reader *line = self->line;

	if (line && atomic_load_explicit(&line->posting, memory_order_relaxed) & 1)
		atomic_fetch_add_explicit(&line->posting, 1, memory_order_release);
	if (line)
		atomic_store_explicit(&line->taken, 0, memory_order_release);
	if (self->numbers && self->number < WEFT_STAT_LINES)
		atomic_fetch_and_explicit(self->numbers, ~(1ull << (self->number - 1)), memory_order_release);
	self->line = NULL;
	self->number = 0;
}

static void make_key(void)
{
	have_key = pthread_key_create(&at_exit, leave) == 0;
}

/* What cannot be given back is not taken: then the thread has the number that several have, and no line. */
bool weft_thread_enroll(void)
{
	pthread_once(&once, make_key);
	if (!weft_self.number)
		weft_self.number = WEFT_STAT_LINES;
	if (have_key && pthread_setspecific(at_exit, &weft_self) == 0)
		weft_plane_call(WEFT_PLANE_ENROLL, &weft_self);
	return weft_self.line != NULL;
}
