/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Scalable endpoints, and their transmit and receive contexts, which are
 * endpoints that only send or only receive.
 */
#include <stdlib.h>

#include "goapi.h"
#include "hotpath.h"
#include "rma.h"
#include "thread.h"

static ssize_t no_cancel(fid_t, void *) { return -FI_ENOSYS; }
static int no_getopt(fid_t, int, int, void *, size_t *) { return -FI_ENOPROTOOPT; }
static int no_setopt(fid_t, int, int, const void *, size_t) { return -FI_ENOPROTOOPT; }

static struct weft_ops_ep tx_ops = {
	.base = {
		.size = sizeof(struct weft_ops_ep),
		.cancel = weft_ep_cancel,
		.getopt = no_getopt,
		.setopt = no_setopt,
		.tx_ctx = weft_no_tx_ctx,
		.rx_ctx = weft_no_rx_ctx,
		.rx_size_left = weft_no_size_left,
		.tx_size_left = weft_no_size_left,
	},
	.export_xpu = weft_no_export_xpu,
};

static struct fi_ops_cm sep_cm, ctx_cm; /* weft_nosys_cm with names; contexts have their endpoint's */
static struct fi_ops_msg send_msg;      /* the transmits of weft_ops_msg, the rest refuses */
static struct fi_ops_tagged send_tagged;
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void tables_make(void)
{
	sep_cm = weft_nosys_cm;
	sep_cm.setname = weft_cm_setname;
	sep_cm.getname = weft_cm_getname;
	ctx_cm = weft_nosys_cm;
	ctx_cm.getname = weft_cm_getname;
	send_msg = weft_ops_msg;
	send_msg.recv = weft_nosys_msg.recv;
	send_msg.recvv = weft_nosys_msg.recvv;
	send_msg.recvmsg = weft_nosys_msg.recvmsg;
	send_tagged = weft_ops_tagged;
	send_tagged.recv = weft_nosys_tagged.recv;
	send_tagged.recvv = weft_nosys_tagged.recvv;
	send_tagged.recvmsg = weft_nosys_tagged.recvmsg;
	weft_recv_tables();
}

/* A new object whose transfers all refuse, not yet in the list of all objects. */
static struct weft_ep_obj *new_object(size_t class, void *context)
{
	struct weft_ep_obj *o = calloc(1, sizeof(*o));

	pthread_once(&tables_once, tables_make);
	if (!o)
		return NULL;
	o->fid = (struct fid_ep){
		.fid = { .fclass = class, .context = context, .ops = &weft_ep_fi_ops },
		.cm = &ctx_cm,
		.msg = &weft_nosys_msg,
		.rma = &weft_nosys_rma,
		.tagged = &weft_nosys_tagged,
		.atomic = &weft_nosys_atomic,
		.collective = &weft_nosys_collective,
	};
	return o;
}

static void take_over(struct weft_ep_obj *o, const struct weft_opened *opened)
{
	o->handle = opened->handle;
	o->hot = opened->hot;
	o->tx_op_flags = opened->tx_op_flags;
	o->rx_op_flags = opened->rx_op_flags;
	weft_object_add(&o->link, &o->fid.fid);
}

/* Contexts of endpoints for device memory. */
static void hmem_transmits(struct weft_ep_obj *o, uint64_t caps)
{
	weft_hmem_tables();
	if (caps & FI_MSG)
		o->fid.msg = &weft_hmem_send_msg;
	if (caps & FI_TAGGED)
		o->fid.tagged = &weft_hmem_send_tagged;
	if (caps & FI_RMA)
		o->fid.rma = &weft_hmem_rma;
	if (caps & FI_ATOMIC)
		o->fid.atomic = &weft_hmem_atomic;
}

static void hmem_receives(struct weft_ep_obj *o, uint64_t caps)
{
	weft_hmem_tables();
	if (caps & FI_MSG)
		o->fid.msg = &weft_hmem_recv_msg;
	if (caps & FI_TAGGED)
		o->fid.tagged = &weft_hmem_recv_tagged;
}

static int tx_context(struct fid_ep *sep, int index, struct fi_tx_attr *attr, struct fid_ep **ep,
		      void *context)
{
	struct weft_opened opened = { 0 };
	struct weft_ep_obj *o;
	int rc;

	if (!ep)
		return -FI_EINVAL;
	o = new_object(FI_CLASS_TX_CTX, context);
	if (!o)
		return -FI_ENOMEM;
	rc = weftGoTxCtxOpen(WEFT_OBJ(sep, struct weft_ep_obj)->handle, index, attr, &opened);
	if (rc) {
		free(o);
		return rc;
	}
	o->fid.ops = &tx_ops.base;
	if (opened.caps & FI_MSG)
		o->fid.msg = &send_msg;
	if (opened.caps & FI_TAGGED)
		o->fid.tagged = &send_tagged;
	if (opened.caps & FI_RMA)
		o->fid.rma = &weft_ops_rma;
	if (opened.caps & FI_ATOMIC)
		o->fid.atomic = &weft_ops_atomic;
	if (opened.caps & FI_HMEM)
		hmem_transmits(o, opened.caps);
	take_over(o, &opened);
	*ep = &o->fid;
	return 0;
}

static int rx_context(struct fid_ep *sep, int index, struct fi_rx_attr *attr, struct fid_ep **ep,
		      void *context)
{
	struct weft_opened opened = { 0 };
	struct weft_ep_obj *o;
	int rc;

	if (!ep)
		return -FI_EINVAL;
	o = new_object(FI_CLASS_RX_CTX, context);
	if (!o)
		return -FI_ENOMEM;
	rc = weftGoRxCtxOpen(WEFT_OBJ(sep, struct weft_ep_obj)->handle, index, attr, &opened);
	if (rc) {
		free(o);
		return rc;
	}
	o->fid.ops = &weft_rx_ops.base;
	if (opened.caps & FI_MSG)
		o->fid.msg = &weft_recv_msg;
	if (opened.caps & FI_TAGGED)
		o->fid.tagged = &weft_recv_tagged;
	if (opened.caps & FI_HMEM)
		hmem_receives(o, opened.caps);
	take_over(o, &opened);
	*ep = &o->fid;
	return 0;
}

static struct weft_ops_ep sep_ops = {
	.base = {
		.size = sizeof(struct weft_ops_ep),
		.cancel = no_cancel,
		.getopt = no_getopt,
		.setopt = no_setopt,
		.tx_ctx = tx_context,
		.rx_ctx = rx_context,
		.rx_size_left = weft_no_size_left,
		.tx_size_left = weft_no_size_left,
	},
	.export_xpu = weft_no_export_xpu,
};

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
	o = new_object(FI_CLASS_SEP, context);
	if (!o)
		return -FI_ENOMEM;
	rc = weftGoSEPOpen(WEFT_OBJ(domain, struct weft_domain_obj)->handle, info, &opened);
	if (rc) {
		free(o);
		return rc;
	}
	o->fid.ops = &sep_ops.base;
	o->fid.cm = &sep_cm;
	take_over(o, &opened);
	*ep = &o->fid;
	return 0;
}
