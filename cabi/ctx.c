/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Shared receive and transmit contexts.
 */
#include <stdlib.h>

#include "goapi.h"
#include "hotpath.h"
#include "peer.h"

/* ---- shared receive contexts: endpoints that only receive ---- */

static int srx_close(struct fid *fid)
{
	struct weft_ep_obj *o = WEFT_OBJ(fid, struct weft_ep_obj);
	struct weft_peer_srx *imported = o->imported;
	int rc = weft_close(o->handle, &o->link, o);

	if (!rc && imported)
		weft_peer_srx_closed(imported);
	return rc;
}

static int srx_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	uint64_t other = weft_handle_of(bfid);

	return other ? weftGoEPBind(WEFT_OBJ(fid, struct weft_ep_obj)->handle, other, flags) :
		       -FI_EINVAL;
}

static int srx_control(struct fid *fid, int command, void *)
{
	(void)fid;
	return command == FI_ENABLE ? 0 : -FI_ENOSYS; /* usable as soon as it is open */
}

struct fi_ops weft_srx_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = srx_close,
	.bind = srx_bind,
	.control = srx_control,
	.ops_open = weft_no_ops_open,
	.tostr = weft_tostr,
	.ops_set = weft_no_ops_set,
};

struct weft_ops_ep weft_rx_ops = {
	.base = {
		.size = sizeof(struct weft_ops_ep),
		.cancel = weft_ep_cancel,
		.getopt = weft_ep_getopt,
		.setopt = weft_ep_setopt,
		.tx_ctx = weft_no_tx_ctx,
		.rx_ctx = weft_no_rx_ctx,
		.rx_size_left = weft_rx_size_left,
		.tx_size_left = weft_no_size_left,
	},
	.export_xpu = weft_no_export_xpu,
};

struct fi_ops_msg weft_recv_msg;        /* the receives of weft_ops_msg, the rest refuses */
struct fi_ops_tagged weft_recv_tagged;
static pthread_once_t recv_once = PTHREAD_ONCE_INIT;

static void recv_make(void)
{
	weft_recv_msg = weft_nosys_msg;
	weft_recv_msg.recv = weft_ops_msg.recv;
	weft_recv_msg.recvv = weft_ops_msg.recvv;
	weft_recv_msg.recvmsg = weft_ops_msg.recvmsg;
	weft_recv_tagged = weft_nosys_tagged;
	weft_recv_tagged.recv = weft_ops_tagged.recv;
	weft_recv_tagged.recvv = weft_ops_tagged.recvv;
	weft_recv_tagged.recvmsg = weft_ops_tagged.recvmsg;
}

void weft_recv_tables(void) { pthread_once(&recv_once, recv_make); }

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
	weft_recv_tables();
	o = calloc(1, sizeof(*o));
	if (!o)
		return -FI_ENOMEM;
	rc = weftGoSRxOpen(WEFT_OBJ(domain, struct weft_domain_obj)->handle, attr, &opened);
	if (rc) {
		free(o);
		return rc;
	}
	o->handle = opened.handle;
	o->rx = opened.rx;
	o->rx_op_flags = opened.rx_op_flags;
	o->fid = (struct fid_ep){
		.fid = { .fclass = FI_CLASS_SRX_CTX, .context = context, .ops = &weft_srx_fi_ops },
		.ops = &weft_rx_ops.base,
		.cm = &weft_nosys_cm,
		.msg = &weft_recv_msg,
		.rma = &weft_nosys_rma,
		.tagged = &weft_recv_tagged,
		.atomic = &weft_nosys_atomic,
		.collective = &weft_nosys_collective,
	};
	if (opened.caps & FI_HMEM) {
		weft_hmem_tables();
		o->fid.msg = &weft_hmem_recv_msg;
		o->fid.tagged = &weft_hmem_recv_tagged;
	}
	weft_object_add(&o->link, &o->fid.fid);
	*ep = &o->fid;
	return 0;
}

/* ---- shared transmit contexts: only something to bind endpoints to ---- */

static int stx_close(struct fid *fid)
{
	struct weft_stx_obj *o = WEFT_OBJ(fid, struct weft_stx_obj);

	return weft_close(o->handle, &o->link, o);
}

struct fi_ops weft_stx_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = stx_close,
	.bind = weft_no_bind,
	.control = weft_no_control,
	.ops_open = weft_no_ops_open,
	.tostr = weft_tostr,
	.ops_set = weft_no_ops_set,
};

static ssize_t no_cancel(fid_t, void *) { return -FI_ENOSYS; }
static int no_getopt(fid_t, int, int, void *, size_t *) { return -FI_ENOSYS; }
static int no_setopt(fid_t, int, int, const void *, size_t) { return -FI_ENOSYS; }

static struct weft_ops_ep stx_ops = {
	.base = {
		.size = sizeof(struct weft_ops_ep),
		.cancel = no_cancel,
		.getopt = no_getopt,
		.setopt = no_setopt,
		.tx_ctx = weft_no_tx_ctx,
		.rx_ctx = weft_no_rx_ctx,
		.rx_size_left = weft_no_size_left,
		.tx_size_left = weft_no_size_left,
	},
	.export_xpu = weft_no_export_xpu,
};

int weft_stx_open(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx,
		  void *context)
{
	struct weft_opened opened = { 0 };
	struct weft_stx_obj *o;
	int rc;

	if (!stx)
		return -FI_EINVAL;
	o = calloc(1, sizeof(*o));
	if (!o)
		return -FI_ENOMEM;
	rc = weftGoSTxOpen(WEFT_OBJ(domain, struct weft_domain_obj)->handle, attr, &opened);
	if (rc) {
		free(o);
		return rc;
	}
	o->handle = opened.handle;
	o->fid.fid.fclass = FI_CLASS_STX_CTX;
	o->fid.fid.context = context;
	o->fid.fid.ops = &weft_stx_fi_ops;
	o->fid.ops = &stx_ops.base;
	weft_object_add(&o->link, &o->fid.fid);
	*stx = &o->fid;
	return 0;
}
