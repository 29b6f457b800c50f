/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The threads of this library, which are the Go runtime's, and some in advance.
 *
 * The runtime aborts the process when it cannot make a thread, whenever that is. So there are threads
 * that wait to be one when the kernel has none (RLIMIT_NPROC, pids.max), and a thread that ends waits
 * in its turn. An operation that may need threads is refused while there are too few. Should there be
 * none at all, the runtime waits for one.
 *
 * Memory of the C library. MPI libraries patch munmap, madvise and others of its functions once they have
 * opened the provider, and a thread that is inside one meanwhile crashes (tests/c/hooked.c). So the runtime's
 * threads are those made in advance, and a thread is only there once it has called malloc, which maps and
 * unmaps memory the first time: what a call of the application needs of this is done when the call returns. A thread
 * that has ended waits if it can, because the C library gives back memory of its stack.
 *
 * Stacks. The runtime's threads run C with little need, so theirs are small: mlockall() makes them resident.
 *
 * Slack. Each thread is given that of its timers: whichever thread makes one has another. The runtime's
 * monitor sleeps 20 us at a time while threads call into Go, and each time it wakes it takes the
 * processor from a thread that polls. It has a slack of its own: what it is there for, taking places for
 * Go from threads that have returned to C, no thread waits for, because there is a free one (procs.go).
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "goapi.h"
#include "host.h"
#include "thread.h"

/* How late in ns timers of the runtime's monitor may be. */
#define MONITOR_SLACK 10000000ul

/* Bytes of a thread's stack, beside what the C library needs of it. */
#define STACK (512ul << 10)

enum {
	MOST = 12, /* threads made to wait: on large machines fewer than the runtime might come to need */
	KEPT = 24, /* threads that wait, those that have ended among them */
	OWN = 4,   /* threads of operations under way that may need some */
};

typedef void *(*body)(void *);

/* A thread that waits is given one of these. */
struct job {
	body start;
	void *arg;
};

/* A thread that is being made, in its maker's memory until the thread has said that it is there. */
struct birth {
	struct job job; /* that it is made for, or none */
	sem_t there;
};

static struct {
	pthread_mutex_t lock; /* taken when threads begin and end, and by operations that may need some */
	pthread_cond_t given;
	unsigned places;  /* for threads that run Go, and threads of its own that wait in the kernel */
	unsigned locked;  /* threads that do nothing but what they were made for */
	unsigned working; /* that it has */
	unsigned waiting; /* that wait and have no job, or are about to wait */
	unsigned jobs;	  /* that threads which waited have not taken yet; with waiting at most KEPT */
	struct job job[KEPT];
} spares = { .lock = PTHREAD_MUTEX_INITIALIZER, .given = PTHREAD_COND_INITIALIZER };

/* Threads were made in advance, so the runtime may wait for one. Written by operations, read where threads
 * are made, relaxed. */
static _Atomic bool started;

/* What a thread begins with: of the process when it loads the library. */
static cpu_set_t processors;
static bool have_processors;
static char name[16];

/* Bytes that the C library takes from a thread's stack, for thread-local data. */
static size_t taken_from_stack;

void weft_spares_prepare(void)
{
	size_t (*least)(const pthread_attr_t *) =
		(size_t(*)(const pthread_attr_t *))dlsym(RTLD_DEFAULT, "__pthread_get_minstack");
	pthread_attr_t attr;

	have_processors = !sched_getaffinity(0, sizeof(processors), &processors);
	prctl(PR_GET_NAME, name);
	if (least && !pthread_attr_init(&attr)) {
		taken_from_stack = least(&attr);
		pthread_attr_destroy(&attr);
	}
}

/* ---- stacks ---- */

/* The C library's, in the libraries; not there in the tests of this package, where nothing is wrapped. */
__attribute__((weak)) int __real_pthread_attr_init(pthread_attr_t *);
__attribute__((weak)) int __real_pthread_create(pthread_t *, const pthread_attr_t *, body, void *);
int __wrap_pthread_attr_init(pthread_attr_t *);
int __wrap_pthread_create(pthread_t *, const pthread_attr_t *, body, void *);

/* The runtime asks the attributes how large the stack is. */
int __wrap_pthread_attr_init(pthread_attr_t *attr)
{
	int ret = (__real_pthread_attr_init ? __real_pthread_attr_init : pthread_attr_init)(attr);

	return ret ? ret : pthread_attr_setstacksize(attr, STACK);
}

/* ---- threads that wait ---- */

/* A thread that has ended is as it began. */
static void renew(void)
{
	prctl(PR_SET_TIMERSLACK, WEFT_RUNTIME_SLACK);
	prctl(PR_SET_NAME, name);
	if (have_processors)
		sched_setaffinity(0, sizeof(processors), &processors);
}

/* How many threads should wait. Under the lock. */
static unsigned target(void)
{
	unsigned all = spares.places + spares.locked + OWN;
	unsigned n = all > spares.working ? all - spares.working : 0;

	return n < MOST ? n : MOST;
}

/* Waits for something to do, for the first time or after a job. False: as many wait as may. */
static bool await(struct job *job, bool worked)
{
	bool stays = true;

	pthread_mutex_lock(&spares.lock);
	if (worked) {
		spares.working--;
		stays = spares.waiting + spares.jobs < KEPT;
		spares.waiting += stays;
	}
	while (stays && !spares.jobs)
		pthread_cond_wait(&spares.given, &spares.lock);
	if (stays)
		*job = spares.job[--spares.jobs];
	pthread_mutex_unlock(&spares.lock);
	return stays;
}

