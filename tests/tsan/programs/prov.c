/* SPDX-License-Identifier: BSD-2-Clause
 * How a libfabric that comes is handed to threads that log (cabi/prov.c), under ThreadSanitizer: what it has stored in
 * its struct weft_host before. With MUTANT nothing is handed on in order, which the sanitizer is to find. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../../cabi/goapi.h"
#include "../../../cabi/host.h"
#include "../../../cabi/thread.h"
#ifdef MUTANT
#define memory_order_release memory_order_relaxed
#endif
#include "../../../cabi/prov.c"

#define COMERS 3
#define ROUNDS 100

static _Atomic int running = COMERS;
static _Atomic unsigned lines, logged; /* written; of them by the logger */

#pragma GCC diagnostic ignored "-Wunused-parameter"
/* What prov.c calls, of which the program comes to the first four. */
int weft_forked_flag;
int weft_fork_init(void)
{
	return 0;
}
int weftGoInit(struct weft_host *host)
{
	return host ? 0 : -FI_EINVAL;
}
void weft_at_end(void (*work)(void), unsigned seconds)
{
	(void)work, (void)seconds;
}
void weftGoCleanup(void) {}
void weftGoSettle(void) {}
int weft_fork_refusal(void)
{
	abort();
}
int weft_spares_need(const char *what)
{
	abort();
}
void *weft_object_new(size_t fclass, void *context)
{
	abort();
}
int weft_object_open(void *object, int rc, const struct weft_opened *opened)
{
	abort();
}
int weftGoFabricOpen(struct fi_fabric_attr *attr, void *self, struct weft_opened *out)
{
	abort();
}
int weftGoGetInfo(struct weft_host *host, uint32_t version, char *node, char *service, uint64_t flags,
		  struct fi_info *hints, struct fi_info **out)
{
	abort();
}

static void line(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys, const char *func,
		 int at, const char *format, ...)
{
	(void)level, (void)subsys, (void)func, (void)at, (void)format;
	atomic_fetch_add_explicit(&lines, prov->version, memory_order_relaxed);
}

/* A libfabric that comes and goes. What its host points to is valid until the process ends. */
static void *comer(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		struct fi_provider *provider = calloc(1, sizeof(*provider));
		struct weft_host *host = calloc(1, sizeof(*host));

		if (!provider || !host)
			abort();
		provider->version = 1;
		host->logger = provider;
		host->log = line;
		if (weft_attach(host))
			abort();
		for (unsigned was = atomic_load_explicit(&logged, memory_order_relaxed), now = was; now - was < 2;
		     now = atomic_load_explicit(&logged, memory_order_relaxed))
			sched_yield(); /* the logger has begun one since, and finds a host */
		weft_detach(host);
	}
	atomic_fetch_sub_explicit(&running, 1, memory_order_relaxed);
	return NULL;
}

/* A thread that logs all the while. */
static void *logger(void *arg)
{
	(void)arg;
	while (atomic_load_explicit(&running, memory_order_relaxed)) {
		weft_log(FI_LOG_WARN, FI_LOG_CORE, __func__, __LINE__, "a line");
		atomic_fetch_add_explicit(&logged, 1, memory_order_relaxed);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[COMERS + 1];

	for (int i = 0; i <= COMERS; i++)
		if (pthread_create(&threads[i], NULL, i < COMERS ? comer : logger, NULL))
			return 1;
	for (int i = 0; i <= COMERS; i++)
		pthread_join(threads[i], NULL);
	if (atomic_load(&lines) < ROUNDS) /* each comer has the logger write one, or another comer has */
		return 2;
	printf("%u lines\n", atomic_load(&lines));
	return current_host() ? 3 : 0;
}
