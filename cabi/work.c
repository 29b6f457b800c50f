/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Triggered operations and deferred work: fi_trigger(3).
 */
#include "work.h"

int weft_trigger_condition(uint64_t context, uint64_t *cntr, uint64_t *threshold)
{
	const struct fi_triggered_context *t = (void *)(uintptr_t)context;

	if (!t)
		return -FI_EINVAL;
	if (t->event_type == FI_TRIGGER_XPU)
		return -FI_ENOSYS;
	if (t->event_type != FI_TRIGGER_THRESHOLD || !t->trigger.threshold.cntr)
		return -FI_EINVAL;
	*cntr = weft_handle_of(&t->trigger.threshold.cntr->fid);
	*threshold = t->trigger.threshold.threshold;
	return *cntr ? 0 : -FI_EINVAL;
}

/* The handle of a counter that may be NULL; false: it is not one of weft's. */
static bool counter_of(const struct fid_cntr *cntr, uint64_t *handle)
{
	*handle = 0;
	if (!cntr)
		return true;
	if (cntr->fid.fclass != FI_CLASS_CNTR)
		return false;
	*handle = weft_handle_of(&cntr->fid);
	return *handle;
}

static bool endpoint_of(struct fid_ep *ep, uint64_t *handle)
{
	if (!ep || (ep->fid.fclass != FI_CLASS_EP && ep->fid.fclass != FI_CLASS_TX_CTX &&
		    ep->fid.fclass != FI_CLASS_RX_CTX))
		return false;
	*handle = weft_handle_of(&ep->fid);
	return *handle;
}

static int queue_msg(uint64_t domain, struct weft_work *w, const struct fi_op_msg *op, bool send)
{
	struct weft_send_args s;
	struct weft_recv_args r;

	if (!op || !endpoint_of(op->ep, &w->ep) || (!op->msg.msg_iov && op->msg.iov_count))
		return -FI_EINVAL;
	if (op->flags & WEFT_RECV_PRIVATE)
		return -FI_EBADFLAGS;
	s = (struct weft_send_args){
		.iov = op->msg.msg_iov, .count = op->msg.iov_count, .dest = op->msg.addr,
		.data = op->msg.data, .flags = op->flags, .context = (uintptr_t)op->msg.context,
		.kind = op->flags & FI_REMOTE_CQ_DATA ? WEFT_POST_DATA : 0,
	};
	r = (struct weft_recv_args){
		.iov = s.iov, .count = s.count, .src = s.dest, .flags = s.flags,
		.context = s.context,
	};
	return weftGoQueueWork(domain, w, send ? &s : NULL, send ? NULL : &r, NULL, NULL);
}

static int queue_tagged(uint64_t domain, struct weft_work *w, const struct fi_op_tagged *op,
			bool send)
{
	struct weft_send_args s;
	struct weft_recv_args r;

	if (!op || !endpoint_of(op->ep, &w->ep) || (!op->msg.msg_iov && op->msg.iov_count))
		return -FI_EINVAL;
	if (op->flags & WEFT_RECV_PRIVATE)
		return -FI_EBADFLAGS;
	s = (struct weft_send_args){
		.iov = op->msg.msg_iov, .count = op->msg.iov_count, .dest = op->msg.addr,
		.tag = op->msg.tag, .data = op->msg.data, .flags = op->flags,
		.context = (uintptr_t)op->msg.context,
		.kind = WEFT_POST_TAGGED | (op->flags & FI_REMOTE_CQ_DATA ? WEFT_POST_DATA : 0),
	};
	r = (struct weft_recv_args){
		.iov = s.iov, .count = s.count, .src = s.dest, .tag = s.tag,
		.ignore = op->msg.ignore, .flags = s.flags | WEFT_RECV_TAGGED,
		.context = s.context,
	};
	return weftGoQueueWork(domain, w, send ? &s : NULL, send ? NULL : &r, NULL, NULL);
}

