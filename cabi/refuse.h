/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Endpoint tables whose every function returns the same error. Included by
 * nosys.c and forked.c, which define REFUSE(name), the name of a table,
 * REFUSE_LINKAGE, static or nothing, and REFUSAL, the expression to return.
 */

/* ---- struct fi_ops_cm ---- */

static int cm_setname(fid_t, void *, size_t) { return REFUSAL; }
static int cm_getname(fid_t, void *, size_t *) { return REFUSAL; }
static int cm_getpeer(struct fid_ep *, void *, size_t *) { return REFUSAL; }
static int cm_connect(struct fid_ep *, const void *, const void *, size_t) { return REFUSAL; }
static int cm_listen(struct fid_pep *) { return REFUSAL; }
static int cm_accept(struct fid_ep *, const void *, size_t) { return REFUSAL; }
static int cm_reject(struct fid_pep *, fid_t, const void *, size_t) { return REFUSAL; }
static int cm_shutdown(struct fid_ep *, uint64_t) { return REFUSAL; }
static int cm_join(struct fid_ep *, const void *, uint64_t, struct fid_mc **, void *)
{
	return REFUSAL;
}

REFUSE_LINKAGE struct fi_ops_cm REFUSE(cm) = {
	.size = sizeof(struct fi_ops_cm),
	.setname = cm_setname,
	.getname = cm_getname,
	.getpeer = cm_getpeer,
	.connect = cm_connect,
	.listen = cm_listen,
	.accept = cm_accept,
	.reject = cm_reject,
	.shutdown = cm_shutdown,
	.join = cm_join,
};

/* ---- struct fi_ops_msg; fi_ops_tagged and fi_ops_rma share the shapes they can ---- */

static ssize_t msg_recv(struct fid_ep *, void *, size_t, void *, fi_addr_t, void *)
{
	return REFUSAL;
}
static ssize_t msg_vec(struct fid_ep *, const struct iovec *, void **, size_t, fi_addr_t, void *)
{
	return REFUSAL;
}
static ssize_t msg_msg(struct fid_ep *, const struct fi_msg *, uint64_t) { return REFUSAL; }
static ssize_t msg_send(struct fid_ep *, const void *, size_t, void *, fi_addr_t, void *)
{
	return REFUSAL;
}
static ssize_t msg_inject(struct fid_ep *, const void *, size_t, fi_addr_t) { return REFUSAL; }
static ssize_t msg_senddata(struct fid_ep *, const void *, size_t, void *, uint64_t, fi_addr_t,
			    void *)
{
	return REFUSAL;
}
static ssize_t msg_injectdata(struct fid_ep *, const void *, size_t, uint64_t, fi_addr_t)
{
	return REFUSAL;
}

REFUSE_LINKAGE struct fi_ops_msg REFUSE(msg) = {
	.size = sizeof(struct fi_ops_msg),
	.recv = msg_recv,
	.recvv = msg_vec,
	.recvmsg = msg_msg,
	.send = msg_send,
	.sendv = msg_vec,
	.sendmsg = msg_msg,
	.inject = msg_inject,
	.senddata = msg_senddata,
	.injectdata = msg_injectdata,
};

/* ---- struct fi_ops_tagged ---- */

static ssize_t tag_recv(struct fid_ep *, void *, size_t, void *, fi_addr_t, uint64_t, uint64_t,
			void *)
{
	return REFUSAL;
}
static ssize_t tag_recvv(struct fid_ep *, const struct iovec *, void **, size_t, fi_addr_t,
			 uint64_t, uint64_t, void *)
{
	return REFUSAL;
}
static ssize_t tag_msg(struct fid_ep *, const struct fi_msg_tagged *, uint64_t) { return REFUSAL; }
static ssize_t tag_send(struct fid_ep *, const void *, size_t, void *, fi_addr_t, uint64_t, void *)
{
	return REFUSAL;
}
static ssize_t tag_sendv(struct fid_ep *, const struct iovec *, void **, size_t, fi_addr_t,
			 uint64_t, void *)
{
	return REFUSAL;
}
static ssize_t tag_inject(struct fid_ep *, const void *, size_t, fi_addr_t, uint64_t)
{
	return REFUSAL;
}
static ssize_t tag_senddata(struct fid_ep *, const void *, size_t, void *, uint64_t, fi_addr_t,
			    uint64_t, void *)
{
	return REFUSAL;
}
static ssize_t tag_injectdata(struct fid_ep *, const void *, size_t, uint64_t, fi_addr_t, uint64_t)
{
	return REFUSAL;
}

REFUSE_LINKAGE struct fi_ops_tagged REFUSE(tagged) = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = tag_recv,
	.recvv = tag_recvv,
	.recvmsg = tag_msg,
	.send = tag_send,
	.sendv = tag_sendv,
	.sendmsg = tag_msg,
	.inject = tag_inject,
	.senddata = tag_senddata,
	.injectdata = tag_injectdata,
};

/* ---- struct fi_ops_rma ---- */

static ssize_t rma_read(struct fid_ep *, void *, size_t, void *, fi_addr_t, uint64_t, uint64_t,
			void *)
{
	return REFUSAL;
}
static ssize_t rma_vec(struct fid_ep *, const struct iovec *, void **, size_t, fi_addr_t, uint64_t,
		       uint64_t, void *)
{
	return REFUSAL;
}
static ssize_t rma_msg(struct fid_ep *, const struct fi_msg_rma *, uint64_t) { return REFUSAL; }
static ssize_t rma_write(struct fid_ep *, const void *, size_t, void *, fi_addr_t, uint64_t,
			 uint64_t, void *)
{
	return REFUSAL;
}
static ssize_t rma_inject(struct fid_ep *, const void *, size_t, fi_addr_t, uint64_t, uint64_t)
{
	return REFUSAL;
}
static ssize_t rma_writedata(struct fid_ep *, const void *, size_t, void *, uint64_t, fi_addr_t,
			     uint64_t, uint64_t, void *)
{
	return REFUSAL;
}
static ssize_t rma_injectdata(struct fid_ep *, const void *, size_t, uint64_t, fi_addr_t, uint64_t,
			      uint64_t)
{
	return REFUSAL;
}

