/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Runs the model's own tests, each in a process of its own: check [NAME].
 */
#include <sys/wait.h>
#include <unistd.h>
#include "rig.h"

static int passed, failed;

static void run(const struct test *t, const char *only)
{
	int status;
	pid_t pid;

	for (; t->name; t++) {
		if (only && strcmp(only, t->name))
			continue;
		fflush(NULL);
		pid = fork();
		if (!pid) {
			set.fabric = getpid();
			alarm(120);
			t->run();
			exit(0);
		}
		if (waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status)) {
			printf("ok %s\n", t->name);
			passed++;
		} else {
			printf("not ok %s: status %#x\n", t->name, (unsigned int)status);
			failed++;
		}
	}
}

int main(int argc, char **argv)
{
	const char *only = argc > 1 ? argv[1] : NULL;

	run(engine_tests, only);
	run(matching_tests, only);
	run(rule_tests, only);
	run(process_tests, only);
	printf("%d passed, %d failed, 0 skipped\n", passed, failed);
	return failed || !passed;
}
