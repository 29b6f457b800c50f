/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Waits that need no wait object, and fi_trywait.
 */
#include "goapi.h"
#include "hotpath.h"

#define CNTR(c) WEFT_OBJ(c, struct weft_cntr_obj)

/* Waits by reading: for a value that is reached, and without a wait object, which fi_cntr(3) calls invalid. */
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
	struct weft_cntr_obj *o = CNTR(c);
	bool reached = atomic_load_explicit(&o->hot->value, memory_order_acquire) >= threshold;

	if (o->wait.kind == FI_WAIT_NONE || (reached && o->wait.kind != FI_WAIT_SET))
		return cntr_poll(c, threshold, timeout); /* which serves peers all the same */
	return weftGoCntrWait(o->handle, threshold, timeout);
}

/* 0 when it is safe to sleep on the wait objects of all fids; each of them is
 * armed then. -FI_EAGAIN when one has something to read. */
int weft_trywait(struct fid_fabric *, struct fid **fids, int count)
{
	int rc = count < 0 || (count && !fids) ? -FI_EINVAL : 0;

	for (int i = 0; i < count && !rc; i++) {
		uint64_t object = weft_handle_of(fids[i]);

		rc = object ? weftGoTryWait(object) : -FI_EINVAL;
	}
	return rc;
}
