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
static inline uint32_t weft_atomic_size(uint32_t kind, int datatype, int op)
{
#define WEFT_OPS(first, last) ((2u << (last)) - (1u << (first)))
	static const uint32_t ops[] = {
		[WEFT_ATOMIC_PLAIN] = WEFT_OPS(FI_MIN, FI_ATOMIC_WRITE) & ~(1u << FI_ATOMIC_READ),
		[WEFT_ATOMIC_FETCH] = WEFT_OPS(FI_MIN, FI_ATOMIC_WRITE),
		[WEFT_ATOMIC_COMPARE] = WEFT_OPS(FI_CSWAP, FI_MSWAP),
	};
#undef WEFT_OPS
	bool wide = datatype == FI_INT64 || datatype == FI_UINT64;

	if (!wide && datatype != FI_INT32 && datatype != FI_UINT32)
		return 0;
	if (kind > WEFT_ATOMIC_COMPARE || op < 0 || op > FI_MSWAP || !(ops[kind] >> op & 1))
		return 0;
	return wide ? sizeof(uint64_t) : sizeof(uint32_t);
}

#endif
