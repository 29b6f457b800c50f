/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Collective operations: what collective.c gives to Go, and the tables that
 * other files refer to.
 */
#ifndef WEFT_COLLECTIVE_H
#define WEFT_COLLECTIVE_H

#include "../include/weft/coll.h"
#include "goapi_gen.h"
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

extern struct weft_coll_ops weft_coll_ops;

#endif
