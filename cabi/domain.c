/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Domains: struct fi_ops_domain. The objects that a domain opens are in their
 * own files.
 */
#include <stdlib.h>

#include "collective.h"
#include "goapi.h"
#include "rma.h"
#include "work.h"
#include "thread.h"

static int domain_close(struct fid *fid)
{
	struct weft_domain_obj *o = WEFT_OBJ(fid, struct weft_domain_obj);

	return weft_close(o->handle, &o->link, o);
}

static int domain_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	uint64_t eq = weft_handle_of(bfid);

	if (!eq || bfid->fclass != FI_CLASS_EQ)
		return -FI_EINVAL;
	return weftGoDomainBind(WEFT_OBJ(fid, struct weft_domain_obj)->handle, eq, flags);
}

static int domain_control(struct fid *fid, int command, void *arg)
{
	return weft_work_control(WEFT_OBJ(fid, struct weft_domain_obj)->handle, command, arg);
}

struct fi_ops weft_domain_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = domain_close,
	.bind = domain_bind,
	.control = domain_control,
	.ops_open = weft_ops_open,
	.tostr = weft_tostr,
	.ops_set = weft_no_ops_set,
};

static int endpoint2(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
		     uint64_t flags, void *context)
{
	return flags ? -FI_EBADFLAGS : weft_endpoint(domain, info, ep, context);
}

static struct weft_ops_domain domain_ops = {
	.base = {
		.size = sizeof(struct weft_ops_domain),
		.av_open = weft_av_open,
		.cq_open = weft_cq_open,
		.endpoint = weft_endpoint,
		.scalable_ep = weft_scalable_ep,
		.cntr_open = weft_cntr_open,
		.poll_open = weft_poll_open,
		.stx_ctx = weft_stx_open,
		.srx_ctx = weft_srx_open,
		.query_atomic = weft_query_atomic,
		.query_collective = weft_query_collective,
		.endpoint2 = endpoint2,
	},
	.xpu_ctx = weft_no_xpu_ctx,
};

int weft_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
		     void *context)
{
	struct weft_fabric_obj *f = WEFT_OBJ(fabric, struct weft_fabric_obj);
	struct weft_opened opened = { 0 };
	struct weft_domain_obj *o;
	int rc;

	if (!info || !domain)
		return -FI_EINVAL;
	rc = weft_spares_need("fi_domain");
	if (rc)
		return rc;
	o = calloc(1, sizeof(*o));
	if (!o)
		return -FI_ENOMEM;
	rc = weftGoDomainOpen(f->handle, info, o, &opened);
	if (rc) {
		free(o);
		return rc;
	}
	o->handle = opened.handle;
	o->fid.fid.fclass = FI_CLASS_DOMAIN;
	o->fid.fid.context = context;
	o->fid.fid.ops = &weft_domain_fi_ops;
	o->fid.ops = &domain_ops.base;
	o->fid.mr = &weft_mr_ops;
	o->fabric = f;
	weft_object_add(&o->link, &o->fid.fid);
	*domain = &o->fid;
	return 0;
}
