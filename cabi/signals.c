/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The application's signal actions stay what they were.
 *
 * The Go runtime installs handlers when the library is loaded: for SIGURG, by
 * which it preempts goroutines, for SIGPIPE, which it then ignores where the
 * default was to end the process, and for SIGSEGV, SIGBUS and SIGFPE, out of
 * which it makes panics, or a trace and exit status 2 where the default was to
 * dump core. weft needs none of them: it is linked with preemption by signal
 * off, writes to no pipe, and a wild pointer in its Go code should end the
 * process as one in C code does. So their actions are read before the runtime
 * starts and put back when it has. Handlers that the application installs later
 * replace nothing.
 *
 * What stays is SA_ONSTACK on handlers that were there before: the runtime sets
 * it because goroutines have small stacks. Later handlers need not have it:
 * see thread.c.
 *
 * The runtime's own threads take no signal that is sent to the process: they
 * inherit a mask that blocks all. Else one of them could get what an application
 * has blocked in its threads in order to wait for it.
 *
 * They inherit the slack of their timers, too, which is set for each: whichever thread makes one
 * has another. The runtime's monitor sleeps 20 us at a time while threads call into Go, and each time it wakes it takes the
 * processor from a thread that polls. It has a slack of its own: what it is
 * there for, taking places for Go from threads that have returned to C, nobody
 * waits for, because there is a free one (procs.go).
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/prctl.h>

#include "goapi.h"

/* How late in ns timers of the runtime's threads may be. Go's own are as coarse. */
#define RUNTIME_SLACK 1000000ul

/* The same of the runtime's monitor. */
#define MONITOR_SLACK 10000000ul

static const int signals[] = { SIGURG, SIGPIPE, SIGSEGV, SIGBUS, SIGFPE };

static struct sigaction before[count_of(signals)];
static sigset_t mask; /* of the thread that loads the library */
static int slack;     /* its timers', in ns */

/* Constructors with a number run before those without one, and among these the
 * runtime's, in the first object that is linked, before the other below. */
__attribute__((constructor(101))) static void remember(void)
{
	for (size_t i = 0; i < count_of(signals); i++)
		sigaction(signals[i], NULL, &before[i]);
	sigset_t all;

	sigfillset(&all);
	slack = prctl(PR_GET_TIMERSLACK);
	prctl(PR_SET_TIMERSLACK, RUNTIME_SLACK);
	pthread_sigmask(SIG_BLOCK, &all, &mask);
}

/* The library is linked so that its threads, which are the runtime's, are made here. The
 * first is that on which the runtime starts, made by the thread that loads the library.
 * The second is the monitor, made by the first before it makes any other. */
typedef void *(*body)(void *);

__attribute__((weak)) int __real_pthread_create(pthread_t *, const pthread_attr_t *, body, void *);
int __wrap_pthread_create(pthread_t *, const pthread_attr_t *, body, void *);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, body start, void *arg)
{
	static _Atomic unsigned made; /* relaxed: the first two are made one after the other */
	bool monitor = atomic_load_explicit(&made, memory_order_relaxed) == 1 && !getenv("GOMAXPROCS");
	int own = prctl(PR_GET_TIMERSLACK), ret;

	prctl(PR_SET_TIMERSLACK, monitor ? MONITOR_SLACK : RUNTIME_SLACK);
	ret = __real_pthread_create(thread, attr, start, arg);
	prctl(PR_SET_TIMERSLACK, (unsigned long)own);
	if (!ret) /* the runtime tries again */
		atomic_fetch_add_explicit(&made, 1, memory_order_relaxed);
	return ret;
}

/* Whether an address lies in this library. */
static bool is_here(const void *addr)
{
	Dl_info self, other;

	return dladdr(before, &self) && dladdr(addr, &other) && self.dli_fbase == other.dli_fbase;
}

/* The thread is the application's. */
static void own_again(void)
{
	prctl(PR_SET_TIMERSLACK, (unsigned long)slack);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

__attribute__((constructor)) static void put_back(void)
{
	/* In a program (the tests of this package) the runtime starts after the
	 * constructors, and waiting for it would never end. */
	if (is_here((void *)getauxval(AT_ENTRY))) {
		own_again();
		return;
	}
	weftGoReady();
	own_again();
	for (size_t i = 0; i < count_of(signals); i++) {
		struct sigaction now, old = before[i];

		sigaction(signals[i], NULL, &now);
		if (!is_here((void *)now.sa_sigaction))
			continue; /* not the runtime's */
		if (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN)
			old.sa_flags |= SA_ONSTACK;
		sigaction(signals[i], &old, NULL);
	}
}
