/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The posting functions for atomics of endpoints that were opened with FI_HMEM (hmem.c).
 */
#include "hmem.h"

/* Copies a vector of elements with its addresses translated, if it needs that;
 * *at is then the copy. */
static int translate_ioc(struct fid_ep *ep, const struct fi_ioc **at, struct fi_ioc *copy,
			 void *const *desc, size_t count, enum fi_datatype datatype)
{
	struct iovec iov[WEFT_HMEM_LIMIT];
	size_t size = weft_datatype_size(datatype), i;
	int rc;

	if (!weft_hmem_special(desc, count) || !size)
		return 0;
	if (!*at)
		return -FI_EINVAL;
	for (i = 0; i < count; i++) {
		if ((*at)[i].count > SIZE_MAX / 64)
			return -FI_EINVAL;
		iov[i] = (struct iovec){ (*at)[i].addr, (*at)[i].count * size };
	}
	rc = weft_hmem_translate(ep, iov, iov, desc, count);
	if (rc)
		return rc;
	for (i = 0; i < count; i++)
		copy[i] = (struct fi_ioc){ iov[i].iov_base, (*at)[i].count };
	*at = copy;
	return 0;
}

static ssize_t h_atomicv(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
			 fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype datatype,
			 enum fi_op op, void *context)
{
	struct fi_ioc copy[WEFT_HMEM_LIMIT];
	int rc = translate_ioc(ep, &iov, copy, desc, count, datatype);

	return rc ? rc : weft_ops_atomic.writev(ep, iov, NULL, count, dest, addr, key, datatype, op,
						context);
}

static ssize_t h_atomic(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype datatype,
			enum fi_op op, void *context)
{
	struct fi_ioc iov = { (void *)buf, count };

	return h_atomicv(ep, &iov, &desc, 1, dest, addr, key, datatype, op, context);
}

/* Translates what the message forms have in common. */
static int translate_msg(struct fid_ep *ep, struct fi_msg_atomic *msg, struct fi_ioc *copy)
{
	return translate_ioc(ep, &msg->msg_iov, copy, msg->desc, msg->iov_count, msg->datatype);
}

static ssize_t h_atomicmsg(struct fid_ep *ep, const struct fi_msg_atomic *msg, uint64_t flags)
{
	struct fi_ioc copy[WEFT_HMEM_LIMIT];
	struct fi_msg_atomic m;
	int rc;

	if (!msg)
		return -FI_EINVAL;
	m = *msg;
	rc = translate_msg(ep, &m, copy);
	return rc ? rc : weft_ops_atomic.writemsg(ep, &m, flags);
}

static ssize_t h_fetchv(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
			struct fi_ioc *resultv, void **result_desc, size_t result_count,
			fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype datatype,
			enum fi_op op, void *context)
{
	struct fi_ioc copy[WEFT_HMEM_LIMIT], result_copy[WEFT_HMEM_LIMIT];
	const struct fi_ioc *result = resultv;
	int rc = op == FI_ATOMIC_READ ? 0 : translate_ioc(ep, &iov, copy, desc, count, datatype);

	if (!rc)
		rc = translate_ioc(ep, &result, result_copy, result_desc, result_count, datatype);
	return rc ? rc : weft_ops_atomic.readwritev(ep, iov, NULL, count, (struct fi_ioc *)result,
						    NULL, result_count, dest, addr, key, datatype,
						    op, context);
}

static ssize_t h_fetch(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
		       void *result_desc, fi_addr_t dest, uint64_t addr, uint64_t key,
		       enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct fi_ioc iov = { (void *)buf, count }, res = { result, count };

	return h_fetchv(ep, &iov, &desc, 1, &res, &result_desc, 1, dest, addr, key, datatype, op,
			context);
}

