/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Posting of atomic operations: struct fi_ops_atomic and fi_query_atomic.
 */
#include <string.h>

#include "posting.h"
#include "rma.h"
#include "posting.h"
#include "trace.h"

#define EP(fid_ep) WEFT_OBJ(fid_ep, struct weft_ep_obj)

enum { /* package provider/atomics' kinds */
	PLAIN = WEFT_ATOMIC_PLAIN,
	FETCHING = WEFT_ATOMIC_FETCH,
	COMPARING = WEFT_ATOMIC_COMPARE,
};

#define NOT_FOR_ATOMICS FI_MATCH_COMPLETE

/* The size of an element; 0 for an unknown datatype, which Go refuses. */
static size_t datatype_size(int datatype)
{
	static const uint8_t size[] = { 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16, 16, 32, 16, 16, 2, 2 };

	return datatype >= 0 && (size_t)datatype < sizeof(size) ? size[datatype] : 0;
}

/* Vectors of an operation, in elements as the application gives them. */
struct atomic {
	const struct fi_ioc *operand;
	size_t operands;
	const struct fi_ioc *compare;
	size_t compares;
	const struct fi_ioc *result;
	size_t results;
	const struct fi_rma_ioc *remote;
	size_t remotes;
};

static bool bytes_of(struct iovec *to, uint32_t *n, const struct fi_ioc *from, size_t count,
		     size_t size)
{
	size_t i;

	if (count > WEFT_ATOMIC_IOV || (!from && count))
		return false;
	for (i = 0; i < count; i++) {
		if (from[i].count > SIZE_MAX / 64)
			return false;
		to[i] = (struct iovec){ from[i].addr, from[i].count * size };
	}
	*n = count;
	return true;
}

static int convert(const struct atomic *a, struct weft_atomic_args *args)
{
	size_t size = datatype_size(args->datatype), i;

	if (!size)
		return -FI_EOPNOTSUPP;
	if (a->remotes > WEFT_ATOMIC_IOV || (!a->remote && a->remotes) ||
	    !bytes_of(args->operand, &args->operands, a->operand, a->operands, size) ||
	    !bytes_of(args->compare, &args->compares, a->compare, a->compares, size) ||
	    !bytes_of(args->result, &args->results, a->result, a->results, size))
		return -FI_EINVAL;
	if (args->op == FI_ATOMIC_READ)
		args->operands = 0; /* its buffer is ignored */
	for (i = 0; i < a->remotes; i++) {
		if (a->remote[i].count > SIZE_MAX / 64)
			return -FI_EINVAL;
		args->remote[i] = (struct fi_rma_iov){ a->remote[i].addr, a->remote[i].count * size,
						       a->remote[i].key };
	}
	args->remotes = a->remotes;
	return 0;
}

/* An operation on one element, if it can do without Go. */
static ssize_t post_one(struct weft_ep_obj *o, const struct atomic *a, const struct weft_atomic_args *args)
{
	struct weft_post p; /* the data plane reads nothing that is not set here */

	if (args->op < 0 || args->op > UINT8_MAX || args->datatype < 0 || args->datatype > UINT8_MAX)
		return WEFT_POST_TO_GO;
	if (a->remotes != 1 || !a->remote || a->remote->count != 1 || a->operands > 1 || a->compares > 1 || a->results > 1)
		return WEFT_POST_TO_GO;
	if ((a->operands && (!a->operand || a->operand->count != 1)) ||
	    (a->compares && (!a->compare || a->compare->count != 1)) ||
	    (a->results && (!a->result || a->result->count != 1)))
		return WEFT_POST_TO_GO;
	p.buf = a->operands ? a->operand->addr : NULL;
	p.dest = args->dest;
	p.header = a->remote->addr;
	p.flags = args->flags;
	p.context = args->context;
	p.kind = args->inject ? WEFT_POST_INJECT : 0;
	p.key = a->remote->key;
	p.compare = a->compares ? a->compare->addr : NULL;
	p.result = a->results ? a->result->addr : NULL;
	p.op = (uint8_t)args->op;
	p.datatype = (uint8_t)args->datatype;
	p.atomic = (uint8_t)args->kind;
	return weft_post(o, WEFT_PLANE_ATOMIC, &p);
}

