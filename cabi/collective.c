/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Posting of collective operations, and the groups that they need: struct
 * fi_ops_collective, fi_join_collective and fi_query_collective. Sets of
 * addresses are in avset.c.
 */
#include <stdlib.h>

#include "collective.h"
#include "goapi.h"

#define EP(fid_ep) WEFT_OBJ(fid_ep, struct weft_ep_obj)

/* The defaults of a context that mean something for a barrier, the only
 * operation that takes no flags. */
#define FOR_BARRIERS (FI_COMPLETION | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE)

static ssize_t post(struct fid_ep *ep, enum fi_collective_op kind, const void *buf, void *desc,
		    size_t count, void *result, void *result_desc, fi_addr_t group, fi_addr_t root, enum fi_datatype datatype,
		    enum fi_op op, uint64_t flags, void *context)
{
	struct weft_coll_args args = {
		.buf = (uintptr_t)buf, .result = (uintptr_t)result, .count = count, .group = group,
		.root = root, .flags = flags, .context = (uintptr_t)context, .kind = kind,
		.datatype = datatype, .op = op,
		.desc = (uintptr_t)desc, .result_desc = (uintptr_t)result_desc,
	};

	return weftGoCollective(EP(ep)->handle, &args);
}

ssize_t weft_collective_barrier2(struct fid_ep *ep, fi_addr_t group, uint64_t flags, void *context)
{
	return post(ep, FI_BARRIER, NULL, NULL, 0, NULL, NULL, group, FI_ADDR_NOTAVAIL, FI_VOID, FI_NOOP, flags,
		    context);
}

ssize_t weft_collective_barrier(struct fid_ep *ep, fi_addr_t group, void *context)
{
	return weft_collective_barrier2(ep, group, EP(ep)->tx_op_flags & FOR_BARRIERS, context);
}

#include "collective_gen.h"

/* The form that names the operation; its vectors have one element. */
ssize_t weft_collective_msg(struct fid_ep *ep, const struct fi_msg_collective *msg, struct fi_ioc *resultv,
		      void **result_desc, size_t result_count, uint64_t flags)
{
	const struct fi_ioc none = { NULL, 0 };
	const struct fi_ioc *in = &none, *out = &none;

	if (!msg || msg->iov_count > 1 || result_count > 1 || (!msg->msg_iov && msg->iov_count) ||
	    (!resultv && result_count))
		return -FI_EINVAL;
	if (msg->iov_count)
		in = msg->msg_iov;
	if (result_count)
		out = resultv;
	return post(ep, msg->coll, in->addr, msg->iov_count && msg->desc ? msg->desc[0] : NULL,
		    msg->iov_count ? in->count : out->count, out->addr,
		    result_count && result_desc ? result_desc[0] : NULL, msg->coll_addr, msg->root_addr, msg->datatype, msg->op, flags, msg->context);
}

/* ---- what libfabric has not (include/weft/coll.h) ---- */

static ssize_t co_alltoallv(struct fid_ep *ep, const struct weft_alltoallv *a)
{
	if (!ep || !a || !weft_handle_of(&ep->fid) || ep->fid.fclass != FI_CLASS_EP)
		return -FI_EINVAL;
	if (weft_forked())
		return weft_fork_refusal();
	return weftGoAllToAllV(EP(ep)->handle, (struct weft_alltoallv *)a);
}

struct weft_coll_ops weft_coll_ops = {
	.size = sizeof(struct weft_coll_ops),
	.alltoallv = co_alltoallv,
};

/* ---- groups ---- */

/* fi_join: of collective groups. There is no other multicast. */
int weft_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc, void *context)
{
	const struct fi_collective_addr *where = addr;
	struct weft_opened opened = { 0 };
	struct weft_mc_obj *o;
	uint64_t set;
	int rc;

	if (!(flags & FI_COLLECTIVE))
		return -FI_ENOSYS;
	if (!where || !where->set || !mc)
		return -FI_EINVAL;
	set = weft_handle_of(&where->set->fid);
	if (!set || where->set->fid.fclass != FI_CLASS_AV_SET)
		return -FI_EINVAL;
	o = weft_object_new(FI_CLASS_MC, context);
	if (!o)
		return -FI_ENOMEM;
	rc = weftGoJoin(EP(ep)->handle, where->coll_addr, set, flags, (uintptr_t)context, &opened.handle,
			&o->fid.fi_addr);
	rc = weft_object_open(o, rc, &opened);
	if (rc)
		return rc;
	*mc = &o->fid;
	return weftGoAnnounce(o->handle, o); /* the event may come at once */
}
