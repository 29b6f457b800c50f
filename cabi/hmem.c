/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The posting functions of endpoints that were opened with FI_HMEM. A
 * descriptor tells whether a buffer is memory of a device. If none is, the call is that of
 * any endpoint; else Go turns descriptors and addresses into addresses that say where
 * the memory is (provider/device.go), and the rest of the way is through Go.
 * Endpoints without FI_HMEM have other tables and pay for nothing here.
 *
 * The functions that inject have no descriptor: their buffers are the process's own.
 */
#include <string.h>

#include "goapi.h"
#include "hotpath.h"
#include "rma.h"

#define EP(fid_ep) container_of(fid_ep, struct weft_ep_obj, fid)

/* The most elements of a vector; what is longer goes on as it is and is refused. */
#define LIMIT WEFT_ATOMIC_IOV

/* Tells whether one of the buffers is memory of a device. */
static bool special(void *const *desc, size_t count)
{
	for (size_t i = 0; desc && i < count && count <= LIMIT; i++)
		if ((uintptr_t)desc[i] & WEFT_DESC_SPECIAL)
			return true;
	return false;
}

/* Copies a vector of at most LIMIT elements with its addresses translated. */
static int translate(struct weft_ep_obj *o, struct iovec *to, const struct iovec *from,
		     void *const *desc, size_t count)
{
	if (!from)
		return -FI_EINVAL;
	memcpy(to, from, count * sizeof(*to));
	return weftGoTranslate(o->handle, to, (void **)desc, count);
}

/* ---- messages ---- */

static ssize_t send_vec(struct fid_ep *ep, const struct iovec *from, void *const *desc,
			size_t count, fi_addr_t dest, uint64_t tag, uint64_t data, uint64_t flags,
			void *context, uint32_t kind)
{
	struct iovec iov[LIMIT];
	int rc = translate(EP(ep), iov, from, desc, count);

	return rc ? rc : weft_post_slow(EP(ep), iov, count, &dest, tag, data, flags, context, kind);
}

static ssize_t recv_vec(struct fid_ep *ep, const struct iovec *from, void *const *desc,
			size_t count, fi_addr_t src, uint64_t tag, uint64_t ignore, uint64_t flags,
			void *context)
{
	struct iovec iov[LIMIT];
	int rc = translate(EP(ep), iov, from, desc, count);

	return rc ? rc : weft_recv_slow(EP(ep), iov, count, src, tag, ignore, flags, context);
}

static ssize_t h_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest,
		      void *context)
{
	struct iovec iov = { (void *)buf, len };

	if (!special(&desc, 1))
		return weft_ops_msg.send(ep, buf, len, NULL, dest, context);
	return send_vec(ep, &iov, &desc, 1, dest, 0, 0, EP(ep)->tx_op_flags, context, 0);
}

static ssize_t h_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
		       fi_addr_t dest, void *context)
{
	if (!special(desc, count))
		return weft_ops_msg.sendv(ep, iov, NULL, count, dest, context);
	return send_vec(ep, iov, desc, count, dest, 0, 0, EP(ep)->tx_op_flags, context, 0);
}

static ssize_t h_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	if (!msg || !special(msg->desc, msg->iov_count))
		return weft_ops_msg.sendmsg(ep, msg, flags);
	return send_vec(ep, msg->msg_iov, msg->desc, msg->iov_count, msg->addr, 0, msg->data, flags,
			msg->context, flags & FI_REMOTE_CQ_DATA ? WEFT_SEND_DATA : 0);
}

static ssize_t h_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
			  fi_addr_t dest, void *context)
{
	struct iovec iov = { (void *)buf, len };

	if (!special(&desc, 1))
		return weft_ops_msg.senddata(ep, buf, len, NULL, data, dest, context);
	return send_vec(ep, &iov, &desc, 1, dest, 0, data, EP(ep)->tx_op_flags, context,
			WEFT_SEND_DATA);
}

