/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Tables of posting functions of endpoints and contexts (posts_gen.c).
 */
#ifndef WEFT_CONNECTED_H
#define WEFT_CONNECTED_H

#include "hotpath.h"

/* Where an object that was opened has which table: one of a class, with capabilities, and of a type, FI_EP_UNSPEC for
 * any. A later row stands before an earlier one. */
struct weft_posts {
	size_t class;
	enum fi_ep_type type;
	uint64_t caps;
	size_t at;
	const void *table;
};
extern const struct weft_posts weft_posts[];
extern const size_t weft_posts_count;

#endif
