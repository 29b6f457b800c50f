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

static int req_close(struct fid *) { return -FI_ENOSYS; } /* fi_accept and fi_reject end it */

struct fi_ops weft_connreq_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = req_close,
	.bind = weft_no_bind,
	.control = weft_no_control,
	.ops_open = weft_no_ops_open,
	.tostr = weft_tostr,
	.ops_set = weft_no_ops_set,
};

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

static int pep_close(struct fid *fid)
{
	struct weft_pep_obj *o = PEP(fid);

	return weft_close(o->handle, &o->link, o);
}

static int pep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	uint64_t eq = weft_handle_of(bfid);

	if (!eq || bfid->fclass != FI_CLASS_EQ)
		return -FI_EINVAL;
	return weftGoPEPBind(PEP(fid)->handle, eq, flags);
}

static int pep_control(struct fid *fid, int command, void *arg)
{
	if (command != FI_BACKLOG)
		return -FI_ENOSYS;
	return arg ? weftGoPEPBacklog(PEP(fid)->handle, *(int *)arg) : -FI_EINVAL;
}

struct fi_ops weft_pep_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = pep_close,
	.bind = pep_bind,
	.control = pep_control,
	.ops_open = weft_no_ops_open,
	.tostr = weft_tostr,
	.ops_set = weft_no_ops_set,
};

static int pep_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
	if (level != FI_OPT_ENDPOINT)
		return -FI_ENOPROTOOPT;
	if (!optlen || (!optval && *optlen))
		return -FI_EINVAL;
	return weftGoEPGetOpt(PEP(fid)->handle, optname, optval, optlen);
}

static int pep_setopt(fid_t, int, int, const void *, size_t) { return -FI_ENOPROTOOPT; }

static ssize_t pep_cancel(fid_t, void *) { return -FI_ENOSYS; }

static struct weft_ops_ep pep_ops = {
	.base = {
		.size = sizeof(struct weft_ops_ep),
		.cancel = pep_cancel,
		.getopt = pep_getopt,
		.setopt = pep_setopt,
		.tx_ctx = weft_no_tx_ctx,
		.rx_ctx = weft_no_rx_ctx,
		.rx_size_left = weft_no_size_left,
		.tx_size_left = weft_no_size_left,
	},
	.export_xpu = weft_no_export_xpu,
};

static int pep_setname(fid_t fid, void *addr, size_t addrlen)
{
	return addr ? weftGoEPSetName(PEP(fid)->handle, addr, addrlen) : -FI_EINVAL;
}

static int pep_getname(fid_t fid, void *addr, size_t *addrlen)
{
	if (!addrlen || (!addr && *addrlen))
		return -FI_EINVAL;
	return weftGoEPName(PEP(fid)->handle, addr, addrlen);
}

static int pep_listen(struct fid_pep *pep) { return weftGoPEPListen(PEP(pep)->handle); }

static int pep_reject(struct fid_pep *pep, fid_t request, const void *param, size_t paramlen)
{
	if (!request || (!param && paramlen))
		return -FI_EINVAL;
	return weftGoPEPReject(PEP(pep)->handle, weft_handle_of(request), (void *)param, paramlen);
}

static struct fi_ops_cm pep_cm, conn_cm; /* weft_nosys_cm with what each type has */
static pthread_once_t cm_once = PTHREAD_ONCE_INIT;

int weft_passive_ep(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
		    void *context)
{
	struct weft_opened opened = { 0 };
	struct weft_pep_obj *o;
	int rc;

	if (!info || !pep)
		return -FI_EINVAL;
	rc = weft_spares_need("fi_passive_ep");
	if (rc)
		return rc;
	weft_connected_cm();
	o = calloc(1, sizeof(*o));
	if (!o)
		return -FI_ENOMEM;
	rc = weftGoPEPOpen(WEFT_OBJ(fabric, struct weft_fabric_obj)->handle, info, o, &opened);
	if (rc) {
		free(o);
		return rc;
	}
	o->handle = opened.handle;
	o->fid = (struct fid_pep){
		.fid = { .fclass = FI_CLASS_PEP, .context = context, .ops = &weft_pep_fi_ops },
		.ops = &pep_ops.base,
		.cm = &pep_cm,
	};
	weft_object_add(&o->link, &o->fid.fid);
	*pep = &o->fid;
	return 0;
}

/* ---- connected endpoints ---- */

/* What transfers need is in the endpoint's structure once it is enabled. */
static int enabled(struct weft_ep_obj *o)
{
	return o->rx || o->deaf ? 0 : weft_ep_enable(o);
}

static int conn_connect(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen)
{
	struct weft_ep_obj *o = EP(ep);
	int rc;

	if (!addr || (!param && paramlen))
		return -FI_EINVAL;
	rc = enabled(o);
	return rc ? rc : weftGoEPConnect(o->handle, (void *)addr, (void *)param, paramlen);
}

static int conn_accept(struct fid_ep *ep, const void *param, size_t paramlen)
{
	struct weft_ep_obj *o = EP(ep);
	int rc;

	if (!param && paramlen)
		return -FI_EINVAL;
	rc = enabled(o);
	return rc ? rc : weftGoEPAccept(o->handle, (void *)param, paramlen);
}

static int conn_shutdown(struct fid_ep *ep, uint64_t flags)
{
	return weftGoEPShutdown(EP(ep)->handle, flags);
}

static int conn_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen)
{
	if (!addrlen || (!addr && *addrlen))
		return -FI_EINVAL;
	return weftGoEPPeer(EP(ep)->handle, addr, addrlen);
}

static void make(void)
{
	pep_cm = weft_nosys_cm;
	pep_cm.setname = pep_setname;
	pep_cm.getname = pep_getname;
	pep_cm.listen = pep_listen;
	pep_cm.reject = pep_reject;
	conn_cm = weft_nosys_cm;
	conn_cm.setname = weft_cm_setname;
	conn_cm.getname = weft_cm_getname;
	conn_cm.getpeer = conn_getpeer;
	conn_cm.connect = conn_connect;
	conn_cm.accept = conn_accept;
	conn_cm.shutdown = conn_shutdown;
}

struct fi_ops_cm *weft_connected_cm(void)
{
	pthread_once(&cm_once, make);
	return &conn_cm;
}