static ssize_t h_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src,
		      void *context)
{
	struct iovec iov = { buf, len };

	if (!special(&desc, 1))
		return weft_msg_recv(ep, buf, len, NULL, src, context);
	return recv_vec(ep, &iov, &desc, 1, src, 0, 0, EP(ep)->rx_op_flags, context);
}

static ssize_t h_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
		       fi_addr_t src, void *context)
{
	if (!special(desc, count))
		return weft_msg_recvv(ep, iov, NULL, count, src, context);
	return recv_vec(ep, iov, desc, count, src, 0, 0, EP(ep)->rx_op_flags, context);
}

static ssize_t h_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	if (!msg || !special(msg->desc, msg->iov_count) || flags & WEFT_RECV_PRIVATE)
		return weft_msg_recvmsg(ep, msg, flags);
	return recv_vec(ep, msg->msg_iov, msg->desc, msg->iov_count, msg->addr, 0, 0, flags,
			msg->context);
}

static ssize_t h_tsend(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest,
		       uint64_t tag, void *context)
{
	struct iovec iov = { (void *)buf, len };

	if (!special(&desc, 1))
		return weft_ops_tagged.send(ep, buf, len, NULL, dest, tag, context);
	return send_vec(ep, &iov, &desc, 1, dest, tag, 0, EP(ep)->tx_op_flags, context,
			WEFT_SEND_TAGGED);
}

static ssize_t h_tsendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			fi_addr_t dest, uint64_t tag, void *context)
{
	if (!special(desc, count))
		return weft_ops_tagged.sendv(ep, iov, NULL, count, dest, tag, context);
	return send_vec(ep, iov, desc, count, dest, tag, 0, EP(ep)->tx_op_flags, context,
			WEFT_SEND_TAGGED);
}

static ssize_t h_tsendmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	if (!msg || !special(msg->desc, msg->iov_count))
		return weft_ops_tagged.sendmsg(ep, msg, flags);
	return send_vec(ep, msg->msg_iov, msg->desc, msg->iov_count, msg->addr, msg->tag, msg->data,
			flags, msg->context,
			WEFT_SEND_TAGGED | (flags & FI_REMOTE_CQ_DATA ? WEFT_SEND_DATA : 0));
}

static ssize_t h_tsenddata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			   uint64_t data, fi_addr_t dest, uint64_t tag, void *context)
{
	struct iovec iov = { (void *)buf, len };

	if (!special(&desc, 1))
		return weft_ops_tagged.senddata(ep, buf, len, NULL, data, dest, tag, context);
	return send_vec(ep, &iov, &desc, 1, dest, tag, data, EP(ep)->tx_op_flags, context,
			WEFT_SEND_TAGGED | WEFT_SEND_DATA);
}

static ssize_t h_trecv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src,
		       uint64_t tag, uint64_t ignore, void *context)
{
	struct iovec iov = { buf, len };

	if (!special(&desc, 1))
		return weft_trecv(ep, buf, len, NULL, src, tag, ignore, context);
	return recv_vec(ep, &iov, &desc, 1, src, tag, ignore,
			EP(ep)->rx_op_flags | WEFT_RECV_TAGGED, context);
}

static ssize_t h_trecvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			fi_addr_t src, uint64_t tag, uint64_t ignore, void *context)
{
	if (!special(desc, count))
		return weft_trecvv(ep, iov, NULL, count, src, tag, ignore, context);
	return recv_vec(ep, iov, desc, count, src, tag, ignore,
			EP(ep)->rx_op_flags | WEFT_RECV_TAGGED, context);
}

static ssize_t h_trecvmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	if (!msg || !special(msg->desc, msg->iov_count) || flags & WEFT_RECV_PRIVATE)
		return weft_trecvmsg(ep, msg, flags);
	return recv_vec(ep, msg->msg_iov, msg->desc, msg->iov_count, msg->addr, msg->tag,
			msg->ignore, flags | WEFT_RECV_TAGGED, msg->context);
}

