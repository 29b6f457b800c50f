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

size_t weft_datatype_size(int datatype)
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
	size_t size = weft_datatype_size(args->datatype), i;

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

int weft_atomic_args(struct weft_atomic_args *args, const struct fi_msg_atomic *msg,
		     const struct fi_msg_fetch *fetch, const struct fi_msg_compare *compare,
		     uint64_t flags)
{
	struct atomic a;

	if (!msg)
		return -FI_EINVAL;
	a = (struct atomic){ .operand = msg->msg_iov, .operands = msg->iov_count,
			     .remote = msg->rma_iov, .remotes = msg->rma_iov_count };
	if (fetch) {
		a.result = fetch->msg_iov;
		a.results = fetch->iov_count;
	}
	if (compare) {
		a.compare = compare->msg_iov;
		a.compares = compare->iov_count;
	}
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

ssize_t weft_at_writev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
			 fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype datatype,
			 enum fi_op op, void *context)
{
	struct fi_rma_ioc remote = { addr, weft_ioc_sum(iov, count), key };
	struct atomic a = { .operand = iov, .operands = count, .remote = &remote, .remotes = 1 };
	struct weft_atomic_args args = {
		.dest = dest, .flags = EP(ep)->tx_op_flags & ~NOT_FOR_ATOMICS,
		.context = (uintptr_t)context, .op = op, .datatype = datatype, .kind = PLAIN,
	};

	(void)desc;
	return post(EP(ep), &a, &args);
}

ssize_t weft_at_write(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype datatype,
			enum fi_op op, void *context)
{
	struct fi_ioc iov = { (void *)buf, count };

	(void)desc;
	return weft_at_writev(ep, &iov, NULL, 1, dest, addr, key, datatype, op, context);
}

ssize_t weft_at_writemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg, uint64_t flags)
{
	return post_msg(ep, msg, NULL, NULL, flags);
}

ssize_t weft_at_inject(struct fid_ep *ep, const void *buf, size_t count, fi_addr_t dest,
			 uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op)
{
	struct fi_ioc iov = { (void *)buf, count };
	struct fi_rma_ioc remote = { addr, count, key };
	struct atomic a = { .operand = &iov, .operands = 1, .remote = &remote, .remotes = 1 };
	struct weft_atomic_args args = {
		.dest = dest, .flags = weft_inject_flags(EP(ep), false), .op = op, .datatype = datatype,
		.kind = PLAIN, .inject = 1,
	};

	return post(EP(ep), &a, &args);
}

ssize_t weft_at_readwritev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
			     struct fi_ioc *resultv, void **result_desc, size_t result_count,
			     fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype datatype,
			     enum fi_op op, void *context)
{
	struct fi_rma_ioc remote = { addr, weft_ioc_sum(resultv, result_count), key };
	struct atomic a = { .operand = iov, .operands = count, .result = resultv,
			    .results = result_count, .remote = &remote, .remotes = 1 };
	struct weft_atomic_args args = {
		.dest = dest, .flags = EP(ep)->tx_op_flags & ~(NOT_FOR_ATOMICS | FI_INJECT),
		.context = (uintptr_t)context, .op = op, .datatype = datatype, .kind = FETCHING,
	};

	(void)desc;
	(void)result_desc;
	return post(EP(ep), &a, &args);
}

ssize_t weft_at_readwrite(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			    void *result, void *result_desc, fi_addr_t dest, uint64_t addr,
			    uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct fi_ioc iov = { (void *)buf, count }, res = { result, count };

	(void)desc;
	(void)result_desc;
	return weft_at_readwritev(ep, &iov, NULL, 1, &res, NULL, 1, dest, addr, key, datatype, op,
			     context);
}

ssize_t weft_at_readwritemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
			       struct fi_ioc *resultv, void **result_desc, size_t result_count,
			       uint64_t flags)
{
	struct fi_msg_fetch fetch = { .msg_iov = resultv, .iov_count = result_count };

	(void)result_desc;
	return post_msg(ep, msg, &fetch, NULL, flags);
}

ssize_t weft_at_compwritev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
			     const struct fi_ioc *comparev, void **compare_desc,
			     size_t compare_count, struct fi_ioc *resultv, void **result_desc,
			     size_t result_count, fi_addr_t dest, uint64_t addr, uint64_t key,
			     enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct fi_rma_ioc remote = { addr, weft_ioc_sum(iov, count), key };
	struct atomic a = { .operand = iov, .operands = count, .compare = comparev,
			    .compares = compare_count, .result = resultv, .results = result_count,
			    .remote = &remote, .remotes = 1 };
	struct weft_atomic_args args = {
		.dest = dest, .flags = EP(ep)->tx_op_flags & ~(NOT_FOR_ATOMICS | FI_INJECT),
		.context = (uintptr_t)context, .op = op, .datatype = datatype, .kind = COMPARING,
	};

	(void)desc;
	(void)compare_desc;
	(void)result_desc;
	return post(EP(ep), &a, &args);
}

ssize_t weft_at_compwrite(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			    const void *compare, void *compare_desc, void *result,
			    void *result_desc, fi_addr_t dest, uint64_t addr, uint64_t key,
			    enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct fi_ioc iov = { (void *)buf, count }, cmp = { (void *)compare, count };
	struct fi_ioc res = { result, count };

	(void)desc;
	(void)compare_desc;
	(void)result_desc;
	return weft_at_compwritev(ep, &iov, NULL, 1, &cmp, NULL, 1, &res, NULL, 1, dest, addr, key,
			     datatype, op, context);
}

ssize_t weft_at_compwritemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
			       const struct fi_ioc *comparev, void **compare_desc,
			       size_t compare_count, struct fi_ioc *resultv, void **result_desc,
			       size_t result_count, uint64_t flags)
{
	struct fi_msg_fetch fetch = { .msg_iov = resultv, .iov_count = result_count };
	struct fi_msg_compare compare = { .msg_iov = comparev, .iov_count = compare_count };

	(void)compare_desc;
	(void)result_desc;
	return post_msg(ep, msg, &fetch, &compare, flags);
}

/* ---- what there is ---- */

static int valid(uint32_t kind, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	size_t n;

	return weftGoAtomicCount(kind, datatype, op, count ? count : &n);
}

int weft_at_writevalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	(void)ep;
	return valid(PLAIN, datatype, op, count);
}

int weft_at_readwritevalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
			     size_t *count)
{
	(void)ep;
	return valid(FETCHING, datatype, op, count);
}

int weft_at_compwritevalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
			     size_t *count)
{
	(void)ep;
	return valid(COMPARING, datatype, op, count);
}

int weft_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
		      struct fi_atomic_attr *attr, uint64_t flags)
{
	uint32_t kind = PLAIN;
	size_t count;
	int rc;

	(void)domain;
	if (flags & ~(FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC | FI_TAGGED))
		return -FI_EBADFLAGS;
	if (flags & FI_TAGGED)
		return -FI_EOPNOTSUPP; /* there are no tagged atomics */
	if ((flags & FI_FETCH_ATOMIC) && (flags & FI_COMPARE_ATOMIC))
		return -FI_EBADFLAGS;
	if (flags & FI_FETCH_ATOMIC)
		kind = FETCHING;
	if (flags & FI_COMPARE_ATOMIC)
		kind = COMPARING;
	rc = weftGoAtomicCount(kind, datatype, op, &count);
	if (!rc && attr)
		*attr = (struct fi_atomic_attr){ count, weft_datatype_size(datatype) };
	return rc;
}