static int queue_rma(uint64_t domain, struct weft_work *w, const struct fi_op_rma *op, bool read)
{
	struct weft_rma_args args;

	if (!op || !endpoint_of(op->ep, &w->ep) || (!op->msg.msg_iov && op->msg.iov_count) ||
	    (!op->msg.rma_iov && op->msg.rma_iov_count))
		return -FI_EINVAL;
	args = (struct weft_rma_args){
		.iov = op->msg.msg_iov, .count = op->msg.iov_count, .remote = op->msg.rma_iov,
		.remote_count = op->msg.rma_iov_count, .dest = op->msg.addr,
		.data = op->msg.data, .flags = op->flags,
		.context = (uintptr_t)op->msg.context,
		.kind = read ? WEFT_POST_READ : op->flags & FI_REMOTE_CQ_DATA ? WEFT_POST_DATA : 0,
	};
	return weftGoQueueWork(domain, w, NULL, NULL, &args, NULL);
}

static int queue_atomic(uint64_t domain, struct weft_work *w, struct fid_ep *ep,
			const struct fi_msg_atomic *msg, const struct fi_msg_fetch *fetch,
			const struct fi_msg_compare *compare, uint64_t flags)
{
	struct weft_atomic_args args;
	int rc;

	if (!endpoint_of(ep, &w->ep))
		return -FI_EINVAL;
	rc = weft_atomic_args(&args, msg, fetch, compare, flags);
	return rc ? rc : weftGoQueueWork(domain, w, NULL, NULL, NULL, &args);
}

static int queue_counter(uint64_t domain, struct weft_work *w, const struct fi_op_cntr *op, bool add)
{
	if (!op || !op->cntr || !counter_of(op->cntr, &w->operand))
		return -FI_EINVAL;
	w->value = op->value;
	w->add = add;
	return weftGoQueueWork(domain, w, NULL, NULL, NULL, NULL);
}

static int queue(uint64_t domain, const struct fi_deferred_work *work)
{
	struct weft_work w = { .user = (uintptr_t)work };

	if (!work)
		return -FI_EINVAL;
	w.threshold = work->threshold;
	if (!counter_of(work->triggering_cntr, &w.cntr) || !w.cntr ||
	    !counter_of(work->completion_cntr, &w.done))
		return -FI_EINVAL;
	switch (work->op_type) {
	case FI_OP_RECV:
	case FI_OP_SEND:
		return queue_msg(domain, &w, work->op.msg, work->op_type == FI_OP_SEND);
	case FI_OP_TRECV:
	case FI_OP_TSEND:
		return queue_tagged(domain, &w, work->op.tagged, work->op_type == FI_OP_TSEND);
	case FI_OP_READ:
	case FI_OP_WRITE:
		return queue_rma(domain, &w, work->op.rma, work->op_type == FI_OP_READ);
	case FI_OP_ATOMIC: {
		const struct fi_op_atomic *op = work->op.atomic;

		return op ? queue_atomic(domain, &w, op->ep, &op->msg, NULL, NULL, op->flags) :
			    -FI_EINVAL;
	}
	case FI_OP_FETCH_ATOMIC: {
		const struct fi_op_fetch_atomic *op = work->op.fetch_atomic;

		return op ? queue_atomic(domain, &w, op->ep, &op->msg, &op->fetch, NULL,
					 op->flags) :
			    -FI_EINVAL;
	}
	case FI_OP_COMPARE_ATOMIC: {
		const struct fi_op_compare_atomic *op = work->op.compare_atomic;

		return op ? queue_atomic(domain, &w, op->ep, &op->msg, &op->fetch, &op->compare,
					 op->flags) :
			    -FI_EINVAL;
	}
	case FI_OP_CNTR_SET:
	case FI_OP_CNTR_ADD:
		return queue_counter(domain, &w, work->op.cntr, work->op_type == FI_OP_CNTR_ADD);
	default:
		return -FI_ENOSYS;
	}
}

int weft_work_control(uint64_t domain, int command, void *arg)
{
	uint64_t cntr;

	switch (command) {
	case FI_QUEUE_WORK:
		return queue(domain, arg);
	case FI_CANCEL_WORK:
		return arg ? weftGoCancelWork(domain, (uintptr_t)arg) : -FI_EINVAL;
	case FI_FLUSH_WORK:
		return counter_of(arg, &cntr) ? weftGoFlushWork(domain, cntr) : -FI_EINVAL;
	default:
		return -FI_ENOSYS;
	}
}
