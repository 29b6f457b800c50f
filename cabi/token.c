/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Memory tokens (include/weft/token.h): notifications that have arrived. Posts are in posts_gen.c, the opening of lists
 * is in tokenlist.c; the other calls are Go's (shims/tables.txt).
 */
#include "hotpath.h"
#include "plane.h"
#include "token.h"

/* Has the data plane take notifications: *rc is what notes returns. False: the runtime does. */
static bool take(struct weft_hot_ep *ep, struct weft_note *entries, size_t max, ssize_t *rc)
{
	struct weft_note_take t = { .ep = ep, .entries = (struct weft_hot_note *)entries, .left = max };
	const struct weft_hot_notes *n = ep->notes;
	enum weft_take_code code;

	*rc = 0;
	if (atomic_load_explicit(&n->head, memory_order_relaxed) ==
		    atomic_load_explicit(&n->tail, memory_order_relaxed) &&
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
