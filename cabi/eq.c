/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Event queues: struct fi_ops_eq.
 */
#include <stdlib.h>
#include <string.h>

#include "goapi.h"
#include "trace.h"

#define EQ(eq) WEFT_OBJ(eq, struct weft_eq_obj)

static int eq_close(struct fid *fid)
{
	struct weft_eq_obj *o = EQ(fid);
	int rc = weftGoClose(o->handle);

	if (rc)
		return rc;
	weft_object_remove(&o->link);
	weft_wait_destroy(&o->wait);
	free(o);
	return 0;
}

static int eq_control(struct fid *fid, int command, void *arg)
{
	return weft_wait_control(&EQ(fid)->wait, command, arg);
}

struct fi_ops weft_eq_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = eq_close,
	.bind = weft_no_bind,
	.control = eq_control,
	.ops_open = weft_no_ops_open,
	.tostr = weft_tostr,
	.ops_set = weft_no_ops_set,
};

static ssize_t eq_read(struct fid_eq *eq, uint32_t *event, void *buf, size_t len, uint64_t flags)
{
	if (!event || (!buf && len))
		return -FI_EINVAL;
	return weftGoEQRead(EQ(eq)->handle, event, buf, len, flags);
}

/* Before API 1.5 the entry ended before err_data_size. */
static ssize_t eq_readerr(struct fid_eq *eq, struct fi_eq_err_entry *buf, uint64_t flags)
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

static ssize_t eq_write(struct fid_eq *eq, uint32_t event, const void *buf, size_t len,
			uint64_t flags)
{
	if (!buf && len)
		return -FI_EINVAL;
	return weftGoEQWrite(EQ(eq)->handle, event, (void *)buf, len, flags);
}

static ssize_t eq_sread(struct fid_eq *eq, uint32_t *event, void *buf, size_t len, int timeout,
			uint64_t flags)
{
	if (!event || (!buf && len))
		return -FI_EINVAL;
	if (EQ(eq)->wait.kind == FI_WAIT_NONE)
		return -FI_ENOSYS;
	return weftGoEQSRead(EQ(eq)->handle, event, buf, len, timeout, flags);
}

WEFT_TRACED(eq_read); WEFT_TRACED(eq_readerr); WEFT_TRACED(eq_write); WEFT_TRACED(eq_sread);

struct fi_ops_eq weft_ops_eq = {
	.size = sizeof(struct fi_ops_eq),
	.read = eq_read,
	.readerr = eq_readerr,
	.write = eq_write,
	.sread = eq_sread,
	.strerror = weft_eq_strerror,
};

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
	o = calloc(1, sizeof(*o));
	if (!o)
		return -FI_ENOMEM;
	o->fabric = WEFT_OBJ(fabric, struct weft_fabric_obj);
	rc = weft_wait_prepare(&o->wait, attr->wait_obj);
	if (rc)
		goto free_obj;
	rc = weftGoEQOpen(o->fabric->handle, o->fabric->host, attr, set, &o->wait, &opened);
	if (rc)
		goto destroy_wait;
	weft_wait_chosen(&o->wait, &opened);
	o->handle = opened.handle;
	o->fid.fid.fclass = FI_CLASS_EQ;
	o->fid.fid.context = context;
	o->fid.fid.ops = &weft_eq_fi_ops;
	o->fid.ops = &weft_ops_eq;
	weft_object_add(&o->link, &o->fid.fid);
	*eq = &o->fid;
	return 0;
destroy_wait:
	weft_wait_destroy(&o->wait);
free_obj:
	free(o);
	return rc;
}
