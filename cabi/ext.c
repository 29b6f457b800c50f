/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fi_open_ops: what weft offers beyond libfabric (include/weft/ext.h, coll.h and token.h).
 */
#include <string.h>

#include "collective.h"
#include "../include/weft/ext.h"
#include "goapi.h"
#include "objects.h"
#include "variables.h"
#include "token.h"

/* Stored, with release, before the first call of it is given out. */
static _Atomic(struct weft_stats_ops *) stats_ops;

static int stats_find(const char *name)
{
	const struct weft_stats_ops *ops =
		atomic_load_explicit(&stats_ops, memory_order_acquire);

	if (!name)
		return -FI_EINVAL;
	for (size_t i = 0; i < ops->count; i++)
		if (!strcmp(ops->counters[i].name, name))
			return (int)i;
	return -FI_ENOENT;
}

/* The handle whose counters fid has: 0 is the process. -FI_EINVAL if it has none. */
static int counted(const struct fid *fid, uint64_t *handle)
{
	if (!weft_handle_of(fid))
		return -FI_EINVAL;
	switch (fid->fclass) {
	case FI_CLASS_FABRIC:
	case FI_CLASS_DOMAIN:
		*handle = 0;
		return 0;
	case FI_CLASS_EP:
	case FI_CLASS_TX_CTX:
	case FI_CLASS_RX_CTX:
		*handle = weft_handle_of(fid);
		return 0;
	default:
		return -FI_EINVAL;
	}
}

static int stats_read(struct fid *fid, int first, size_t count, uint64_t *values)
{
	size_t all = atomic_load_explicit(&stats_ops, memory_order_acquire)->count;
	uint64_t handle;

	if (!fid || !values || first < 0 || (size_t)first > all || count > all - (size_t)first)
		return -FI_EINVAL;
	if (weft_forked())
		return weft_fork_refusal();
	if (counted(fid, &handle))
		return -FI_EINVAL;
	return weftGoStatsRead(handle, (size_t)first, count, values);
}

static int stats_open(struct fid *fid, uint64_t flags, void **ops)
{
	struct weft_stats_ops *stats;
	uint64_t handle;

	if (counted(fid, &handle))
		return -FI_ENOSYS;
	if (flags)
		return -FI_EBADFLAGS;
	if (weft_forked())
		return weft_fork_refusal();
	stats = weftGoStatsOps();
	if (!stats)
		return -FI_ENOMEM;
	*ops = stats;
	return 0;
}

static int coll_open(struct fid *fid, uint64_t flags, void **ops)
{
	if (!weft_handle_of(fid) || fid->fclass != FI_CLASS_EP)
		return -FI_ENOSYS;
	if (flags)
		return -FI_EBADFLAGS;
	*ops = &weft_coll_ops;
	return 0;
}

/* The profile is the endpoint's; a domain has no variables of its own. */
static int profile_open(struct fid *fid, uint64_t flags, void **ops, void *context)
{
	void *stats = NULL;
	uint64_t handle;
	int rc;

	if (counted(fid, &handle) || !handle)
		return -FI_ENOSYS;
	rc = stats_open(fid, flags, &stats);
	return rc ? rc : weft_variables_open(handle, stats, ops, context);
}

int weft_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	if (!name || !ops)
		return -FI_EINVAL;
	if (!strcmp(name, WEFT_STATS_OPS))
		return stats_open(fid, flags, ops);
	if (!strcmp(name, WEFT_PROFILE_OPS))
		return profile_open(fid, flags, ops, context);
	if (!strcmp(name, WEFT_COLL_OPS))
		return coll_open(fid, flags, ops);
	if (!strcmp(name, WEFT_TOKEN_OPS))
		return weft_token_ops_open(fid, name, flags, ops);
	return -FI_ENOSYS;
}

void weft_stats_calls(struct weft_stats_ops *ops)
{
	ops->size = sizeof(*ops);
	ops->find = stats_find;
	ops->read = stats_read;
	atomic_store_explicit(&stats_ops, ops, memory_order_release);
}
