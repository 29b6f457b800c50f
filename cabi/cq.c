/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Completion queues, all but fi_cq_read and fi_cq_readfrom (poll.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "goapi.h"
#include "host.h"
#include "hotpath.h"
#include "peer.h"

#define CQ(cq) WEFT_OBJ(cq, struct weft_cq_obj)

ssize_t weft_cq_readerr(struct weft_cq_obj *o, struct weft_cq_err_entry *entry)
{
	uint64_t src = FI_ADDR_NOTAVAIL;
	int rc = weftGoCQReadErr(o->handle, &entry->base, &src);

	entry->src_addr = src;
	return rc ? rc : 1;
}

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

static size_t entry_size(enum fi_cq_format format)
{
	switch (format) {
	case FI_CQ_FORMAT_CONTEXT:
		return sizeof(struct fi_cq_entry);
	case FI_CQ_FORMAT_MSG:
		return sizeof(struct fi_cq_msg_entry);
	case FI_CQ_FORMAT_DATA:
		return sizeof(struct fi_cq_data_entry);
	default:
		return sizeof(struct fi_cq_tagged_entry);
	}
}

/* Reads until there are as many entries as the condition wants, the time is
 * over, or the queue is signaled or has an error; then returns what there is. */
static ssize_t sread(struct weft_cq_obj *o, char *buf, size_t count, fi_addr_t *src,
		     const void *cond, int timeout)
{
	size_t want = o->wait_cond == FI_CQ_COND_THRESHOLD ? (uintptr_t)cond : 1;
	size_t size = entry_size(o->hot->format);
	int64_t start = timeout > 0 ? weft_now() : 0;
	size_t got = 0;
	ssize_t rc;

	if (o->wait.kind == FI_WAIT_NONE)
		return -FI_ENOSYS;
	if (want > count)
		want = count;
	if (!want)
		want = 1;
	for (;;) {
		rc = src ? weft_cq_readfrom(&o->fid, buf + got * size, count - got, src + got) :
			   weft_cq_read(&o->fid, buf + got * size, count - got);
		if (rc > 0)
			got += rc;
		if (got >= want || got == count || (rc < 0 && rc != -FI_EAGAIN))
			break;
		rc = weftGoCQWait(o->handle, timeout > 0 ? weft_time_left(start, timeout) : timeout);
		if (rc)
			break;
	}
	return got ? (ssize_t)got : rc;
}

ssize_t weft_cq_sread(struct fid_cq *cq, void *buf, size_t count, const void *cond, int timeout)
{
	return sread(CQ(cq), buf, count, NULL, cond, timeout);
}

ssize_t weft_cq_sreadfrom(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *src_addr,
			  const void *cond, int timeout)
{
	return sread(CQ(cq), buf, count, src_addr, cond, timeout);
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

