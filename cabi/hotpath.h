/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the C hot path (post.c, recv.c, poll.c) shares with the rest of cabi and with
 * the Go functions that it calls when a table of plain words says no.
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

/* The number of this thread, which is also its line of counters: from 0 up, WEFT_STAT_LINES - 1 for all for whom
 * there is none left. A thread that ends gives its number back (threadnum.c). */
uint32_t weft_thread_enroll(void);

static inline uint32_t weft_thread_number(void)
{
	uint32_t n = weft_self.number;

	return __builtin_expect(n != 0, 1) ? n - 1 : weft_thread_enroll();
}

/* Bits of a receive's flags that only weft may set. */
#define WEFT_RECV_PRIVATE                                                                          \
	(WEFT_RECV_TAGGED | WEFT_RECV_IOV | WEFT_RECV_CANCEL | WEFT_RECV_WORK | WEFT_RECV_DEVICE)

struct weft_send_args {
	const struct iovec *iov;
	uint64_t count;
	uint64_t dest;
	uint64_t tag;
	uint64_t data;
	uint64_t flags;
	uint64_t context;
	uint32_t kind; /* WEFT_POST_* (post.h) */
};

struct weft_recv_args {
	const struct iovec *iov;
	uint64_t count;
	uint64_t src;
	uint64_t tag;
	uint64_t ignore;
	uint64_t flags; /* with WEFT_RECV_TAGGED */
	uint64_t context;
};

ssize_t weft_post_slow(struct weft_ep_obj *ep, const struct iovec *iov, size_t count,
		       const fi_addr_t *dest, uint64_t tag, uint64_t data, uint64_t flags,
		       void *context, uint32_t kind);
ssize_t weft_recv_slow(struct weft_ep_obj *ep, const struct iovec *iov, size_t count,
		       fi_addr_t src, uint64_t tag, uint64_t ignore, uint64_t flags, void *context);

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
