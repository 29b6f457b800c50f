/* SPDX-License-Identifier: BSD-2-Clause
 * What threads hand on to each other when they end (cabi/threadnum.c), under ThreadSanitizer: numbers, lines, and what
 * was written under them. With MUTANT nothing is handed on in order, which the sanitizer is to find. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../../cabi/hotpath.h"
#include "../../../cabi/plane.h"
#ifdef MUTANT
#define memory_order_release memory_order_relaxed
#endif
#include "../../../cabi/threadnum.c"

#define PARENTS 4 /* threads whose children are ordered among themselves only */
#define CHILDREN 300
#define LINES 3 /* fewer than there are threads at a time */

struct weft_plane weft_plane;

static struct weft_epoch_reader lines[LINES];
static _Atomic uint64_t numbers;
static uint64_t adds[WEFT_STAT_LINES], posts[LINES]; /* of the thread with the number, or the line, alone */
static _Atomic uint64_t numbered, lined;

/* Gives a number and a line as the data plane does (internal/dataplane, Enroll). */
static uintptr_t enroll(uintptr_t entry, uintptr_t at, uintptr_t b, uintptr_t c, uintptr_t d)
{
	struct weft_hot_thread *t = (struct weft_hot_thread *)at;
	uint64_t seen = atomic_load(&numbers);
	int n;

	(void)entry, (void)b, (void)c, (void)d;
	do
		n = __builtin_ctzll(~seen);
	while (!atomic_compare_exchange_weak(&numbers, &seen, seen | 1ull << n));
	t->number = (uint32_t)n + 1;
	t->numbers = &numbers;
	for (int i = 0; i < LINES; i++) {
		uint32_t none = 0;

		if (atomic_compare_exchange_strong(&lines[i].taken, &none, 1)) {
			t->line = &lines[i];
			break;
		}
	}
	return 0;
}

/* A thread that posts once and ends, in the middle of the post if odd says so. */
static void *child(void *odd)
{
	bool posts_too = weft_thread_posts();

	if (!weft_self.number || weft_self.number >= WEFT_STAT_LINES)
		abort();
	adds[weft_self.number - 1]++;
	atomic_fetch_add_explicit(&numbered, 1, memory_order_relaxed);
	if (!posts_too)
		return NULL;
	atomic_fetch_add_explicit(&weft_self.line->posting, 1, memory_order_relaxed);
	posts[weft_self.line - lines]++;
	atomic_fetch_add_explicit(&lined, 1, memory_order_relaxed);
	if (!odd)
		atomic_fetch_add_explicit(&weft_self.line->posting, 1, memory_order_relaxed);
	return NULL;
}

static void *parent(void *arg)
{
	pthread_t t;

	(void)arg;
	for (uintptr_t i = 0; i < CHILDREN; i++)
		if (pthread_create(&t, NULL, child, (void *)(i & 1)) || pthread_join(t, NULL))
			abort();
	return NULL;
}

int main(void)
{
	pthread_t t[PARENTS];
	uint64_t all = 0, posted = 0;

	weft_plane.enter = enroll;
	for (int i = 0; i < PARENTS; i++)
		if (pthread_create(&t[i], NULL, parent, NULL))
			abort();
	for (int i = 0; i < PARENTS; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < WEFT_STAT_LINES; i++)
		all += adds[i];
	for (int i = 0; i < LINES; i++) {
		posted += posts[i];
		if (lines[i].taken || lines[i].posting & 1)
			return printf("line %d: taken %u, posting %llu\n", i, lines[i].taken,
				      (unsigned long long)lines[i].posting),
			       1;
	}
	printf("%llu threads, %llu posts\n", (unsigned long long)all, (unsigned long long)posted);
	return all != PARENTS * CHILDREN || all != numbered || posted != lined || !posted || numbers;
}
