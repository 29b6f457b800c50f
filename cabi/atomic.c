/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Posting of atomic operations: struct fi_ops_atomic.
 */
#include "posting.h"
#include "rma.h"

#define EP(fid_ep) WEFT_OBJ(fid_ep, struct weft_ep_obj)

/* Whether a vector is one element or none. */
static inline bool is_short(const struct fi_ioc *v, size_t n) { return !n || (n == 1 && v && v->count == 1); }

static inline void *address(const struct fi_ioc *v, size_t n) { return n ? v->addr : NULL; }

/* An operation on one element, if it can do without Go. kind is WEFT_POST_*. */
static inline ssize_t post_one(struct weft_ep_obj *o, const struct fi_msg_atomic *msg, const struct fi_msg_fetch *fetch,
			       const struct fi_msg_compare *compare, uint64_t flags, uint32_t kind)
{
	struct weft_post p; /* the data plane reads nothing that is not set here */

	if ((unsigned)msg->op > UINT8_MAX || (unsigned)msg->datatype > UINT8_MAX || msg->rma_iov->count != 1 ||
	    !is_short(msg->msg_iov, msg->iov_count) || (fetch && !is_short(fetch->msg_iov, fetch->iov_count)) ||
	    (compare && !is_short(compare->msg_iov, compare->iov_count)))
		return WEFT_POST_TO_GO;
	p.buf = address(msg->msg_iov, msg->iov_count);
	p.dest = msg->addr;
	p.header = msg->rma_iov->addr;
	p.flags = flags;
	p.context = (uintptr_t)msg->context;
	p.kind = kind;
	p.key = msg->rma_iov->key;
	p.compare = compare ? address(compare->msg_iov, compare->iov_count) : NULL;
	p.result = fetch ? address(fetch->msg_iov, fetch->iov_count) : NULL;
	p.op = (uint8_t)msg->op;
	p.datatype = (uint8_t)msg->datatype;
	p.atomic = compare ? WEFT_ATOMIC_COMPARE : fetch ? WEFT_ATOMIC_FETCH : WEFT_ATOMIC_PLAIN;
	return weft_post(o, WEFT_PLANE_ATOMIC, &p);
}

ssize_t weft_atomic_slow(struct fid_ep *ep, const struct fi_msg_atomic *msg, const struct fi_msg_fetch *fetch,
			 const struct fi_msg_compare *compare, uint64_t flags, uint32_t kind)
{
	struct weft_atomic_room room;

	if (!msg)
		return -FI_EINVAL;
	return weftGoAtomic(EP(ep)->handle, (struct fi_msg_atomic *)msg, (struct fi_msg_fetch *)fetch,
			    (struct fi_msg_compare *)compare, flags, kind, &room);
}

/* The elements of a vector in all. */
static inline size_t sum(const struct fi_ioc *iov, size_t count)
{
	size_t n = 0;

	for (size_t i = 0; iov && i < count && i < WEFT_ATOMIC_IOV; i++)
		n += iov[i].count;
	return n;
}

static inline ssize_t post_at(struct fid_ep *ep, const struct fi_msg_atomic *msg, const struct fi_msg_fetch *fetch,
			      const struct fi_msg_compare *compare, uint32_t kind)
{
	struct fi_rma_ioc remote = *msg->rma_iov;
	struct fi_msg_atomic whole = *msg;
	uint64_t flags = EP(ep)->tx_op_flags & ~(FI_MATCH_COMPLETE | (fetch ? FI_INJECT : 0));
	ssize_t rc = WEFT_POST_TO_GO;

	remote.count = fetch && !compare ? sum(fetch->msg_iov, fetch->iov_count) : sum(msg->msg_iov, msg->iov_count);
	whole.rma_iov = &remote;
	whole.rma_iov_count = 1;
	if (kind & WEFT_POST_INJECT)
		flags = weft_inject_flags(EP(ep), false);
	if (!(kind & WEFT_POST_DEVICE))
		rc = post_one(EP(ep), &whole, fetch, compare, flags, kind);
	return rc == WEFT_POST_TO_GO ? weft_atomic_slow(ep, &whole, fetch, compare, flags, kind) : rc;
}

ssize_t weft_atomic_at(struct fid_ep *ep, const struct fi_msg_atomic *msg, const struct fi_msg_fetch *fetch,
		       const struct fi_msg_compare *compare, uint32_t kind)
{
	return post_at(ep, msg, fetch, compare, kind);
}

#include "atomic_gen.h"
