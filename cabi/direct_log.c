// SPDX-License-Identifier: BSD-2-Clause

//go:build direct

/* fi_log and what decides whether a line is written: FI_LOG_LEVEL,
 * FI_LOG_PROV, FI_LOG_SUBSYS, FI_LOG_INTERVAL. */

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>

#include "direct.h"

static const char *const levels[] = {"warn", "trace", "info", "debug"};
static const char *const subsystems[] = {"core", "fabric", "domain", "ep_ctrl", "ep_data",
					 "av",   "cq",     "eq",     "mr",      "cntr"};

_Static_assert(sizeof(levels) / sizeof(*levels) == FI_LOG_MAX, "every level");
_Static_assert(sizeof(subsystems) / sizeof(*subsystems) == FI_LOG_SUBSYS_MAX, "every subsystem");

/* Written once by read_settings, then immutable. */
static int level_limit;           /* highest level that is written, -1: none */
static unsigned int subsys_mask;  /* bit per subsystem */
static const char *provider_list; /* NULL: all */
static int interval = 2000;       /* ms between two lines of one place */

static const struct fi_provider *const library = NULL;

/* chosen tells whether a list such as "a,b" or "^a,b" admits word. */
static bool chosen(const char *list, const char *word)
{
	if (!list)
		return true;
	if (*list == '^')
		return !weft_direct_listed(list + 1, ",", word);
	return weft_direct_listed(list, ",", word);
}

/* limit_of returns the level that a value of FI_LOG_LEVEL stands for. Without
 * a value nothing is written; a word that is none of the levels means warn. */
static int limit_of(const char *value)
{
	if (!value)
		return -1;
	for (int i = 0; i < FI_LOG_MAX; i++)
		if (!strcasecmp(value, levels[i]))
			return i;
	return FI_LOG_WARN;
}

static const char *setting(const char *name)
{
	char *value = NULL;

	return fi_param_get((struct fi_provider *)library, name, &value) ? NULL : value;
}

static void read_settings(void)
{
	fi_param_define(library, "log_level", FI_PARAM_STRING,
			"Log level: warn, trace, info or debug (default: no log)");
	fi_param_define(library, "log_prov", FI_PARAM_STRING,
			"Providers to log, or after ^ those not to log (default: all)");
	fi_param_define(library, "log_subsys", FI_PARAM_STRING,
			"Subsystems to log, or after ^ those not to log (default: all)");
	fi_param_define(library, "log_interval", FI_PARAM_INT,
			"Milliseconds between two rate limited log lines (default: %d)", interval);

	level_limit = limit_of(setting("log_level"));
	const char *list = setting("log_prov");
	provider_list = list ? strdup(list) : NULL; /* for the life of the process */
	list = setting("log_subsys");
	for (unsigned int i = 0; i < FI_LOG_SUBSYS_MAX; i++)
		if (chosen(list, subsystems[i]))
			subsys_mask |= 1u << i;
	int ms;
	if (!fi_param_get((struct fi_provider *)library, "log_interval", &ms) && ms >= 0)
		interval = ms;
}

void weft_direct_define_logging(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_settings);
}

static const char *provider_name(const struct fi_provider *prov)
{
	return prov && prov->name ? prov->name : "core";
}

WEFT_EXPORT int fi_log_enabled(const struct fi_provider *prov, enum fi_log_level level,
		   enum fi_log_subsys subsys)
{
	weft_direct_define_logging();
	return (unsigned int)level < FI_LOG_MAX && (int)level <= level_limit &&
	       (unsigned int)subsys < FI_LOG_SUBSYS_MAX && subsys_mask >> subsys & 1 &&
	       chosen(provider_list, provider_name(prov));
}

WEFT_EXPORT int fi_log_ready(const struct fi_provider *prov, enum fi_log_level level,
		 enum fi_log_subsys subsys, uint64_t *showtime)
{
	if (!fi_log_enabled(prov, level, subsys))
		return 0;

	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	uint64_t now = (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;

	/* Several threads may come by the same place: one of them writes. */
	_Atomic uint64_t *next = (_Atomic uint64_t *)showtime;
	uint64_t due = atomic_load_explicit(next, memory_order_relaxed);
	return now >= due &&
	       atomic_compare_exchange_strong_explicit(next, &due, now + (uint64_t)interval,
						       memory_order_relaxed, memory_order_relaxed);
}

/* One line, one write: lines of threads and processes do not mix. */
WEFT_EXPORT void fi_log(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
	    const char *func, int line, const char *fmt, ...)
{
	char buf[1024], message[768];
	va_list args;

	va_start(args, fmt);
	vsnprintf(message, sizeof(message), fmt, args);
	va_end(args);

	/* room for a newline stays */
	int n = snprintf(buf, sizeof(buf) - 1, "weft:%d:%lld::%s:%s:%s():%d<%s> %s", (int)getpid(),
			 (long long)time(NULL), provider_name(prov),
			 (unsigned int)subsys < FI_LOG_SUBSYS_MAX ? subsystems[subsys] : "unknown", func,
			 line, (unsigned int)level < FI_LOG_MAX ? levels[level] : "unknown", message);
	size_t used = n < 0 ? 0 : (size_t)n < sizeof(buf) - 1 ? (size_t)n : sizeof(buf) - 2;
	if (!used || buf[used - 1] != '\n')
		buf[used++] = '\n';

	int saved = errno;
	ssize_t written = write(STDERR_FILENO, buf, used);
	(void)written; /* nobody left to tell */
	errno = saved;
}
