/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The end of the process. What ends it may be a signal handler that has interrupted Go, or a call
 * of the provider with locks taken: then a call into Go from the same thread is the end of the runtime,
 * with a trace and SIGABRT. So what Go has to do at the end is done on a thread of its own, for which
 * the process waits a limited time. Where none can be made, it is not done.
 */
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#include "goapi.h"
#include "thread.h"

struct task {
	void (*work)(void);
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool done;
};

static void *run(void *arg)
{
	struct task *t = arg;

	weft_thread_enter_last();
	t->work();
	pthread_mutex_lock(&t->lock);
	t->done = true;
	pthread_cond_signal(&t->changed);
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

/* The condition goes by the monotonic clock. */
static void wait_for(struct task *t, unsigned seconds)
{
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += seconds;
	pthread_mutex_lock(&t->lock);
	while (!t->done && !pthread_cond_timedwait(&t->changed, &t->lock, &end))
		;
	pthread_mutex_unlock(&t->lock);
}

void weft_at_end(void (*work)(void), unsigned seconds)
{
	static struct task tasks[2]; /* as many things as are to be done; they may outlast the caller's wait */
	static unsigned taken;	     /* by the thread that ends the process */
	pthread_condattr_t attr;
	struct task *t;

	if (taken == count_of(tasks))
		return;
	t = &tasks[taken++];
	t->work = work;
	pthread_mutex_init(&t->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&t->changed, &attr);
	if (weft_thread_start(run, t))
		wait_for(t, seconds);
}
