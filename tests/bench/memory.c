/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Resident memory of a process that has opened the provider, and what each
 * further idle endpoint adds.
 */
#include <stdio.h>
#include <unistd.h>

#include "bench.h"

enum { ENDPOINTS = 32 };

/* resident returns the process's resident set in KiB, shared pages included. */
double resident(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f || fscanf(f, "%*d %ld", &pages) != 1)
		die("/proc/self/statm", -FI_EOTHER);
	fclose(f);
	return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1024;
}

void test_memory(struct node *n)
{
	node_open(n, &(struct wish){ .threading = FI_THREAD_DOMAIN });
	double before = resident();
	/* the benchmark's own buffers are no part of it */
	report("rss_open_kib", before - 2.0 * BUFFER_BYTES / 1024);
	for (int i = 0; i < ENDPOINTS; i++)
		open_endpoint(n);
	report("endpoint_idle_kib", (resident() - before) / ENDPOINTS);
}
