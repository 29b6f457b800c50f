/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the objects share: slots of struct fi_ops that few classes implement,
 * closing, and recognising an object that an application passes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "goapi.h"

int weft_no_bind(struct fid *, struct fid *, uint64_t) { return -FI_ENOSYS; }
int weft_no_control(struct fid *, int, void *) { return -FI_ENOSYS; }
int weft_no_ops_open(struct fid *, const char *, uint64_t, void **, void *) { return -FI_ENOSYS; }
int weft_no_ops_set(struct fid *, const char *, uint64_t, void *, void *) { return -FI_ENOSYS; }

int weft_no_export_xpu(struct fid *, uint64_t, void *) { return -FI_ENOSYS; }
int weft_no_xpu_ctx(struct fid_domain *, void *, void *, void *) { return -FI_ENOSYS; }

int weft_close(uint64_t handle, struct weft_link *link, void *mem)
{
	int rc = weftGoClose(handle);

	if (rc)
		return rc;
	weft_object_remove(link);
	free(mem);
	return 0;
}

/* What is known about each class: the name in fi_tostr, the table that marks
 * weft's objects, and where the handle lies. */
static const struct class {
	const char *name;
	const struct fi_ops *ops;
	size_t handle;
} classes[] = {
	[FI_CLASS_FABRIC] = { "fabric", &weft_fabric_fi_ops, offsetof(struct weft_fabric_obj, handle) },
	[FI_CLASS_DOMAIN] = { "domain", &weft_domain_fi_ops, offsetof(struct weft_domain_obj, handle) },
	[FI_CLASS_EP] = { "endpoint", &weft_ep_fi_ops, offsetof(struct weft_ep_obj, handle) },
	[FI_CLASS_SEP] = { "scalable endpoint", &weft_ep_fi_ops, offsetof(struct weft_ep_obj, handle) },
	[FI_CLASS_RX_CTX] = { "receive context", &weft_ep_fi_ops, offsetof(struct weft_ep_obj, handle) },
	[FI_CLASS_TX_CTX] = { "transmit context", &weft_ep_fi_ops, offsetof(struct weft_ep_obj, handle) },
	[FI_CLASS_SRX_CTX] = { "shared receive context", &weft_srx_fi_ops, offsetof(struct weft_ep_obj, handle) },
	[FI_CLASS_STX_CTX] = { "shared transmit context", &weft_stx_fi_ops, offsetof(struct weft_stx_obj, handle) },
	[FI_CLASS_PEP] = { "passive endpoint", &weft_pep_fi_ops, offsetof(struct weft_pep_obj, handle) },
	[FI_CLASS_CONNREQ] = { "connection request", &weft_connreq_fi_ops, offsetof(struct weft_connreq_obj, handle) },
	[FI_CLASS_AV] = { "address vector", &weft_av_fi_ops, offsetof(struct weft_av_obj, handle) },
	[FI_CLASS_AV_SET] = { "address vector set", &weft_av_set_fi_ops, offsetof(struct weft_av_set_obj, handle) },
	[FI_CLASS_MC] = { "collective group", &weft_mc_fi_ops, offsetof(struct weft_mc_obj, handle) },
	[FI_CLASS_MR] = { "memory region", &weft_mr_fi_ops, offsetof(struct weft_mr_obj, handle) },
	[FI_CLASS_EQ] = { "event queue", &weft_eq_fi_ops, offsetof(struct weft_eq_obj, handle) },
	[FI_CLASS_CQ] = { "completion queue", &weft_cq_fi_ops, offsetof(struct weft_cq_obj, handle) },
	[FI_CLASS_CNTR] = { "counter", &weft_cntr_fi_ops, offsetof(struct weft_cntr_obj, handle) },
	[FI_CLASS_WAIT] = { "wait set", &weft_wait_fi_ops, offsetof(struct weft_wait_obj, handle) },
	[FI_CLASS_POLL] = { "poll set", &weft_poll_fi_ops, offsetof(struct weft_poll_obj, handle) },
};

uint64_t weft_handle_of(const struct fid *fid)
{
	const struct class *class;

	if (!fid || fid->fclass >= count_of(classes))
		return 0;
	class = &classes[fid->fclass];
	if (!class->ops || fid->ops != class->ops)
		return 0;
	return *(const uint64_t *)((const char *)fid + class->handle);
}

/* Appends to the text in buf, as fi_tostr expects. len is what the caller has
 * left or has in all, by version; the smaller reading of the two is taken. */
int weft_tostr(const struct fid *fid, char *buf, size_t len)
{
	size_t used = strnlen(buf, len);
	const char *name = NULL;

	if (fid->fclass < count_of(classes))
		name = classes[fid->fclass].name;
	snprintf(buf + used, len - used, "weft %s %p\n", name ? name : "object", (const void *)fid);
	return 0;
}
