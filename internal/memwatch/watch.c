// SPDX-License-Identifier: BSD-2-Clause
#include "watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

#define RING_MASK (WEFT_MEMWATCH_RING - 1)

static struct {
	pthread_mutex_t start; // control path: locked while the thread is started
	int fd;		       // -1 until then
	int failed;	       // errno of the first attempt, which is not repeated
	const char *step;

	pthread_mutex_t mu; // guards what follows; the data path reads it after a change only
	struct weft_memwatch_range ring[WEFT_MEMWATCH_RING];
	uint64_t last; // changes so far
} watch = {
	.start = PTHREAD_MUTEX_INITIALIZER,
	.mu = PTHREAD_MUTEX_INITIALIZER,
	.fd = -1,
};

struct weft_memwatch_counts weft_memwatch_counts;

static void note(uint64_t start, uint64_t end)
{
	watch.ring[watch.last & RING_MASK] = (struct weft_memwatch_range){ start, end };
	watch.last++;
}

static void take(const struct uffd_msg *m)
{
	switch (m->event) {
	case UFFD_EVENT_UNMAP:
	case UFFD_EVENT_REMOVE:
		note(m->arg.remove.start, m->arg.remove.end);
		break;
	case UFFD_EVENT_REMAP:
		note(m->arg.remap.from, m->arg.remap.from + m->arg.remap.len);
		// The watch has moved with the pages, to where it is not wanted.
		weft_memwatch_uncover(m->arg.remap.to, m->arg.remap.to + m->arg.remap.len);
		break;
	}
}

// A thread that changes a mapping waits in the kernel until this thread has read of it. So
// it is C's: a goroutine may have to wait for the very thread.
static void *run(void *unused)
{
	pthread_setname_np(pthread_self(), "weft-memory");
	(void)unused;
	struct pollfd p = { .fd = watch.fd, .events = POLLIN };
	struct uffd_msg list[16];

	for (;;) {
		if (poll(&p, 1, -1) < 0 && errno != EINTR)
			return NULL;
		atomic_fetch_add(&weft_memwatch_counts.begun, 1);
		ssize_t n = read(watch.fd, list, sizeof list);
		if (n > 0) {
			pthread_mutex_lock(&watch.mu);
			for (size_t i = 0; i < (size_t)n / sizeof list[0]; i++)
				take(&list[i]);
			atomic_store(&weft_memwatch_counts.published, watch.last);
			pthread_mutex_unlock(&watch.mu);
		}
		atomic_store(&weft_memwatch_counts.ended, atomic_load(&weft_memwatch_counts.begun));
	}
}

static int thread(void)
{
	sigset_t all, old;
	pthread_attr_t a;
	pthread_t t;

	pthread_attr_init(&a);
	pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
	sigfillset(&all); // the application's signals are not for this thread
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int rc = pthread_create(&t, &a, run, NULL); // t is not set in the provider: cabi/spares.c makes its threads
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&a);
	return rc;
}

static int fail(int error, const char *step)
{
	if (watch.fd >= 0)
		close(watch.fd);
	watch.fd = -1;
	watch.failed = error;
	watch.step = step;
	return error;
}

// The features that are asked for make no page fault wait: nothing is ever
// write-protected. So user mode is enough, which needs no privilege.
static int start(void)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE |
			    UFFD_FEATURE_EVENT_UNMAP,
	};
	watch.fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	if (watch.fd < 0)
		return fail(errno, "userfaultfd");
	if (ioctl(watch.fd, UFFDIO_API, &api) != 0)
		return fail(errno, "userfaultfd features");
	int rc = thread();
	return rc == 0 ? 0 : fail(rc, "thread");
}

int weft_memwatch_start(const char **step)
{
	int rc;

	pthread_mutex_lock(&watch.start);
	rc = watch.failed;
	if (watch.fd < 0 && rc == 0)
		rc = start();
	*step = watch.step;
	pthread_mutex_unlock(&watch.start);
	return rc;
}

int weft_memwatch_cover(uint64_t start, uint64_t end)
{
	struct uffdio_register r = { .range = { start, end - start }, .mode = UFFDIO_REGISTER_MODE_WP };

	return ioctl(watch.fd, UFFDIO_REGISTER, &r) == 0 ? 0 : errno;
}

void weft_memwatch_uncover(uint64_t start, uint64_t end)
{
	struct uffdio_range r = { start, end - start };

	(void)ioctl(watch.fd, UFFDIO_UNREGISTER, &r); // an error: it is not mapped any more
}

// settled reports whether all changes that have taken place are in the ring. The
// kernel counts changes under the lock of the mappings, and a request for no
// bytes gets EAGAIN while one has not been read of, else EINVAL. Without this
// a new mapping could have the addresses of one that has ended, which is not known yet.
static int settled(void)
{
	struct uffdio_writeprotect nothing = { .range = { 0, 0 } };

	for (int i = 0; i < 10000; i++) {
		if (ioctl(watch.fd, UFFDIO_WRITEPROTECT, &nothing) != 0 && errno != EAGAIN &&
		    atomic_load(&weft_memwatch_counts.begun) == atomic_load(&weft_memwatch_counts.ended))
			return 1;
		sched_yield();
	}
	return 0;
}

int weft_memwatch_changes(uint64_t *seen, struct weft_memwatch_range *out, int max)
{
	int n = 0, known = settled();

	if (known && *seen == atomic_load(&weft_memwatch_counts.published))
		return 0;
	pthread_mutex_lock(&watch.mu);
	if (!known || watch.last - *seen > WEFT_MEMWATCH_RING) {
		*seen = watch.last;
		n = -1;
	}
	while (n >= 0 && n < max && *seen != watch.last)
		out[n++] = watch.ring[(*seen)++ & RING_MASK];
	pthread_mutex_unlock(&watch.mu);
	return n;
}
