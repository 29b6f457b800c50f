/* SPDX-License-Identifier: BSD-2-Clause
 *
 * One-sided operations that need no more than one slot of the peer's ring
 * (rma_post.c): what rma.c and atomic.c try before they call Go.
 */
#ifndef WEFT_RMA_POST_H
#define WEFT_RMA_POST_H

#include "objects.h"
#include "../include/weft/message.h"

/* What both functions return for an operation that is Go's; nothing happened then. */
#define WEFT_RMA_TO_GO 1

struct weft_put {
	const void *buf;
	size_t len;
	fi_addr_t dest;
	uint64_t addr;
	uint64_t key;
	uint64_t data;
	uint64_t flags;
	void *context;
	bool has_data;
	bool inject; /* fi_inject forms: no completion, whatever the flags */
};

/* Posts a write. It completes when it is in the peer's ring, so one that is to
 * complete later is Go's. 0, -FI_EAGAIN or WEFT_RMA_TO_GO. */
ssize_t weft_rma_put(struct weft_ep_obj *o, const struct weft_put *p);

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
