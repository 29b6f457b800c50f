/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Posting of what lies in memory of devices (hmem.h says more).
 */
#include <string.h>

#include "hmem.h"

#define EP(fid_ep) WEFT_OBJ(fid_ep, struct weft_ep_obj)

/* Copies a vector of at most WEFT_HMEM_LIMIT elements with its addresses translated. */
static int translate(struct fid_ep *ep, struct iovec *to, const struct iovec *from, void **desc, size_t count)
{
	if (!from)
		return -FI_EINVAL;
	memmove(to, from, count * sizeof(*to));
	return weftGoTranslate(EP(ep)->handle, to, desc, count);
}

ssize_t weft_hmem_send(struct fid_ep *ep, const struct iovec *from, void **desc, size_t count, fi_addr_t dest,
		       uint64_t tag, uint64_t data, uint64_t flags, void *context, uint32_t kind)
{
	struct iovec iov[WEFT_HMEM_LIMIT];
	int rc = translate(ep, iov, from, desc, count);

	return rc ? rc : weft_post_slow(EP(ep), iov, count, &dest, tag, data, flags, context, kind);
}

ssize_t weft_hmem_recv(struct fid_ep *ep, const struct iovec *from, void **desc, size_t count, fi_addr_t src,
		       uint64_t tag, uint64_t ignore, uint64_t flags, void *context)
{
	struct iovec iov[WEFT_HMEM_LIMIT];
	int rc = translate(ep, iov, from, desc, count);

	return rc ? rc : weft_recv_slow(EP(ep), iov, count, src, tag, ignore, flags, context);
}

ssize_t weft_hmem_rma_post(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags, uint32_t kind)
{
	struct iovec iov[WEFT_HMEM_LIMIT];
	struct fi_rma_iov one;
	struct weft_rma_args args = {
		.iov = iov, .count = msg->iov_count, .remote = msg->rma_iov, .remote_count = msg->rma_iov_count,
		.dest = msg->addr, .data = msg->data, .flags = flags, .context = (uintptr_t)msg->context, .kind = kind,
	};
	int rc = translate(ep, iov, msg->msg_iov, msg->desc, msg->iov_count);

	if (rc || (!msg->rma_iov && msg->rma_iov_count))
		return rc ? rc : -FI_EINVAL;
	if (!msg->rma_iov_count && msg->rma_iov) {
		one = *msg->rma_iov;
		for (size_t i = 0; i < msg->iov_count; i++)
			one.len += iov[i].iov_len;
		args.remote = &one;
		args.remote_count = 1;
	}
	return weftGoRMA(EP(ep)->handle, &args);
}

/* Translates a vector that is already one of bytes. */
static int in_place(struct fid_ep *ep, struct iovec *iov, void **desc, size_t count)
{
	return weft_hmem_special(desc, count) ? weftGoTranslate(EP(ep)->handle, iov, desc, count) : 0;
}

ssize_t weft_hmem_atomic_post(struct fid_ep *ep, const struct fi_msg_atomic *msg, const struct fi_msg_fetch *fetch,
			      const struct fi_msg_compare *compare, uint64_t flags)
{
	struct weft_atomic_args args;
	int rc = weft_atomic_args(&args, msg, fetch, compare, flags);

	if (!rc)
		rc = in_place(ep, args.operand, msg->desc, args.operands);
	if (!rc && compare)
		rc = in_place(ep, args.compare, compare->desc, args.compares);
	if (!rc && fetch)
		rc = in_place(ep, args.result, fetch->desc, args.results);
	return rc ? rc : weftGoAtomic(EP(ep)->handle, &args);
}

ssize_t weft_hmem_atomic_one(struct fid_ep *ep, const struct fi_msg_atomic *msg, const struct fi_msg_fetch *fetch,
			     const struct fi_msg_compare *compare)
{
	uint64_t not_for_it = FI_MATCH_COMPLETE | (fetch ? FI_INJECT : 0);
	struct fi_msg_atomic whole = *msg;
	struct fi_rma_ioc remote = *msg->rma_iov;

	remote.count = fetch && !compare ? weft_ioc_sum(fetch->msg_iov, fetch->iov_count) :
					   weft_ioc_sum(msg->msg_iov, msg->iov_count);
	whole.rma_iov = &remote;
	whole.rma_iov_count = 1;
	return weft_hmem_atomic_post(ep, &whole, fetch, compare, EP(ep)->tx_op_flags & ~not_for_it);
}
