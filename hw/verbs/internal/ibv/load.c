// SPDX-License-Identifier: BSD-2-Clause
// Loading libibverbs, and its functions that are not on the data path.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include "lib.h"

struct weft_ibv_lib weft_ibv;

const struct weft_shlib_symbol weft_ibv_symbols[] = {
/* clang-format off */
#define SYM(name, version, optional) {"ibv_" #name, "IBVERBS_" version, (void **)&weft_ibv.name, optional}
	SYM(get_device_list, "1.1", 0),
	SYM(free_device_list, "1.1", 0),
	SYM(get_device_name, "1.1", 0),
	SYM(open_device, "1.1", 0),
	SYM(close_device, "1.1", 0),
	SYM(query_device, "1.1", 0),
	SYM(query_port, "1.1", 0),
	SYM(query_gid, "1.1", 0),
	SYM(get_async_event, "1.1", 0),
	SYM(ack_async_event, "1.1", 0),
	SYM(alloc_pd, "1.1", 0),
	SYM(dealloc_pd, "1.1", 0),
	SYM(reg_mr, "1.1", 0),
	SYM(dereg_mr, "1.1", 0),
	SYM(create_comp_channel, "1.0", 0),
	SYM(destroy_comp_channel, "1.0", 0),
	SYM(get_cq_event, "1.1", 0),
	SYM(ack_cq_events, "1.1", 0),
	SYM(create_cq, "1.1", 0),
	SYM(destroy_cq, "1.1", 0),
	SYM(create_srq, "1.1", 0),
	SYM(destroy_srq, "1.1", 0),
	SYM(create_qp, "1.1", 0),
	SYM(destroy_qp, "1.1", 0),
	SYM(modify_qp, "1.1", 0),
	SYM(query_qp, "1.1", 0),
	SYM(create_ah, "1.1", 0),
	SYM(destroy_ah, "1.1", 0),
	SYM(fork_init, "1.1", 0),
	SYM(wc_status_str, "1.1", 0),
	SYM(event_type_str, "1.1", 0),
	SYM(reg_dmabuf_mr, "1.12", 1),
#undef SYM
};
/* clang-format on */
const size_t weft_ibv_symbol_count = sizeof(weft_ibv_symbols) / sizeof(weft_ibv_symbols[0]);

// Pages registered with the device must not be copied on write when the
// program forks, or the device goes on with the child's. Kernels from
// 5.12 on copy pinned pages at once; there this call asks the kernel and
// does nothing. On older ones it must come before the first registration
// of the process; EINVAL: other code of the process has registered memory before.
int weft_ibv_fork_init(void)
{
	return weft_ibv.fork_init();
}

const char *weft_ibv_status_str(uint32_t status)
{
	return weft_ibv.wc_status_str(status);
}
const char *weft_ibv_event_str(uint32_t type)
{
	return weft_ibv.event_type_str(type);
}

// failed is the error of a call that returned NULL.
static int failed(void)
{
	return errno ? errno : EIO;
}

int weft_ibv_open(const char *name, struct ibv_context **out)
{
	int n = 0, err = ENODEV;

	errno = 0;
	struct ibv_device **list = weft_ibv.get_device_list(&n);
	if (!list)
		return failed();
	for (int i = 0; i < n; i++) {
		if (strcmp(weft_ibv.get_device_name(list[i]), name))
			continue;
		errno = 0;
		*out = weft_ibv.open_device(list[i]);
		err = *out ? 0 : failed();
		break;
	}
	weft_ibv.free_device_list(list);
	if (!err) {
		int flags = fcntl((*out)->async_fd, F_GETFL);
		if (flags < 0 || fcntl((*out)->async_fd, F_SETFL, flags | O_NONBLOCK) < 0) {
			err = errno;
			weft_ibv.close_device(*out);
		}
	}
	return err;
}

int weft_ibv_close(struct ibv_context *ctx)
{
	return weft_ibv.close_device(ctx);
}

int weft_ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *out)
{
	return weft_ibv.query_device(ctx, out);
}

void weft_ibv_query_clock(struct ibv_context *ctx, uint64_t *mask, uint64_t *khz)
{
	struct verbs_context *v = verbs_get_ctx_op(ctx, query_device_ex);
	struct ibv_device_attr_ex a;
	uint64_t now;

	*mask = *khz = 0;
	memset(&a, 0, sizeof a);
	if (!v || v->query_device_ex(ctx, NULL, &a, sizeof a))
		return;
	if (!a.completion_timestamp_mask || !a.hca_core_clock || weft_ibv_clock(ctx, &now))
		return;
	*mask = a.completion_timestamp_mask;
	*khz = a.hca_core_clock;
}

