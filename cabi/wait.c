/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Poll sets and fi_trywait.
 */
#include <stdlib.h>

#include "goapi.h"

#define POLL(p) WEFT_OBJ(p, struct weft_poll_obj)

/* 0 when it is safe to sleep on the wait objects of all fids; each of them is
 * armed then. -FI_EAGAIN when one has something to read. */
int weft_trywait(struct fid_fabric *, struct fid **fids, int count)
{
	if (count < 0 || (count && !fids))
		return -FI_EINVAL;
	for (int i = 0; i < count; i++) {
		uint64_t object = weft_handle_of(fids[i]);
		int rc = object ? weftGoTryWait(object) : -FI_EINVAL;

		if (rc)
			return rc;
	}
	return 0;
}

int weft_poll_add(struct fid_poll *pollset, struct fid *event_fid, uint64_t flags)
{
	uint64_t object = weft_handle_of(event_fid);

	if (!object)
		return -FI_EINVAL;
	return flags ? -FI_EBADFLAGS : weftGoPollAdd(POLL(pollset)->handle, object, event_fid->context);
}
