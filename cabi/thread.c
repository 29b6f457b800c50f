/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A thread's first call into Go, for which it is counted too: see procs.go.
 *
 * A handler without SA_ONSTACK runs on the stack that its thread is on, and in
 * Go that is a goroutine's, which is no larger than it needed to be. What a
 * handler of ordinary size writes would reach into memory of others. So each
 * thread's goroutine gets a stack with room for handlers before it does
 * anything else, and keeps it (the library is linked with gcshrinkstackoff).
 */
#include <pthread.h>
#include <stdatomic.h>

#include "goapi.h"
#include "thread.h"

/* The threads that have called into Go and have not ended. Changed by each of them, relaxed: it
 * is a number. */
static _Atomic unsigned inside;

static pthread_key_t key; /* whose destructor is leave */
static bool keyed;
static __thread bool entered __attribute__((tls_model("initial-exec")));

/* The runtime has a destructor, too, after which a thread that still calls begins anew. */
static void leave(void *value)
{
	(void)value;
	entered = false;
	atomic_fetch_sub_explicit(&inside, 1, memory_order_relaxed);
}

static void make_key(void)
{
	keyed = !pthread_key_create(&key, leave);
}

/* enter counts the thread until it ends, and returns how many there are. */
static unsigned enter(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	unsigned n = atomic_fetch_add_explicit(&inside, 1, memory_order_relaxed) + 1;

	pthread_once(&once, make_key);
	if (!keyed ||
	    pthread_setspecific(key, &inside)) /* better too few than one more for each thread there ever was */
		atomic_fetch_sub_explicit(&inside, 1, memory_order_relaxed);
	return n;
}

void weft_thread_enter(void *context)
{
	(void)context; /* stays 0: there is nothing to release */
	if (__builtin_expect(entered, 1))
		return;
	entered = true; /* first: the next call comes here again */
	weft_enter_go(enter());
}

void weft_thread_enter_last(void)
{
	entered = true;
	weft_enter_go(0);
}
