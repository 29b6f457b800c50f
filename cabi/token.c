/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Memory tokens (include/weft/token.h): notifications that have arrived. Posts are in posts_gen.c, the opening of lists
 * is in tokenlist.c; the other calls are Go's (shims/tables.txt).
 */
#include "hotpath.h"
#include "plane.h"
#include "token.h"

ssize_t weft_token_notes(struct fid_ep *ep, struct weft_note *entries, size_t max)
{
	struct weft_ep_obj *o = WEFT_OBJ(ep, struct weft_ep_obj);
	struct weft_note_take t = { .entries = (struct weft_hot_note *)entries, .left = max };

	if (!weft_token_endpoint(ep))
		return -FI_EINVAL;
	t.ep = o->hot;
	for (;;) {
		switch ((enum weft_take_code)weft_plane_call(WEFT_PLANE_TAKE, &t)) {
		case WEFT_TAKE_DONE:
			return t.result;
		case WEFT_TAKE_GO:
			return weftGoTokenNotes(o->handle, entries, max);
		case WEFT_TAKE_POLL:
			t.found = weft_ep_progress(o);
			break;
		case WEFT_TAKE_CREDIT:
			weftGoTokenCredit(o->handle, t.source);
		}
	}
}
