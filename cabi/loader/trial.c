/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The Go runtime ends the process where the kernel refuses it what it starts with.
 * So the like is asked for first, all of it at a time, and given back. What is
 * refused later, when weft opens its objects, it can say itself.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "loader.h"

/* What is asked for: the runtime reserves 0.6 GiB to find its pages by, and more as its
 * heap grows, which it takes in pieces of 64 MiB; the C library reserves 64 MiB for each of
 * its threads that allocates. */
#define SPACE ((size_t)1536 << 20)
#define MEMORY ((size_t)128 << 20)
#define DESCRIPTORS 8
#define MOST_THREADS 64

/* The C library keeps the stacks of threads that have ended, up to 40 MiB, and mlockall() makes them resident. */
#define STACK ((size_t)256 << 10)

/* The threads that are started: one for each processor on which goroutines run, and
 * those that run none (the monitor, those that wait in the kernel, those that start threads). */
#define OTHER_THREADS 3
#define LEAST_PROCESSORS 4

/* Threads that wait for each other. */
struct crowd {
	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t go;
	bool gone;
	int refused; /* an errno, of a thread's alternate signal stack */
};

/* What a thread of the runtime does before anything else. */
static int own_signal_stack(void)
{
	static const stack_t off = { .ss_flags = SS_DISABLE };
	char room[32 << 10];
	stack_t stack = { .ss_sp = room, .ss_size = sizeof(room) };

	return sigaltstack(&stack, NULL) || sigaltstack(&off, NULL) ? errno : 0;
}

static void *wait_for_all(void *arg)
{
	struct crowd *c = arg;
	int rc = own_signal_stack();

	pthread_mutex_lock(&c->lock);
	if (rc)
		c->refused = rc;
	while (!c->gone)
		pthread_cond_wait(&c->go, &c->lock);
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

static int threads_wanted(void)
{
	cpu_set_t own;
	int n = sched_getaffinity(0, sizeof(own), &own) ? LEAST_PROCESSORS : CPU_COUNT(&own);

	if (n < LEAST_PROCESSORS)
		n = LEAST_PROCESSORS;
	n += OTHER_THREADS;
	return n < MOST_THREADS ? n : MOST_THREADS;
}

/* The threads take no signal of the process's. */
static int try_threads(const char **what)
{
	struct crowd c = { .lock = PTHREAD_MUTEX_INITIALIZER, .go = PTHREAD_COND_INITIALIZER };
	pthread_t thread[MOST_THREADS];
	int wanted = threads_wanted(), made = 0, rc;
	pthread_attr_t attr;
	sigset_t all, own;

	sigfillset(&all);
	if (pthread_sigmask(SIG_SETMASK, &all, &own)) {
		*what = "signal masks (rt_sigprocmask)";
		return -FI_EPERM;
	}
	rc = pthread_attr_init(&attr);
	if (!rc)
		pthread_attr_setstacksize(&attr, STACK);
	while (made < wanted && !rc) {
		rc = pthread_create(&thread[made], &attr, wait_for_all, &c);
		if (rc == EINVAL) /* the program's thread-local data does not fit */
			rc = pthread_create(&thread[made], NULL, wait_for_all, &c);
		made += !rc;
	}
	pthread_attr_destroy(&attr);
	if (rc)
		*what = "threads (RLIMIT_NPROC, pids of the control group, RLIMIT_AS, clone3)";
	pthread_mutex_lock(&c.lock);
	c.gone = true;
	pthread_cond_broadcast(&c.go);
	pthread_mutex_unlock(&c.lock);
	for (int i = 0; i < made; i++)
		pthread_join(thread[i], NULL);
	pthread_sigmask(SIG_SETMASK, &own, NULL);
	if (!rc && c.refused) {
		*what = "alternate signal stacks (sigaltstack)";
		rc = c.refused;
	}
	return -rc;
}

/* The kernel's random numbers. That there are none yet is no refusal, and where the call is
 * not there the runtime reads a device. */
static int try_random(const char **what)
{
	char byte;

	if (getrandom(&byte, 1, GRND_NONBLOCK) == 1 || errno == EAGAIN || errno == ENOSYS)
		return 0;
	*what = "random numbers (getrandom)";
	return -errno;
}

static int try_descriptors(const char **what)
{
	struct epoll_event event = { .events = EPOLLIN };
	int fd[DESCRIPTORS], n = 0, rc = 0;

	*what = "event descriptors (epoll_create1, epoll_ctl, epoll_pwait, eventfd2; RLIMIT_NOFILE)";
	fd[n] = epoll_create1(EPOLL_CLOEXEC);
	if (fd[n] < 0)
		return -errno;
	n++;
	fd[n] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd[n] < 0)
		rc = -errno;
	else if (epoll_ctl(fd[0], EPOLL_CTL_ADD, fd[n++], &event))
		rc = -errno;
	if (!rc && epoll_pwait(fd[0], &event, 1, 0, NULL) < 0)
		rc = -errno;
	while (!rc && n < DESCRIPTORS) {
		fd[n] = fcntl(fd[1], F_DUPFD_CLOEXEC, 0);
		if (fd[n] < 0) {
			*what = "descriptors (RLIMIT_NOFILE)";
			rc = -errno;
		} else {
			n++;
		}
	}
	while (n--)
		close(fd[n]);
	return rc;
}

/* The rest, while the memory is there. */
static int try_others(const char **what)
{
	int rc = try_random(what);

	if (!rc)
		rc = try_descriptors(what);
	return rc ? rc : try_threads(what);
}

int weft_trial(const char **what)
{
	void *space, *memory;
	int saved = errno, rc;

	space = mmap(NULL, SPACE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (space == MAP_FAILED) {
		rc = -errno;
		*what = "address space (RLIMIT_AS)";
		errno = saved;
		return rc;
	}
	memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED) {
		rc = -errno;
		*what = "memory (RLIMIT_DATA, RLIMIT_AS, overcommit)";
	} else {
		rc = try_others(what);
		munmap(memory, MEMORY);
	}
	munmap(space, SPACE);
	errno = saved;
	return rc;
}
