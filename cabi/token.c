/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fi_open_ops: memory tokens and lists (include/weft/token.h).
 */
#include <stdlib.h>
#include <string.h>

#include "token.h"

#define OBJ(o) ((struct weft_token_obj *)(o))

/* The handle of an open endpoint, 0: it is none of weft's. */
static uint64_t endpoint(const struct fid_ep *ep)
{
	return ep && (ep->fid.fclass == FI_CLASS_EP || ep->fid.fclass == FI_CLASS_TX_CTX) ?
		       weft_handle_of(&ep->fid) : 0;
}

static int token_pack(struct fid_mr *mr, const struct weft_token_attr *attr, void *token, size_t *len)
{
	if (weft_forked())
		return weft_fork_refusal();
	if (!mr || !len || (!token && *len) || (attr && attr->ep && !endpoint(attr->ep)))
		return -FI_EINVAL;
	return weftGoTokenPack(weft_handle_of(&mr->fid), (struct weft_token_attr *)attr, token, len);
}

static int token_text(const void *token, size_t len, char *text, size_t *size)
{
	if (weft_forked())
		return weft_fork_refusal();
	if (!token || !size || (!text && *size))
		return -FI_EINVAL;
	return weftGoTokenText((void *)token, len, text, size);
}

/* A C object for what Go is to open; its table tells what it is. */
static struct weft_token_obj *new_object(struct fi_ops *ops)
{
	struct weft_token_obj *o = weft_object_new(FI_CLASS_UNSPEC, NULL);

	if (o)
		o->fid.ops = ops;
	return o;
}

static int token_open(struct fid_ep *ep, const void *token, size_t len, struct weft_remote **remote)
{
	struct weft_opened opened = { 0 };
	struct weft_token_obj *o;
	int rc;

	if (weft_forked())
		return weft_fork_refusal();
	if (!endpoint(ep) || !remote || (!token && len))
		return -FI_EINVAL;
	o = new_object(&weft_remote_fi_ops);
	if (!o)
		return -FI_ENOMEM;
	rc = weft_object_open(o, weftGoTokenOpen(endpoint(ep), (void *)token, len, &opened.handle), &opened);
	if (!rc)
		*remote = (struct weft_remote *)o;
	return rc;
}

static int token_info(struct weft_remote *remote, struct weft_remote_info *info, size_t size)
{
	struct weft_remote_info all = { 0 };
	int rc;

	if (weft_forked())
		return weft_fork_refusal();
	if (!remote || remote->fid.ops != &weft_remote_fi_ops || !info)
		return -FI_EINVAL;
	rc = weftGoTokenInfo(OBJ(remote)->handle, &all);
	if (!rc)
		memcpy(info, &all, size < sizeof(all) ? size : sizeof(all));
	return rc;
}

/* Tells whether pieces are of weft's remote regions, and fit each other. */
static bool fit(const struct weft_local_piece *local, const struct weft_remote_piece *remote, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t here = local[i].count ? local[i].count : 1;
		size_t there = remote[i].count ? remote[i].count : 1;

		if (!remote[i].remote || remote[i].remote->fid.ops != &weft_remote_fi_ops || here != there ||
		    local[i].len != remote[i].len)
			return false;
	}
	return true;
}

static int token_list(struct fid_ep *ep, const struct weft_local_piece *local,
		      const struct weft_remote_piece *remote, size_t count, uint64_t flags,
		      struct weft_list **list)
{
	struct weft_opened opened = { 0 };
	struct weft_token_obj *o;
	int rc;

	if (weft_forked())
		return weft_fork_refusal();
	if (flags)
		return -FI_EBADFLAGS;
	if (!endpoint(ep) || !local || !remote || !list || count > WEFT_LIST_MAX || !fit(local, remote, count))
		return -FI_EINVAL;
	o = new_object(&weft_list_fi_ops);
	if (!o)
		return -FI_ENOMEM;
	o->ep = ep;
	rc = weftGoTokenList(endpoint(ep), (struct weft_local_piece *)local, (struct weft_remote_piece *)remote,
			     count, &opened.handle, &o->one);
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

static ssize_t token_post(struct weft_list *list, uint32_t op, const void *picks, size_t count,
			  const void *note, size_t notelen, uint64_t flags, void *context)
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

static int token_tag(struct weft_list *list, uint64_t tag)
{
	if (weft_forked())
		return weft_fork_refusal();
	if (!list || list->fid.ops != &weft_list_fi_ops)
		return -FI_EINVAL;
	return weftGoTokenTag(OBJ(list)->handle, tag);
}

static int token_agent(struct fid_ep *ep, const char *name)
{
	if (weft_forked())
		return weft_fork_refusal();
	if (!endpoint(ep) || !name)
		return -FI_EINVAL;
	return weftGoTokenAgent(endpoint(ep), (char *)name);
}

static ssize_t token_notify(struct fid_ep *ep, fi_addr_t dest, uint64_t tag, const void *note, size_t notelen,
			    uint64_t flags, void *context)
{
	if (weft_forked())
		return weft_fork_refusal();
	if (!endpoint(ep) || (!note && notelen))
		return -FI_EINVAL;
	return weftGoTokenNotify(endpoint(ep), dest, tag, (void *)note, notelen, flags, context);
}

static ssize_t token_notes(struct fid_ep *ep, struct weft_note *entries, size_t max)
{
	if (weft_forked())
		return weft_fork_refusal();
	if (!endpoint(ep) || (!entries && max))
		return -FI_EINVAL;
	for (size_t i = 0; i < max; i++)
		if (!entries[i].data && entries[i].size)
			return -FI_EINVAL;
	return weftGoTokenNotes(endpoint(ep), entries, max);
}

static int token_bind(struct fid_ep *ep, struct fid *fid, uint64_t flags)
{
	if (weft_forked())
		return weft_fork_refusal();
	if (!endpoint(ep) || !fid || !weft_handle_of(fid))
		return -FI_EINVAL;
	switch (fid->fclass) {
	case FI_CLASS_CQ:
		return flags ? -FI_EBADFLAGS : weftGoTokenBindCQ(endpoint(ep), weft_handle_of(fid));
	case FI_CLASS_CNTR:
		return flags & ~WEFT_NOTES_COUNTED ?
			       -FI_EBADFLAGS :
			       weftGoTokenBindCntr(endpoint(ep), weft_handle_of(fid), flags == WEFT_NOTES_COUNTED);
	}
	return -FI_EINVAL;
}

static struct weft_token_ops token_ops = {
	.size = sizeof(token_ops),
	.pack = token_pack,
	.text = token_text,
	.open = token_open,
	.info = token_info,
	.list = token_list,
	.post = token_post,
	.tag = token_tag,
	.agent = token_agent,
	.notify = token_notify,
	.notes = token_notes,
	.bind = token_bind,
};

int weft_token_ops_open(const struct fid *fid, const char *name, uint64_t flags, void **ops)
{
	if (strcmp(name, WEFT_TOKEN_OPS) || !weft_handle_of(fid))
		return -FI_ENOSYS;
	switch (fid->fclass) {
	case FI_CLASS_MR:
	case FI_CLASS_EP:
	case FI_CLASS_TX_CTX:
		break;
	default:
		return -FI_ENOSYS;
	}
	if (flags)
		return -FI_EBADFLAGS;
	if (weft_forked())
		return weft_fork_refusal();
	*ops = &token_ops;
	return 0;
}