// The drivers that have the call (mlx4, mlx5) give the clock's ticks as nanoseconds.
int weft_ibv_clock(struct ibv_context *ctx, uint64_t *ticks)
{
	struct verbs_context *v = verbs_get_ctx_op(ctx, query_rt_values);
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	int err = v ? v->query_rt_values(ctx, &values) : ENOTSUP;

	*ticks = 0;
	if (!err && !(values.comp_mask & IBV_VALUES_MASK_RAW_CLOCK))
		err = ENOTSUP;
	if (!err)
		*ticks = (uint64_t)values.raw_clock.tv_nsec;
	return err;
}

int weft_ibv_query_port(struct ibv_context *ctx, uint8_t port, struct weft_port *out)
{
	struct ibv_port_attr a;

	memset(&a, 0, sizeof a);
	int err = weft_ibv.query_port(ctx, port, (void *)&a);
	if (err)
		return err;
	*out = (struct weft_port){
		.state = a.state,
		.max_mtu = a.max_mtu,
		.active_mtu = a.active_mtu,
		.link_layer = a.link_layer,
		.lid = a.lid,
		.lmc = a.lmc,
		.sm_lid = a.sm_lid,
		.max_msg_sz = a.max_msg_sz,
		.gid_tbl_len = a.gid_tbl_len,
		.pkey_tbl_len = a.pkey_tbl_len,
		.flags = a.flags,
		.active_speed = a.active_speed,
		.active_width = a.active_width,
	};
	return 0;
}

int weft_ibv_query_gid(struct ibv_context *ctx, uint8_t port, int index, uint8_t gid[16])
{
	union ibv_gid g;

	errno = 0;
	if (weft_ibv.query_gid(ctx, port, index, &g))
		return failed();
	memcpy(gid, g.raw, 16);
	return 0;
}

int weft_ibv_async_fd(struct ibv_context *ctx)
{
	return ctx->async_fd;
}

int weft_ibv_async_event(struct ibv_context *ctx, uint32_t *type, uint32_t *port, uint32_t *qp_num)
{
	struct ibv_async_event e;

	errno = 0;
	if (weft_ibv.get_async_event(ctx, &e))
		return failed();
	*type = e.event_type;
	*port = *qp_num = 0;
	switch (e.event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		*qp_num = e.element.qp->qp_num;
		break;
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_PKEY_CHANGE:
	case IBV_EVENT_SM_CHANGE:
	case IBV_EVENT_CLIENT_REREGISTER:
	case IBV_EVENT_GID_CHANGE:
		*port = e.element.port_num;
		break;
	default:
		break;
	}
	weft_ibv.ack_async_event(&e);
	return 0;
}

int weft_ibv_alloc_pd(struct ibv_context *ctx, struct ibv_pd **out)
{
	errno = 0;
	*out = weft_ibv.alloc_pd(ctx);
	return *out ? 0 : failed();
}

int weft_ibv_dealloc_pd(struct ibv_pd *pd)
{
	return weft_ibv.dealloc_pd(pd);
}

int weft_ibv_reg_mr(struct ibv_pd *pd, uint64_t addr, uint64_t len, uint32_t access, struct ibv_mr **out,
		    uint32_t *lkey, uint32_t *rkey)
{
	errno = 0;
	struct ibv_mr *mr = weft_ibv.reg_mr(pd, (void *)(uintptr_t)addr, len, access);
	if (!mr)
		return failed();
	*out = mr;
	*lkey = mr->lkey;
	*rkey = mr->rkey;
	return 0;
}

int weft_ibv_reg_dmabuf(struct ibv_pd *pd, const struct weft_dmabuf *d, uint32_t access, struct ibv_mr **out,
			uint32_t *lkey, uint32_t *rkey)
{
	if (!weft_ibv.reg_dmabuf_mr)
		return EOPNOTSUPP;
	errno = 0;
	struct ibv_mr *mr = weft_ibv.reg_dmabuf_mr(pd, d->offset, d->len, d->at, d->fd, (int)access);
	if (!mr)
		return failed();
	*out = mr;
	*lkey = mr->lkey;
	*rkey = mr->rkey;
	return 0;
}

void weft_ibv_swap(void *calls[WEFT_SWAPPED])
{
	void **const of[WEFT_SWAPPED] = {
		(void **)&weft_ibv.reg_mr,    (void **)&weft_ibv.reg_dmabuf_mr, (void **)&weft_ibv.dereg_mr,
		(void **)&weft_ibv.create_qp, (void **)&weft_ibv.modify_qp,	(void **)&weft_ibv.destroy_qp,
	};

	for (int i = 0; i < WEFT_SWAPPED; i++) {
		void *was = *of[i];
		*of[i] = calls[i];
		calls[i] = was;
	}
}

int weft_ibv_dereg_mr(struct ibv_mr *mr)
{
	return weft_ibv.dereg_mr(mr);
}
