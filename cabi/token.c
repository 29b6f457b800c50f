/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Memory tokens and lists (include/weft/token.h): the opening of lists, posts of those that are one read or write,
 * and notifications. The other calls are Go's (shims/tables.txt).
 */
#include "hotpath.h"
#include "posting.h"
#include "token.h"

#define SAME(field, other)                                                                     \
	_Static_assert(offsetof(struct weft_note, field) == offsetof(struct weft_hot_note, other) &&   \
			       sizeof(((struct weft_note *)0)->field) == sizeof(((struct weft_hot_note *)0)->other), \
		       "the data plane fills entries in")
SAME(data, data);
SAME(size, size);
SAME(len, len);
SAME(src, src);
SAME(tag, tag);
SAME(op, op);
SAME(err, err);
SAME(namelen, name_len);
SAME(name, name);
SAME(agent, agent);
_Static_assert(sizeof(struct weft_note) == sizeof(struct weft_hot_note), "and goes from one to the next");

#define OBJ(o) ((struct weft_token_obj *)(o))

uint64_t weft_token_endpoint(const struct fid_ep *ep)
{
	return ep && (ep->fid.fclass == FI_CLASS_EP || ep->fid.fclass == FI_CLASS_TX_CTX) ? weft_handle_of(&ep->fid) : 0;
}

int weft_token_list(struct fid_ep *ep, const struct weft_local_piece *local, const struct weft_remote_piece *remote,
		    size_t count, uint64_t flags, struct weft_list **list)
{
	struct weft_opened opened = { 0 };
	struct weft_token_obj *o;
	int rc;

	if (weft_forked())
		return weft_fork_refusal();
	if (flags)
		return -FI_EBADFLAGS;
	if (!local || !remote || !list)
		return -FI_EINVAL;
	o = weft_object_new(FI_CLASS_UNSPEC, NULL);
	if (!o)
		return -FI_ENOMEM;
	o->fid.ops = &weft_list_fi_ops;
	o->ep = ep;
	rc = weftGoTokenList(weft_token_endpoint(ep), (struct weft_local_piece *)local,
			     (struct weft_remote_piece *)remote, count, &opened.handle, &o->one);
	rc = weft_object_open(o, rc, &opened);
	if (!rc)
		*list = (struct weft_list *)o;
	return rc;
}

/* Flags of posts of lists, which are those that reads and writes have too, but for FI_INJECT. */
#define ONE_FLAGS                                                                                  \
	(FI_COMPLETION | FI_MORE | FI_FENCE | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE)

/* Posts a list of one element as the read or write that it is. */
static ssize_t post_one(struct weft_token_obj *o, bool read, uint64_t flags, void *context)
{
	struct fi_msg_rma msg = {
		.msg_iov = &o->one.local, .iov_count = 1, .addr = o->one.dest, .rma_iov = &o->one.remote,
		.rma_iov_count = 1, .context = context,
	};

	return read ? fi_readmsg(o->ep, &msg, flags) : fi_writemsg(o->ep, &msg, flags);
}

/* Has the data plane post a notification behind what p has, or alone. */
static ssize_t post_note(struct weft_ep_obj *o, struct weft_post *p, const void *note, size_t notelen, uint64_t tag,
			 uint64_t flags, void *context)
{
	p->note = note;
	p->note_len = notelen;
	p->note_tag = tag;
	p->flags = flags;
	p->context = (uintptr_t)context;
	return weft_post_direct(o, WEFT_PLANE_NOTE, p);
}

/* Posts a list of one element with a notification. WEFT_POST_TO_GO: the runtime does. */
static ssize_t post_noted(struct weft_token_obj *o, bool read, const void *note, size_t notelen, uint64_t flags,
			  void *context)
{
	struct weft_post p;
	ssize_t rc;

	p.buf = o->one.local.iov_base;
	p.len = o->one.local.iov_len;
	p.dest = o->one.dest;
	p.header = o->one.remote.addr;
	p.key = o->one.remote.key;
	p.kind = read ? WEFT_POST_READ : 0;
	rc = post_note(WEFT_OBJ(o->ep, struct weft_ep_obj), &p, note, notelen,
		       atomic_load_explicit(&o->tag, memory_order_relaxed), flags, context);
	if (rc != WEFT_POST_TO_NOTE)
		return rc;
	weftGoTokenNoted(o->handle, read ? WEFT_READ : WEFT_WRITE, (void *)note, notelen, flags, context);
	return 0;
}

