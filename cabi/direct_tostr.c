// SPDX-License-Identifier: BSD-2-Clause

//go:build direct

/* fi_tostr: the text buffer, the enums and the calls themselves. */

#include <stdarg.h>
#include <stdio.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_trigger.h>
#include <rdma/providers/fi_log.h>

#include "direct.h"

void weft_text_add(struct weft_text *t, const char *fmt, ...)
{
	va_list args;

	if (t->used + 1 >= t->size)
		return;
	va_start(args, fmt);
	int n = vsnprintf(t->buf + t->used, t->size - t->used, fmt, args);
	va_end(args);
	if (n < 0)
		t->buf[t->used] = 0;
	else if ((size_t)n >= t->size - t->used)
		t->used = t->size - 1;
	else
		t->used += (size_t)n;
}

#define NAME(constant) [constant] = #constant

static const char *const ep_types[] = {
	NAME(FI_EP_UNSPEC), NAME(FI_EP_MSG),	     NAME(FI_EP_DGRAM),
	NAME(FI_EP_RDM),    NAME(FI_EP_SOCK_STREAM), NAME(FI_EP_SOCK_DGRAM),
};

static const char *const addr_formats[] = {
	NAME(FI_FORMAT_UNSPEC), NAME(FI_SOCKADDR),    NAME(FI_SOCKADDR_IN), NAME(FI_SOCKADDR_IN6),
	NAME(FI_SOCKADDR_IB),	NAME(FI_ADDR_PSMX),   NAME(FI_ADDR_GNI),    NAME(FI_ADDR_BGQ),
	NAME(FI_ADDR_MLX),	NAME(FI_ADDR_STR),    NAME(FI_ADDR_PSMX2),  NAME(FI_ADDR_IB_UD),
	NAME(FI_ADDR_EFA),	NAME(FI_ADDR_PSMX3),  NAME(FI_ADDR_OPX),    NAME(FI_ADDR_CXI),
};

static const char *const threading[] = {
	NAME(FI_THREAD_UNSPEC), NAME(FI_THREAD_SAFE),	    NAME(FI_THREAD_FID),
	NAME(FI_THREAD_DOMAIN), NAME(FI_THREAD_COMPLETION), NAME(FI_THREAD_ENDPOINT),
};

static const char *const progress[] = {
	NAME(FI_PROGRESS_UNSPEC), NAME(FI_PROGRESS_AUTO), NAME(FI_PROGRESS_MANUAL),
};

static const char *const protocols[] = {
	NAME(FI_PROTO_UNSPEC),	    NAME(FI_PROTO_RDMA_CM_IB_RC),  NAME(FI_PROTO_IWARP),
	NAME(FI_PROTO_IB_UD),	    NAME(FI_PROTO_PSMX),	   NAME(FI_PROTO_UDP),
	NAME(FI_PROTO_SOCK_TCP),    NAME(FI_PROTO_MXM),		   NAME(FI_PROTO_IWARP_RDM),
	NAME(FI_PROTO_IB_RDM),	    NAME(FI_PROTO_GNI),		   NAME(FI_PROTO_RXM),
	NAME(FI_PROTO_RXD),	    NAME(FI_PROTO_MLX),		   NAME(FI_PROTO_NETWORKDIRECT),
	NAME(FI_PROTO_PSMX2),	    NAME(FI_PROTO_SHM),		   NAME(FI_PROTO_MRAIL),
	NAME(FI_PROTO_RSTREAM),	    NAME(FI_PROTO_RDMA_CM_IB_XRC), NAME(FI_PROTO_EFA),
	NAME(FI_PROTO_PSMX3),	    NAME(FI_PROTO_RXM_TCP),	   NAME(FI_PROTO_OPX),
	NAME(FI_PROTO_CXI),	    NAME(FI_PROTO_XNET),
};

static const char *const av_types[] = {
	NAME(FI_AV_UNSPEC), NAME(FI_AV_MAP), NAME(FI_AV_TABLE),
};