/* ---- reads and writes: Go's from the start, so only the addresses differ ---- */

static ssize_t h_readv(struct fid_ep *ep, const struct iovec *from, void **desc, size_t count,
		       fi_addr_t src, uint64_t addr, uint64_t key, void *context)
{
	struct iovec iov[LIMIT];
	int rc;

	if (!special(desc, count))
		return weft_ops_rma.readv(ep, from, NULL, count, src, addr, key, context);
	rc = translate(EP(ep), iov, from, desc, count);
	return rc ? rc : weft_ops_rma.readv(ep, iov, NULL, count, src, addr, key, context);
}

static ssize_t h_read(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src,
		      uint64_t addr, uint64_t key, void *context)
{
	struct iovec iov = { buf, len };

	return h_readv(ep, &iov, &desc, 1, src, addr, key, context);
}

static ssize_t h_readmsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct fi_msg_rma copy;
	struct iovec iov[LIMIT];
	int rc;

	if (!msg || !special(msg->desc, msg->iov_count))
		return weft_ops_rma.readmsg(ep, msg, flags);
	copy = *msg;
	copy.msg_iov = iov;
	rc = translate(EP(ep), iov, msg->msg_iov, msg->desc, msg->iov_count);
	return rc ? rc : weft_ops_rma.readmsg(ep, &copy, flags);
}

static ssize_t h_writev(struct fid_ep *ep, const struct iovec *from, void **desc, size_t count,
			fi_addr_t dest, uint64_t addr, uint64_t key, void *context)
{
	struct iovec iov[LIMIT];
	int rc;

	if (!special(desc, count))
		return weft_ops_rma.writev(ep, from, NULL, count, dest, addr, key, context);
	rc = translate(EP(ep), iov, from, desc, count);
	return rc ? rc : weft_ops_rma.writev(ep, iov, NULL, count, dest, addr, key, context);
}

static ssize_t h_write(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest,
		       uint64_t addr, uint64_t key, void *context)
{
	struct iovec iov = { (void *)buf, len };

	return h_writev(ep, &iov, &desc, 1, dest, addr, key, context);
}

static ssize_t h_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct fi_msg_rma copy;
	struct iovec iov[LIMIT];
	int rc;

	if (!msg || !special(msg->desc, msg->iov_count))
		return weft_ops_rma.writemsg(ep, msg, flags);
	copy = *msg;
	copy.msg_iov = iov;
	rc = translate(EP(ep), iov, msg->msg_iov, msg->desc, msg->iov_count);
	return rc ? rc : weft_ops_rma.writemsg(ep, &copy, flags);
}

static ssize_t h_writedata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			   uint64_t data, fi_addr_t dest, uint64_t addr, uint64_t key,
			   void *context)
{
	struct iovec iov = { (void *)buf, len };
	int rc;

	if (!special(&desc, 1))
		return weft_ops_rma.writedata(ep, buf, len, NULL, data, dest, addr, key, context);
	rc = translate(EP(ep), &iov, &iov, &desc, 1);
	return rc ? rc : weft_ops_rma.writedata(ep, iov.iov_base, len, NULL, data, dest, addr, key,
						context);
}

/* ---- atomics ---- */

/* Copies a vector of elements with its addresses translated, if it needs that;
 * *at is then the copy. */
