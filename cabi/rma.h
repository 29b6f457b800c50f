/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Posting of one-sided operations: what rma.c and atomic.c share with the endpoints for memory of devices (hmem.h), and
 * with Go.
 */
#ifndef WEFT_RMA_H
#define WEFT_RMA_H

#include "goapi_gen.h"
#include "objects.h"

/* Beside WEFT_POST_* (post.h): a buffer is memory of a device, as its descriptor says. */
#define WEFT_POST_DEVICE 0x10000u

/* The most elements of each vector of an atomic operation; Go refuses what is longer. */
#define WEFT_ATOMIC_IOV 4

/* Where Go has the vectors of an atomic operation in bytes, during the call. */
struct weft_atomic_room {
	struct iovec operand[WEFT_ATOMIC_IOV], compare[WEFT_ATOMIC_IOV], result[WEFT_ATOMIC_IOV];
	struct fi_rma_iov remote[WEFT_ATOMIC_IOV];
};

/* The flags of a read or write that takes none: the context's defaults that mean something for it. */
static inline uint64_t weft_rma_flags(const struct weft_ep_obj *o, bool read)
{
	return o->tx_op_flags & ~(FI_MATCH_COMPLETE | (read ? FI_INJECT : 0));
}

/* Has Go post an operation with one remote piece, as long as the local vector. kind is WEFT_POST_*. */
ssize_t weft_rma_vec(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags, uint32_t kind);

/* Has Go post an atomic operation. fetch and compare are NULL for kinds without, kind is WEFT_POST_*. */
ssize_t weft_atomic_slow(struct fid_ep *ep, const struct fi_msg_atomic *msg, const struct fi_msg_fetch *fetch,
			 const struct fi_msg_compare *compare, uint64_t flags, uint32_t kind);

/* The forms that name one address, the only element of msg->rma_iov, and take no flags. */
ssize_t weft_atomic_at(struct fid_ep *ep, const struct fi_msg_atomic *msg, const struct fi_msg_fetch *fetch,
		       const struct fi_msg_compare *compare, uint32_t kind);

#endif
