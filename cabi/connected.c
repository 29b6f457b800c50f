/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Transfers of connected endpoints (FI_EP_MSG). They are those of other
 * endpoints with the one peer, address 0 of the endpoint's own address vector,
 * in place of the address that the caller gives: fi_msg(3) says that it is
 * ignored. Receives take any source as it is.
 */
#include "connected.h"
#include "hotpath.h"
#include "rma.h"

#define PEER 0

/* ---- messages ---- */

static ssize_t msg_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t,
			void *context)
{
	return weft_ops_msg.send(ep, buf, len, desc, PEER, context);
}

static ssize_t msg_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t, void *context)
{
	return weft_ops_msg.sendv(ep, iov, desc, count, PEER, context);
}

static ssize_t msg_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t)
{
	return weft_ops_msg.inject(ep, buf, len, PEER);
}

static ssize_t msg_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			    uint64_t data, fi_addr_t, void *context)
{
	return weft_ops_msg.senddata(ep, buf, len, desc, data, PEER, context);
}

static ssize_t msg_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
			      fi_addr_t)
{
	return weft_ops_msg.injectdata(ep, buf, len, data, PEER);
}

static ssize_t msg_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	struct fi_msg to_peer;

	if (!msg)
		return -FI_EINVAL;
	to_peer = *msg;
	to_peer.addr = PEER;
	return weft_ops_msg.sendmsg(ep, &to_peer, flags);
}

struct fi_ops_msg weft_connected_msg = {
	.size = sizeof(struct fi_ops_msg),
	.recv = weft_msg_recv,
	.recvv = weft_msg_recvv,
	.recvmsg = weft_msg_recvmsg,
	.send = msg_send,
	.sendv = msg_sendv,
	.sendmsg = msg_sendmsg,
	.inject = msg_inject,
	.senddata = msg_senddata,
	.injectdata = msg_injectdata,
};

/* ---- tagged messages ---- */

static ssize_t tag_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t,
			uint64_t tag, void *context)
{
	return weft_ops_tagged.send(ep, buf, len, desc, PEER, tag, context);
}

static ssize_t tag_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t, uint64_t tag, void *context)
{
	return weft_ops_tagged.sendv(ep, iov, desc, count, PEER, tag, context);
}

static ssize_t tag_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t,
			  uint64_t tag)
{
	return weft_ops_tagged.inject(ep, buf, len, PEER, tag);
}

static ssize_t tag_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			    uint64_t data, fi_addr_t, uint64_t tag, void *context)
{
	return weft_ops_tagged.senddata(ep, buf, len, desc, data, PEER, tag, context);
}

static ssize_t tag_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
			      fi_addr_t, uint64_t tag)
{
	return weft_ops_tagged.injectdata(ep, buf, len, data, PEER, tag);
}

static ssize_t tag_sendmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct fi_msg_tagged to_peer;

	if (!msg)
		return -FI_EINVAL;
	to_peer = *msg;
	to_peer.addr = PEER;
	return weft_ops_tagged.sendmsg(ep, &to_peer, flags);
}

struct fi_ops_tagged weft_connected_tagged = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = weft_trecv,
	.recvv = weft_trecvv,
	.recvmsg = weft_trecvmsg,
	.send = tag_send,
	.sendv = tag_sendv,
	.sendmsg = tag_sendmsg,
	.inject = tag_inject,
	.senddata = tag_senddata,
	.injectdata = tag_injectdata,
};

/* ---- one-sided operations ---- */

static ssize_t rma_read(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t,
			uint64_t addr, uint64_t key, void *context)
{
	return weft_ops_rma.read(ep, buf, len, desc, PEER, addr, key, context);
}

static ssize_t rma_readv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t, uint64_t addr, uint64_t key, void *context)
{
	return weft_ops_rma.readv(ep, iov, desc, count, PEER, addr, key, context);
}

static ssize_t rma_readmsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct fi_msg_rma to_peer;

	if (!msg)
		return -FI_EINVAL;
	to_peer = *msg;
	to_peer.addr = PEER;
	return weft_ops_rma.readmsg(ep, &to_peer, flags);
}

static ssize_t rma_write(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t,
			 uint64_t addr, uint64_t key, void *context)
{
	return weft_ops_rma.write(ep, buf, len, desc, PEER, addr, key, context);
}

static ssize_t rma_writev(struct fid_ep *ep, const struct iovec *iov, void **desc,
			  size_t count, fi_addr_t, uint64_t addr, uint64_t key, void *context)
{
	return weft_ops_rma.writev(ep, iov, desc, count, PEER, addr, key, context);
}

static ssize_t rma_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct fi_msg_rma to_peer;

	if (!msg)
		return -FI_EINVAL;
	to_peer = *msg;
	to_peer.addr = PEER;
	return weft_ops_rma.writemsg(ep, &to_peer, flags);
}

static ssize_t rma_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t,
			  uint64_t addr, uint64_t key)
{
	return weft_ops_rma.inject(ep, buf, len, PEER, addr, key);
}

static ssize_t rma_writedata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			     uint64_t data, fi_addr_t, uint64_t addr, uint64_t key,
			     void *context)
{
	return weft_ops_rma.writedata(ep, buf, len, desc, data, PEER, addr, key, context);
}

static ssize_t rma_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
			      fi_addr_t, uint64_t addr, uint64_t key)
{
	return weft_ops_rma.injectdata(ep, buf, len, data, PEER, addr, key);
}

