/* SPDX-License-Identifier: BSD-2-Clause
 * How threads that call into Go are counted (cabi/thread.c), under ThreadSanitizer: threads come and go, and call
 * again. With MUTANT the count is an ordinary word, which the sanitizer is to find. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../../cabi/goapi.h"
#include "../../../cabi/thread.h"
#ifdef MUTANT
#undef atomic_fetch_add_explicit
#undef atomic_fetch_sub_explicit
#define atomic_fetch_add_explicit(at, n, order) plain_add(at, n)
#define atomic_fetch_sub_explicit(at, n, order) plain_add(at, -(n))
static unsigned plain_add(void *at, int n)
{
	unsigned was = *(unsigned *)at;

	*(unsigned *)at = was + (unsigned)n;
	return was;
}
#endif
#include "../../../cabi/thread.c"

#define PARENTS 4 /* threads whose children are ordered among themselves only */
#define CHILDREN 300

static _Atomic unsigned counted, uncounted;

void weft_enter_go(unsigned threads)
{
	if (threads > 2 * PARENTS) /* parents make no call before their children end */
		abort();
	__atomic_fetch_add(threads ? &counted : &uncounted, 1, __ATOMIC_RELAXED);
}

/* A thread that calls into Go twice, or ends the process's use of it. */
static void *child(void *last)
{
	if (last)
		weft_thread_enter_last();
	weft_thread_enter(NULL);
	weft_thread_enter(NULL);
	return NULL;
}

static void *parent(void *arg)
{
	pthread_t t;

	(void)arg;
	for (uintptr_t i = 0; i < CHILDREN; i++)
		if (pthread_create(&t, NULL, child, (void *)(uintptr_t)(i % 3 == 2)) || pthread_join(t, NULL))
			abort();
	weft_thread_enter(NULL);
	return NULL;
}

int main(void)
{
	pthread_t t[PARENTS];

	for (int i = 0; i < PARENTS; i++)
		if (pthread_create(&t[i], NULL, parent, NULL))
			abort();
	for (int i = 0; i < PARENTS; i++)
		pthread_join(t[i], NULL);
	printf("%u counted, %u not, %u inside\n", counted, uncounted, inside);
	return counted != PARENTS * (CHILDREN * 2 / 3 + 1) || uncounted != PARENTS * CHILDREN / 3 || inside;
}