static ssize_t post(struct weft_ep_obj *o, const struct atomic *a, struct weft_atomic_args *args)
{
	ssize_t rc = post_one(o, a, args);

	if (rc != WEFT_POST_TO_GO)
		return rc;
	rc = convert(a, args);
	return rc ? rc : weftGoAtomic(o->handle, args);
}

/* The vectors of an application's structures. */
static struct atomic vectors(const struct fi_msg_atomic *msg, const struct fi_msg_fetch *fetch,
			     const struct fi_msg_compare *compare)
{
	struct atomic a = { .operand = msg->msg_iov, .operands = msg->iov_count,
			    .remote = msg->rma_iov, .remotes = msg->rma_iov_count };

	if (fetch) {
		a.result = fetch->msg_iov;
		a.results = fetch->iov_count;
	}
	if (compare) {
		a.compare = compare->msg_iov;
		a.compares = compare->iov_count;
	}
	return a;
}

int weft_atomic_args(struct weft_atomic_args *args, const struct fi_msg_atomic *msg,
		     const struct fi_msg_fetch *fetch, const struct fi_msg_compare *compare,
		     uint64_t flags)
{
	struct atomic a;

	if (!msg)
		return -FI_EINVAL;
	a = vectors(msg, fetch, compare);
	*args = (struct weft_atomic_args){
		.dest = msg->addr, .flags = flags, .context = (uintptr_t)msg->context,
		.op = msg->op, .datatype = msg->datatype,
		.kind = compare ? COMPARING : fetch ? FETCHING : PLAIN,
	};
	return convert(&a, args);
}

static ssize_t post_msg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
			const struct fi_msg_fetch *fetch, const struct fi_msg_compare *compare,
			uint64_t flags)
{
	struct weft_atomic_args args;
	int rc = weft_atomic_args(&args, msg, fetch, compare, flags);

	return rc ? rc : weftGoAtomic(EP(ep)->handle, &args);
}

size_t weft_ioc_sum(const struct fi_ioc *iov, size_t count)
{
	size_t i, n = 0;

	for (i = 0; iov && i < count && i < WEFT_ATOMIC_IOV; i++)
		n += iov[i].count;
	return n;
}

/* The forms that name one address, the only element of msg->rma_iov. */
static inline ssize_t post_at(struct fid_ep *ep, const struct fi_msg_atomic *msg, const struct fi_msg_fetch *fetch,
			      const struct fi_msg_compare *compare, bool inject)
{
	struct fi_rma_ioc remote = *msg->rma_iov;
	struct atomic a = vectors(msg, fetch, compare);
	struct weft_atomic_args args = {
		.dest = msg->addr, .flags = EP(ep)->tx_op_flags & ~(NOT_FOR_ATOMICS | (fetch ? FI_INJECT : 0)),
		.context = (uintptr_t)msg->context, .op = msg->op, .datatype = msg->datatype,
		.kind = compare ? COMPARING : fetch ? FETCHING : PLAIN, .inject = inject,
	};

	if (inject)
		args.flags = weft_inject_flags(EP(ep), false);
	remote.count = fetch && !compare ? weft_ioc_sum(a.result, a.results) : weft_ioc_sum(a.operand, a.operands);
	a.remote = &remote;
	a.remotes = 1;
	return post(EP(ep), &a, &args);
}

/* ---- what there is ---- */

static int valid(uint32_t kind, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	size_t n;

	return weftGoAtomicCount(kind, datatype, op, count ? count : &n);
}

#include "atomic_gen.h"
