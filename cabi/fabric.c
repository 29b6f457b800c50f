/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Fabrics: fi_fabric and struct fi_ops_fabric.
 */
#include <stdlib.h>

#include "goapi.h"
#include "host.h"
#include "thread.h"

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
	o = weft_object_new(FI_CLASS_FABRIC, context);
	if (!o)
		return -FI_ENOMEM;
	o->host = host;
	o->fid.api_version = attr->api_version;
	rc = weft_object_open(o, weftGoFabricOpen(attr, o, &opened), &opened);
	if (rc)
		return rc;
	*fabric = &o->fid;
	return 0;
}