static int translate_ioc(struct fid_ep *ep, const struct fi_ioc **at, struct fi_ioc *copy,
			 void *const *desc, size_t count, enum fi_datatype datatype)
{
	struct iovec iov[LIMIT];
	size_t size = weft_datatype_size(datatype), i;
	int rc;

	if (!special(desc, count) || !size)
		return 0;
	if (!*at)
		return -FI_EINVAL;
	for (i = 0; i < count; i++) {
		if ((*at)[i].count > SIZE_MAX / 64)
			return -FI_EINVAL;
		iov[i] = (struct iovec){ (*at)[i].addr, (*at)[i].count * size };
	}
	rc = translate(EP(ep), iov, iov, desc, count);
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
	struct fi_ioc copy[LIMIT];
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
	struct fi_ioc copy[LIMIT];
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
	struct fi_ioc copy[LIMIT], result_copy[LIMIT];
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
	struct fi_ioc copy[LIMIT], result_copy[LIMIT];
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
	struct fi_ioc copy[LIMIT], compare_copy[LIMIT], result_copy[LIMIT];
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
	struct fi_ioc copy[LIMIT], compare_copy[LIMIT], result_copy[LIMIT];
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

/* ---- the tables ---- */

struct fi_ops_msg weft_hmem_msg, weft_hmem_send_msg, weft_hmem_recv_msg;
struct fi_ops_tagged weft_hmem_tagged, weft_hmem_send_tagged, weft_hmem_recv_tagged;
struct fi_ops_rma weft_hmem_rma;
struct fi_ops_atomic weft_hmem_atomic;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Contexts of scalable endpoints and shared ones have one direction. */
static void make_directions(void)
{
	weft_hmem_send_msg = weft_hmem_msg;
	weft_hmem_send_msg.recv = weft_nosys_msg.recv;
	weft_hmem_send_msg.recvv = weft_nosys_msg.recvv;
	weft_hmem_send_msg.recvmsg = weft_nosys_msg.recvmsg;
	weft_hmem_send_tagged = weft_hmem_tagged;
	weft_hmem_send_tagged.recv = weft_nosys_tagged.recv;
	weft_hmem_send_tagged.recvv = weft_nosys_tagged.recvv;
	weft_hmem_send_tagged.recvmsg = weft_nosys_tagged.recvmsg;
	weft_hmem_recv_msg = weft_nosys_msg;
	weft_hmem_recv_msg.recv = h_recv;
	weft_hmem_recv_msg.recvv = h_recvv;
	weft_hmem_recv_msg.recvmsg = h_recvmsg;
	weft_hmem_recv_tagged = weft_nosys_tagged;
	weft_hmem_recv_tagged.recv = h_trecv;
	weft_hmem_recv_tagged.recvv = h_trecvv;
	weft_hmem_recv_tagged.recvmsg = h_trecvmsg;
}

static void make(void)
{
	weft_hmem_msg = weft_ops_msg; /* for the calls that inject */
	weft_hmem_msg.send = h_send;
	weft_hmem_msg.sendv = h_sendv;
	weft_hmem_msg.sendmsg = h_sendmsg;
	weft_hmem_msg.senddata = h_senddata;
	weft_hmem_msg.recv = h_recv;
	weft_hmem_msg.recvv = h_recvv;
	weft_hmem_msg.recvmsg = h_recvmsg;
	weft_hmem_tagged = weft_ops_tagged;
	weft_hmem_tagged.send = h_tsend;
	weft_hmem_tagged.sendv = h_tsendv;
	weft_hmem_tagged.sendmsg = h_tsendmsg;
	weft_hmem_tagged.senddata = h_tsenddata;
	weft_hmem_tagged.recv = h_trecv;
	weft_hmem_tagged.recvv = h_trecvv;
	weft_hmem_tagged.recvmsg = h_trecvmsg;
	weft_hmem_rma = weft_ops_rma;
	weft_hmem_rma.read = h_read;
	weft_hmem_rma.readv = h_readv;
	weft_hmem_rma.readmsg = h_readmsg;
	weft_hmem_rma.write = h_write;
	weft_hmem_rma.writev = h_writev;
	weft_hmem_rma.writemsg = h_writemsg;
	weft_hmem_rma.writedata = h_writedata;
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
	make_directions();
}

void weft_hmem_tables(void) { pthread_once(&once, make); }
