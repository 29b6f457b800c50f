/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A program that is linked with libweft.so and forks before its first call:
 * Go's threads, which the child lacks, run since the library was loaded.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

int main(void)
{
	struct fi_info *info = NULL;
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		alarm(20); /* a call into Go would wait for ever */
		int rc = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &info);
		fprintf(stderr, "in the child fi_getinfo says: %s\n", fi_strerror(rc));
		return rc < 0 && !info ? 0 : 1;
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		return 1;
	if (fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &info))
		return 2;
	fi_freeinfo(info);
	return 0;
}