static ssize_t h_fetchmsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
			  struct fi_ioc *resultv, void **result_desc, size_t result_count,
			  uint64_t flags)
{
	struct fi_ioc copy[WEFT_HMEM_LIMIT], result_copy[WEFT_HMEM_LIMIT];
	const struct fi_ioc *result = resultv;
	struct fi_msg_atomic m;
	int rc;

	if (!msg)
		return -FI_EINVAL;
	m = *msg;
	rc = m.op == FI_ATOMIC_READ ? 0 : translate_msg(ep, &m, copy);
	if (!rc)
		rc = translate_ioc(ep, &result, result_copy, result_desc, result_count, m.datatype);
	return rc ? rc : weft_ops_atomic.readwritemsg(ep, &m, (struct fi_ioc *)result, NULL,
						      result_count, flags);
}

static ssize_t h_comparev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
			  const struct fi_ioc *comparev, void **compare_desc, size_t compare_count,
			  struct fi_ioc *resultv, void **result_desc, size_t result_count,
			  fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype datatype,
			  enum fi_op op, void *context)
{
	struct fi_ioc copy[WEFT_HMEM_LIMIT], compare_copy[WEFT_HMEM_LIMIT], result_copy[WEFT_HMEM_LIMIT];
	const struct fi_ioc *result = resultv;
	int rc = translate_ioc(ep, &iov, copy, desc, count, datatype);

	if (!rc)
		rc = translate_ioc(ep, &comparev, compare_copy, compare_desc, compare_count, datatype);
	if (!rc)
		rc = translate_ioc(ep, &result, result_copy, result_desc, result_count, datatype);
	return rc ? rc : weft_ops_atomic.compwritev(ep, iov, NULL, count, comparev, NULL,
						    compare_count, (struct fi_ioc *)result, NULL,
						    result_count, dest, addr, key, datatype, op,
						    context);
}

static ssize_t h_compare(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			 const void *compare, void *compare_desc, void *result, void *result_desc,
			 fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype datatype,
			 enum fi_op op, void *context)
{
	struct fi_ioc iov = { (void *)buf, count }, cmp = { (void *)compare, count };
	struct fi_ioc res = { result, count };

	return h_comparev(ep, &iov, &desc, 1, &cmp, &compare_desc, 1, &res, &result_desc, 1, dest,
			  addr, key, datatype, op, context);
}

static ssize_t h_comparemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
			    const struct fi_ioc *comparev, void **compare_desc,
			    size_t compare_count, struct fi_ioc *resultv, void **result_desc,
			    size_t result_count, uint64_t flags)
{
	struct fi_ioc copy[WEFT_HMEM_LIMIT], compare_copy[WEFT_HMEM_LIMIT], result_copy[WEFT_HMEM_LIMIT];
	const struct fi_ioc *result = resultv;
	struct fi_msg_atomic m;
	int rc;

	if (!msg)
		return -FI_EINVAL;
	m = *msg;
	rc = translate_msg(ep, &m, copy);
	if (!rc)
		rc = translate_ioc(ep, &comparev, compare_copy, compare_desc, compare_count,
				   m.datatype);
	if (!rc)
		rc = translate_ioc(ep, &result, result_copy, result_desc, result_count, m.datatype);
	return rc ? rc : weft_ops_atomic.compwritemsg(ep, &m, comparev, NULL, compare_count,
						      (struct fi_ioc *)result, NULL, result_count,
						      flags);
}

struct fi_ops_atomic weft_hmem_atomic;

void weft_hmem_make_atomic(void)
{
	weft_hmem_atomic = weft_ops_atomic;
	weft_hmem_atomic.write = h_atomic;
	weft_hmem_atomic.writev = h_atomicv;
	weft_hmem_atomic.writemsg = h_atomicmsg;
	weft_hmem_atomic.readwrite = h_fetch;
	weft_hmem_atomic.readwritev = h_fetchv;
	weft_hmem_atomic.readwritemsg = h_fetchmsg;
	weft_hmem_atomic.compwrite = h_compare;
	weft_hmem_atomic.compwritev = h_comparev;
	weft_hmem_atomic.compwritemsg = h_comparemsg;
}
