/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Posting messages: struct fi_ops_msg and struct fi_ops_tagged. What the data plane does not post is one call into
 * the runtime.
 */
#include "posting.h"

#define EP(fid_ep) container_of(fid_ep, struct weft_ep_obj, fid)

ssize_t weft_post_slow(struct weft_ep_obj *o, const struct iovec *iov, size_t count,
		       const fi_addr_t *dest, uint64_t tag, uint64_t data, uint64_t flags,
		       void *context, uint32_t kind)
{
	struct weft_send_args args = {
		.iov = iov, .count = count, .dest = *dest, .tag = tag, .data = data,
		.flags = flags, .context = (uintptr_t)context, .kind = kind,
	};

	return weftGoSend(o->handle, &args);
}

/* A message of one piece. kind is WEFT_POST_*. */
static inline __attribute__((always_inline)) ssize_t send_one(struct fid_ep *ep, const void *buf, size_t len,
							      fi_addr_t dest, uint64_t tag, uint64_t data,
							      uint64_t flags, void *context, uint32_t kind)
{
	struct iovec iov = { (void *)buf, len };
	struct weft_post p; /* the data plane reads nothing that is not set here */
	ssize_t rc;

	p.buf = buf;
	p.len = len;
	p.dest = dest;
	p.header = tag;
	p.data = data;
	p.flags = flags;
	p.context = (uintptr_t)context;
	p.kind = kind;
	rc = weft_post(EP(ep), WEFT_PLANE_SEND, &p);
	if (__builtin_expect(rc != WEFT_POST_TO_GO, 1))
		return rc;
	return weft_post_slow(EP(ep), &iov, 1, &dest, tag, data, flags, context, kind);
}

static ssize_t send_vector(struct fid_ep *ep, const struct iovec *iov, size_t count, fi_addr_t dest, uint64_t tag,
			   uint64_t data, uint64_t flags, void *context, uint32_t kind)
{
	if (!iov && count)
		return -FI_EINVAL;
	if (count == 1)
		return send_one(ep, iov->iov_base, iov->iov_len, dest, tag, data, flags, context, kind);
	return weft_post_slow(EP(ep), iov, count, &dest, tag, data, flags, context, kind);
}

#include "post_gen.h"
