/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Shared receive and transmit contexts.
 */
#include "goapi.h"
#include "hotpath.h"
#include "peer.h"

/* ---- shared receive contexts: endpoints that only receive ---- */

int weft_srx_close(struct fid *fid)
{
	struct weft_ep_obj *o = WEFT_OBJ(fid, struct weft_ep_obj);
	struct weft_peer_srx *imported = o->imported;
	int rc = weft_object_close(fid);

	if (!rc && imported)
		weft_peer_srx_closed(imported);
	return rc;
}

int weft_srx_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	uint64_t other = weft_handle_of(bfid);

	return other ? weftGoEPBind(WEFT_OBJ(fid, struct weft_ep_obj)->handle, other, flags) :
		       -FI_EINVAL;
}

int weft_srx_control(struct fid *fid, int command, void *)
{
	(void)fid;
	return command == FI_ENABLE ? 0 : -FI_ENOSYS; /* usable as soon as it is open */
}

int weft_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **ep,
		  void *context)
{
	struct weft_opened opened = { 0 };
	struct weft_ep_obj *o;
	int rc;

	if (!ep)
		return -FI_EINVAL;
	if (attr && attr->op_flags & FI_PEER)
		return weft_peer_srx_open(domain, attr, ep, context);
	o = weft_ep_object(FI_CLASS_SRX_CTX, context);
	if (!o)
		return -FI_ENOMEM;
	o->fid.ops = &weft_rx_ops.base;
	rc = weftGoSRxOpen(WEFT_OBJ(domain, struct weft_domain_obj)->handle, attr, &opened);
	opened.caps |= FI_MSG | FI_TAGGED;
	rc = weft_ep_open(o, rc, &opened, WEFT_EP_RECEIVES);
	if (!rc)
		*ep = &o->fid;
	return rc;
}

/* ---- shared transmit contexts: only something to bind endpoints to ---- */

int weft_stx_open(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx,
		  void *context)
{
	struct weft_opened opened = { 0 };
	struct weft_stx_obj *o;
	int rc;

	if (!stx)
		return -FI_EINVAL;
	o = weft_object_new(FI_CLASS_STX_CTX, context);
	if (!o)
		return -FI_ENOMEM;
	o->fid.ops = &weft_stx_ops.base;
	rc = weft_object_open(o, weftGoSTxOpen(WEFT_OBJ(domain, struct weft_domain_obj)->handle, attr, &opened),
			      &opened);
	if (!rc)
		*stx = &o->fid;
	return rc;
}
