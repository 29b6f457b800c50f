/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A signal that the user names for weft (FI_WEFT_PROXY_DUMP_SIGNAL). Its handler may run on any thread
 * and stack, so it does one system call.
 */
#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "goapi.h"
#include "thread.h"

/* The event file of each signal, 0 for none. Written before the handler is installed. */
static volatile sig_atomic_t file_of[_NSIG];

static void on_signal(int sig)
{
	int saved = errno;
	uint64_t one = 1;
	ssize_t n = write(file_of[sig], &one, sizeof(one));

	(void)n; /* the count is full: it is readable */
	errno = saved;
}

int weft_signal_file(int sig)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART | SA_ONSTACK };
	int fd, saved;

	if (sig < 1 || sig >= _NSIG) {
		errno = EINVAL;
		return -1;
	}
	fd = eventfd(0, EFD_CLOEXEC);
	if (fd < 0)
		return -1;
	file_of[sig] = fd;
	if (!sigaction(sig, &action, NULL))
		return fd;
	saved = errno;
	close(fd);
	errno = saved;
	return -1;
}
