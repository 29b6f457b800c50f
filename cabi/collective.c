/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Posting of collective operations: struct fi_ops_collective.
 */
#include "goapi.h"

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
