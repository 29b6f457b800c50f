/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Scalable endpoints, and their transmit and receive contexts, which are
 * endpoints that only send or only receive.
 */
#include "goapi.h"
#include "hotpath.h"
#include "thread.h"

int weft_tx_context(struct fid_ep *sep, int index, struct fi_tx_attr *attr, struct fid_ep **ep,
		    void *context)
{
	struct weft_opened opened = { 0 };
	struct weft_ep_obj *o;
	int rc;

	if (!ep)
		return -FI_EINVAL;
	o = weft_ep_object(FI_CLASS_TX_CTX, context);
	if (!o)
		return -FI_ENOMEM;
	o->fid.ops = &weft_tx_ops.base;
	o->fid.cm = &weft_ctx_cm;
	rc = weft_ep_open(o, weftGoTxCtxOpen(WEFT_OBJ(sep, struct weft_ep_obj)->handle, index, attr, &opened),
			  &opened, WEFT_EP_SENDS);
	if (!rc)
		*ep = &o->fid;
	return rc;
}

int weft_rx_context(struct fid_ep *sep, int index, struct fi_rx_attr *attr, struct fid_ep **ep,
		    void *context)
{
	struct weft_opened opened = { 0 };
	struct weft_ep_obj *o;
	int rc;

	if (!ep)
		return -FI_EINVAL;
	o = weft_ep_object(FI_CLASS_RX_CTX, context);
	if (!o)
		return -FI_ENOMEM;
	o->fid.ops = &weft_rx_ops.base;
	o->fid.cm = &weft_ctx_cm;
	rc = weft_ep_open(o, weftGoRxCtxOpen(WEFT_OBJ(sep, struct weft_ep_obj)->handle, index, attr, &opened),
			  &opened, WEFT_EP_RECEIVES);
	if (!rc)
		*ep = &o->fid;
	return rc;
}

int weft_scalable_ep(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
		     void *context)
{
	struct weft_opened opened = { 0 };
	struct weft_ep_obj *o;
	int rc;

	if (!info || !ep)
		return -FI_EINVAL;
	rc = weft_spares_need("fi_scalable_ep");
	if (rc)
		return rc;
	o = weft_ep_object(FI_CLASS_SEP, context);
	if (!o)
		return -FI_ENOMEM;
	o->fid.ops = &weft_sep_ops.base;
	o->fid.cm = &weft_sep_cm;
	rc = weft_ep_open(o, weftGoSEPOpen(WEFT_OBJ(domain, struct weft_domain_obj)->handle, info, &opened),
			  &opened, WEFT_EP_NEITHER);
	if (!rc)
		*ep = &o->fid;
	return rc;
}
