/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Domains: struct fi_ops_domain. The objects that a domain opens are in their
 * own files.
 */
#include "collective.h"
#include "goapi.h"
#include "rma.h"
#include "work.h"
#include "thread.h"

int weft_domain_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	uint64_t eq = weft_handle_of(bfid);

	if (!eq || bfid->fclass != FI_CLASS_EQ)
		return -FI_EINVAL;
	return weftGoDomainBind(WEFT_OBJ(fid, struct weft_domain_obj)->handle, eq, flags);
}

int weft_domain_control(struct fid *fid, int command, void *arg)
{
	return weft_work_control(WEFT_OBJ(fid, struct weft_domain_obj)->handle, command, arg);
}

int weft_endpoint2(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
		   uint64_t flags, void *context)
{
	return flags ? -FI_EBADFLAGS : weft_endpoint(domain, info, ep, context);
}

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
	o = weft_object_new(FI_CLASS_DOMAIN, context);
	if (!o)
		return -FI_ENOMEM;
	o->fid.ops = &weft_ops_domain.base;
	o->fid.mr = &weft_ops_mr;
	o->fabric = f;
	rc = weft_object_open(o, weftGoDomainOpen(f->handle, info, o, &opened), &opened);
	if (rc)
		return rc;
	*domain = &o->fid;
	return 0;
}
