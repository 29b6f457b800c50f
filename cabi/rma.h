/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the posting functions of one-sided operations (rma.c, atomic.c) give to
 * Go.
 */
#ifndef WEFT_RMA_H
#define WEFT_RMA_H

#include "goapi_gen.h"
#include "objects.h"

struct weft_rma_args {
	const struct iovec *iov;
	uint64_t count;
	const struct fi_rma_iov *remote;
	uint64_t remote_count;
	uint64_t dest;
	uint64_t data;
	uint64_t flags;
	uint64_t context;
	uint32_t kind; /* WEFT_POST_*, but for TAGGED (post.h) */
};

/* The most elements of each vector; Go refuses what is longer. */
#define WEFT_ATOMIC_IOV 4

/* Vectors are in bytes. kind is that of package provider/atomics: 0 plain, 1
 * fetching, 2 comparing. */
struct weft_atomic_args {
	struct iovec operand[WEFT_ATOMIC_IOV];
	struct iovec compare[WEFT_ATOMIC_IOV];
	struct iovec result[WEFT_ATOMIC_IOV];
	struct fi_rma_iov remote[WEFT_ATOMIC_IOV];
	uint32_t operands, compares, results, remotes;
	uint64_t dest;
	uint64_t flags;
	uint64_t context;
	int32_t op;
	int32_t datatype;
	uint32_t kind;
	uint32_t inject;
};

/* The flags of a read or write that takes none: the context's defaults that mean something for it. */
static inline uint64_t weft_rma_flags(const struct weft_ep_obj *o, bool read)
{
	return o->tx_op_flags & ~(FI_MATCH_COMPLETE | (read ? FI_INJECT : 0));
}

/* Fills args from an application's structures; fetch and compare are NULL for
 * kinds without. 0 or a negative errno. */
int weft_atomic_args(struct weft_atomic_args *args, const struct fi_msg_atomic *msg,
		     const struct fi_msg_fetch *fetch, const struct fi_msg_compare *compare,
		     uint64_t flags);

/* The elements of a vector in all: what the remote side of the calls has that
 * name one address. */
size_t weft_ioc_sum(const struct fi_ioc *iov, size_t count);

#endif