static const char *const atomic_types[] = {
	NAME(FI_INT8),		NAME(FI_UINT8),	 NAME(FI_INT16),
	NAME(FI_UINT16),	NAME(FI_INT32),	 NAME(FI_UINT32),
	NAME(FI_INT64),		NAME(FI_UINT64), NAME(FI_FLOAT),
	NAME(FI_DOUBLE),	NAME(FI_FLOAT_COMPLEX), NAME(FI_DOUBLE_COMPLEX),
	NAME(FI_LONG_DOUBLE),	NAME(FI_LONG_DOUBLE_COMPLEX), NAME(FI_INT128),
	NAME(FI_UINT128),
};

static const char *const atomic_ops[] = {
	NAME(FI_MIN),	   NAME(FI_MAX),	 NAME(FI_SUM),	    NAME(FI_PROD),
	NAME(FI_LOR),	   NAME(FI_LAND),	 NAME(FI_BOR),	    NAME(FI_BAND),
	NAME(FI_LXOR),	   NAME(FI_BXOR),	 NAME(FI_ATOMIC_READ), NAME(FI_ATOMIC_WRITE),
	NAME(FI_CSWAP),	   NAME(FI_CSWAP_NE),	 NAME(FI_CSWAP_LE), NAME(FI_CSWAP_LT),
	NAME(FI_CSWAP_GE), NAME(FI_CSWAP_GT),	 NAME(FI_MSWAP),
};

static const char *const eq_events[] = {
	NAME(FI_NOTIFY),      NAME(FI_CONNREQ),	    NAME(FI_CONNECTED),	    NAME(FI_SHUTDOWN),
	NAME(FI_MR_COMPLETE), NAME(FI_AV_COMPLETE), NAME(FI_JOIN_COMPLETE),
};

static const char *const op_types[] = {
	NAME(FI_OP_RECV),	    NAME(FI_OP_SEND),	NAME(FI_OP_TRECV),
	NAME(FI_OP_TSEND),	    NAME(FI_OP_READ),	NAME(FI_OP_WRITE),
	NAME(FI_OP_ATOMIC),	    NAME(FI_OP_FETCH_ATOMIC), NAME(FI_OP_COMPARE_ATOMIC),
	NAME(FI_OP_CNTR_SET),	    NAME(FI_OP_CNTR_ADD),
};

static const char *const collectives[] = {
	NAME(FI_BARRIER),   NAME(FI_BROADCAST),	     NAME(FI_ALLTOALL),
	NAME(FI_ALLREDUCE), NAME(FI_ALLGATHER),	     NAME(FI_REDUCE_SCATTER),
	NAME(FI_REDUCE),    NAME(FI_SCATTER),	     NAME(FI_GATHER),
};

static const char *const hmem_ifaces[] = {
	NAME(FI_HMEM_SYSTEM), NAME(FI_HMEM_CUDA),   NAME(FI_HMEM_ROCR),
	NAME(FI_HMEM_ZE),     NAME(FI_HMEM_NEURON), NAME(FI_HMEM_SYNAPSEAI),
};

static const char *const cq_formats[] = {
	NAME(FI_CQ_FORMAT_UNSPEC), NAME(FI_CQ_FORMAT_CONTEXT), NAME(FI_CQ_FORMAT_MSG),
	NAME(FI_CQ_FORMAT_DATA),   NAME(FI_CQ_FORMAT_TAGGED),
};

static const char *const log_levels[] = {
	[FI_LOG_WARN] = "warn",
	[FI_LOG_TRACE] = "trace",
	[FI_LOG_INFO] = "info",
	[FI_LOG_DEBUG] = "debug",
};

