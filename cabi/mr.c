/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Memory regions: struct fi_ops_mr of a domain, and struct fid_mr.
 */
#include <stdlib.h>

#include "goapi.h"
#include "trace.h"

#define MR(mr) WEFT_OBJ(mr, struct weft_mr_obj)

static int mr_close(struct fid *fid)
{
	struct weft_mr_obj *o = MR(fid);

	return weft_close(o->handle, &o->link, o);
}

static int mr_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	uint64_t other = weft_handle_of(bfid);

	if (!other || (bfid->fclass != FI_CLASS_EP && bfid->fclass != FI_CLASS_CNTR))
		return -FI_EINVAL;
	return weftGoMRBind(MR(fid)->handle, other, flags);
}

/* FI_REFRESH is for applications that tell about changed mappings
 * (FI_MR_MMU_NOTIFY), which weft does not ask for: it keeps no mapping, so there
 * is nothing to refresh. */
static int mr_control(struct fid *fid, int command, void *arg)
{
	switch (command) {
	case FI_ENABLE:
		return weftGoMREnable(MR(fid)->handle, &MR(fid)->fid.key);
	case FI_REFRESH:
		return arg ? 0 : -FI_EINVAL;
	default:
		return -FI_ENOSYS;
	}
}

struct fi_ops weft_mr_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = mr_close,
	.bind = mr_bind,
	.control = mr_control,
	.ops_open = weft_ops_open,
	.tostr = weft_tostr,
	.ops_set = weft_no_ops_set,
};

static int regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
		   struct fid_mr **mr)
{
	struct weft_domain_obj *domain = WEFT_OBJ(fid, struct weft_domain_obj);
	struct weft_opened opened = { 0 };
	struct weft_mr_obj *o;
	int rc;

	if (fid->fclass != FI_CLASS_DOMAIN || !attr || !mr || (attr->iov_count && !attr->mr_iov))
		return -FI_EINVAL;
	o = calloc(1, sizeof(*o));
	if (!o)
		return -FI_ENOMEM;
	rc = weftGoMRReg(domain->handle, (struct fi_mr_attr *)attr, flags, &opened);
	if (rc) {
		free(o);
		return rc;
	}
	o->handle = opened.handle;
	o->fid.fid.fclass = FI_CLASS_MR;
	o->fid.fid.context = attr->context;
	o->fid.fid.ops = &weft_mr_fi_ops;
	o->fid.mem_desc = opened.desc;
	o->fid.key = opened.key;
	weft_object_add(&o->link, &o->fid.fid);
	*mr = &o->fid;
	return weftGoMRAnnounce(o->handle, o);
}

static int regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access,
		uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr,
		void *context)
{
	struct fi_mr_attr attr = {
		.mr_iov = iov,
		.iov_count = count,
		.access = access,
		.offset = offset,
		.requested_key = requested_key,
		.context = context,
	};

	return regattr(fid, &attr, flags, mr);
}

static int reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset,
	       uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context)
{
	struct iovec iov = { (void *)buf, len };

	return regv(fid, &iov, 1, access, offset, requested_key, flags, mr, context);
}

WEFT_TRACED(reg); WEFT_TRACED(regv); WEFT_TRACED(regattr);

struct fi_ops_mr weft_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = reg,
	.regv = regv,
	.regattr = regattr,
};
