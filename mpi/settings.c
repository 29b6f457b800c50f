/* SPDX-License-Identifier: BSD-2-Clause
 *
 * FI_WEFT_MPI_ALLTOALL and FI_WEFT_MPI_MIN_SIZE, which stand in the table of
 * internal/config too. They are needed before weft is opened, which most programs
 * never do.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "weftmpi.h"

/* Defaults; internal/config/table.go has the same. */
#define MIN_SIZE 32768
#define MAX_SIZE (1ull << 40)

static struct settings set = { MODE_AUTO, MIN_SIZE, false };
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void line(const char *format, va_list args)
{
	char text[512];

	vsnprintf(text, sizeof(text), format, args);
	fprintf(stderr, "libweft-mpi: %s\n", text);
}

void warn(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	line(format, args);
	va_end(args);
}

void info(const char *format, ...)
{
	va_list args;

	if (!settings()->info)
		return;
	va_start(args, format);
	line(format, args);
	va_end(args);
}

static void read_mode(const char *value)
{
	static const char *const words[] = { [MODE_AUTO] = "auto", [MODE_YES] = "yes", [MODE_NO] = "no" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!strcasecmp(value, words[i])) {
			set.mode = i;
			return;
		}
	}
	warn("FI_WEFT_MPI_ALLTOALL=%s: not one of auto, yes, no; auto is used", value);
}

/* A number with an optional suffix of powers of 1024. */
static void read_size(const char *value)
{
	static const char suffixes[] = "kmg";
	char *end;
	unsigned long long n = strtoull(value, &end, 10);
	const char *s = *end ? strchr(suffixes, *end | 0x20) : NULL;
	int shift = s ? 10 * (int)(s - suffixes + 1) : 0;

	if (*value < '0' || *value > '9' || (*end && (!s || end[1])) || n > (MAX_SIZE >> shift)) {
		warn("FI_WEFT_MPI_MIN_SIZE=%s: not a size from 0 to 1024g; %d is used", value, MIN_SIZE);
		return;
	}
	set.min_size = (int64_t)(n << shift);
}

static void read_all(void)
{
	const char *mode = getenv("FI_WEFT_MPI_ALLTOALL"), *size = getenv("FI_WEFT_MPI_MIN_SIZE");
	const char *level = getenv("FI_LOG_LEVEL");

	if (mode && *mode)
		read_mode(mode);
	if (size && *size)
		read_size(size);
	set.info = level && (!strcasecmp(level, "info") || !strcasecmp(level, "debug") || !strcasecmp(level, "trace"));
}

const struct settings *settings(void)
{
	pthread_once(&once, read_all);
	return &set;
}
