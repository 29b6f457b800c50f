/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Where the tables of regions are searched (struct weft_key, struct weft_hot_region).
 */
#ifndef WEFT_KEY_H
#define WEFT_KEY_H

#include "segment.h"

/* weft_key_place is where the search for a name begins in a table of count entries (hot.KeyPlace in Go). */
static inline uint32_t weft_key_place(uint64_t name, uint32_t count)
{
	return (uint32_t)((name * 0x9E3779B97F4A7C15ull) >> 32) & (count - 1);
}

#endif
