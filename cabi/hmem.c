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
#include "hmem.h"

#define EP(fid_ep) container_of(fid_ep, struct weft_ep_obj, fid)

/* ---- messages ---- */

static ssize_t send_vec(struct fid_ep *ep, const struct iovec *from, void *const *desc,
			size_t count, fi_addr_t dest, uint64_t tag, uint64_t data, uint64_t flags,
			void *context, uint32_t kind)
{
	struct iovec iov[WEFT_HMEM_LIMIT];
	int rc = weft_hmem_translate(ep, iov, from, desc, count);

	return rc ? rc : weft_post_slow(EP(ep), iov, count, &dest, tag, data, flags, context, kind);
}

static ssize_t recv_vec(struct fid_ep *ep, const struct iovec *from, void *const *desc,
			size_t count, fi_addr_t src, uint64_t tag, uint64_t ignore, uint64_t flags,
			void *context)
{
	struct iovec iov[WEFT_HMEM_LIMIT];
	int rc = weft_hmem_translate(ep, iov, from, desc, count);

	return rc ? rc : weft_recv_slow(EP(ep), iov, count, src, tag, ignore, flags, context);
}

static ssize_t h_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest,
		      void *context)
{
	struct iovec iov = { (void *)buf, len };

	if (!weft_hmem_special(&desc, 1))
		return weft_ops_msg.send(ep, buf, len, NULL, dest, context);
	return send_vec(ep, &iov, &desc, 1, dest, 0, 0, EP(ep)->tx_op_flags, context, 0);
}

static ssize_t h_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
		       fi_addr_t dest, void *context)
{
	if (!weft_hmem_special(desc, count))
		return weft_ops_msg.sendv(ep, iov, NULL, count, dest, context);
	return send_vec(ep, iov, desc, count, dest, 0, 0, EP(ep)->tx_op_flags, context, 0);
}

static ssize_t h_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	if (!msg || !weft_hmem_special(msg->desc, msg->iov_count))
		return weft_ops_msg.sendmsg(ep, msg, flags);
	return send_vec(ep, msg->msg_iov, msg->desc, msg->iov_count, msg->addr, 0, msg->data, flags,
			msg->context, flags & FI_REMOTE_CQ_DATA ? WEFT_POST_DATA : 0);
}

static ssize_t h_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
			  fi_addr_t dest, void *context)
{
	struct iovec iov = { (void *)buf, len };

	if (!weft_hmem_special(&desc, 1))
		return weft_ops_msg.senddata(ep, buf, len, NULL, data, dest, context);
	return send_vec(ep, &iov, &desc, 1, dest, 0, data, EP(ep)->tx_op_flags, context,
			WEFT_POST_DATA);
}

static ssize_t h_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src,
		      void *context)
{
	struct iovec iov = { buf, len };

	if (!weft_hmem_special(&desc, 1))
		return weft_msg_recv(ep, buf, len, NULL, src, context);
	return recv_vec(ep, &iov, &desc, 1, src, 0, 0, EP(ep)->rx_op_flags, context);
}

static ssize_t h_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
		       fi_addr_t src, void *context)
{
	if (!weft_hmem_special(desc, count))
		return weft_msg_recvv(ep, iov, NULL, count, src, context);
	return recv_vec(ep, iov, desc, count, src, 0, 0, EP(ep)->rx_op_flags, context);
}

static ssize_t h_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	if (!msg || !weft_hmem_special(msg->desc, msg->iov_count) || flags & WEFT_RECV_PRIVATE)
		return weft_msg_recvmsg(ep, msg, flags);
	return recv_vec(ep, msg->msg_iov, msg->desc, msg->iov_count, msg->addr, 0, 0, flags,
			msg->context);
}

static ssize_t h_tsend(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest,
		       uint64_t tag, void *context)
{
	struct iovec iov = { (void *)buf, len };

	if (!weft_hmem_special(&desc, 1))
		return weft_ops_tagged.send(ep, buf, len, NULL, dest, tag, context);
	return send_vec(ep, &iov, &desc, 1, dest, tag, 0, EP(ep)->tx_op_flags, context,
			WEFT_POST_TAGGED);
}

static ssize_t h_tsendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			fi_addr_t dest, uint64_t tag, void *context)
{
	if (!weft_hmem_special(desc, count))
		return weft_ops_tagged.sendv(ep, iov, NULL, count, dest, tag, context);
	return send_vec(ep, iov, desc, count, dest, tag, 0, EP(ep)->tx_op_flags, context,
			WEFT_POST_TAGGED);
}

static ssize_t h_tsendmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	if (!msg || !weft_hmem_special(msg->desc, msg->iov_count))
		return weft_ops_tagged.sendmsg(ep, msg, flags);
	return send_vec(ep, msg->msg_iov, msg->desc, msg->iov_count, msg->addr, msg->tag, msg->data,
			flags, msg->context,
			WEFT_POST_TAGGED | (flags & FI_REMOTE_CQ_DATA ? WEFT_POST_DATA : 0));
}

