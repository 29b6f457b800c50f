/* SPDX-License-Identifier: BSD-2-Clause */
/* The counters of a process and of its endpoints, by fi_open_ops. */
#ifndef COUNTS_H
#define COUNTS_H

#include "../../include/weft/ext.h"

#include "common.h"

static inline struct weft_stats_ops *open_stats(struct fid *fid)
{
	struct weft_stats_ops *ops = NULL;

	if (!test_is_weft())
		SKIP("an extension of weft");
	OK(fi_open_ops(fid, WEFT_STATS_OPS, 0, (void **)&ops, NULL));
	CHECK(ops && ops->size >= sizeof(*ops) && ops->count > 0);
	return ops;
}

static inline uint64_t value(struct weft_stats_ops *ops, struct fid *fid, const char *name)
{
	uint64_t v = ~0ull;
	int i = ops->find(name);

	CHECKF(i >= 0, "%s: %d", name, i);
	CHECK(!strcmp(ops->counters[i].name, name));
	OK(ops->read(fid, i, 1, &v));
	return v;
}

#endif
