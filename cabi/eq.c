/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Event queues: struct fi_ops_eq.
 */
#include <stdlib.h>
#include <string.h>

#include "goapi.h"
#include "trace.h"

#define EQ(eq) WEFT_OBJ(eq, struct weft_eq_obj)

int weft_eq_control(struct fid *fid, int command, void *arg)
{
	return weft_wait_control(&EQ(fid)->wait, command, arg);
}

/* Before API 1.5 the entry ended before err_data_size. */
ssize_t weft_eq_readerr(struct fid_eq *eq, struct fi_eq_err_entry *buf, uint64_t flags)
{
	struct fi_eq_err_entry entry = { 0 };
	size_t known = sizeof(entry);
	int64_t rc;

	if (!buf)
		return -FI_EINVAL;
	if (FI_VERSION_LT(EQ(eq)->fabric->fid.api_version, FI_VERSION(1, 5)))
		known = offsetof(struct fi_eq_err_entry, err_data_size);
	else
		memcpy(&entry, buf, known);
	rc = weftGoEQReadErr(EQ(eq)->handle, &entry, EQ(eq)->err_data, flags);
	if (rc < 0)
		return rc;
	memcpy(buf, &entry, known);
	return known;
}

ssize_t weft_eq_sread(struct fid_eq *eq, uint32_t *event, void *buf, size_t len, int timeout,
		      uint64_t flags)
{
	if (!event || (!buf && len))
		return -FI_EINVAL;
	if (EQ(eq)->wait.kind == FI_WAIT_NONE)
		return -FI_ENOSYS;
	return weftGoEQSRead(EQ(eq)->handle, event, buf, len, timeout, flags);
}

int weft_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq,
		 void *context)
{
	struct weft_opened opened = { .fd = -1 };
	struct weft_eq_obj *o;
	uint64_t set = 0;
	int rc;

	if (!attr || !eq)
		return -FI_EINVAL;
	if (attr->wait_obj == FI_WAIT_SET && !(set = weft_wait_set_of(attr->wait_set)))
		return -FI_EINVAL;
	o = weft_object_new(FI_CLASS_EQ, context);
	if (!o)
		return -FI_ENOMEM;
	o->fid.ops = &weft_ops_eq;
	o->fabric = WEFT_OBJ(fabric, struct weft_fabric_obj);
	rc = weft_wait_prepare(&o->wait, attr->wait_obj);
	if (!rc)
		rc = weftGoEQOpen(o->fabric->handle, o->fabric->host, attr, set, &o->wait, &opened);
	rc = weft_object_open(o, rc, &opened);
	if (!rc)
		*eq = &o->fid;
	return rc;
}
