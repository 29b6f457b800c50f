/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Waits that need no wait object, and fi_trywait.
 */
#include "goapi.h"
#include "hotpath.h"

#define CNTR(c) WEFT_OBJ(c, struct weft_cntr_obj)

/* Waits without a wait object, by reading. fi_cntr(3) calls that invalid, but
 * programs do it. */
static int cntr_poll(struct fid_cntr *c, uint64_t threshold, int timeout)
{
	struct weft_hot_cntr *hot = CNTR(c)->hot;
	uint64_t errors = atomic_load_explicit(&hot->errors, memory_order_acquire);
	int64_t start = weft_now();

	for (;;) {
		if (weft_cntr_read(c) >= threshold)
			return 0;
		if (atomic_load_explicit(&hot->errors, memory_order_acquire) != errors)
			return -FI_EAVAIL;
		if (timeout >= 0 && !weft_time_left(start, timeout))
			return -FI_ETIMEDOUT;
	}
}

int weft_cntr_wait(struct fid_cntr *c, uint64_t threshold, int timeout)
{
	if (CNTR(c)->wait.kind == FI_WAIT_NONE)
		return cntr_poll(c, threshold, timeout);
	return weftGoCntrWait(CNTR(c)->handle, threshold, timeout);
}

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
