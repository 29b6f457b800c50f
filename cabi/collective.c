/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Posting of collective operations: struct fi_ops_collective.
 */
#include "goapi.h"
#include "token.h"

#define EP(fid_ep) WEFT_OBJ(fid_ep, struct weft_ep_obj)

/* The defaults of a context that mean something for a barrier, the only
 * operation that takes no flags. */
#define FOR_BARRIERS (FI_COMPLETION | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE)

static ssize_t post(struct fid_ep *ep, enum fi_collective_op kind, const void *buf, void *desc, size_t count,
		    void *result, void *result_desc, fi_addr_t group, fi_addr_t root, enum fi_datatype datatype,
		    enum fi_op op, uint64_t flags, void *context)
{
	struct fi_ioc in = { (void *)buf, count }, out = { result, count };
	struct fi_msg_collective msg = {
		.msg_iov = &in, .desc = &desc, .iov_count = 1, .coll_addr = group, .root_addr = root, .coll = kind,
		.datatype = datatype, .op = op, .context = context,
	};

	return weftGoCollective(EP(ep)->handle, &msg, &out, &result_desc, 1, flags);
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

/* ---- persistent alltoallv (include/weft/coll.h): a request is the number of a Go object, which no address is ---- */

int weft_alltoallv_init(struct fid_ep *ep, const struct weft_alltoallv *args, struct weft_alltoallv_req **req)
{
	uint64_t handle = 0;
	int rc;

	if (weft_forked())
		return weft_fork_refusal();
	if (!args || !req)
		return -FI_EINVAL;
	rc = weftGoAllToAllVInit(weft_token_endpoint(ep), (struct weft_alltoallv *)args, &handle);
	if (!rc)
		*req = (struct weft_alltoallv_req *)(uintptr_t)handle;
	return rc;
}

ssize_t weft_alltoallv_start(struct weft_alltoallv_req *req)
{
	return weft_forked() ? weft_fork_refusal() : weftGoAllToAllVStart((uintptr_t)req);
}

int weft_alltoallv_free(struct weft_alltoallv_req *req)
{
	return weft_forked() ? weft_fork_refusal() : weftGoAllToAllVFree((uintptr_t)req);
}