REFUSE_LINKAGE struct fi_ops_rma REFUSE(rma) = {
	.size = sizeof(struct fi_ops_rma),
	.read = rma_read,
	.readv = rma_vec,
	.readmsg = rma_msg,
	.write = rma_write,
	.writev = rma_vec,
	.writemsg = rma_msg,
	.inject = rma_inject,
	.writedata = rma_writedata,
	.injectdata = rma_injectdata,
};

/* ---- struct fi_ops_atomic ---- */

static ssize_t at_write(struct fid_ep *, const void *, size_t, void *, fi_addr_t, uint64_t,
			uint64_t, enum fi_datatype, enum fi_op, void *)
{
	return REFUSAL;
}
static ssize_t at_writev(struct fid_ep *, const struct fi_ioc *, void **, size_t, fi_addr_t,
			 uint64_t, uint64_t, enum fi_datatype, enum fi_op, void *)
{
	return REFUSAL;
}
static ssize_t at_writemsg(struct fid_ep *, const struct fi_msg_atomic *, uint64_t)
{
	return REFUSAL;
}
static ssize_t at_inject(struct fid_ep *, const void *, size_t, fi_addr_t, uint64_t, uint64_t,
			 enum fi_datatype, enum fi_op)
{
	return REFUSAL;
}
static ssize_t at_readwrite(struct fid_ep *, const void *, size_t, void *, void *, void *,
			    fi_addr_t, uint64_t, uint64_t, enum fi_datatype, enum fi_op, void *)
{
	return REFUSAL;
}
static ssize_t at_readwritev(struct fid_ep *, const struct fi_ioc *, void **, size_t,
			     struct fi_ioc *, void **, size_t, fi_addr_t, uint64_t, uint64_t,
			     enum fi_datatype, enum fi_op, void *)
{
	return REFUSAL;
}
static ssize_t at_readwritemsg(struct fid_ep *, const struct fi_msg_atomic *, struct fi_ioc *,
			       void **, size_t, uint64_t)
{
	return REFUSAL;
}
static ssize_t at_compwrite(struct fid_ep *, const void *, size_t, void *, const void *, void *,
			    void *, void *, fi_addr_t, uint64_t, uint64_t, enum fi_datatype,
			    enum fi_op, void *)
{
	return REFUSAL;
}
static ssize_t at_compwritev(struct fid_ep *, const struct fi_ioc *, void **, size_t,
			     const struct fi_ioc *, void **, size_t, struct fi_ioc *, void **,
			     size_t, fi_addr_t, uint64_t, uint64_t, enum fi_datatype, enum fi_op,
			     void *)
{
	return REFUSAL;
}
static ssize_t at_compwritemsg(struct fid_ep *, const struct fi_msg_atomic *,
			       const struct fi_ioc *, void **, size_t, struct fi_ioc *, void **,
			       size_t, uint64_t)
{
	return REFUSAL;
}
static int at_valid(struct fid_ep *, enum fi_datatype, enum fi_op, size_t *) { return REFUSAL; }

REFUSE_LINKAGE struct fi_ops_atomic REFUSE(atomic) = {
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
	.writevalid = at_valid,
	.readwritevalid = at_valid,
	.compwritevalid = at_valid,
};

/* ---- struct fi_ops_collective ---- */

static ssize_t co_barrier(struct fid_ep *, fi_addr_t, void *) { return REFUSAL; }
static ssize_t co_broadcast(struct fid_ep *, void *, size_t, void *, fi_addr_t, fi_addr_t,
			    enum fi_datatype, uint64_t, void *)
{
	return REFUSAL;
}
static ssize_t co_all(struct fid_ep *, const void *, size_t, void *, void *, void *, fi_addr_t,
		      enum fi_datatype, uint64_t, void *)
{
	return REFUSAL;
}
static ssize_t co_allreduce(struct fid_ep *, const void *, size_t, void *, void *, void *,
			    fi_addr_t, enum fi_datatype, enum fi_op, uint64_t, void *)
{
	return REFUSAL;
}
static ssize_t co_reduce(struct fid_ep *, const void *, size_t, void *, void *, void *, fi_addr_t,
			 fi_addr_t, enum fi_datatype, enum fi_op, uint64_t, void *)
{
	return REFUSAL;
}
static ssize_t co_rooted(struct fid_ep *, const void *, size_t, void *, void *, void *, fi_addr_t,
			 fi_addr_t, enum fi_datatype, uint64_t, void *)
{
	return REFUSAL;
}
static ssize_t co_msg(struct fid_ep *, const struct fi_msg_collective *, struct fi_ioc *, void **,
		      size_t, uint64_t)
{
	return REFUSAL;
}
static ssize_t co_barrier2(struct fid_ep *, fi_addr_t, uint64_t, void *) { return REFUSAL; }

REFUSE_LINKAGE struct fi_ops_collective REFUSE(collective) = {
	.size = sizeof(struct fi_ops_collective),
	.barrier = co_barrier,
	.broadcast = co_broadcast,
	.alltoall = co_all,
	.allreduce = co_allreduce,
	.allgather = co_all,
	.reduce_scatter = co_allreduce,
	.reduce = co_reduce,
	.scatter = co_rooted,
	.gather = co_rooted,
	.msg = co_msg,
	.barrier2 = co_barrier2,
};
