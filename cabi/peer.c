/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Imported completion queues and counters, and what an imported address vector
 * gives (fi_peer(3)).
 *
 * An imported queue is an ordinary one, so posting and progress know nothing of
 * it. The owner makes it progress by reading no entries; then all that is in it goes
 * to the owner. What that has no room for stays here.
 */
#include <stdlib.h>
#include <string.h>

#include "goapi.h"
#include "hotpath.h"
#include "peer.h"

#define CQ(cq) container_of(cq, struct weft_cq_obj, fid)
#define CNTR(c) container_of(c, struct weft_cntr_obj, fid)

/* ---- completion queues ---- */

/* Hands over what was read. false: the owner has no room. */
static bool cq_flush(struct weft_cq_obj *o)
{
	struct weft_import *in = o->import;

	for (; in->first < in->count; in->first++) {
		const struct fi_cq_tagged_entry *e = &in->entries[in->first];

		if (in->cq->owner_ops->write(in->cq, e->op_context, e->flags, e->len, e->buf, e->data, e->tag,
					     in->src[in->first]) < 0)
			return false;
	}
	in->first = in->count = 0;
	return true;
}

static bool cq_flush_error(struct weft_cq_obj *o)
{
	struct weft_import *in = o->import;

	if (in->has_error && in->cq->owner_ops->writeerr(in->cq, &in->error) < 0)
		return false;
	in->has_error = false;
	return true;
}

static bool cq_read_error(struct weft_cq_obj *o)
{
	struct weft_import *in = o->import;

	memset(&in->error, 0, sizeof(in->error));
	in->error.base.err_data = in->err_data;
	in->error.base.err_data_size = sizeof(in->err_data);
	in->has_error = weft_cq_readerr(o, &in->error) == 1;
	return in->has_error;
}

static ssize_t peer_cq_read(struct fid_cq *cq, void *buf, size_t count)
{
	struct weft_cq_obj *o = CQ(cq);
	struct weft_import *in = o->import;
	ssize_t rc = -FI_EAGAIN, n;

	if (buf || count)
		return -FI_ENOSYS; /* the owner has the completions */
	if (pthread_mutex_trylock(&in->lock))
		return -FI_EAGAIN; /* another thread does this */
	while (cq_flush(o) && cq_flush_error(o)) {
		n = weft_cq_readfrom(cq, in->entries, WEFT_IMPORT_BATCH, in->src);
		if (n > 0)
			in->count = n;
		else if (n != -FI_EAVAIL || !cq_read_error(o))
			break;
		rc = 0;
	}
	pthread_mutex_unlock(&in->lock);
	return rc;
}

/* clang-format off */
static ssize_t no_readfrom(struct fid_cq *, void *, size_t, fi_addr_t *) { return -FI_ENOSYS; }
static ssize_t no_readerr(struct fid_cq *, struct fi_cq_err_entry *, uint64_t)
{
	return -FI_ENOSYS;
}
static ssize_t no_sread(struct fid_cq *, void *, size_t, const void *, int) { return -FI_ENOSYS; }
static ssize_t no_sreadfrom(struct fid_cq *, void *, size_t, fi_addr_t *, const void *, int)
{
	return -FI_ENOSYS;
}
static int no_signal(struct fid_cq *) { return -FI_ENOSYS; }
/* clang-format on */

static struct weft_ops_cq peer_cq_ops = {
	.base = {
		.size = sizeof(struct weft_ops_cq),
		.read = peer_cq_read,
		.readfrom = no_readfrom,
		.readerr = no_readerr,
		.sread = no_sread,
		.sreadfrom = no_sreadfrom,
		.signal = no_signal,
		.strerror = weft_cq_strerror,
	},
	.export_xpu = weft_no_export_xpu,
};

int weft_peer_cq_import(struct weft_cq_obj *o)
{
	struct weft_peer_cq *cq = weft_peer_of(o->fid.fid.context);

	if (!cq || !cq->owner_ops || cq->owner_ops->size < sizeof(struct weft_peer_cq_ops))
		return -FI_EINVAL;
	o->import = calloc(1, sizeof(*o->import));
	if (!o->import)
		return -FI_ENOMEM;
	o->import->cq = cq;
	pthread_mutex_init(&o->import->lock, NULL);
	o->fid.ops = &peer_cq_ops.base;
	return 0;
}

/* ---- counters ---- */

static uint64_t peer_cntr_read(struct fid_cntr *c)
{
	struct weft_cntr_obj *o = CNTR(c);
	struct weft_import *in = o->import;
	uint64_t value = weft_cntr_read(c), errors = atomic_load(&o->hot->errors);

	pthread_mutex_lock(&in->lock);
	for (; in->value < value; in->value++)
		in->cntr->owner_ops->inc(in->cntr);
	for (; in->errors < errors; in->errors++)
		in->cntr->owner_ops->incerr(in->cntr);
	pthread_mutex_unlock(&in->lock);
	return 0; /* the owner has the value */
}

/* clang-format off */
static uint64_t no_readval(struct fid_cntr *) { return 0; }
static int no_add(struct fid_cntr *, uint64_t) { return -FI_ENOSYS; }
static int no_cntr_wait(struct fid_cntr *, uint64_t, int) { return -FI_ENOSYS; }
/* clang-format on */

static struct weft_ops_cntr peer_cntr_ops = {
	.base = {
		.size = sizeof(struct weft_ops_cntr),
		.read = peer_cntr_read,
		.readerr = no_readval,
		.add = no_add,
		.set = no_add,
		.wait = no_cntr_wait,
		.adderr = no_add,
		.seterr = no_add,
	},
	.export_xpu = weft_no_export_xpu,
};

int weft_peer_cntr_import(struct weft_cntr_obj *o)
{
	struct weft_peer_cntr *cntr = weft_peer_of(o->fid.fid.context);

	if (!cntr || !cntr->owner_ops || cntr->owner_ops->size < sizeof(struct weft_peer_cntr_ops))
		return -FI_EINVAL;
	o->import = calloc(1, sizeof(*o->import));
	if (!o->import)
		return -FI_ENOMEM;
	o->import->cntr = cntr;
	pthread_mutex_init(&o->import->lock, NULL);
	o->fid.ops = &peer_cntr_ops.base;
	return 0;
}

/* ---- address vectors ---- */

/* weft's addresses are its own, so of the owner's address vector only the
 * attributes mean something: how many addresses there will be. */
int weft_peer_av_import(struct fi_av_attr *attr, void *context)
{
	struct weft_peer_av *av = weft_peer_of(context);
	struct fi_av_attr owner = { 0 };
	int rc;

	if (!av || !av->owner_ops || av->owner_ops->size < sizeof(struct weft_peer_av_ops))
		return -FI_EINVAL;
	rc = av->owner_ops->query(av, &owner);
	if (rc)
		return rc;
	if (attr->count < owner.count)
		attr->count = owner.count;
	if (attr->type == FI_AV_UNSPEC)
		attr->type = owner.type;
	return 0;
}
