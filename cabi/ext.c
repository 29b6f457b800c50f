/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fi_open_ops: what weft offers beyond libfabric (include/weft/ext.h, coll.h and token.h), and fi_profile(3).
 */
#include <string.h>

#include "goapi.h"

/* The name by which fi_profile_open asks for operations. */
#define PROFILE_OPS "fi_profile_ops"

static int stats_find(const char *name)
{
	if (!name)
		return -FI_EINVAL;
	for (size_t i = 0; i < weft_stats_ops.count; i++)
		if (!strcmp(weft_stats_ops.counters[i].name, name))
			return (int)i;
	return -FI_ENOENT;
}

static int stats_read(struct fid *fid, int first, size_t count, uint64_t *values)
{
	if (weft_forked())
		return weft_fork_refusal();
	return fid && values && first >= 0 ? weftGoStatsRead(fid, (size_t)first, count, values) : -FI_EINVAL;
}

struct weft_stats_ops weft_stats_ops = { .size = sizeof(weft_stats_ops), .find = stats_find, .read = stats_read };

static int profile_open(struct fid *fid, uint64_t flags, void **ops, void *context)
{
	struct weft_opened opened = { 0 };
	struct weft_profile_obj *o = weft_object_new(WEFT_CLASS_PROFILE, context);
	int rc;

	if (!o)
		return -FI_ENOMEM;
	rc = weft_object_open(o, weftGoProfileOpen(fid, flags, &opened), &opened);
	if (!rc)
		*ops = &o->fid.ops; /* fi_profile_open goes back from there to the whole */
	return rc;
}

int weft_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	if (!name || !ops)
		return -FI_EINVAL;
	if (!strcmp(name, PROFILE_OPS))
		return profile_open(fid, flags, ops, context);
	return weftGoOpsOpen(fid, (char *)name, flags, ops);
}
