/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Sets of addresses of an address vector: fi_av_set(3).
 */
#include <stdlib.h>

#include "collective.h"
#include "goapi.h"

enum { UNION, INTERSECT, DIFF }; /* as weftGoAVSetCombine has them */

static int combine(struct fid_av_set *dst, const struct fid_av_set *src, int operation)
{
	uint64_t other = src ? weft_handle_of(&src->fid) : 0;

	return other ? weftGoAVSetCombine(WEFT_OBJ(dst, struct weft_av_set_obj)->handle, other, operation) : -FI_EINVAL;
}

int weft_av_set_union(struct fid_av_set *dst, const struct fid_av_set *src)
{
	return combine(dst, src, UNION);
}

int weft_av_set_intersect(struct fid_av_set *dst, const struct fid_av_set *src)
{
	return combine(dst, src, INTERSECT);
}

int weft_av_set_diff(struct fid_av_set *dst, const struct fid_av_set *src)
{
	return combine(dst, src, DIFF);
}

int weft_av_set_addr(struct fid_av_set *set, fi_addr_t *addr)
{
	if (!addr)
		return -FI_EINVAL;
	*addr = WEFT_OBJ(set, struct weft_av_set_obj)->addr;
	return 0;
}

