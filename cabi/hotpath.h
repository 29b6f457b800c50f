/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the C of each operation (posting.c, poll.c) shares with the rest of cabi.
 */
#ifndef WEFT_HOTPATH_H
#define WEFT_HOTPATH_H

#include <sys/types.h>
#include <sys/uio.h>

#include "goapi_gen.h"
#include "objects.h"
#include "../include/weft/hot.h"
#include "../include/weft/message.h"
#include "../include/weft/poll.h"
#include "../include/weft/post.h"
#include "../include/weft/ring.h"

/* What is kept of this thread: its line among the epoch readers, its counters, its polls (hot.Thread). */
extern __thread struct weft_hot_thread weft_self __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Gives this thread a number and a line, and reports whether there was a line left (threadnum.c). */
bool weft_thread_enroll(void);

/* Whether this thread has a line, which a posting thread needs. */
static inline bool weft_thread_posts(void)
{
	return __builtin_expect(weft_self.line != NULL, 1) || weft_thread_enroll();
}

/* Makes a copy between this process and another (poll.c). */
void weft_vm_copy(struct weft_copy *c);

/* What a progress thread does at a NULL-terminated list of endpoints, which stay open meanwhile, until there is work
 * that needs the runtime or that another thread does, nothing has come for idle ns, or most ns have passed. Returns
 * whether there was any work. */
bool weft_drive(struct weft_hot_ep *const *eps, uint64_t idle, uint64_t most);

/* Makes progress on one endpoint; returns whether there was some to make. */
bool weft_ep_progress(struct weft_ep_obj *o);

#endif
