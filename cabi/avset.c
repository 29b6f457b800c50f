/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Sets of addresses of an address vector: fi_av_set(3).
 */
#include <stdlib.h>

#include "collective.h"
#include "goapi.h"

static inline uint64_t handle_of(const struct fid_av_set *set)
{
	return WEFT_OBJ(set, struct weft_av_set_obj)->handle;
}

static int set_close(struct fid *fid)
{
	struct weft_av_set_obj *o = WEFT_OBJ(fid, struct weft_av_set_obj);

	return weft_close(o->handle, &o->link, o);
}

struct fi_ops weft_av_set_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = set_close,
	.bind = weft_no_bind,
	.control = weft_no_control,
	.ops_open = weft_no_ops_open,
	.tostr = weft_tostr,
	.ops_set = weft_no_ops_set,
};

enum { UNION, INTERSECT, DIFF }; /* as weftGoAVSetCombine has them */

static int combine(struct fid_av_set *dst, const struct fid_av_set *src, int operation)
{
	uint64_t other = src ? weft_handle_of(&src->fid) : 0;

	return other ? weftGoAVSetCombine(handle_of(dst), other, operation) : -FI_EINVAL;
}

static int set_union(struct fid_av_set *dst, const struct fid_av_set *src)
{
	return combine(dst, src, UNION);
}

static int set_intersect(struct fid_av_set *dst, const struct fid_av_set *src)
{
	return combine(dst, src, INTERSECT);
}

static int set_diff(struct fid_av_set *dst, const struct fid_av_set *src)
{
	return combine(dst, src, DIFF);
}

static int set_insert(struct fid_av_set *set, fi_addr_t addr)
{
	return weftGoAVSetInsert(handle_of(set), addr);
}

static int set_remove(struct fid_av_set *set, fi_addr_t addr)
{
	return weftGoAVSetRemove(handle_of(set), addr);
}

static int set_addr(struct fid_av_set *set, fi_addr_t *addr)
{
	if (!addr)
		return -FI_EINVAL;
	*addr = WEFT_OBJ(set, struct weft_av_set_obj)->addr;
	return 0;
}

struct fi_ops_av_set weft_ops_av_set = {
	.size = sizeof(struct fi_ops_av_set),
	.set_union = set_union,
	.intersect = set_intersect,
	.diff = set_diff,
	.insert = set_insert,
	.remove = set_remove,
	.addr = set_addr,
};

int weft_av_set(struct fid_av *av, struct fi_av_set_attr *attr, struct fid_av_set **set,
		void *context)
{
	struct weft_av_set_obj *o;
	int rc;

	if (!attr || !set || (!attr->comm_key && attr->comm_key_size))
		return -FI_EINVAL;
	o = calloc(1, sizeof(*o));
	if (!o)
		return -FI_ENOMEM;
	rc = weftGoAVSetOpen(WEFT_OBJ(av, struct weft_av_obj)->handle, attr, &o->handle, &o->addr);
	if (rc) {
		free(o);
		return rc;
	}
	o->fid.fid.fclass = FI_CLASS_AV_SET;
	o->fid.fid.context = context;
	o->fid.fid.ops = &weft_av_set_fi_ops;
	o->fid.ops = &weft_ops_av_set;
	weft_object_add(&o->link, &o->fid.fid);
	*set = &o->fid;
	return 0;
}