/* Gives a job to a thread that waits, if one does. */
static bool give(struct job job)
{
	bool got;

	pthread_mutex_lock(&spares.lock);
	got = spares.waiting > 0;
	if (got) {
		spares.waiting--;
		spares.working++;
		spares.job[spares.jobs++] = job;
		pthread_cond_signal(&spares.given);
	}
	pthread_mutex_unlock(&spares.lock);
	return got;
}

/* The life of a thread: a job that it is made for, if any, and those that it waits for. */
static void *live(void *arg)
{
	struct birth *birth = arg;
	struct job job = birth->job;
	void *volatile first = malloc(1);
	bool worked = false;

	free(first);
	prctl(PR_SET_NAME, name); /* not that of the thread which has made it */
	sem_post(&birth->there);
	while (job.start || await(&job, worked)) {
		job.start(job.arg);
		job.start = NULL;
		renew();
		worked = true;
	}
	return NULL;
}

/* Makes a thread for a job or, without one, to wait: 0 or an errno. It takes no signal and may wake late by a number of
 * ns. The calling thread is not cancelled meanwhile. */
static int make(struct job job, unsigned long late)
{
	struct birth birth = { .job = job };
	int own = prctl(PR_GET_TIMERSLACK), cancels, ret;
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;

	if ((ret = __wrap_pthread_attr_init(&attr)))
		return ret;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK + taken_from_stack);
	sem_init(&birth.there, 0, 0);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancels);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	prctl(PR_SET_TIMERSLACK, late);
	ret = (__real_pthread_create ? __real_pthread_create : pthread_create)(&thread, &attr, live, &birth);
	while (!ret && sem_wait(&birth.there))
		; /* a signal */
	prctl(PR_SET_TIMERSLACK, (unsigned long)own);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_setcancelstate(cancels, NULL);
	pthread_attr_destroy(&attr);
	sem_destroy(&birth.there);
	return ret;
}

static void count_working(int change)
{
	pthread_mutex_lock(&spares.lock);
	spares.working += change;
	pthread_mutex_unlock(&spares.lock);
}

/* Has a new thread do a job: 0 or an errno. */
static int begin(struct job job, unsigned long late)
{
	int ret;

	count_working(1); /* before it can end */
	ret = make(job, late);
	if (ret)
		count_working(-1);
	return ret;
}

/* None that waits: one that has run Go keeps the runtime's thread-local data, and cannot call into it. */
bool weft_thread_start(void *(*start)(void *), void *arg)
{
	return !begin((struct job){ start, arg }, WEFT_RUNTIME_SLACK);
}

/* The library is linked so that the runtime makes its threads here, all of them detached. The
 * first is that on which the runtime starts, made by the thread that loads the library.
 * The second is the monitor, made by the first before any other, perhaps before the first's maker goes on. */
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, body start, void *arg)
{
	static _Atomic unsigned made; /* by all threads, relaxed: the first counts itself before the second begins */
	bool monitor = atomic_fetch_add_explicit(&made, 1, memory_order_relaxed) == 1 && !getenv("GOMAXPROCS");
	struct timespec pause = { .tv_nsec = 10000000 };
	struct job job = { start, arg };
	int ret;

	(void)thread;
	(void)attr;
	while (!give(job) && (ret = begin(job, monitor ? MONITOR_SLACK : WEFT_RUNTIME_SLACK))) {
		if (!atomic_load_explicit(&started, memory_order_relaxed)) {
			atomic_fetch_sub_explicit(&made, 1, memory_order_relaxed);
			return ret; /* the runtime tries again */
		}
		nanosleep(&pause, NULL);
	}
	return 0;
}

/* Makes threads that wait: 0, or an errno when there are too few. */
static int fill(unsigned *waiting)
{
	int ret = 0;

	pthread_mutex_lock(&spares.lock);
	while (!ret && spares.waiting + spares.jobs < target()) {
		ret = make((struct job){ 0 }, WEFT_RUNTIME_SLACK);
		spares.waiting += !ret;
	}
	*waiting = spares.waiting;
	pthread_mutex_unlock(&spares.lock);
	return ret;
}

int weft_spares_need(const char *what)
{
	char text[200];
	unsigned waiting;
	int ret;

	atomic_store_explicit(&started, true, memory_order_relaxed);
	ret = fill(&waiting);
	if (!ret)
		return 0;
	snprintf(text, sizeof(text),
		 "%s: the system gives no thread (%s), and %u in reserve are too few: see RLIMIT_NPROC and pids.max",
		 what, strerror(ret), waiting);
	weft_log(FI_LOG_WARN, FI_LOG_CORE, __func__, __LINE__, text);
	return -FI_EAGAIN;
}

bool weft_spares_want(unsigned places, unsigned locked)
{
	unsigned before, waiting;

	pthread_mutex_lock(&spares.lock);
	before = spares.places;
	spares.places = places;
	spares.locked = locked;
	pthread_mutex_unlock(&spares.lock);
	if (!atomic_load_explicit(&started, memory_order_relaxed) || !fill(&waiting))
		return true;
	pthread_mutex_lock(&spares.lock);
	spares.places = before;
	pthread_mutex_unlock(&spares.lock);
	return false;
}
