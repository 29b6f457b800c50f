/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Connections: passive endpoints, connection requests, and struct fi_ops_cm of
 * connected endpoints (FI_EP_MSG).
 */
#include <stdlib.h>

#include "connected.h"
#include "goapi.h"
#include "thread.h"

#define PEP(f) WEFT_OBJ(f, struct weft_pep_obj)
#define EP(f) WEFT_OBJ(f, struct weft_ep_obj)

/* ---- connection requests: handles that FI_CONNREQ gives out ---- */

/* Requests that were answered. An application may still hold their addresses,
 * so the memory is used for nothing else; the handle is stale. */
static struct weft_connreq_obj *idle;
static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER;

struct fid *weft_connreq_new(uint64_t handle)
{
	struct weft_connreq_obj *o;

	pthread_mutex_lock(&idle_lock);
	o = idle;
	if (o)
		idle = o->next;
	pthread_mutex_unlock(&idle_lock);
	if (!o)
		o = calloc(1, sizeof(*o));
	if (!o)
		return NULL;
	o->fid.fclass = FI_CLASS_CONNREQ;
	o->fid.ops = &weft_connreq_fi_ops;
	o->handle = handle;
	return &o->fid;
}

void weft_connreq_free(struct fid *fid)
{
	struct weft_connreq_obj *o = WEFT_OBJ(fid, struct weft_connreq_obj);

	o->handle = 0;
	pthread_mutex_lock(&idle_lock);
	o->next = idle;
	idle = o;
	pthread_mutex_unlock(&idle_lock);
}

/* ---- passive endpoints ---- */

int weft_pep_control(struct fid *fid, int command, void *arg)
{
	if (command != FI_BACKLOG)
		return -FI_ENOSYS;
	return arg ? weftGoPEPBacklog(PEP(fid)->handle, *(int *)arg) : -FI_EINVAL;
}

/* ---- connected endpoints ---- */

/* What transfers need is in the endpoint's structure once it is enabled. */
static int enabled(struct weft_ep_obj *o)
{
	return o->rx || o->deaf ? 0 : weft_ep_enable(o);
}

int weft_ep_connect(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen)
{
	struct weft_ep_obj *o = EP(ep);
	int rc;

	if (!addr || (!param && paramlen))
		return -FI_EINVAL;
	rc = enabled(o);
	return rc ? rc : weftGoEPConnect(o->handle, (void *)addr, (void *)param, paramlen);
}

int weft_ep_accept(struct fid_ep *ep, const void *param, size_t paramlen)
{
	struct weft_ep_obj *o = EP(ep);
	int rc;

	if (!param && paramlen)
		return -FI_EINVAL;
	rc = enabled(o);
	return rc ? rc : weftGoEPAccept(o->handle, (void *)param, paramlen);
}
