/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Posting of messages that lie in memory of devices (hmem.h says more).
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
