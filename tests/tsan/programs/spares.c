/* SPDX-License-Identifier: BSD-2-Clause
 * The threads of the library (cabi/spares.c), under ThreadSanitizer: several threads have jobs done by threads that
 * wait and by new ones, and say meanwhile how many are needed. With MUTANT the lock is none, which the sanitizer is to
 * find. */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../../cabi/goapi.h"
#include "../../../cabi/host.h"
#include "../../../cabi/thread.h"
#ifdef MUTANT
#define pthread_mutex_lock none
#define pthread_mutex_unlock none
#define pthread_cond_wait(cond, mutex) sched_yield()
static void none(pthread_mutex_t *mutex)
{
	(void)mutex;
}
#endif
#include "../../../cabi/spares.c"

#define MAKERS 3
#define JOBS 150 /* of each */

/* A job, in its maker's memory until it is done. */
struct work {
	unsigned done;
	sem_t ended;
};

void weft_log(int level, int subsys, const char *func, int line, const char *text)
{
	(void)level, (void)subsys, (void)func, (void)line;
	fprintf(stderr, "%s\n", text);
}

static void *work(void *arg)
{
	struct work *w = arg;

	w->done++;
	sem_post(&w->ended);
	return NULL;
}

static void *maker(void *arg)
{
	uintptr_t which = (uintptr_t)arg;
	struct work w = { .done = 0 };
	pthread_t unused;

	sem_init(&w.ended, 0, 0);
	for (unsigned i = 0; i < JOBS; i++) {
		if (weft_spares_need("a job") || !weft_spares_want(which + i % 4, i % 3))
			abort();
		if (i % 10 == 9 ? !weft_thread_start(work, &w) : __wrap_pthread_create(&unused, NULL, work, &w))
			abort();
		while (sem_wait(&w.ended))
			;
		if (w.done != i + 1)
			abort();
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[MAKERS];
	unsigned working = 1;

	weft_spares_prepare();
	for (uintptr_t i = 0; i < MAKERS; i++)
		if (pthread_create(&threads[i], NULL, maker, (void *)i))
			return 1;
	for (int i = 0; i < MAKERS; i++)
		pthread_join(threads[i], NULL);
	for (; working; sched_yield()) { /* threads whose jobs are done wait again */
		pthread_mutex_lock(&spares.lock);
		working = spares.working;
		if (!working)
			printf("%u wait\n", spares.waiting);
		if (spares.jobs || spares.waiting > KEPT)
			return 2;
		pthread_mutex_unlock(&spares.lock);
	}
	return 0;
}
