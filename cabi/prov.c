/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The provider as its hosts see it, and the log.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "goapi.h"
#include "host.h"
#include "thread.h"

/* The most libfabrics that a process has loaded at a time. */
#define HOSTS 16

static struct {
	pthread_mutex_t lock;		/* taken by the entry points that open nothing, at most once per fi_getinfo */
	struct weft_host *hosts[HOSTS]; /* attached, in this order; NULL: free */
	bool done;
	int rc;
} init = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The host that called last of those that are attached, NULL: none is. Its log is written, and its variables are read.
 * Stored under init.lock with release, loaded by any thread with acquire. It is valid until the process ends. */
static struct weft_host *_Atomic current;

static const struct weft_host *current_host(void)
{
	return atomic_load_explicit(&current, memory_order_acquire);
}

/* Makes host the current one, and remembers it. The caller holds the lock. */
static int add(struct weft_host *host)
{
	size_t i = 0;

	while (i < HOSTS && init.hosts[i] && init.hosts[i] != host)
		i++;
	if (i == HOSTS)
		return -FI_ENOSPC;
	init.hosts[i] = host;
	atomic_store_explicit(&current, host, memory_order_release);
	return 0;
}

int weft_attach(struct weft_host *host)
{
	int rc;

	pthread_mutex_lock(&init.lock);
	rc = add(host);
	if (!rc && !init.done) {
		init.rc = weft_fork_init();
		if (!init.rc)
			init.rc = weftGoInit(host);
		init.done = true;
	}
	if (!rc)
		rc = init.rc;
	pthread_mutex_unlock(&init.lock);
	return rc;
}

/* Takes a host out of the list and returns one that stays, NULL for none. The caller
 * holds the lock. */
static struct weft_host *take_out(struct weft_host *host)
{
	struct weft_host *last = NULL;
	size_t n = 0;

	for (size_t i = 0; i < HOSTS && init.hosts[i]; i++)
		if (init.hosts[i] != host)
			init.hosts[n++] = last = init.hosts[i];
	while (n < HOSTS)
		init.hosts[n++] = NULL;
	return last;
}

void weft_detach(struct weft_host *host)
{
	struct weft_host *other;

	if (weft_forked())
		return;
	pthread_mutex_lock(&init.lock);
	other = take_out(host);
	if (!other && init.done)
		weft_at_end(weftGoCleanup, 2);
	if (!other || atomic_load_explicit(&current, memory_order_relaxed) == host)
		atomic_store_explicit(&current, other, memory_order_release);
	pthread_mutex_unlock(&init.lock);
}

/* What closed endpoints sent and is not acknowledged yet is in this process alone. */
__attribute__((destructor)) static void settle(void)
{
	if (init.done && !weft_forked())
		weft_at_end(weftGoSettle, 6); /* one more than what was sent may take */
}

int weft_getinfo_for(struct weft_host *host, uint32_t version, const char *node, const char *service, uint64_t flags,
		     const struct fi_info *hints, struct fi_info **info)
{
	int rc;

	if (weft_forked())
		return weft_fork_refusal();
	if (!info)
		return -FI_EINVAL;
	rc = weft_attach(host);
	if (rc)
		return rc;
	return weftGoGetInfo(host, version, (char *)node, (char *)service, flags, (struct fi_info *)hints, info);
}

int weft_fabric_for(struct weft_host *host, struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	struct weft_opened opened = { 0 };
	struct weft_fabric_obj *o;
	int rc;

	if (weft_forked())
		return weft_fork_refusal();
	if (!attr || !fabric)
		return -FI_EINVAL;
	rc = weft_attach(host);
	if (!rc)
		rc = weft_spares_need("fi_fabric");
	if (rc)
		return rc;
	o = weft_object_new(FI_CLASS_FABRIC, context);
	if (!o)
		return -FI_ENOMEM;
	o->host = host;
	o->fid.api_version = attr->api_version;
	rc = weft_object_open(o, weftGoFabricOpen(attr, o, &opened), &opened);
	if (rc)
		return rc;
	*fabric = &o->fid;
	return 0;
}

void weft_log(int level, int subsys, const char *func, int line, const char *text)
{
	extern struct weft_host weft_direct_host __attribute__((weak)); /* libweft.so's, also before it is attached */
	const struct weft_host *host = current_host();
	int saved = errno;

	if (host || (host = &weft_direct_host))
		host->log(host->logger, level, subsys, func, line, "%s\n", text);
	errno = saved;
}

int weft_log_enabled(int level, int subsys)
{
	const struct weft_host *host = current_host();

	return host && host->log_enabled(host->logger, level, subsys);
}

const char *weft_strerror(int errnum)
{
	const struct weft_host *host = current_host();

	return host ? host->strerror(errnum) : strerror(errnum);
}

char *weft_param_get(const char *name)
{
	const struct weft_host *host = current_host();
	char *value = NULL;

	return host && !host->param_get(host->provider, name, &value) ? value : NULL;
}
