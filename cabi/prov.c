/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The provider as its host sees it, and the log.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <string.h>

#include "direct.h"
#include "goapi.h"
#include "host.h"
#include "thread.h"

static void cleanup(void)
{
	if (!weft_forked())
		weft_finish(weftGoCleanup, 2);
}

/* version is set when the Go side starts, fi_version when the host is known. */
struct fi_provider weft_provider = {
	.name = WEFT_NAME,
	.getinfo = weft_getinfo,
	.fabric = weft_fabric,
	.cleanup = cleanup,
};

struct fi_provider weft_self = { .name = WEFT_NAME };
const char *weft_reported_name = WEFT_NAME;

static struct {
	pthread_mutex_t lock; /* taken by the entry points that open nothing, at most once per fi_getinfo */
	bool done;
	int rc;
} init = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* fi_version must not be below the version that an application asks for, or
 * the host passes this provider over. weft says what the host says: it fills
 * structures through the host's allocator, and tables carry their size. */
static int init_once(void *caller)
{
	int rc = weft_host_bind(caller);

	if (rc)
		return rc;
	weft_provider.fi_version = weft_host.version();
	rc = weft_fork_init();
	return rc ? rc : weftGoInit();
}

int weft_init(void *caller)
{
	int rc;

	if (weft_forked())
		return weft_fork_refusal();
	pthread_mutex_lock(&init.lock);
	if (!init.done) {
		init.rc = init_once(caller);
		init.done = true;
	}
	rc = init.rc;
	pthread_mutex_unlock(&init.lock);
	return rc;
}

/* What closed endpoints sent and nobody has acknowledged yet is in this process alone. */
__attribute__((destructor)) static void settle(void)
{
	if (init.done && !weft_forked())
		weft_finish(weftGoSettle, 6); /* one more than what was sent may take */
}

int weft_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		 const struct fi_info *hints, struct fi_info **info)
{
	int rc;

	if (!info)
		return -FI_EINVAL;
	rc = weft_init(NULL);
	if (rc)
		return rc;
	return weftGoGetInfo(version, (char *)node, (char *)service, flags, (struct fi_info *)hints,
			     info);
}

/* As long as the host calls weft by its name, its filter of providers (FI_LOG_PROV)
 * is what it keeps with weft_provider. */
static const struct fi_provider *logger(void)
{
	return strcmp(weft_provider.name, WEFT_NAME) ? &weft_self : &weft_provider;
}

void weft_log(int level, int subsys, const char *func, int line, const char *text)
{
	int saved = errno;

	weft_host.log(logger(), level, subsys, func, line, "%s\n", text);
	errno = saved;
}

int weft_log_enabled(int level, int subsys)
{
	return weft_host.log_enabled(logger(), level, subsys);
}
