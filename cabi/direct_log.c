// SPDX-License-Identifier: BSD-2-Clause

//go:build direct

/* fi_log. Which lines are written is decided in Go (params.go). */

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <rdma/providers/fi_log.h>

#include "direct.h"

static const char *const levels[] = { "warn", "trace", "info", "debug" };
static const char *const subsystems[] = {
	/* clang-format off */
	"core", "fabric", "domain", "ep_ctrl", "ep_data", "av", "cq", "eq", "mr", "cntr",
	/* clang-format on */
};

_Static_assert(count_of(levels) == FI_LOG_MAX, "every level");
_Static_assert(count_of(subsystems) == FI_LOG_SUBSYS_MAX, "every subsystem");

static const char *provider_name(const struct fi_provider *prov)
{
	return prov && prov->name ? prov->name : "core";
}

/* The time in ms between two lines of one place, negative: they are not written. */
static int64_t interval(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys)
{
	return weft_forked() ? -1 : weftGoLogInterval((char *)provider_name(prov), level, subsys);
}

WEFT_EXPORT int fi_log_enabled(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys)
{
	return interval(prov, level, subsys) >= 0;
}

WEFT_EXPORT int fi_log_ready(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
			     uint64_t *showtime)
{
	/* Several threads may come by the same place: one of them writes. */
	_Atomic uint64_t *next = (_Atomic uint64_t *)showtime;
	int64_t pause = interval(prov, level, subsys);
	uint64_t now = (uint64_t)weft_now(), due;

	if (pause < 0)
		return 0;
	due = atomic_load_explicit(next, memory_order_relaxed);
	return now >= due && atomic_compare_exchange_strong_explicit(next, &due, now + (uint64_t)pause,
								     memory_order_relaxed, memory_order_relaxed);
}

/* One line, one write: lines of threads and processes do not mix. */
WEFT_EXPORT void fi_log(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
			const char *func, int line, const char *fmt, ...)
{
	char buf[1024], message[768];
	int saved = errno;
	va_list args;

	va_start(args, fmt);
	vsnprintf(message, sizeof(message), fmt, args);
	va_end(args);

	/* room for a newline stays */
	int n = snprintf(buf, sizeof(buf) - 1, "weft:%d:%lld::%s:%s:%s():%d<%s> %s", (int)getpid(),
			 (long long)time(NULL), provider_name(prov),
			 (unsigned int)subsys < FI_LOG_SUBSYS_MAX ? subsystems[subsys] : "unknown", func, line,
			 (unsigned int)level < FI_LOG_MAX ? levels[level] : "unknown", message);
	size_t used = n < 0 ? 0 : (size_t)n < sizeof(buf) - 1 ? (size_t)n : sizeof(buf) - 2;
	if (!used || buf[used - 1] != '\n')
		buf[used++] = '\n';

	ssize_t written = write(STDERR_FILENO, buf, used);
	(void)written; /* there is no other place for it */
	errno = saved;
}
