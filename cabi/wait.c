/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Wait sets, poll sets and fi_trywait.
 */
#include <stdlib.h>

#include "goapi.h"

#define WAIT(w) WEFT_OBJ(w, struct weft_wait_obj)
#define POLL(p) WEFT_OBJ(p, struct weft_poll_obj)

/* ---- wait sets ---- */

static int wait_close(struct fid *fid)
{
	struct weft_wait_obj *o = WAIT(fid);
	int rc = weftGoClose(o->handle);

	if (rc)
		return rc;
	weft_object_remove(&o->link);
	weft_wait_destroy(&o->wait);
	free(o);
	return 0;
}

static int wait_control(struct fid *fid, int command, void *arg)
{
	return weft_wait_control(&WAIT(fid)->wait, command, arg);
}

struct fi_ops weft_wait_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = wait_close,
	.bind = weft_no_bind,
	.control = wait_control,
	.ops_open = weft_no_ops_open,
	.tostr = weft_tostr,
	.ops_set = weft_no_ops_set,
};

static int wait_wait(struct fid_wait *set, int timeout)
{
	return weftGoWait(WAIT(set)->handle, timeout);
}

static struct fi_ops_wait wait_ops = { .size = sizeof(struct fi_ops_wait), .wait = wait_wait };

int weft_wait_open(struct fid_fabric *fabric, struct fi_wait_attr *attr, struct fid_wait **waitset)
{
	struct weft_opened opened = { .fd = -1 };
	struct weft_wait_obj *o;
	int rc;

	if (!attr || !waitset)
		return -FI_EINVAL;
	o = calloc(1, sizeof(*o));
	if (!o)
		return -FI_ENOMEM;
	rc = weft_wait_prepare(&o->wait, attr->wait_obj);
	if (rc)
		goto free_obj;
	rc = weftGoWaitOpen(WEFT_OBJ(fabric, struct weft_fabric_obj)->handle, attr, &o->wait,
			    &opened);
	if (rc)
		goto destroy_wait;
	weft_wait_chosen(&o->wait, &opened);
	o->handle = opened.handle;
	o->fid.fid.fclass = FI_CLASS_WAIT;
	o->fid.fid.ops = &weft_wait_fi_ops;
	o->fid.ops = &wait_ops;
	weft_object_add(&o->link, &o->fid.fid);
	*waitset = &o->fid;
	return 0;
destroy_wait:
	weft_wait_destroy(&o->wait);
free_obj:
	free(o);
	return rc;
}

/* 0 when it is safe to sleep on the wait objects of all fids; each of them is
 * armed then. -FI_EAGAIN when one has something to read. */
int weft_trywait(struct fid_fabric *, struct fid **fids, int count)
{
	if (count < 0 || (count && !fids))
		return -FI_EINVAL;
	for (int i = 0; i < count; i++) {
		uint64_t object = weft_handle_of(fids[i]);
		int rc = object ? weftGoTryWait(object) : -FI_EINVAL;

		if (rc)
			return rc;
	}
	return 0;
}

/* ---- poll sets ---- */

static int poll_close(struct fid *fid)
{
	struct weft_poll_obj *o = POLL(fid);

	return weft_close(o->handle, &o->link, o);
}

struct fi_ops weft_poll_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = poll_close,
	.bind = weft_no_bind,
	.control = weft_no_control,
	.ops_open = weft_no_ops_open,
	.tostr = weft_tostr,
	.ops_set = weft_no_ops_set,
};

static int poll_poll(struct fid_poll *pollset, void **context, int count)
{
	if (count < 0 || (count && !context))
		return -FI_EINVAL;
	return weftGoPoll(POLL(pollset)->handle, context, count);
}

static int poll_add(struct fid_poll *pollset, struct fid *event_fid, uint64_t flags)
{
	uint64_t object = weft_handle_of(event_fid);

	if (!object)
		return -FI_EINVAL;
	return flags ? -FI_EBADFLAGS : weftGoPollAdd(POLL(pollset)->handle, object, event_fid->context);
}

static int poll_del(struct fid_poll *pollset, struct fid *event_fid, uint64_t flags)
{
	uint64_t object = weft_handle_of(event_fid);

	if (!object)
		return -FI_EINVAL;
	return flags ? -FI_EBADFLAGS : weftGoPollDel(POLL(pollset)->handle, object);
}

static struct fi_ops_poll poll_ops = {
	.size = sizeof(struct fi_ops_poll),
	.poll = poll_poll,
	.poll_add = poll_add,
	.poll_del = poll_del,
};

int weft_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **pollset)
{
	struct weft_opened opened = { 0 };
	struct weft_poll_obj *o;
	int rc;

	if (!pollset)
		return -FI_EINVAL;
	if (attr && attr->flags)
		return -FI_EBADFLAGS;
	o = calloc(1, sizeof(*o));
	if (!o)
		return -FI_ENOMEM;
	rc = weftGoPollOpen(WEFT_OBJ(domain, struct weft_domain_obj)->handle, &opened);
	if (rc) {
		free(o);
		return rc;
	}
	o->handle = opened.handle;
	o->fid.fid.fclass = FI_CLASS_POLL;
	o->fid.fid.ops = &weft_poll_fi_ops;
	o->fid.ops = &poll_ops;
	weft_object_add(&o->link, &o->fid.fid);
	*pollset = &o->fid;
	return 0;
}
