/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Imported shared receive contexts (fi_peer(3)): the functions by which the
 * owner names messages that it had no receive for, and its calls. What is
 * done with a message is Go's (provider/internal/receive/owned.go).
 */
#include "goapi.h"
#include "hotpath.h"
#include "peer.h"

/* ---- for Go ---- */

int weft_peer_get(struct weft_peer_srx *srx, int tagged, uint64_t addr, size_t size, uint64_t tag,
		  struct weft_peer_entry **entry)
{
	struct weft_peer_match match = { .addr = addr, .msg_size = size, .tag = tagged ? tag : 0 };

	*entry = NULL;
	return tagged ? srx->owner_ops->get_tag(srx, &match, entry) : srx->owner_ops->get_msg(srx, &match, entry);
}

int weft_peer_queue(struct weft_peer_srx *srx, int tagged, struct weft_peer_entry *entry, uint64_t id, uint64_t data,
		    uint64_t flags)
{
	entry->srx = srx;
	entry->peer_context = (void *)(uintptr_t)id;
	entry->flags |= flags;
	if (flags & FI_REMOTE_CQ_DATA)
		entry->cq_data = data;
	return tagged ? srx->owner_ops->queue_tag(entry) : srx->owner_ops->queue_msg(entry);
}

void weft_peer_free(struct weft_peer_srx *srx, struct weft_peer_entry *entry)
{
	srx->owner_ops->free_entry(entry);
}

/* ---- for the owner ---- */

static uint64_t id_of(const struct weft_peer_entry *entry)
{
	return (uintptr_t)entry->peer_context;
}

static int start(struct weft_peer_entry *entry)
{
	return weftGoPeerStart(entry, id_of(entry));
}
static int discard(struct weft_peer_entry *entry)
{
	return weftGoPeerDiscard(id_of(entry));
}
static fi_addr_t address(struct weft_peer_entry *entry)
{
	return weftGoPeerAddr(id_of(entry));
}

static struct weft_peer_srx_ops peer_ops = {
	.size = sizeof(struct weft_peer_srx_ops),
	.start_msg = start,
	.start_tag = start,
	.discard_msg = discard,
	.discard_tag = discard,
};

void weft_peer_inserted(struct weft_peer_srx *srx)
{
	srx->owner_ops->foreach_unspec_addr(srx, address);
}

/* ---- opening ---- */

int weft_peer_srx_import(struct weft_ep_obj *o)
{
	struct weft_peer_srx *srx = weft_peer_of(o->fid.fid.context);

	if (!srx || !srx->owner_ops || srx->owner_ops->size < sizeof(struct weft_peer_srx_owner_ops))
		return -FI_EINVAL;
	o->imported = srx;
	srx->peer_ops = &peer_ops;
	return 0;
}
