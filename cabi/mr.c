/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Memory regions: struct fi_ops_mr of a domain, and struct fid_mr.
 */
#include "goapi.h"

int weft_mr_regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access, uint64_t offset,
		 uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context)
{
	struct fi_mr_attr attr = {
		.mr_iov = iov,
		.iov_count = count,
		.access = access,
		.offset = offset,
		.requested_key = requested_key,
		.context = context,
	};

	return weft_ops_mr.regattr(fid, &attr, flags, mr);
}

int weft_mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset, uint64_t requested_key,
		uint64_t flags, struct fid_mr **mr, void *context)
{
	struct iovec iov = { (void *)buf, len };

	return weft_mr_regv(fid, &iov, 1, access, offset, requested_key, flags, mr, context);
}
