/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Memory regions: struct fi_ops_mr of a domain, and struct fid_mr.
 */
#include "goapi.h"

#define MR(mr) WEFT_OBJ(mr, struct weft_mr_obj)

int weft_mr_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	uint64_t other = weft_handle_of(bfid);

	if (!other || (bfid->fclass != FI_CLASS_EP && bfid->fclass != FI_CLASS_CNTR))
		return -FI_EINVAL;
	return weftGoMRBind(MR(fid)->handle, other, flags);
}

/* FI_REFRESH is for applications that tell about changed mappings
 * (FI_MR_MMU_NOTIFY), which weft does not ask for: it keeps no mapping, so there
 * is nothing to refresh. */
int weft_mr_control(struct fid *fid, int command, void *arg)
{
	switch (command) {
	case FI_ENABLE:
		return weftGoMREnable(MR(fid)->handle, &MR(fid)->fid.key);
	case FI_REFRESH:
		return arg ? 0 : -FI_EINVAL;
	default:
		return -FI_ENOSYS;
	}
}

int weft_mr_regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access,
		 uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr,
		 void *context)
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

int weft_mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset,
		uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context)
{
	struct iovec iov = { (void *)buf, len };

	return weft_mr_regv(fid, &iov, 1, access, offset, requested_key, flags, mr, context);
}
