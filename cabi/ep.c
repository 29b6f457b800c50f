/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Endpoints of all kinds and their aliases: struct fi_ops_ep and fi_ops_cm. Transfers are
 * in post.c.
 */
#include <stdlib.h>

#include "collective.h"
#include "connected.h"
#include "goapi.h"
#include "rma.h"
#include "hotpath.h"
#include "thread.h"

#define EP(f) WEFT_OBJ(f, struct weft_ep_obj)

/* ---- aliases: fid structures of their own in front of the same endpoint ---- */

static void alias_free(struct weft_ep_obj *o)
{
	struct weft_ep_obj **at;

	weft_object_remove(&o->link);
	weft_objects_lock();
	for (at = &o->origin->aliases; *at != o; at = &(*at)->aliases)
		;
	*at = o->aliases;
	weft_objects_unlock();
	free(o);
}

/* flags names the side, FI_TRANSMIT or FI_RECV; the rest is for SETOPSFLAG. With
 * FI_TRIGGER, which no endpoint begins with, the calls without flags are triggered. */
static int set_op_flags(struct weft_ep_obj *o, uint64_t flags)
{
	uint64_t side = flags & (FI_TRANSMIT | FI_RECV);

	flags &= ~side;
	if (side == FI_TRANSMIT && !(flags & ~(WEFT_TX_OP_FLAGS | FI_TRIGGER)))
		o->tx_op_flags = flags;
	else if (side == FI_RECV && !(flags & ~(WEFT_RX_OP_FLAGS | FI_TRIGGER)))
		o->rx_op_flags = flags;
	else
		return side == FI_TRANSMIT || side == FI_RECV ? -FI_EBADFLAGS : -FI_EINVAL;
	return 0;
}

static int get_op_flags(const struct weft_ep_obj *o, uint64_t *flags)
{
	if (!flags)
		return -FI_EINVAL;
	switch (*flags & (FI_TRANSMIT | FI_RECV)) {
	case FI_TRANSMIT:
		*flags = o->tx_op_flags;
		return 0;
	case FI_RECV:
		*flags = o->rx_op_flags;
		return 0;
	default:
		return -FI_EINVAL;
	}
}

static int alias_open(struct weft_ep_obj *o, struct fi_alias *arg)
{
	struct weft_ep_obj *origin = o->origin ? o->origin : o;
	struct weft_ep_obj *a;
	int rc;

	if (!arg || !arg->fid)
		return -FI_EINVAL;
	a = calloc(1, sizeof(*a));
	if (!a)
		return -FI_ENOMEM;
	*a = *o;
	a->origin = origin;
	rc = arg->flags ? set_op_flags(a, arg->flags) : 0;
	if (rc) {
		free(a);
		return rc;
	}
	weft_objects_lock();
	a->aliases = origin->aliases;
	origin->aliases = a;
	weft_objects_unlock();
	weft_object_add(&a->link, &a->fid.fid);
	*arg->fid = &a->fid.fid;
	return 0;
}

/* ---- struct fi_ops ---- */

int weft_ep_close(struct fid *fid)
{
	struct weft_ep_obj *o = EP(fid);

	if (o->origin) {
		alias_free(o);
		return 0;
	}
	if (o->aliases)
		return -FI_EBUSY;
	return weft_object_close(fid);
}

/* Enters what an enabled endpoint has, in it and its aliases. */
static void enabled(struct weft_ep_obj *origin, const struct weft_opened *opened)
{
	weft_objects_lock();
	for (struct weft_ep_obj *o = origin; o; o = o->aliases) {
		o->hot = opened->hot;
		o->rx = opened->rx;
		o->deaf = opened->deaf;
	}
	weft_objects_unlock();
}

int weft_ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct weft_ep_obj *origin = EP(fid)->origin ? EP(fid)->origin : EP(fid);
	uint64_t other = weft_handle_of(bfid);
	struct weft_opened opened = { 0 };
	int rc = other ? weftGoEPBind(origin->handle, other, flags) : -FI_EINVAL;

	if (rc || !origin->deaf)
		return rc;
	/* it may have been a counter of receives, which the endpoint had nothing for */
	rc = weftGoEPEnabled(origin->handle, &opened);
	if (!rc)
		enabled(origin, &opened);
	return rc;
}

static int ep_enable(struct weft_ep_obj *o)
{
	struct weft_ep_obj *origin = o->origin ? o->origin : o;
	struct weft_opened opened = { .hot = origin->hot, .rx = origin->rx };
	int rc = weft_spares_need("fi_enable");

	if (!rc)
		rc = weftGoEPEnable(origin->handle, &opened);
	if (!rc)
		enabled(origin, &opened);
	return rc;
}

