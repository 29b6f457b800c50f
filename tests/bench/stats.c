/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Time and samples.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench.h"

static double *samples;
static size_t sample_count;

uint64_t ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t t;
	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
	return t;
#else
#error "no cycle counter"
#endif
}

uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* tick_ns measures the counter against the clock, once. */
double tick_ns(void)
{
	static double ns;

	if (ns == 0) {
		uint64_t from = clock_ns(), t0 = ticks(), now;
		while ((now = clock_ns()) - from < 20000000)
			;
		ns = (double)(now - from) / (double)(ticks() - t0);
	}
	return ns;
}

void clear_samples(void)
{
	sample_count = 0;
}

void sample(double value)
{
	if (!samples && !(samples = malloc(MAX_SAMPLES * sizeof(*samples))))
		die("samples", -FI_ENOMEM);
	if (sample_count < MAX_SAMPLES)
		samples[sample_count++] = value;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double quantile(double q)
{
	if (!sample_count)
		return NAN;
	qsort(samples, sample_count, sizeof(*samples), by_value);
	size_t i = (size_t)(q * (double)sample_count);
	return samples[i < sample_count ? i : sample_count - 1];
}

static char reporter[256];

void report_for(const char *provider)
{
	snprintf(reporter, sizeof(reporter), "%s ", provider);
}

const char *reporting_for(void)
{
	return reporter;
}

void report(const char *name, double value)
{
	if (isnan(value))
		return;
	printf("%s%s %.6g\n", reporter, name, value);
	fflush(stdout);
}

struct deadline deadline_in(double seconds)
{
	return (struct deadline){ ticks() + (uint64_t)(seconds * 1e9 / tick_ns()) };
}

bool passed(struct deadline d)
{
	return (int64_t)(ticks() - d.end) >= 0;
}
