/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Reads and long writes of one piece that the posting thread does alone, by
 * cross-memory attach (rma_copy.c): what rma.c tries before it calls Go.
 */
#ifndef WEFT_RMA_COPY_H
#define WEFT_RMA_COPY_H

#include "objects.h"

struct weft_copy {
	void *buf;
	size_t len;
	fi_addr_t dest;
	uint64_t addr;
	uint64_t key;
	uint64_t flags;
	void *context;
	bool read;
	bool inject; /* no completion, whatever the flags */
};

/* Does an operation. 0, -FI_EAGAIN or WEFT_RMA_TO_GO: then nothing has completed. */
ssize_t weft_rma_copy(struct weft_ep_obj *o, const struct weft_copy *c);

#endif
