/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Atomic operations on one integer, which need no more than one slot of the
 * peer's ring (rma_post.c): what atomic.c tries before it calls Go.
 */
#ifndef WEFT_RMA_POST_H
#define WEFT_RMA_POST_H

#include "objects.h"
#include "../include/weft/message.h"

/* What is returned for an operation that is Go's; nothing happened then. */
#define WEFT_RMA_TO_GO 1

struct weft_atomic_post {
	const void *operand; /* NULL for FI_ATOMIC_READ */
	const void *compare; /* of WEFT_ATOMIC_COMPARE */
	void *result;        /* of all kinds but WEFT_ATOMIC_PLAIN */
	fi_addr_t dest;
	uint64_t addr;
	uint64_t key;
	uint64_t flags;
	void *context;
	int op;
	int datatype;
	uint32_t kind;
	bool inject;
};

/* Posts an atomic operation on one element. 0, -FI_EAGAIN or WEFT_RMA_TO_GO. */
ssize_t weft_rma_atomic(struct weft_ep_obj *o, const struct weft_atomic_post *p);

/* What C performs: one of libfabric's operations of a kind on an integer of 4
 * or 8 bytes. Returns the integer's size, 0 for all else. */
uint32_t weft_atomic_size(uint32_t kind, int datatype, int op);

#endif