ssize_t weft_token_post(struct weft_list *list, uint32_t op, const void *picks, size_t count, const void *note,
			size_t notelen, uint64_t flags, void *context)
{
	const struct weft_token_one *one = &OBJ(list)->one;

	if (weft_forked())
		return weft_fork_refusal();
	if (!list || list->fid.ops != &weft_list_fi_ops || op & ~(WEFT_READ | WEFT_PICK_BITS | WEFT_NOTE_ON_ERROR) ||
	    count > WEFT_LIST_MAX || (!picks && count) || (!note && notelen))
		return -FI_EINVAL;
	if (one->is && !note && !picks && !(flags & ~ONE_FLAGS) && (op & WEFT_READ ? one->read : one->write))
		return post_one(OBJ(list), op & WEFT_READ, flags, context);
	if (one->is && note && notelen <= WEFT_NOTE_MAX && !picks && (op & WEFT_READ ? one->read : one->write)) {
		ssize_t rc = post_noted(OBJ(list), op & WEFT_READ, note, notelen, flags, context);

		if (rc != WEFT_POST_TO_GO)
			return rc;
	}
	return weftGoTokenPost(OBJ(list)->handle, op, (void *)picks, count, (void *)note, notelen, flags, context);
}

int weft_token_tag(struct weft_list *list, uint64_t tag)
{
	if (weft_forked())
		return weft_fork_refusal();
	if (!list || list->fid.ops != &weft_list_fi_ops)
		return -FI_EINVAL;
	atomic_store_explicit(&OBJ(list)->tag, tag, memory_order_relaxed);
	return weftGoTokenTag(OBJ(list)->handle, tag);
}

ssize_t weft_token_notify(struct fid_ep *ep, fi_addr_t dest, uint64_t tag, const void *note, size_t notelen,
			  uint64_t flags, void *context)
{
	struct weft_post p; /* the data plane reads nothing that is not set here */
	ssize_t rc = WEFT_POST_TO_GO;

	p.dest = dest;
	p.kind = WEFT_POST_ALONE;
	if (weft_forked())
		return weft_fork_refusal();
	if (!weft_token_endpoint(ep) || (!note && notelen))
		return -FI_EINVAL;
	if (notelen <= WEFT_NOTE_MAX)
		rc = post_note(WEFT_OBJ(ep, struct weft_ep_obj), &p, note, notelen, tag, flags, context);
	if (rc != WEFT_POST_TO_GO)
		return rc;
	return weftGoTokenNotify(weft_token_endpoint(ep), dest, tag, (void *)note, notelen, flags, context);
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

/* The same, with progress if there are none. */
static bool take_or_progress(struct weft_ep_obj *o, struct weft_note *entries, size_t max, ssize_t *rc)
{
	bool done = o->hot && o->hot->notes && take(o->hot, entries, max, rc);

	if (done && !*rc && weft_ep_progress(o))
		done = take(o->hot, entries, max, rc);
	return done;
}

ssize_t weft_token_notes(struct fid_ep *ep, struct weft_note *entries, size_t max)
{
	ssize_t rc;

	if (weft_forked())
		return weft_fork_refusal();
	if (!weft_token_endpoint(ep) || (!entries && max))
		return -FI_EINVAL;
	for (size_t i = 0; i < max; i++)
		if (!entries[i].data && entries[i].size)
			return -FI_EINVAL;
	if (!take_or_progress(WEFT_OBJ(ep, struct weft_ep_obj), entries, max, &rc))
		rc = weftGoTokenNotes(weft_token_endpoint(ep), entries, max);
	return rc;
}
