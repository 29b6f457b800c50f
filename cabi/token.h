/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Memory tokens: what token.c and token.go have in common (include/weft/token.h).
 */
#ifndef WEFT_CABI_TOKEN_H
#define WEFT_CABI_TOKEN_H

#include "../include/weft/token.h"
#include "goapi.h"

/* A remote region or a list: the structure that applications have, and what is behind it. */
struct weft_token_obj {
	struct fid fid;
	uint64_t handle;
	struct weft_link link;
	struct fid_ep *ep; /* of a list, as what follows */
	uintptr_t shape;   /* Go's dataplane.List */
};

/* The operations, and those of them that are C. */
extern struct weft_token_ops weft_token_table;
int weft_token_list(struct fid_ep *ep, const struct weft_local_piece *local, const struct weft_remote_piece *remote,
		    size_t count, uint64_t flags, struct weft_list **list);
ssize_t weft_token_post(struct weft_list *list, uint32_t op, const void *picks, size_t count, const void *note,
			size_t notelen, uint64_t flags, void *context);
ssize_t weft_token_notify(struct fid_ep *ep, fi_addr_t dest, uint64_t tag, const void *note, size_t notelen,
			  uint64_t flags, void *context);
ssize_t weft_token_notes(struct fid_ep *ep, struct weft_note *entries, size_t max);

/* What is behind a list, NULL: it is none. */
static inline struct weft_token_obj *weft_token_list_of(struct weft_list *list)
{
	return list->fid.ops == &weft_list_fi_ops ? (struct weft_token_obj *)list : NULL;
}

/* The handle of an open endpoint or context of a scalable one, 0: it is none of weft's. */
uint64_t weft_token_endpoint(const struct fid_ep *ep);

#endif
