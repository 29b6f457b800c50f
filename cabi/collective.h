/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Collective operations: what collective.c gives to Go, and the tables that
 * other files refer to.
 */
#ifndef WEFT_COLLECTIVE_H
#define WEFT_COLLECTIVE_H

#include "../include/weft/coll.h"
#include "objects.h"

struct weft_coll_args {
	uint64_t buf;
	uint64_t result;
	uint64_t count;
	uint64_t group;
	uint64_t root;
	uint64_t flags;
	uint64_t context;
	int32_t kind;                   /* enum fi_collective_op */
	int32_t datatype;
	int32_t op;
	uint64_t desc;
	uint64_t result_desc;
};

/* Go. Each returns 0 or a negative errno. Joining gives the handle and the
 * address of the group; announcing tells its members, and names fid in the event
 * that follows. set operations: 0 union, 1 intersect, 2 diff. */
extern int64_t weftGoCollective(uint64_t ep, struct weft_coll_args *args);
extern int64_t weftGoAllToAllV(uint64_t ep, struct weft_alltoallv *args);
extern int weftGoQueryCollective(int kind, int datatype, int op, uint64_t *count, uint64_t *size,
				 uint64_t *members);
extern int weftGoJoin(uint64_t ep, uint64_t addr, uint64_t set, uint64_t flags, uint64_t context,
		      uint64_t *handle, uint64_t *group);
extern int weftGoAnnounce(uint64_t group, void *fid);
extern int weftGoAVSetOpen(uint64_t av, struct fi_av_set_attr *attr, uint64_t *handle,
			   uint64_t *addr);
extern int weftGoAVSetCombine(uint64_t dst, uint64_t src, int operation);
extern int weftGoAVSetInsert(uint64_t set, uint64_t addr);
extern int weftGoAVSetRemove(uint64_t set, uint64_t addr);

extern struct weft_coll_ops weft_coll_ops;

#endif
