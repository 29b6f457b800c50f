/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Wait objects. The descriptor raises POLLPRI: it is a stream socket with a byte out of band.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "nic.h"

struct cxil_wait_obj {
	struct lni *lni;
	int fd, other;
	bool raised;
};

API int cxil_alloc_wait_obj(struct cxil_lni *lni, struct cxil_wait_obj **wait)
{
	struct lni *l = (struct lni *)lni;
	struct cxil_wait_obj *w;
	int fds[2], rc;

	if (!l || !wait)
		return -EINVAL;
	rc = fault_of_call();
	if (rc)
		return rc;
	w = calloc(1, sizeof *w);
	if (!w)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds)) {
		free(w);
		return -errno;
	}
	w->lni = l;
	w->fd = fds[0];
	w->other = fds[1];
	nic_lock();
	l->users++;
	nic_unlock();
	*wait = w;
	return 0;
}

API int cxil_destroy_wait_obj(struct cxil_wait_obj *w)
{
	if (!w)
		return -EINVAL;
	nic_lock();
	w->lni->users--;
	nic_unlock();
	close(w->fd);
	close(w->other);
	free(w);
	return 0;
}

API int cxil_get_wait_obj_fd(struct cxil_wait_obj *w)
{
	return w->fd;
}

API void cxil_clear_wait_obj(struct cxil_wait_obj *w)
{
	char c;

	nic_lock();
	if (w->raised) {
		w->raised = false;
		/* The byte leaves when it is read; the mark stays until more is read past it. */
		while (recv(w->fd, &c, 1, MSG_OOB) == 1 || recv(w->fd, &c, 1, 0) == 1)
			;
	}
	nic_unlock();
}

void wait_raise(struct cxil_wait_obj *w)
{
	if (!w || w->raised)
		return;
	w->raised = true;
	while (send(w->other, "", 1, MSG_OOB | MSG_NOSIGNAL) < 0 && errno == EINTR)
		;
}
