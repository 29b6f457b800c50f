/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Memory tokens: what token.c and token.go have in common (include/weft/token.h).
 */
#ifndef WEFT_CABI_TOKEN_H
#define WEFT_CABI_TOKEN_H

#include "../include/weft/token.h"
#include "goapi.h"

/* What a list of one element, with memory of processes on both sides, is as a read or write. */
struct weft_token_one {
	bool is;                /* it is such a one, and no way is turned off */
	bool read, write;       /* the region may be read, or written */
	struct iovec local;
	struct fi_rma_iov remote;
	fi_addr_t dest;
};

/* A remote region or a list: the structure that applications have, and what is behind it. */
struct weft_token_obj {
	struct fid fid;
	uint64_t handle;
	struct weft_link link;
	struct fid_ep *ep;              /* of a list, as what follows */
	struct weft_token_one one;
};

/* The operations, if fid has them under name; -FI_ENOSYS. */
int weft_token_ops_open(const struct fid *fid, const char *name, uint64_t flags, void **ops);

/* Stores what Go has as a number. */
static inline void weft_token_one_local(struct weft_token_one *one, uint64_t addr, size_t len)
{
	one->local = (struct iovec){ (void *)(uintptr_t)addr, len };
}

#endif
