/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Counters, all but the reads (poll.c).
 */
#include <stdlib.h>

#include "goapi.h"
#include "hotpath.h"
#include "peer.h"

#define CNTR(c) WEFT_OBJ(c, struct weft_cntr_obj)

int weft_cntr_control(struct fid *fid, int command, void *arg)
{
	return weft_wait_control(&CNTR(fid)->wait, command, arg);
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

int weft_cntr_wait(struct fid_cntr *c, uint64_t threshold, int timeout)
{
	if (CNTR(c)->wait.kind == FI_WAIT_NONE)
		return cntr_poll(c, threshold, timeout);
	return weftGoCntrWait(CNTR(c)->handle, threshold, timeout);
}

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
	o = weft_object_new(FI_CLASS_CNTR, context);
	if (!o)
		return -FI_ENOMEM;
	o->fid.ops = &weft_ops_cntr.base;
	rc = weft_wait_prepare(&o->wait, attr ? attr->wait_obj : FI_WAIT_NONE);
	if (!rc)
		rc = weftGoCntrOpen(WEFT_OBJ(domain, struct weft_domain_obj)->handle, attr, set, &o->wait,
				    &opened);
	o->hot = opened.hot;
	if (!rc && peer && (rc = weft_peer_cntr_import(o, context)))
		weftGoClose(opened.handle);
	rc = weft_object_open(o, rc, &opened);
	if (!rc)
		*cntr = &o->fid;
	return rc;
}
