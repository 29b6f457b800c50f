/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Progress for other threads than those that read a queue or a counter (poll.c).
 */
#ifndef WEFT_PROGRESS_H
#define WEFT_PROGRESS_H

#include <stdbool.h>

#include "../include/weft/poll.h"

/* What a progress thread does at a NULL-terminated list of endpoints, which stay open meanwhile, until there is work
 * that needs the runtime or that another thread does, nothing has come for idle ns, or most ns have passed. Returns
 * whether there was any work. */
bool weft_drive(struct weft_hot_ep *const *eps, uint64_t idle, uint64_t most);

/* Yields if the thread has done nothing but poll since the last time. */
void weft_idle(void);

#endif
