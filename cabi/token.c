/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Memory tokens and lists (include/weft/token.h): the opening of lists, and the post of a list that is one read or
 * write. The other calls are Go's (shims/tables.txt).
 */
#include "token.h"

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
	return weftGoTokenPost(OBJ(list)->handle, op, (void *)picks, count, (void *)note, notelen, flags, context);
}
