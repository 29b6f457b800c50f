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
#include "trace.h"
#include "../include/weft/hot.h"
#include "../include/weft/message.h"
#include "../include/weft/poll.h"
#include "../include/weft/post.h"
#include "../include/weft/ring.h"

/* What this thread has to remember. */
extern __thread struct weft_hot_thread weft_self __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Gives this thread a number and a line, and reports whether there was a line left (threadnum.c). */
bool weft_thread_enroll(void);

/* Whether this thread has a line, which who posts needs. */
static inline bool weft_thread_posts(void)
{
	return __builtin_expect(weft_self.poster != NULL, 1) || weft_thread_enroll();
}

/* Asks for a line that is to be written soon. (__builtin_prefetch fetches it to
 * be read, for lack of a compiler flag; the instruction is one of every x86-64
 * processor since 2005, a no-op on some.) */
static inline void weft_prefetch_write(const void *line)
{
#if defined(__x86_64__)
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
	__builtin_prefetch(line, 1);
#endif
}

/* Says that the thread waits for another, which may be on the same core. */
static inline void weft_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#endif
}

ssize_t weft_cq_read(struct fid_cq *cq, void *buf, size_t count);
ssize_t weft_cq_readfrom(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *src_addr);
uint64_t weft_cntr_read(struct fid_cntr *cntr);
uint64_t weft_cntr_readerr(struct fid_cntr *cntr);

WEFT_TRACED(weft_cq_read); WEFT_TRACED(weft_cq_readfrom);
WEFT_TRACED(weft_cntr_read); WEFT_TRACED(weft_cntr_readerr);

/* Makes progress on one endpoint; returns whether there was some to make. */
bool weft_ep_progress(struct weft_ep_obj *o);

#endif
