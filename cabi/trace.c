/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The table of trace.h: libfabric's calls, and where the functions for them are.
 */
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "hotpath.h"
#include "objects.h"
#include "rma.h"
#include "trace.h"

#define AT(what, ops, op) .name = what, .table = &(ops), .member = offsetof(__typeof__(ops), op)

/* A call, a post whose context is an argument or in a message, a read. */
#define CALL(what, ops, op) { AT(what, ops, op), .role = WEFT_TRACE_CALL }
#define VALUE(what, ops, op) { AT(what, ops, op), .role = WEFT_TRACE_CALL, .no_status = 1 }
#define POST(what, ops, op, kind, arg) \
	{ AT(what, ops, op), .role = WEFT_TRACE_POST, .operation = kind, .context_arg = arg }
#define MESSAGE(what, ops, op, kind, type) \
	{ AT(what, ops, op), .role = WEFT_TRACE_POST, .operation = kind, \
	  .context_offset = offsetof(struct type, context) }
#define READ(what, ops, op, how) { AT(what, ops, op), .role = how }

const struct weft_trace_table weft_trace = {
	.version = WEFT_TRACE_VERSION,
	.count = WEFT_TRACE_POINTS,
	.point_bytes = sizeof(struct weft_trace_point),
	.cq_hot = offsetof(struct weft_cq_obj, hot),
	.hot_format = offsetof(struct weft_hot_cq, format),
	.points = {
		POST("fi_recv", weft_ops_msg, recv, "receive", 6),
		POST("fi_recvv", weft_ops_msg, recvv, "receive", 6),
		MESSAGE("fi_recvmsg", weft_ops_msg, recvmsg, "receive", fi_msg),
		POST("fi_send", weft_ops_msg, send, "send", 6),
		POST("fi_sendv", weft_ops_msg, sendv, "send", 6),
		MESSAGE("fi_sendmsg", weft_ops_msg, sendmsg, "send", fi_msg),
		CALL("fi_inject", weft_ops_msg, inject),
		POST("fi_senddata", weft_ops_msg, senddata, "send", 7),
		CALL("fi_injectdata", weft_ops_msg, injectdata),

		POST("fi_trecv", weft_ops_tagged, recv, "tagged receive", 8),
		POST("fi_trecvv", weft_ops_tagged, recvv, "tagged receive", 8),
		MESSAGE("fi_trecvmsg", weft_ops_tagged, recvmsg, "tagged receive", fi_msg_tagged),
		POST("fi_tsend", weft_ops_tagged, send, "tagged send", 7),
		POST("fi_tsendv", weft_ops_tagged, sendv, "tagged send", 7),
		MESSAGE("fi_tsendmsg", weft_ops_tagged, sendmsg, "tagged send", fi_msg_tagged),
		CALL("fi_tinject", weft_ops_tagged, inject),
		POST("fi_tsenddata", weft_ops_tagged, senddata, "tagged send", 8),
		CALL("fi_tinjectdata", weft_ops_tagged, injectdata),

		POST("fi_read", weft_ops_rma, read, "read", 8),
		POST("fi_readv", weft_ops_rma, readv, "read", 8),
		MESSAGE("fi_readmsg", weft_ops_rma, readmsg, "read", fi_msg_rma),
		POST("fi_write", weft_ops_rma, write, "write", 8),
		POST("fi_writev", weft_ops_rma, writev, "write", 8),
		MESSAGE("fi_writemsg", weft_ops_rma, writemsg, "write", fi_msg_rma),
		CALL("fi_inject_write", weft_ops_rma, inject),
		POST("fi_writedata", weft_ops_rma, writedata, "write", 9),
		CALL("fi_inject_writedata", weft_ops_rma, injectdata),

		POST("fi_atomic", weft_ops_atomic, write, "atomic", 10),
		POST("fi_atomicv", weft_ops_atomic, writev, "atomic", 10),
		MESSAGE("fi_atomicmsg", weft_ops_atomic, writemsg, "atomic", fi_msg_atomic),
		CALL("fi_inject_atomic", weft_ops_atomic, inject),
		POST("fi_fetch_atomic", weft_ops_atomic, readwrite, "fetch atomic", 12),
		POST("fi_fetch_atomicv", weft_ops_atomic, readwritev, "fetch atomic", 13),
		MESSAGE("fi_fetch_atomicmsg", weft_ops_atomic, readwritemsg, "fetch atomic", fi_msg_atomic),
		POST("fi_compare_atomic", weft_ops_atomic, compwrite, "compare atomic", 14),
		POST("fi_compare_atomicv", weft_ops_atomic, compwritev, "compare atomic", 16),
		MESSAGE("fi_compare_atomicmsg", weft_ops_atomic, compwritemsg, "compare atomic", fi_msg_atomic),

		READ("fi_cq_read", weft_ops_cq.base, read, WEFT_TRACE_READ),
		READ("fi_cq_readfrom", weft_ops_cq.base, readfrom, WEFT_TRACE_READ),
		READ("fi_cq_sread", weft_ops_cq.base, sread, WEFT_TRACE_READ),
		READ("fi_cq_sreadfrom", weft_ops_cq.base, sreadfrom, WEFT_TRACE_READ),
		READ("fi_cq_readerr", weft_ops_cq.base, readerr, WEFT_TRACE_READERR),
		CALL("fi_cq_signal", weft_ops_cq.base, signal),

		VALUE("fi_cntr_read", weft_ops_cntr.base, read),
		VALUE("fi_cntr_readerr", weft_ops_cntr.base, readerr),
		CALL("fi_cntr_add", weft_ops_cntr.base, add),
		CALL("fi_cntr_set", weft_ops_cntr.base, set),
		CALL("fi_cntr_wait", weft_ops_cntr.base, wait),

		CALL("fi_eq_read", weft_ops_eq, read),
		CALL("fi_eq_readerr", weft_ops_eq, readerr),
		CALL("fi_eq_write", weft_ops_eq, write),
		CALL("fi_eq_sread", weft_ops_eq, sread),

		CALL("fi_av_insert", weft_ops_av.base, insert),
		CALL("fi_av_insertsvc", weft_ops_av.base, insertsvc),
		CALL("fi_av_insertsym", weft_ops_av.base, insertsym),
		CALL("fi_av_remove", weft_ops_av.base, remove),
		CALL("fi_av_lookup", weft_ops_av.base, lookup),

		CALL("fi_mr_reg", weft_mr_ops, reg),
		CALL("fi_mr_regv", weft_mr_ops, regv),
		CALL("fi_mr_regattr", weft_mr_ops, regattr),
	},
};
