/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Progress that the provider makes by itself: what it costs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "pin.h"

/* Both ranks and all that the provider starts share a core. */
static void one_core(struct node *n, enum fi_progress progress, const char *name)
{
	struct options opt = *n->opt;

	opt.progress = progress;
	n->opt = &opt;
	pin_to(opt.cores[0]);
	rate(n, 1, name);
}

void test_one_core_manual(struct node *n)
{
	one_core(n, FI_PROGRESS_MANUAL, "one_core_manual_mps");
}

void test_one_core_auto(struct node *n)
{
	one_core(n, FI_PROGRESS_AUTO, "one_core_auto_mps");
}

/* The provider's threads have cores of their own, where the machine has four.
 * Only weft knows the variable. */
void test_apart(struct node *n)
{
	struct options opt = *n->opt;
	char core[16];

	if (sysconf(_SC_NPROCESSORS_ONLN) < 4) {
		if (n->rank == 0)
			fprintf(stderr,
				"apart: not measured: the ranks and their progress threads need 4 cores, there are "
				"%ld\n",
				sysconf(_SC_NPROCESSORS_ONLN));
		return;
	}
	opt.progress = FI_PROGRESS_AUTO;
	n->opt = &opt;
	snprintf(core, sizeof(core), "%d", (opt.cores[n->rank] + 2) % 4);
	setenv("FI_WEFT_PROGRESS_CPU", core, 1);
	node_open(n, &(struct wish){ .threading = FI_THREAD_DOMAIN });
	node_connect(n);
	post_recv(n, BUFFER_BYTES, 1);
	pingpong(n, 8, "apart_8_us", NULL);
}

/* A fetch-add of rank 0, answered by rank 1's progress thread on the core that
 * test_fetch_add has rank 1 itself poll on. Rank 1 sleeps meanwhile, on the
 * other one, so that two cores are enough. */
void test_served(struct node *n)
{
	struct options opt = *n->opt;
	char core[16];

	opt.progress = n->rank ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
	n->opt = &opt;
	pin_to(opt.cores[0]);
	snprintf(core, sizeof(core), "%d", opt.cores[1]);
	setenv("FI_WEFT_PROGRESS_CPU", core, 1);
	struct region to = open_region(n);
	if (n->rank == 0) {
		fetch_adds(n, &to, FETCHES);
		clear_samples();
		struct deadline end = deadline_in(opt.seconds);
		while (!passed(end)) {
			uint64_t t0 = ticks();
			fetch_adds(n, &to, FETCHES);
			sample((double)(ticks() - t0) * tick_ns() / FETCHES / 1e3);
		}
		report("fetch_add_served_us", quantile(0.5));
	}
	pthread_barrier_wait(&n->shared->sleepers);
}

static double processor_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* What a process costs that has an endpoint with automatic progress and waits. */
void test_idle(struct node *n)
{
	struct options opt = *n->opt;
	const double settle = 1, seconds = 3;

	opt.progress = FI_PROGRESS_AUTO;
	n->opt = &opt;
	node_open(n, &(struct wish){ .threading = FI_THREAD_SAFE });
	usleep((useconds_t)(settle * 1e6));
	double before = processor_seconds();
	usleep((useconds_t)(seconds * 1e6));
	report("idle_auto_percent", (processor_seconds() - before) / seconds * 100);
}