static const char *const log_subsystems[] = {
	[FI_LOG_CORE] = "core",	      [FI_LOG_FABRIC] = "fabric",   [FI_LOG_DOMAIN] = "domain",
	[FI_LOG_EP_CTRL] = "ep_ctrl", [FI_LOG_EP_DATA] = "ep_data", [FI_LOG_AV] = "av",
	[FI_LOG_CQ] = "cq",	      [FI_LOG_EQ] = "eq",	    [FI_LOG_MR] = "mr",
	[FI_LOG_CNTR] = "cntr",
};

/* An enum whose values count from 0. */
struct names {
	enum fi_type type;
	bool specific; /* values with FI_PROV_SPECIFIC are a provider's own */
	unsigned int count;
	const char *const *names;
};

#define NAMES(type, specific, table) {type, specific, sizeof(table) / sizeof(*(table)), table}

static const struct names enums[] = {
	NAMES(FI_TYPE_EP_TYPE, false, ep_types),
	NAMES(FI_TYPE_ADDR_FORMAT, true, addr_formats),
	NAMES(FI_TYPE_THREADING, false, threading),
	NAMES(FI_TYPE_PROGRESS, false, progress),
	NAMES(FI_TYPE_PROTOCOL, true, protocols),
	NAMES(FI_TYPE_AV_TYPE, false, av_types),
	NAMES(FI_TYPE_ATOMIC_TYPE, false, atomic_types),
	NAMES(FI_TYPE_ATOMIC_OP, false, atomic_ops),
	NAMES(FI_TYPE_EQ_EVENT, false, eq_events),
	NAMES(FI_TYPE_OP_TYPE, false, op_types),
	NAMES(FI_TYPE_COLLECTIVE_OP, false, collectives),
	NAMES(FI_TYPE_HMEM_IFACE, false, hmem_ifaces),
	NAMES(FI_TYPE_CQ_FORMAT, false, cq_formats),
	NAMES(FI_TYPE_LOG_LEVEL, false, log_levels),
	NAMES(FI_TYPE_LOG_SUBSYS, false, log_subsystems),
};

static const char *enum_name(const struct names *e, uint32_t value)
{
	if (e->specific && value & FI_PROV_SPECIFIC)
		return "Provider specific";
	return value < e->count && e->names[value] ? e->names[value] : "Unknown";
}

bool weft_tostr_enum(struct weft_text *t, const void *data, enum fi_type type)
{
	for (size_t i = 0; i < sizeof(enums) / sizeof(*enums); i++) {
		if (enums[i].type != type)
			continue;
		weft_text_add(t, "%s", enum_name(&enums[i], *(const uint32_t *)data));
		return true;
	}
	return false;
}

const char *weft_tostr_resource_mgmt(enum fi_resource_mgmt rm)
{
	switch (rm) {
	case FI_RM_UNSPEC:
		return "FI_RM_UNSPEC";
	case FI_RM_DISABLED:
		return "FI_RM_DISABLED";
	case FI_RM_ENABLED:
		return "FI_RM_ENABLED";
	}
	return "Unknown";
}

WEFT_EXPORT char *fi_tostr_r(char *buf, size_t len, const void *data, enum fi_type datatype)
{
	if (!buf || !len)
		return NULL;
	struct weft_text t = {.buf = buf, .size = len};
	buf[0] = 0;
	if (datatype == FI_TYPE_VERSION)
		weft_text_add(&t, "%u.%u.0", FI_MAJOR(WEFT_API), FI_MINOR(WEFT_API));
	else if (!data)
		weft_text_add(&t, "(null)");
	else if (!weft_tostr_enum(&t, data, datatype) && !weft_tostr_flags(&t, data, datatype) &&
		 !weft_tostr_attr(&t, data, datatype))
		weft_text_add(&t, "Unknown type");
	return buf;
}

WEFT_EXPORT char *fi_tostr(const void *data, enum fi_type datatype)
{
	static char buf[8192]; /* not for several threads, as fi_tostr(3) says */

	return fi_tostr_r(buf, sizeof(buf), data, datatype);
}
