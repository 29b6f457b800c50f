/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Posting through endpoints that were opened with FI_HMEM (posts_gen.c). A descriptor says whether a buffer is memory
 * of a device. If none is, the call is that of any endpoint; else Go turns descriptors and addresses into addresses
 * that say where the memory is (provider/device.go), and posts. Endpoints without FI_HMEM have other tables and pay
 * for nothing here.
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

/* Copies a vector of at most WEFT_HMEM_LIMIT elements with its addresses translated. 0 or a negative errno. */
static inline int weft_hmem_translate(struct fid_ep *ep, struct iovec *to, const struct iovec *from, void **desc,
				      size_t count)
{
	if (!from)
		return -FI_EINVAL;
	for (size_t i = 0; i < count; i++)
		to[i] = from[i];
	return weftGoTranslate(WEFT_OBJ(ep, struct weft_ep_obj)->handle, to, desc, count);
}

#endif
