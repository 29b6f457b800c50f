/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Wait objects as applications see them: FI_GETWAIT on queues, counters and
 * wait sets, and the mutex and condition of FI_WAIT_MUTEX_COND.
 */
#include <stdlib.h>
#include <time.h>

#include "goapi.h"

int weft_wait_prepare(struct weft_wait_native *wait, enum fi_wait_obj kind)
{
	int rc;

	wait->fd = -1;
	if (kind == FI_WAIT_MUTEX_COND) {
		rc = pthread_mutex_init(&wait->mutex, NULL);
		if (rc)
			return -rc;
		rc = pthread_cond_init(&wait->cond, NULL);
		if (rc) {
			pthread_mutex_destroy(&wait->mutex);
			return -rc;
		}
	}
	wait->kind = kind;
	return 0;
}

void weft_wait_destroy(struct weft_wait_native *wait)
{
	if (wait->kind != FI_WAIT_MUTEX_COND)
		return;
	pthread_cond_destroy(&wait->cond);
	pthread_mutex_destroy(&wait->mutex);
}

/* Wakes the threads that wait on the condition. The lock makes a waiter that has
 * polled and not yet slept see the signal. */
void weft_wait_signal(struct weft_wait_native *wait)
{
	pthread_mutex_lock(&wait->mutex);
	pthread_cond_broadcast(&wait->cond);
	pthread_mutex_unlock(&wait->mutex);
}

static int get_pollfd(const struct weft_wait_native *wait, struct fi_wait_pollfd *out)
{
	if (out->nfds < 1 || !out->fd) {
		out->nfds = 1;
		return -FI_ETOOSMALL;
	}
	out->fd[0] = (struct pollfd){ .fd = wait->fd, .events = POLLIN };
	out->nfds = 1;
	out->change_index = 1; /* the descriptor never changes */
	return 0;
}

static int get_wait(struct weft_wait_native *wait, void *arg)
{
	switch (wait->kind) {
	case FI_WAIT_FD:
		*(int *)arg = wait->fd;
		return 0;
	case FI_WAIT_POLLFD:
		return get_pollfd(wait, arg);
	case FI_WAIT_MUTEX_COND:
		*(struct fi_mutex_cond *)arg = (struct fi_mutex_cond){ &wait->mutex, &wait->cond };
		return 0;
	default:
		return -FI_ENODATA; /* a yielding wait, or none: nothing to give out */
	}
}

/* The FI_GETWAIT and FI_GETWAITOBJ commands. */
int weft_wait_control(struct fid *fid, int command, void *arg)
{
	struct weft_wait_native *wait = (void *)((char *)fid + weft_classes[fid->fclass].wait);

	switch (command) {
	case FI_GETWAIT:
		return arg ? get_wait(wait, arg) : -FI_EINVAL;
	case FI_GETWAITOBJ:
		if (!arg)
			return -FI_EINVAL;
		*(enum fi_wait_obj *)arg = wait->kind;
		return 0;
	default:
		return -FI_ENOSYS;
	}
}

uint64_t weft_wait_set_of(const struct fid_wait *set)
{
	if (!set || set->fid.fclass != FI_CLASS_WAIT)
		return 0;
	return weft_handle_of(&set->fid);
}

int64_t weft_now(void)
{
	return (int64_t)(weft_clock_ns(CLOCK_MONOTONIC) / 1000000);
}

int weft_time_left(int64_t start, int timeout)
{
	int64_t left;

	if (timeout < 0)
		return -1;
	left = start + timeout - weft_now();
	return left > 0 ? (int)left : 0;
}
