/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fi_profile(3), which came with libfabric 2.0: an endpoint's counters as variables. The one that
 * libfabric names is FI_VAR_UNEXP_MSG_CNT, the others are weft's own, by the names of docs/counters.md.
 * There are no events.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "../include/weft/ext.h"
#include "goapi.h"
#include "variables.h"

#define VAR_UNEXP_MSG_CNT 0u    /* FI_VAR_UNEXP_MSG_CNT */
#define VAR_OWN (1u << 31)      /* with the index of a counter: a variable of the provider's */
#define CLASS_PROFILE (FI_CLASS_PEER_AV_SET + 2) /* FI_CLASS_PROFILE */

/* struct fi_profile_desc */
struct description {
	uint32_t id;
	int defined;            /* the datatype is an enum fi_type, not an enum fi_datatype */
	int datatype;
	uint64_t flags;
	size_t size;
	const char *name;
	const char *desc;
};

struct variables;

/* struct fi_profile_ops */
struct operations {
	size_t size;
	void (*reset)(struct variables *v, uint64_t flags);
	ssize_t (*query_vars)(struct variables *v, struct description *list, size_t *count);
	ssize_t (*query_events)(struct variables *v, struct description *list, size_t *count);
	ssize_t (*read_var)(struct variables *v, uint32_t id, void *data, size_t *size);
	int (*reg_callback)(struct variables *v, uint32_t event, void *callback, void *context);
	void (*start_reads)(struct variables *v, uint64_t flags);
	void (*end_reads)(struct variables *v, uint64_t flags);
};

/* struct fid_profile, and the values that it last read. One thread at a time uses it. */
struct variables {
	struct fid fid;
	struct operations *ops;
	uint64_t handle;                        /* of the endpoint; a closed one's is not taken again */
	const struct weft_stats_ops *stats;
	bool held;                              /* between start_reads and end_reads */
	int held_rc;                            /* of the read by start_reads */
	uint64_t values[];                      /* stats->count */
};

static int read_all(struct variables *v)
{
	if (weft_forked())
		return weft_fork_refusal();
	return weftGoStatsRead(v->handle, 0, v->stats->count, v->values);
}

/* The counter that a variable shows, -FI_EINVAL: there is no such variable. */
static int counter_of(const struct variables *v, uint32_t id)
{
	if (id == VAR_UNEXP_MSG_CNT)
		return v->stats->find("unexpected");
	if (!(id & VAR_OWN) || (id & ~VAR_OWN) >= v->stats->count ||
	    v->stats->counters[id & ~VAR_OWN].level != WEFT_COUNTER_ENDPOINT)
		return -FI_EINVAL;
	return (int)(id & ~VAR_OWN);
}

static void describe(const struct variables *v, uint32_t id, struct description *d)
{
	const struct weft_counter *c = &v->stats->counters[counter_of(v, id)];

	*d = (struct description){ .id = id, .datatype = FI_UINT64, .size = sizeof(uint64_t),
				   .name = id == VAR_UNEXP_MSG_CNT ? "pvar_unexp_msg_cnt" : c->name, .desc = c->help };
}

static ssize_t query_vars(struct variables *v, struct description *list, size_t *count)
{
	size_t room, all = 1, done = 0;

	if (!count)
		return -FI_EINVAL;
	room = list ? *count : 0;
	if (done < room)
		describe(v, VAR_UNEXP_MSG_CNT, &list[done++]);
	for (size_t i = 0; i < v->stats->count; i++) {
		if (v->stats->counters[i].level != WEFT_COUNTER_ENDPOINT)
			continue;
		all++;
		if (done < room)
			describe(v, VAR_OWN | (uint32_t)i, &list[done++]);
	}
	*count = all;
	return (ssize_t)done;
}

static ssize_t query_events(struct variables *, struct description *, size_t *count)
{
	if (!count)
		return -FI_EINVAL;
	*count = 0;
	return 0;
}

static ssize_t read_var(struct variables *v, uint32_t id, void *data, size_t *size)
{
	int i, rc;

	if (!data || !size)
		return -FI_EINVAL;
	i = counter_of(v, id);
	if (i < 0)
		return -FI_EINVAL;
	if (*size < sizeof(uint64_t))
		return -FI_ETOOSMALL;
	rc = v->held ? v->held_rc : read_all(v);
	if (rc)
		return rc;
	*(uint64_t *)data = v->values[i];
	*size = sizeof(uint64_t);
	return sizeof(uint64_t);
}

static int reg_callback(struct variables *, uint32_t, void *, void *) { return -FI_EINVAL; }

/* Counters are everybody's: they go on. */
static void reset(struct variables *, uint64_t) {}

static void start_reads(struct variables *v, uint64_t)
{
	v->held_rc = read_all(v);
	v->held = true;
}

static void end_reads(struct variables *v, uint64_t) { v->held = false; }

static int variables_close(struct fid *fid)
{
	free(WEFT_OBJ(fid, struct variables));
	return 0;
}

static int no_bind(struct fid *, struct fid *, uint64_t) { return -FI_ENOSYS; }
static int no_control(struct fid *, int, void *) { return -FI_ENOSYS; }
static int no_ops(struct fid *, const char *, uint64_t, void **, void *) { return -FI_ENOSYS; }
static int no_ops_set(struct fid *, const char *, uint64_t, void *, void *) { return -FI_ENOSYS; }

static struct fi_ops fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = variables_close,
	.bind = no_bind,
	.control = no_control,
	.ops_open = no_ops,
	.tostr = weft_tostr,
	.ops_set = no_ops_set,
};

static struct operations operations = {
	.size = sizeof(struct operations),
	.reset = reset,
	.query_vars = query_vars,
	.query_events = query_events,
	.read_var = read_var,
	.reg_callback = reg_callback,
	.start_reads = start_reads,
	.end_reads = end_reads,
};

int weft_variables_open(uint64_t handle, const struct weft_stats_ops *stats, void **ops, void *context)
{
	struct variables *v = calloc(1, sizeof(*v) + stats->count * sizeof(v->values[0]));

	if (!v)
		return -FI_ENOMEM;
	v->fid = (struct fid){ .fclass = CLASS_PROFILE, .context = context, .ops = &fid_ops };
	v->ops = &operations;
	v->handle = handle;
	v->stats = stats;
	*ops = &v->ops; /* fi_profile_open goes back from there to the whole */
	return 0;
}
