/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Before and after the Go runtime starts, which it does when the library is loaded: what it finds
 * when it makes its threads, and what the application finds afterwards.
 *
 * The runtime's threads inherit a mask that blocks all signals (signals.c) and the slack of their timers.
 *
 * The limit of descriptors is the application's. Go's package syscall raises the soft one to one below
 * the hard one, for select() and for children too; so it is set back.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "thread.h"

static sigset_t mask; /* of the thread that loads the library */
static int slack;     /* its timers', in ns */
static struct rlimit files;

/* Constructors with a number run before those without one, and among these the
 * runtime's, in the first object that is linked, before the other below. */
__attribute__((constructor(101))) static void prepare(void)
{
	sigset_t all;

	getrlimit(RLIMIT_NOFILE, &files);
	weft_signals_prepare();
	weft_spares_prepare();
	sigfillset(&all);
	slack = prctl(PR_GET_TIMERSLACK);
	prctl(PR_SET_TIMERSLACK, WEFT_RUNTIME_SLACK);
	pthread_sigmask(SIG_BLOCK, &all, &mask);
}

/* A limit that another thread has changed meanwhile stays. */
static void restore_files(void)
{
	struct rlimit now;

	if (getrlimit(RLIMIT_NOFILE, &now) || now.rlim_max != files.rlim_max || now.rlim_cur != now.rlim_max - 1)
		return;
	now.rlim_cur = files.rlim_cur;
	setrlimit(RLIMIT_NOFILE, &now);
}

/* Whether an address lies in this library. */
static bool is_here(const void *addr)
{
	Dl_info self, other;

	return dladdr(&mask, &self) && dladdr(addr, &other) && self.dli_fbase == other.dli_fbase;
}

__attribute__((constructor)) static void started(void)
{
	/* The thread is the application's again. */
	prctl(PR_SET_TIMERSLACK, (unsigned long)slack);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	/* In a program (the tests of this package) the runtime starts after the
	 * constructors, and waiting for it would never end. */
	if (is_here((void *)getauxval(AT_ENTRY)))
		return;
	weft_thread_enter(NULL);
	restore_files();
}
