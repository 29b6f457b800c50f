/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What weft offers beyond libfabric, through fi_open_ops (fi_domain(3)). A
 * program needs this header and nothing to link:
 *
 *	struct weft_stats_ops *stats;
 *	uint64_t sent;
 *
 *	if (!fi_open_ops(&ep->fid, WEFT_STATS_OPS, 0, (void **)&stats, NULL))
 *		stats->read(&ep->fid, stats->find("tx_inline"), 1, &sent);
 *
 * Other providers, and other names, give -FI_ENOSYS.
 */
#ifndef WEFT_EXT_H
#define WEFT_EXT_H

#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>

/* The name of the counters' operations. What changes in a way that breaks
 * programs gets another name; members are added at the end of struct
 * weft_stats_ops only, and size says which there are. */
#define WEFT_STATS_OPS "weft_stats_1"

enum weft_counter_kind {
	WEFT_COUNTER_SUM,   /* grows */
	WEFT_COUNTER_GAUGE, /* goes up and down; sampled some ten times a second by progress */
	WEFT_COUNTER_PEAK,  /* the highest value so far */
};

enum weft_counter_level {
	WEFT_COUNTER_PROCESS,
	WEFT_COUNTER_ENDPOINT,
};

/* One counter. Strings are never freed. */
struct weft_counter {
	const char *name; /* as "weft top --json" and docs/counters.md have it */
	const char *unit; /* "bytes", "messages", ... */
	const char *help; /* one sentence */
	enum weft_counter_kind kind;
	enum weft_counter_level level;
};

/* The counters of weft, one table for all objects of a process. It changes from
 * version to version of weft: programs go by names. */
struct weft_stats_ops {
	size_t size;			     /* of this structure, bytes */
	size_t count;			     /* of counters */
	const struct weft_counter *counters; /* in the order of the values */

	/* The index of a counter by its name; -FI_ENOENT for one that is not there,
	 * -FI_EINVAL for NULL. */
	int (*find)(const char *name);

	/* Stores the values of count counters from index first on. fid is a fabric or
	 * a domain: the process's counters, and those of its enabled endpoints summed
	 * up (of a peak, the highest); or an endpoint, or a context of a scalable
	 * endpoint: its counters, 0 for those of the process. Values of one call may be
	 * some operations apart. Returns 0; -FI_EINVAL for a range beyond the table,
	 * values NULL, or a fid of another class; -FI_EOPBADSTATE for an endpoint that
	 * is not enabled. Any thread may call it, as far as the domain's threading
	 * model allows calls on fid. It is no call for the data path: it takes a lock
	 * and adds up the counts of threads. */
	int (*read)(struct fid *fid, int first, size_t count, uint64_t *values);
};

#endif