struct fi_ops_rma weft_connected_rma = {
	.size = sizeof(struct fi_ops_rma),
	.read = rma_read,
	.readv = rma_readv,
	.readmsg = rma_readmsg,
	.write = rma_write,
	.writev = rma_writev,
	.writemsg = rma_writemsg,
	.inject = rma_inject,
	.writedata = rma_writedata,
	.injectdata = rma_injectdata,
};

/* ---- atomics ---- */

static ssize_t at_write(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			fi_addr_t, uint64_t addr, uint64_t key, enum fi_datatype datatype,
			enum fi_op op, void *context)
{
	return weft_ops_atomic.write(ep, buf, count, desc, PEER, addr, key, datatype, op,
				     context);
}

static ssize_t at_writev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
			 size_t count, fi_addr_t, uint64_t addr, uint64_t key,
			 enum fi_datatype datatype, enum fi_op op, void *context)
{
	return weft_ops_atomic.writev(ep, iov, desc, count, PEER, addr, key, datatype, op,
				      context);
}

static ssize_t at_writemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg, uint64_t flags)
{
	struct fi_msg_atomic to_peer;

	if (!msg)
		return -FI_EINVAL;
	to_peer = *msg;
	to_peer.addr = PEER;
	return weft_ops_atomic.writemsg(ep, &to_peer, flags);
}

static ssize_t at_inject(struct fid_ep *ep, const void *buf, size_t count, fi_addr_t,
			 uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op)
{
	return weft_ops_atomic.inject(ep, buf, count, PEER, addr, key, datatype, op);
}

static ssize_t at_readwrite(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			    void *result, void *result_desc, fi_addr_t, uint64_t addr,
			    uint64_t key, enum fi_datatype datatype, enum fi_op op,
			    void *context)
{
	return weft_ops_atomic.readwrite(ep, buf, count, desc, result, result_desc, PEER, addr,
					 key, datatype, op, context);
}

static ssize_t at_readwritev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
			     size_t count, struct fi_ioc *resultv, void **result_desc,
			     size_t result_count, fi_addr_t, uint64_t addr, uint64_t key,
			     enum fi_datatype datatype, enum fi_op op, void *context)
{
	return weft_ops_atomic.readwritev(ep, iov, desc, count, resultv, result_desc,
					  result_count, PEER, addr, key, datatype, op, context);
}

static ssize_t at_readwritemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
			       struct fi_ioc *resultv, void **result_desc, size_t result_count,
			       uint64_t flags)
{
	struct fi_msg_atomic to_peer;

	if (!msg)
		return -FI_EINVAL;
	to_peer = *msg;
	to_peer.addr = PEER;
	return weft_ops_atomic.readwritemsg(ep, &to_peer, resultv, result_desc, result_count,
					    flags);
}

static ssize_t at_compwrite(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			    const void *compare, void *compare_desc, void *result,
			    void *result_desc, fi_addr_t, uint64_t addr, uint64_t key,
			    enum fi_datatype datatype, enum fi_op op, void *context)
{
	return weft_ops_atomic.compwrite(ep, buf, count, desc, compare, compare_desc, result,
					 result_desc, PEER, addr, key, datatype, op, context);
}

static ssize_t at_compwritev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
			     size_t count, const struct fi_ioc *comparev, void **compare_desc,
			     size_t compare_count, struct fi_ioc *resultv, void **result_desc,
			     size_t result_count, fi_addr_t, uint64_t addr, uint64_t key,
			     enum fi_datatype datatype, enum fi_op op, void *context)
{
	return weft_ops_atomic.compwritev(ep, iov, desc, count, comparev, compare_desc,
					  compare_count, resultv, result_desc, result_count,
					  PEER, addr, key, datatype, op, context);
}

static ssize_t at_compwritemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
			       const struct fi_ioc *comparev, void **compare_desc,
			       size_t compare_count, struct fi_ioc *resultv,
			       void **result_desc, size_t result_count, uint64_t flags)
{
	struct fi_msg_atomic to_peer;

	if (!msg)
		return -FI_EINVAL;
	to_peer = *msg;
	to_peer.addr = PEER;
	return weft_ops_atomic.compwritemsg(ep, &to_peer, comparev, compare_desc,
					    compare_count, resultv, result_desc, result_count,
					    flags);
}

static int at_writevalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
			 size_t *count)
{
	return weft_ops_atomic.writevalid(ep, datatype, op, count);
}

static int at_readwritevalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
			     size_t *count)
{
	return weft_ops_atomic.readwritevalid(ep, datatype, op, count);
}

static int at_compwritevalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
			     size_t *count)
{
	return weft_ops_atomic.compwritevalid(ep, datatype, op, count);
}

struct fi_ops_atomic weft_connected_atomic = {
	.size = sizeof(struct fi_ops_atomic),
	.write = at_write,
	.writev = at_writev,
	.writemsg = at_writemsg,
	.inject = at_inject,
	.readwrite = at_readwrite,
	.readwritev = at_readwritev,
	.readwritemsg = at_readwritemsg,
	.compwrite = at_compwrite,
	.compwritev = at_compwritev,
	.compwritemsg = at_compwritemsg,
	.writevalid = at_writevalid,
	.readwritevalid = at_readwritevalid,
	.compwritevalid = at_compwritevalid,
};
