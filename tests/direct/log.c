/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Logging. The settings are read once per process, so each case is a program of its own.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/providers/fi_log.h>

#include "check.h"

static const struct fi_provider weft = { .name = "weft" };

struct setting {
	const char *level, *prov, *subsys;
	int warn_cq, info_cq, warn_mr; /* what is to be written */
};

static const struct setting settings[] = {
	{ NULL, NULL, NULL, 0, 0, 0 },	     { "warn", NULL, NULL, 1, 0, 1 },	 { "INFO", NULL, NULL, 1, 1, 1 },
	{ "nonsense", NULL, NULL, 1, 0, 1 }, { "debug", "weft", NULL, 1, 1, 1 }, { "debug", "tcp,weft", NULL, 1, 1, 1 },
	{ "debug", "tcp", NULL, 0, 0, 0 },   { "debug", "^tcp", NULL, 1, 1, 1 }, { "debug", "^weft", NULL, 0, 0, 0 },
	{ "info", NULL, "cq,av", 1, 1, 0 },  { "info", NULL, "^cq", 0, 0, 1 },
};

static void set(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
}

/* log_child is the program of a setting: a bit per wrong answer. */
int log_child(int setting)
{
	const struct setting *s = &settings[setting];
	uint64_t showtime = 0;

	set("FI_LOG_LEVEL", s->level);
	set("FI_LOG_PROV", s->prov);
	set("FI_LOG_SUBSYS", s->subsys);
	int wrong = (fi_log_enabled(&weft, FI_LOG_WARN, FI_LOG_CQ) != s->warn_cq) |
		    (fi_log_enabled(&weft, FI_LOG_INFO, FI_LOG_CQ) != s->info_cq) << 1 |
		    (fi_log_enabled(&weft, FI_LOG_WARN, FI_LOG_MR) != s->warn_mr) << 2 |
		    (fi_log_ready(&weft, FI_LOG_WARN, FI_LOG_CQ, &showtime) != s->warn_cq) << 3 |
		    (fi_log_ready(&weft, FI_LOG_WARN, FI_LOG_CQ, &showtime) != 0) << 4;
	return wrong | (fi_log_enabled(&weft, FI_LOG_WARN, 99) != 0) << 5;
}

static void test_settings(void)
{
	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
		pid_t pid = fork();
		if (!pid) {
			char number[8];

			snprintf(number, sizeof(number), "%zu", i);
			execl("/proc/self/exe", "entry", number, NULL);
			_exit(255);
		}
		int status = -1;
		waitpid(pid, &status, 0);
		CHECK(status == 0, "setting %zu: status %x", i, (unsigned int)status);
	}
}

/* capture runs in a child whose standard error is fd. */
static void write_lines(int fd)
{
	char big[4096];

	dup2(fd, STDERR_FILENO);
	memset(big, 'b', sizeof(big) - 1);
	big[sizeof(big) - 1] = 0;
	errno = 5;
	fi_log(&weft, FI_LOG_WARN, FI_LOG_CQ, "open", 12, "cq %d is full\n", 3);
	fi_log(NULL, FI_LOG_INFO, FI_LOG_CORE, "open", 1, "no end of line");
	fi_log(&weft, FI_LOG_WARN, FI_LOG_CQ, "open", 12, "%s", big);
	_exit(errno != 5);
}

static void test_lines(void)
{
	char buf[8192];
	size_t n = 0;
	ssize_t got;
	int fd[2], status = -1;

	if (pipe(fd)) {
		CHECK(false, "pipe");
		return;
	}
	pid_t pid = fork();
	if (!pid)
		write_lines(fd[1]);
	close(fd[1]);
	while ((got = read(fd[0], buf + n, sizeof(buf) - 1 - n)) > 0)
		n += (size_t)got;
	close(fd[0]);
	buf[n] = 0;
	waitpid(pid, &status, 0);
	CHECK(status == 0, "errno is kept");
	CHECK(!strncmp(buf, "weft:", 5), "%s", buf);
	CHECK(strstr(buf, ":weft:cq:open():12<warn> cq 3 is full\n") != NULL, "%s", buf);
	CHECK(strstr(buf, ":core:core:open():1<info> no end of line\n") != NULL, "%s", buf);
	int lines = 0;
	for (size_t i = 0; i < n; i++)
		lines += buf[i] == '\n';
	CHECK(lines == 3 && buf[n - 1] == '\n', "%d lines", lines);
}

void test_log(void)
{
	test_settings();
	test_lines();
}
