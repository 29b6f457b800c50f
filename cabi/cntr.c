/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Counters, all but the reads (poll.c).
 */
#include <stdlib.h>

#include "goapi.h"
#include "hotpath.h"
#include "peer.h"

#define CNTR(c) WEFT_OBJ(c, struct weft_cntr_obj)

static int cntr_close(struct fid *fid)
{
	struct weft_cntr_obj *o = CNTR(fid);
	int rc = weftGoClose(o->handle);

	if (rc)
		return rc;
	weft_object_remove(&o->link);
	weft_wait_destroy(&o->wait);
	free(o->import);
	free(o);
	return 0;
}

static int cntr_control(struct fid *fid, int command, void *arg)
{
	return weft_wait_control(&CNTR(fid)->wait, command, arg);
}

struct fi_ops weft_cntr_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = cntr_close,
	.bind = weft_no_bind,
	.control = cntr_control,
	.ops_open = weft_no_ops_open,
	.tostr = weft_tostr,
	.ops_set = weft_no_ops_set,
};

static int cntr_add(struct fid_cntr *c, uint64_t value)
{
	return weftGoCntrAdd(CNTR(c)->handle, value);
}

static int cntr_set(struct fid_cntr *c, uint64_t value)
{
	return weftGoCntrSet(CNTR(c)->handle, value);
}

static int cntr_adderr(struct fid_cntr *c, uint64_t value)
{
	return weftGoCntrAddErr(CNTR(c)->handle, value);
}

static int cntr_seterr(struct fid_cntr *c, uint64_t value)
{
	return weftGoCntrSetErr(CNTR(c)->handle, value);
}

/* Waits without a wait object, by reading. fi_cntr(3) calls that invalid, but
 * programs do it. */
static int cntr_poll(struct fid_cntr *c, uint64_t threshold, int timeout)
{
	struct weft_hot_cntr *hot = CNTR(c)->hot;
	uint64_t errors = atomic_load_explicit(&hot->errors, memory_order_acquire);
	int64_t start = weft_now();

	for (;;) {
		if (weft_cntr_read(c) >= threshold)
			return 0;
		if (atomic_load_explicit(&hot->errors, memory_order_acquire) != errors)
			return -FI_EAVAIL;
		if (timeout >= 0 && !weft_time_left(start, timeout))
			return -FI_ETIMEDOUT;
	}
}

static int cntr_wait(struct fid_cntr *c, uint64_t threshold, int timeout)
{
	if (CNTR(c)->wait.kind == FI_WAIT_NONE)
		return cntr_poll(c, threshold, timeout);
	return weftGoCntrWait(CNTR(c)->handle, threshold, timeout);
}

WEFT_TRACED(cntr_add); WEFT_TRACED(cntr_set); WEFT_TRACED(cntr_wait);

struct weft_ops_cntr weft_ops_cntr = {
	.base = {
		.size = sizeof(struct weft_ops_cntr),
		.read = weft_cntr_read,
		.readerr = weft_cntr_readerr,
		.add = cntr_add,
		.set = cntr_set,
		.wait = cntr_wait,
		.adderr = cntr_adderr,
		.seterr = cntr_seterr,
	},
	.export_xpu = weft_no_export_xpu,
};

int weft_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr,
		   void *context)
{
	struct weft_opened opened = { .fd = -1 };
	struct fi_cntr_attr own;
	struct weft_cntr_obj *o;
	bool peer = attr && attr->flags & FI_PEER;
	uint64_t set = 0;
	int rc;

	if (!cntr)
		return -FI_EINVAL;
	if (peer) { /* the owner does the waiting */
		own = (struct fi_cntr_attr){ .events = attr->events, .flags = attr->flags & ~FI_PEER };
		attr = &own;
	}
	if (attr && attr->wait_obj == FI_WAIT_SET && !(set = weft_wait_set_of(attr->wait_set)))
		return -FI_EINVAL;
	o = calloc(1, sizeof(*o));
	if (!o)
		return -FI_ENOMEM;
	rc = weft_wait_prepare(&o->wait, attr ? attr->wait_obj : FI_WAIT_NONE);
	if (rc)
		goto free_obj;
	rc = weftGoCntrOpen(WEFT_OBJ(domain, struct weft_domain_obj)->handle, attr, set, &o->wait,
			    &opened);
	if (rc)
		goto destroy_wait;
	weft_wait_chosen(&o->wait, &opened);
	o->hot = opened.hot;
	o->handle = opened.handle;
	o->fid.fid.fclass = FI_CLASS_CNTR;
	o->fid.fid.context = context;
	o->fid.fid.ops = &weft_cntr_fi_ops;
	o->fid.ops = &weft_ops_cntr.base;
	if (peer && (rc = weft_peer_cntr_import(o, context))) {
		weftGoClose(o->handle);
		goto destroy_wait;
	}
	weft_object_add(&o->link, &o->fid.fid);
	*cntr = &o->fid;
	return 0;
destroy_wait:
	weft_wait_destroy(&o->wait);
free_obj:
	free(o);
	return rc;
}
