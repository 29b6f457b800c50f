/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the objects share: slots of struct fi_ops that few classes implement,
 * closing, and recognising an object that an application passes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "goapi.h"
#include "token.h"

int weft_no_export_xpu(struct fid *, uint64_t, void *) { return -FI_ENOSYS; }

/* What is known about each class: the name in fi_tostr, the table that marks
 * weft's objects, the size, and where the handle and the link lie; in waiting
 * ones the wait object, too, and in those that can be imported what they need then. */
static const struct class {
	const char *name;
	struct fi_ops *ops;
	size_t size, handle, link, wait, import;
} classes[] = {
#define CLASS(text, fi_ops, type)                                                                  \
	.name = text, .ops = &(fi_ops), .size = sizeof(struct type),                               \
	.handle = offsetof(struct type, handle), .link = offsetof(struct type, link)
#define WAITING(type) .wait = offsetof(struct type, wait)
	[FI_CLASS_UNSPEC] = { .name = "remote region or list", .size = sizeof(struct weft_list_obj),
			      .handle = offsetof(struct weft_token_obj, handle),
			      .link = offsetof(struct weft_token_obj, link) }, /* token.c tells them apart */
	[FI_CLASS_FABRIC] = { CLASS("fabric", weft_fabric_fi_ops, weft_fabric_obj) },
	[FI_CLASS_DOMAIN] = { CLASS("domain", weft_domain_fi_ops, weft_domain_obj) },
	[FI_CLASS_EP] = { CLASS("endpoint", weft_ep_fi_ops, weft_ep_obj) },
	[FI_CLASS_SEP] = { CLASS("scalable endpoint", weft_ep_fi_ops, weft_ep_obj) },
	[FI_CLASS_RX_CTX] = { CLASS("receive context", weft_ep_fi_ops, weft_ep_obj) },
	[FI_CLASS_TX_CTX] = { CLASS("transmit context", weft_ep_fi_ops, weft_ep_obj) },
	[FI_CLASS_SRX_CTX] = { CLASS("shared receive context", weft_srx_fi_ops, weft_ep_obj) },
	[FI_CLASS_STX_CTX] = { CLASS("shared transmit context", weft_stx_fi_ops, weft_stx_obj) },
	[FI_CLASS_PEP] = { CLASS("passive endpoint", weft_pep_fi_ops, weft_pep_obj) },
	[FI_CLASS_CONNREQ] = { .name = "connection request", .ops = &weft_connreq_fi_ops,
			       .handle = offsetof(struct weft_connreq_obj, handle) },
	[FI_CLASS_AV] = { CLASS("address vector", weft_av_fi_ops, weft_av_obj) },
	[FI_CLASS_AV_SET] = { CLASS("address vector set", weft_av_set_fi_ops, weft_av_set_obj) },
	[FI_CLASS_MC] = { CLASS("collective group", weft_mc_fi_ops, weft_mc_obj) },
	[FI_CLASS_MR] = { CLASS("memory region", weft_mr_fi_ops, weft_mr_obj) },
	[FI_CLASS_EQ] = { CLASS("event queue", weft_eq_fi_ops, weft_eq_obj), WAITING(weft_eq_obj) },
	[FI_CLASS_CQ] = { CLASS("completion queue", weft_cq_fi_ops, weft_cq_obj), WAITING(weft_cq_obj),
			  .import = offsetof(struct weft_cq_obj, import) },
	[FI_CLASS_CNTR] = { CLASS("counter", weft_cntr_fi_ops, weft_cntr_obj), WAITING(weft_cntr_obj),
			    .import = offsetof(struct weft_cntr_obj, import) },
	[FI_CLASS_WAIT] = { CLASS("wait set", weft_wait_fi_ops, weft_wait_obj), WAITING(weft_wait_obj) },
	[FI_CLASS_POLL] = { CLASS("poll set", weft_poll_fi_ops, weft_poll_obj) },
};

void *weft_object_new(size_t fclass, void *context)
{
	struct fid *fid = calloc(1, classes[fclass].size);

	if (fid)
		*fid = (struct fid){ .fclass = fclass, .context = context, .ops = classes[fclass].ops };
	return fid;
}

static void object_free(const struct class *class, void *object)
{
	if (class->wait)
		weft_wait_destroy(object + class->wait);
	if (class->import)
		free(*(void **)(object + class->import));
	free(object);
}

int weft_object_open(void *object, int rc, const struct weft_opened *opened)
{
	const struct class *class = &classes[((struct fid *)object)->fclass];

	if (rc) {
		object_free(class, object);
		return rc;
	}
	if (class->wait)
		weft_wait_chosen(object + class->wait, opened);
	*(uint64_t *)(object + class->handle) = opened->handle;
	weft_object_add(object + class->link, object);
	return 0;
}

int weft_object_close(struct fid *fid)
{
	const struct class *class = &classes[fid->fclass];
	void *object = fid;
	int rc = weftGoClose(*(uint64_t *)(object + class->handle));

	if (rc)
		return rc;
	weft_object_remove(object + class->link);
	object_free(class, object);
	return 0;
}

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
