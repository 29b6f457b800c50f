/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Endpoints of all kinds and their aliases: struct fi_ops_ep and fi_ops_cm. Transfers are
 * in posts_gen.c.
 */
#include <stdlib.h>

#include "connected.h"
#include "goapi.h"
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

/* The flags of the side that is named, FI_TRANSMIT or FI_RECV; NULL: it is not one of them. */
static uint64_t *op_flags(struct weft_ep_obj *o, uint64_t flags)
{
	switch (flags & (FI_TRANSMIT | FI_RECV)) {
	case FI_TRANSMIT:
		return &o->tx_op_flags;
	case FI_RECV:
		return &o->rx_op_flags;
	default:
		return NULL;
	}
}

/* flags names the side; the rest is for SETOPSFLAG. With FI_TRIGGER, which no endpoint begins with,
 * the calls without flags are triggered. */
static int set_op_flags(struct weft_ep_obj *o, uint64_t flags)
{
	uint64_t *of = op_flags(o, flags);
	uint64_t known = FI_TRIGGER | (of == &o->tx_op_flags ? WEFT_TX_OP_FLAGS : WEFT_RX_OP_FLAGS);

	flags &= ~(FI_TRANSMIT | FI_RECV);
	if (!of || flags & ~known)
		return of ? -FI_EBADFLAGS : -FI_EINVAL;
	*of = flags;
	return 0;
}

static int get_op_flags(struct weft_ep_obj *o, uint64_t *flags)
{
	uint64_t *of = flags ? op_flags(o, *flags) : NULL;

	if (!of)
		return -FI_EINVAL;
	*flags = *of;
	return 0;
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

/* ---- opening: what endpoints and contexts of all kinds have in common ---- */

void weft_ep_opened(struct weft_ep_obj *o, const struct weft_opened *opened)
{
	o->hot = opened->hot;
	o->rx = opened->rx;
	o->tx_op_flags = opened->tx_op_flags;
	o->rx_op_flags = opened->rx_op_flags;
	for (const struct weft_posts *p = weft_posts; p < weft_posts + weft_posts_count; p++)
		if (p->class == o->fid.fid.fclass && (p->type == FI_EP_UNSPEC || p->type == opened->ep_type) &&
		    !(p->caps & ~opened->caps))
			*(const void **)((char *)&o->fid + p->at) = p->table;
}
