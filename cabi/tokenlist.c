/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Lists of memory tokens (include/weft/token.h): their opening.
 */
#include "hotpath.h"
#include "token.h"

#define SAME(field, other) \
	_Static_assert(offsetof(struct weft_note, field) == offsetof(struct weft_hot_note, other) && \
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

uint64_t weft_token_endpoint(const struct fid_ep *ep)
{
	const uint64_t classes = 1 << FI_CLASS_EP | 1 << FI_CLASS_TX_CTX | 1 << FI_CLASS_RX_CTX;
	return ep && ep->fid.fclass < 64 && classes >> ep->fid.fclass & 1 ? weft_handle_of(&ep->fid) : 0;
}

int weft_token_list(struct fid_ep *ep, const struct weft_local_piece *local, const struct weft_remote_piece *remote,
		    size_t count, uint64_t flags, struct weft_list **list)
{
	struct weft_opened opened = { 0 };
	struct weft_token_obj *o;
	int rc;

	if (flags)
		return -FI_EBADFLAGS;
	o = weft_object_new(FI_CLASS_UNSPEC, NULL);
	if (!o)
		return -FI_ENOMEM;
	o->fid.ops = &weft_list_fi_ops;
	o->ep = ep;
	rc = weftGoTokenList(weft_token_endpoint(ep), (struct weft_local_piece *)local,
			     (struct weft_remote_piece *)remote, count, &opened.handle, &o->shape);
	rc = weft_object_open(o, rc, &opened);
	if (!rc)
		*list = (struct weft_list *)o;
	return rc;
}
