/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the posting functions of endpoints with FI_HMEM have in common (hmem.c).
 */
#ifndef WEFT_HMEM_H
#define WEFT_HMEM_H

#include <string.h>

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

/* Copies a vector of at most WEFT_HMEM_LIMIT elements with its addresses translated. */
static inline int weft_hmem_translate(struct fid_ep *ep, struct iovec *to, const struct iovec *from,
				      void *const *desc, size_t count)
{
	if (!from)
		return -FI_EINVAL;
	memcpy(to, from, count * sizeof(*to));
	return weftGoTranslate(container_of(ep, struct weft_ep_obj, fid)->handle, to, (void **)desc, count);
}

/* Makes weft_hmem_atomic (hmem_atomic.c). */
void weft_hmem_make_atomic(void);

#endif
