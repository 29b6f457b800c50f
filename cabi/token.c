/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Memory tokens (include/weft/token.h): posts of lists that are one read or write, and notifications. The opening of
 * lists is in tokenlist.c; the other calls are Go's (shims/tables.txt).
 */
#include "posting.h"
#include "token.h"

/* Flags of posts of lists, which are those that reads and writes have too, but for FI_INJECT. */
#define FLAGS (FI_COMPLETION | FI_MORE | FI_FENCE | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE)

/* Posts a notification behind what p has, or alone. */
static ssize_t post_note(struct fid_ep *ep, struct weft_post *p, const void *note, size_t notelen, uint64_t tag,
			 uint64_t flags, void *context)
{
	p->note = note;
	p->note_len = notelen;
	p->note_tag = tag;
	p->flags = flags;
	p->context = (uintptr_t)context;
	return weft_post(WEFT_OBJ(ep, struct weft_ep_obj), WEFT_PLANE_NOTE, p);
}

ssize_t weft_token_post(struct weft_list *list, uint32_t op, const void *picks, size_t count, const void *note,
			size_t notelen, uint64_t flags, void *context)
{
	struct weft_token_obj *o = weft_token_list_of(list);
	bool read = op & WEFT_READ;
	struct weft_post p; /* what is not set here is not read */

	if (!o || op & ~(WEFT_READ | WEFT_PICK_BITS | WEFT_NOTE_ON_ERROR) || count > WEFT_LIST_MAX)
		return -FI_EINVAL;
	if (!o->one.is || picks || !(read ? o->one.read : o->one.write) || (!note && flags & ~FLAGS))
		return weftGoTokenPost(o->handle, op, (void *)picks, count, (void *)note, notelen, flags, context);
	p.list = o->handle;
	p.op = op;
	p.buf = o->one.local.iov_base;
	p.len = o->one.local.iov_len;
	p.dest = o->one.dest;
	p.header = o->one.remote.addr;
	p.key = o->one.remote.key;
	p.flags = flags;
	p.context = (uintptr_t)context;
	p.kind = read ? WEFT_POST_READ : 0;
	if (!note)
		return weft_post(WEFT_OBJ(o->ep, struct weft_ep_obj), WEFT_PLANE_RMA, &p);
	return post_note(o->ep, &p, note, notelen, atomic_load_explicit(&o->tag, memory_order_relaxed), flags, context);
}

ssize_t weft_token_notify(struct fid_ep *ep, fi_addr_t dest, uint64_t tag, const void *note, size_t notelen,
			  uint64_t flags, void *context)
{
	struct weft_post p;

	p.dest = dest;
	p.kind = WEFT_POST_ALONE;
	return weft_token_endpoint(ep) ? post_note(ep, &p, note, notelen, tag, flags, context) : -FI_EINVAL;
}

/* Has the data plane take notifications: *rc is what notes returns. False: the runtime does. */
static bool take(struct weft_hot_ep *ep, struct weft_note *entries, size_t max, ssize_t *rc)
{
	struct weft_note_take t = { .ep = ep, .entries = (struct weft_hot_note *)entries, .left = max };
	const struct weft_hot_notes *n = ep->notes;
	enum weft_take_code code;

	*rc = 0;
	if (atomic_load_explicit(&n->head, memory_order_relaxed) == atomic_load_explicit(&n->tail, memory_order_relaxed) &&
	    !atomic_load_explicit(&n->unexpected, memory_order_relaxed))
		return true;
	while ((code = (enum weft_take_code)weft_plane_call(WEFT_PLANE_TAKE, &t)) == WEFT_TAKE_CREDIT)
		weftGoTokenCredit(ep->handle, t.source);
	*rc = !t.taken && code == WEFT_TAKE_SHORT ? -FI_ETOOSMALL : (ssize_t)t.taken;
	return t.taken || code != WEFT_TAKE_GO;
}

ssize_t weft_token_notes(struct fid_ep *ep, struct weft_note *entries, size_t max)
{
	struct weft_ep_obj *o = WEFT_OBJ(ep, struct weft_ep_obj);
	ssize_t rc;

	if (!weft_token_endpoint(ep))
		return -FI_EINVAL;
	for (size_t i = 0; i < max; i++)
		if (!entries[i].data && entries[i].size)
			return -FI_EINVAL;
	/* once more behind progress, if there are none */
	if (o->hot && o->hot->notes && take(o->hot, entries, max, &rc) &&
	    (rc || !weft_ep_progress(o) || take(o->hot, entries, max, &rc)))
		return rc;
	return weftGoTokenNotes(o->handle, entries, max);
}
