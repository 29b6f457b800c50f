/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the objects share: slots of struct fi_ops that few classes implement,
 * closing, and recognising an object that an application passes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "goapi.h"
#include "peer.h"

int weft_no_export_xpu(struct fid *, uint64_t, void *)
{
	return -FI_ENOSYS;
}

void *weft_object_new(size_t fclass, void *context)
{
	struct fid *fid = calloc(1, weft_classes[fclass].size);

	if (!fid)
		return NULL;
	*fid = (struct fid){ .fclass = fclass, .context = context, .ops = weft_classes[fclass].ops };
	weft_object_tables(fid, false);
	return fid;
}

void weft_object_tables(struct fid *fid, bool forked)
{
	for (size_t i = 0; i < weft_place_count; i++)
		if (weft_places[i].class == fid->fclass)
			*(const void **)((char *)fid + weft_places[i].at) =
				forked ? weft_places[i].forked : weft_places[i].table;
}

static void object_free(const struct weft_class *class, void *object)
{
	if (class->wait)
		weft_wait_destroy(object + class->wait);
	if (class->import)
		free(*(void **)(object + class->import));
	free(object);
}

int weft_object_open(void *object, int rc, const struct weft_opened *opened)
{
	const struct weft_class *class = &weft_classes[((struct fid *)object)->fclass];

	if (rc) {
		object_free(class, object);
		return rc;
	}
	*(uint64_t *)(object + class->handle) = opened->handle;
	weft_object_add(object + class->link, object);
	return 0;
}

int weft_object_close(struct fid *fid)
{
	const struct weft_class *class = &weft_classes[fid->fclass];
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
	const struct weft_class *class;

	if (!fid || fid->fclass >= weft_class_count)
		return 0;
	class = &weft_classes[fid->fclass];
	if ((!class->ops || fid->ops != class->ops) && fid->ops != &weft_remote_fi_ops && fid->ops != &weft_list_fi_ops)
		return 0;
	return *(const uint64_t *)((const char *)fid + class->handle);
}

/* Appends to the text in buf, as fi_tostr expects. len is what the caller has
 * left or has in all, by version; the smaller reading of the two is taken. */
int weft_tostr(const struct fid *fid, char *buf, size_t len)
{
	size_t used = strnlen(buf, len);
	const char *name = NULL;

	if (fid->fclass < weft_class_count)
		name = weft_classes[fid->fclass].name;
	snprintf(buf + used, len - used, "weft %s %p\n", name ? name : "object", (const void *)fid);
	return 0;
}
