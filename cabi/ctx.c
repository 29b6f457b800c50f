/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Shared receive and transmit contexts. Scalable endpoints are not offered.
 */
#include <stdlib.h>

#include "goapi.h"
#include "hotpath.h"

int weft_scalable_ep(struct fid_domain *, struct fi_info *, struct fid_ep **, void *)
{
	return -FI_ENOSYS;
}

/* ---- shared receive contexts: endpoints that only receive ---- */

static int srx_close(struct fid *fid)
{
	struct weft_ep_obj *o = WEFT_OBJ(fid, struct weft_ep_obj);

	return weft_close(o->handle, &o->link, o);
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

static struct fi_ops_ep srx_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = weft_ep_cancel,
	.getopt = weft_ep_getopt,
	.setopt = weft_ep_setopt,
	.tx_ctx = weft_no_tx_ctx,
	.rx_ctx = weft_no_rx_ctx,
	.rx_size_left = weft_rx_size_left,
	.tx_size_left = weft_no_size_left,
};

static struct fi_ops_msg srx_msg;       /* the receives of weft_ops_msg, the rest refuses */
static struct fi_ops_tagged srx_tagged;
static pthread_once_t srx_once = PTHREAD_ONCE_INIT;

static void srx_make(void)
{
	srx_msg = weft_nosys_msg;
	srx_msg.recv = weft_ops_msg.recv;
	srx_msg.recvv = weft_ops_msg.recvv;
	srx_msg.recvmsg = weft_ops_msg.recvmsg;
	srx_tagged = weft_nosys_tagged;
	srx_tagged.recv = weft_ops_tagged.recv;
	srx_tagged.recvv = weft_ops_tagged.recvv;
	srx_tagged.recvmsg = weft_ops_tagged.recvmsg;
}

int weft_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **ep,
		  void *context)
{
	struct weft_opened opened = { 0 };
	struct weft_ep_obj *o;
	int rc;

	if (!ep)
		return -FI_EINVAL;
	pthread_once(&srx_once, srx_make);
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
		.ops = &srx_ops,
		.cm = &weft_nosys_cm,
		.msg = &srx_msg,
		.rma = &weft_nosys_rma,
		.tagged = &srx_tagged,
		.atomic = &weft_nosys_atomic,
		.collective = &weft_nosys_collective,
	};
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

static struct fi_ops_ep stx_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = no_cancel,
	.getopt = no_getopt,
	.setopt = no_setopt,
	.tx_ctx = weft_no_tx_ctx,
	.rx_ctx = weft_no_rx_ctx,
	.rx_size_left = weft_no_size_left,
	.tx_size_left = weft_no_size_left,
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
	o->fid.ops = &stx_ops;
	weft_object_add(&o->link, &o->fid.fid);
	*stx = &o->fid;
	return 0;
}
