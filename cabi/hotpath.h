/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the C hot path (post.c, poll.c) shares with the rest of cabi and with
 * the Go functions that it calls when a table of plain words says no.
 */
#ifndef WEFT_HOTPATH_H
#define WEFT_HOTPATH_H

#include <sys/types.h>
#include <sys/uio.h>

#include "objects.h"
#include "../include/weft/cq.h"
#include "../include/weft/hot.h"
#include "../include/weft/message.h"

/* Bits of weft_send_args.kind. */
#define WEFT_SEND_TAGGED 1u
#define WEFT_SEND_DATA 2u
#define WEFT_SEND_INJECT 4u

/* Bits of a receive's flags that only weft may set. */
#define WEFT_RECV_PRIVATE (WEFT_RECV_TAGGED | WEFT_RECV_IOV | WEFT_RECV_CANCEL)

struct weft_send_args {
	const struct iovec *iov;
	uint64_t count;
	uint64_t dest;
	uint64_t tag;
	uint64_t data;
	uint64_t flags;
	uint64_t context;
	uint32_t kind;
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

/* Go. Each returns 0 or a negative errno. */
extern int64_t weftGoSend(uint64_t ep, struct weft_send_args *args);
extern int64_t weftGoRecv(uint64_t rx, struct weft_recv_args *args);
extern void weftGoProgress(uint64_t rx);      /* the caller holds the lease */
extern void weftGoHousekeeping(uint64_t rx);  /* the caller holds the lease: timers, dead peers */
extern void weftGoWakePeer(uint64_t ep, uint32_t peer);
extern void weftGoWakeCQ(uint64_t cq);
extern void weftGoWakeCntr(uint64_t cntr);
extern void weftGoComplete(uint64_t cq, uint64_t context, uint64_t flags); /* of a transmit */
extern void weftGoFlushCQ(uint64_t cq);       /* completions held off the rings */

ssize_t weft_post_slow(struct weft_ep_obj *ep, const struct iovec *iov, size_t count,
		       const fi_addr_t *dest, uint64_t tag, uint64_t data, uint64_t flags,
		       void *context, uint32_t kind);
ssize_t weft_recv_slow(struct weft_ep_obj *ep, const struct iovec *iov, size_t count,
		       fi_addr_t src, uint64_t tag, uint64_t ignore, uint64_t flags, void *context);

/* Looks for work at every endpoint in a NULL-terminated list and does it;
 * returns whether there was any. Calls that find nothing run the timers now and
 * then. */
bool weft_progress(struct weft_hot_ep *const *eps, struct weft_idle *idle);

/* Delivers messages that fit the next posted receive without Go (deliver.c) and
 * returns how many. The caller holds the lease. */
uint32_t weft_deliver(struct weft_hot_ep *ep);

ssize_t weft_cq_read(struct fid_cq *cq, void *buf, size_t count);
ssize_t weft_cq_readfrom(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *src_addr);
uint64_t weft_cntr_read(struct fid_cntr *cntr);
uint64_t weft_cntr_readerr(struct fid_cntr *cntr);

static inline void weft_cntr_add(struct weft_hot_cntr *cntr, uint64_t n)
{
	atomic_fetch_add_explicit(&cntr->value, n, memory_order_seq_cst);
	if (cntr->flags & WEFT_CQ_WAITABLE &&
	    atomic_load_explicit(&cntr->armed, memory_order_relaxed))
		weftGoWakeCntr(cntr->handle);
}

extern struct fi_ops_msg weft_ops_msg;
extern struct fi_ops_tagged weft_ops_tagged;

#endif