/* What transfers need is in the structure of a connected endpoint once it is enabled. */
int weft_ep_ready(struct fid_ep *ep)
{
	return EP(ep)->rx || EP(ep)->deaf ? 0 : ep_enable(EP(ep));
}

int weft_ep_control(struct fid *fid, int command, void *arg)
{
	switch (command) {
	case FI_ENABLE:
		return ep_enable(EP(fid));
	case FI_ALIAS:
		return alias_open(EP(fid), arg);
	case FI_GETOPSFLAG:
		return get_op_flags(EP(fid), arg);
	case FI_SETOPSFLAG:
		return arg ? set_op_flags(EP(fid), *(uint64_t *)arg) : -FI_EINVAL;
	default:
		return -FI_ENOSYS; /* FI_BACKLOG is for passive endpoints */
	}
}

int weft_srx_control(struct fid *, int command, void *)
{
	return command == FI_ENABLE ? 0 : -FI_ENOSYS; /* usable as soon as it is open */
}

/* ---- struct fi_ops_ep ---- */

/* The slots that are free in the ring of posted receives, a lower bound. */
ssize_t weft_rx_size_left(struct fid_ep *ep)
{
	const struct weft_hot_rx *rx = EP(ep)->rx;
	uint64_t used;

	if (!rx)
		return EP(ep)->deaf ? -FI_ENOCQ : -FI_EOPBADSTATE;
	used = atomic_load_explicit(rx->posts.tail, memory_order_relaxed) -
	       atomic_load_explicit(&rx->posts_head, memory_order_relaxed);
	return used < 1ull << rx->posts.log2_slots ? (1ull << rx->posts.log2_slots) - used : 0;
}

/* ---- opening: what endpoints and contexts of all kinds have in common ---- */

/* The tables of posting functions of a kind; NULL: none. */
static const struct posts {
	struct fi_ops_msg *msg;
	struct fi_ops_tagged *tagged;
	struct fi_ops_rma *rma;
	struct fi_ops_atomic *atomic;
} plain[] = {
	[FI_CLASS_EP] = { &weft_ops_msg, &weft_ops_tagged, &weft_ops_rma, &weft_ops_atomic },
	[FI_CLASS_TX_CTX] = { &weft_send_msg, &weft_send_tagged, &weft_ops_rma, &weft_ops_atomic },
	[FI_CLASS_RX_CTX] = { .msg = &weft_recv_msg, .tagged = &weft_recv_tagged },
	[FI_CLASS_SRX_CTX] = { .msg = &weft_recv_msg, .tagged = &weft_recv_tagged },
}, of_devices[] = {
	[FI_CLASS_EP] = { &weft_hmem_msg, &weft_hmem_tagged, &weft_hmem_rma, &weft_hmem_atomic },
	[FI_CLASS_TX_CTX] = { &weft_hmem_send_msg, &weft_hmem_send_tagged, &weft_hmem_rma, &weft_hmem_atomic },
	[FI_CLASS_RX_CTX] = { .msg = &weft_hmem_recv_msg, .tagged = &weft_hmem_recv_tagged },
	[FI_CLASS_SRX_CTX] = { .msg = &weft_hmem_recv_msg, .tagged = &weft_hmem_recv_tagged },
}, connected = { &weft_connected_msg, &weft_connected_tagged, &weft_connected_rma, &weft_connected_atomic };

static void posts_by(struct fid_ep *ep, uint64_t caps, const struct posts *posts)
{
	if (caps & FI_MSG && posts->msg)
		ep->msg = posts->msg;
	if (caps & FI_TAGGED && posts->tagged)
		ep->tagged = posts->tagged;
	if (caps & FI_RMA && posts->rma)
		ep->rma = posts->rma;
	if (caps & FI_ATOMIC && posts->atomic)
		ep->atomic = posts->atomic;
}

void weft_ep_opened(struct weft_ep_obj *o, const struct weft_opened *opened)
{
	const struct posts *posts = opened->caps & FI_HMEM ? of_devices : plain;

	o->hot = opened->hot;
	o->rx = opened->rx;
	o->tx_op_flags = opened->tx_op_flags;
	o->rx_op_flags = opened->rx_op_flags;
	posts_by(&o->fid, opened->caps, &posts[o->fid.fid.fclass]);
	if (opened->ep_type == FI_EP_DGRAM && opened->caps & FI_MSG)
		o->fid.msg = &weft_dgram_msg;
	if (opened->ep_type == FI_EP_MSG) {
		o->fid.cm = &weft_connected_cm;
		posts_by(&o->fid, opened->caps, &connected);
	}
	if (o->fid.fid.fclass == FI_CLASS_EP && opened->caps & FI_COLLECTIVE)
		o->fid.collective = &weft_ops_collective;
}