static ssize_t h_tsenddata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			   uint64_t data, fi_addr_t dest, uint64_t tag, void *context)
{
	struct iovec iov = { (void *)buf, len };

	if (!weft_hmem_special(&desc, 1))
		return weft_ops_tagged.senddata(ep, buf, len, NULL, data, dest, tag, context);
	return send_vec(ep, &iov, &desc, 1, dest, tag, data, EP(ep)->tx_op_flags, context,
			WEFT_POST_TAGGED | WEFT_POST_DATA);
}

static ssize_t h_trecv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src,
		       uint64_t tag, uint64_t ignore, void *context)
{
	struct iovec iov = { buf, len };

	if (!weft_hmem_special(&desc, 1))
		return weft_trecv(ep, buf, len, NULL, src, tag, ignore, context);
	return recv_vec(ep, &iov, &desc, 1, src, tag, ignore,
			EP(ep)->rx_op_flags | WEFT_RECV_TAGGED, context);
}

static ssize_t h_trecvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			fi_addr_t src, uint64_t tag, uint64_t ignore, void *context)
{
	if (!weft_hmem_special(desc, count))
		return weft_trecvv(ep, iov, NULL, count, src, tag, ignore, context);
	return recv_vec(ep, iov, desc, count, src, tag, ignore,
			EP(ep)->rx_op_flags | WEFT_RECV_TAGGED, context);
}

static ssize_t h_trecvmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	if (!msg || !weft_hmem_special(msg->desc, msg->iov_count) || flags & WEFT_RECV_PRIVATE)
		return weft_trecvmsg(ep, msg, flags);
	return recv_vec(ep, msg->msg_iov, msg->desc, msg->iov_count, msg->addr, msg->tag,
			msg->ignore, flags | WEFT_RECV_TAGGED, msg->context);
}

/* ---- reads and writes: Go's from the start, so only the addresses differ ---- */

static ssize_t h_readv(struct fid_ep *ep, const struct iovec *from, void **desc, size_t count,
		       fi_addr_t src, uint64_t addr, uint64_t key, void *context)
{
	struct iovec iov[WEFT_HMEM_LIMIT];
	int rc;

	if (!weft_hmem_special(desc, count))
		return weft_ops_rma.readv(ep, from, NULL, count, src, addr, key, context);
	rc = weft_hmem_translate(ep, iov, from, desc, count);
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
	struct iovec iov[WEFT_HMEM_LIMIT];
	int rc;

	if (!msg || !weft_hmem_special(msg->desc, msg->iov_count))
		return weft_ops_rma.readmsg(ep, msg, flags);
	copy = *msg;
	copy.msg_iov = iov;
	rc = weft_hmem_translate(ep, iov, msg->msg_iov, msg->desc, msg->iov_count);
	return rc ? rc : weft_ops_rma.readmsg(ep, &copy, flags);
}

static ssize_t h_writev(struct fid_ep *ep, const struct iovec *from, void **desc, size_t count,
			fi_addr_t dest, uint64_t addr, uint64_t key, void *context)
{
	struct iovec iov[WEFT_HMEM_LIMIT];
	int rc;

	if (!weft_hmem_special(desc, count))
		return weft_ops_rma.writev(ep, from, NULL, count, dest, addr, key, context);
	rc = weft_hmem_translate(ep, iov, from, desc, count);
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
	struct iovec iov[WEFT_HMEM_LIMIT];
	int rc;

	if (!msg || !weft_hmem_special(msg->desc, msg->iov_count))
		return weft_ops_rma.writemsg(ep, msg, flags);
	copy = *msg;
	copy.msg_iov = iov;
	rc = weft_hmem_translate(ep, iov, msg->msg_iov, msg->desc, msg->iov_count);
	return rc ? rc : weft_ops_rma.writemsg(ep, &copy, flags);
}

static ssize_t h_writedata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			   uint64_t data, fi_addr_t dest, uint64_t addr, uint64_t key,
			   void *context)
{
	struct iovec iov = { (void *)buf, len };
	int rc;

	if (!weft_hmem_special(&desc, 1))
		return weft_ops_rma.writedata(ep, buf, len, NULL, data, dest, addr, key, context);
	rc = weft_hmem_translate(ep, &iov, &iov, &desc, 1);
	return rc ? rc : weft_ops_rma.writedata(ep, iov.iov_base, len, NULL, data, dest, addr, key,
						context);
}

/* ---- the tables ---- */

struct fi_ops_msg weft_hmem_msg, weft_hmem_send_msg, weft_hmem_recv_msg;
struct fi_ops_tagged weft_hmem_tagged, weft_hmem_send_tagged, weft_hmem_recv_tagged;
struct fi_ops_rma weft_hmem_rma;
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
	weft_hmem_make_atomic();
	make_directions();
}

void weft_hmem_tables(void) { pthread_once(&once, make); }
