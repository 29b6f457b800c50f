/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Posting through endpoints that were opened with FI_HMEM. A descriptor tells whether a buffer is memory of a
 * device. If none is, the call is that of any endpoint; else it is one of these functions, which have Go turn
 * descriptors and addresses into addresses that say where the memory is (provider/device.go), and post through Go.
 * Endpoints without FI_HMEM have other tables and pay for nothing here.
 */
#ifndef WEFT_HMEM_H
#define WEFT_HMEM_H

#include "goapi.h"
#include "hotpath.h"
#include "rma.h"

/* The most elements of a vector; what is longer goes on as it is and is refused. */
#define WEFT_HMEM_LIMIT WEFT_ATOMIC_IOV

/* Tells whether one of the buffers is memory of a device. */
static inline bool weft_hmem_special(void *const *desc, size_t count)
{
	for (size_t i = 0; desc && i < count && count <= WEFT_HMEM_LIMIT; i++)
		if ((uintptr_t)desc[i] & WEFT_DESC_SPECIAL)
			return true;
	return false;
}

ssize_t weft_hmem_send(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t dest,
		       uint64_t tag, uint64_t data, uint64_t flags, void *context, uint32_t kind);
ssize_t weft_hmem_recv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t src,
		       uint64_t tag, uint64_t ignore, uint64_t flags, void *context);

#endif
