/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Completion queues, all but what reads them (poll.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "goapi.h"
#include "host.h"
#include "hotpath.h"
#include "peer.h"

#define CQ(cq) WEFT_OBJ(cq, struct weft_cq_obj)

/* What an application built for an API version knows of struct
 * fi_cq_err_entry: err_data_size came with 1.5, src_addr with 1.20. */
ssize_t weft_cq_err(struct fid_cq *cq, struct fi_cq_err_entry *buf, uint64_t)
{
	struct weft_cq_obj *o = CQ(cq);
	uint32_t version = o->domain->fabric->fid.api_version;
	struct weft_cq_err_entry entry = { 0 };
	ssize_t rc;

	if (!buf)
		return -FI_EINVAL;
	if (FI_VERSION_GE(version, FI_VERSION(1, 5))) {
		entry.base.err_data = buf->err_data;
		entry.base.err_data_size = buf->err_data_size;
	}
	rc = weft_cq_readerr(o, &entry);
	if (rc < 0)
		return rc;
	if (FI_VERSION_LT(version, FI_VERSION(1, 5)))
		memcpy(buf, &entry, offsetof(struct fi_cq_err_entry, err_data_size));
	else
		*buf = entry.base;
	if (FI_VERSION_GE(version, FI_VERSION(1, 20)))
		((struct weft_cq_err_entry *)buf)->src_addr = entry.src_addr;
	return 1;
}

int weft_cq_signal(struct fid_cq *cq)
{
	return CQ(cq)->wait.kind == FI_WAIT_NONE ? -FI_ENOSYS : weftGoCQSignal(CQ(cq)->handle);
}

/* prov_errno is a libfabric error number: weft has no numbers of its own. */
static const char *error_text(int prov_errno, char *buf, size_t len)
{
	const char *text = weft_strerror(prov_errno < 0 ? -prov_errno : prov_errno);

	if (buf && len)
		snprintf(buf, len, "%s", text);
	return text;
}

const char *weft_cq_strerror(struct fid_cq *, int prov_errno, const void *, char *buf, size_t len)
{
	return error_text(prov_errno, buf, len);
}

const char *weft_eq_strerror(struct fid_eq *, int prov_errno, const void *, char *buf, size_t len)
{
	return error_text(prov_errno, buf, len);
}
