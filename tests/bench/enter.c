/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a call costs that a provider written in Go has to do in Go: fi_av_lookup,
 * which finds an entry and copies an address. One thread, and two at once on a core each.
 */
#include <stdlib.h>

#include <rdma/fi_cm.h>

#include "bench.h"
#include "pin.h"

enum { BATCH = 100, BATCHES = 1 << 14 };

struct caller {
	struct node *n;
	int core;
	fi_addr_t addr;
	pthread_barrier_t *start;
	double ns; /* of a call, median over the batches */
};

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void *call(void *arg)
{
	struct caller *c = arg;
	uint64_t *took = calloc(BATCHES, sizeof(*took)), began;
	struct deadline end;
	uint8_t name[256];
	int n = 0;

	if (!took)
		die("samples", -FI_ENOMEM);

	pin_to(c->core);
	pthread_barrier_wait(c->start);
	end = deadline_in(c->n->opt->seconds);
	for (; n < BATCHES && !passed(end); n++) {
		began = ticks();
		for (int i = 0; i < BATCH; i++) {
			size_t size = sizeof(name);
			int rc = fi_av_lookup(c->n->av, c->addr, name, &size);

			if (rc)
				die("fi_av_lookup", rc);
		}
		took[n] = ticks() - began;
	}
	qsort(took, (size_t)n, sizeof(*took), ascending);
	c->ns = (double)took[n / 2] * tick_ns() / BATCH;
	free(took);
	return NULL;
}

static double callers(struct node *n, fi_addr_t addr, int count)
{
	struct caller c[2];
	pthread_t thread[2];
	pthread_barrier_t start;
	double sum = 0;

	pthread_barrier_init(&start, NULL, (unsigned int)count);
	for (int i = 0; i < count; i++) {
		c[i] = (struct caller){ .n = n, .core = n->opt->cores[i], .addr = addr, .start = &start };
		if (pthread_create(&thread[i], NULL, call, &c[i]))
			die("pthread_create", -FI_EOTHER);
	}
	for (int i = 0; i < count; i++) {
		pthread_join(thread[i], NULL);
		sum += c[i].ns;
	}
	return sum / count;
}

void test_enter(struct node *n)
{
	uint8_t name[256];
	size_t size = sizeof(name);
	fi_addr_t addr;

	node_open(n, &(struct wish){ .threading = FI_THREAD_SAFE });
	if (fi_getname(&n->ep->fid, name, &size) || fi_av_insert(n->av, name, 1, &addr, 0, NULL) != 1)
		die("own address", -FI_EOTHER);
	report("enter_1_ns", callers(n, addr, 1));
	report("enter_2_ns", callers(n, addr, 2));
}
