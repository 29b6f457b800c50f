/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Fabrics: fi_fabric and struct fi_ops_fabric.
 */
#include <stdlib.h>

#include "goapi.h"
#include "host.h"
#include "thread.h"

static int fabric_close(struct fid *fid)
{
	struct weft_fabric_obj *o = WEFT_OBJ(fid, struct weft_fabric_obj);

	return weft_close(o->handle, &o->link, o);
}

struct fi_ops weft_fabric_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = fabric_close,
	.bind = weft_no_bind,
	.control = weft_no_control,
	.ops_open = weft_ops_open,
	.tostr = weft_tostr,
	.ops_set = weft_no_ops_set,
};

static int domain2(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
		   uint64_t flags, void *context)
{
	return flags ? -FI_EBADFLAGS : weft_domain_open(fabric, info, domain, context);
}

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = weft_domain_open,
	.passive_ep = weft_passive_ep,
	.eq_open = weft_eq_open,
	.wait_open = weft_wait_open,
	.trywait = weft_trywait,
	.domain2 = domain2,
};

int weft_fabric_for(struct weft_host *host, struct fi_fabric_attr *attr,
		    struct fid_fabric **fabric, void *context)
{
	struct weft_opened opened = { 0 };
	struct weft_fabric_obj *o;
	int rc;

	if (weft_forked())
		return weft_fork_refusal();
	if (!attr || !fabric)
		return -FI_EINVAL;
	rc = weft_attach(host);
	if (!rc)
		rc = weft_spares_need("fi_fabric");
	if (rc)
		return rc;
	o = calloc(1, sizeof(*o));
	if (!o)
		return -FI_ENOMEM;
	rc = weftGoFabricOpen(attr, o, &opened);
	if (rc) {
		free(o);
		return rc;
	}
	o->handle = opened.handle;
	o->host = host;
	o->fid.fid.fclass = FI_CLASS_FABRIC;
	o->fid.fid.context = context;
	o->fid.fid.ops = &weft_fabric_fi_ops;
	o->fid.ops = &fabric_ops;
	o->fid.api_version = attr->api_version;
	weft_object_add(&o->link, &o->fid.fid);
	*fabric = &o->fid;
	return 0;
}
