/* SPDX-License-Identifier: BSD-2-Clause
 *
 * libweft.so starts the Go runtime when it is loaded, which ends the process where it is refused what
 * it starts with. A line on standard error says before that what it is.
 */
//go:build direct

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "direct.h"

/* Threads of the trial are none of the runtime's, which the library is linked to make in a way of its
 * own. Not there: a program that is linked otherwise. */
__attribute__((weak)) extern __typeof__(pthread_create) __real_pthread_create;

#define pthread_create __real_pthread_create
#include "loader/trial.c"

__attribute__((constructor(101))) static void say_what_is_refused(void)
{
	const char *what;
	int rc;

	if (!__real_pthread_create)
		return;
	rc = weft_trial(&what);
	if (rc)
		dprintf(STDERR_FILENO, "weft: the Go runtime cannot start in this process: refused are %s: %s\n", what,
			strerror(-rc));
}
