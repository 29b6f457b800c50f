// SPDX-License-Identifier: BSD-2-Clause
// Completion queues, queue pairs and their states.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include "lib.h"

static int failed(void)
{
	return errno ? errno : EIO;
}

int weft_ibv_create_channel(struct ibv_context *ctx, struct ibv_comp_channel **out, int *fd)
{
	errno = 0;
	struct ibv_comp_channel *ch = weft_ibv.create_comp_channel(ctx);
	if (!ch)
		return failed();
	int flags = fcntl(ch->fd, F_GETFL);
	if (flags < 0 || fcntl(ch->fd, F_SETFL, flags | O_NONBLOCK) < 0) {
		int err = errno;
		weft_ibv.destroy_comp_channel(ch);
		return err;
	}
	*out = ch;
	*fd = ch->fd;
	return 0;
}

int weft_ibv_destroy_channel(struct ibv_comp_channel *ch)
{
	return weft_ibv.destroy_comp_channel(ch);
}

int weft_ibv_drain_channel(struct ibv_comp_channel *ch)
{
	int n = 0;
	struct ibv_cq *cq;
	void *context;

	while (!weft_ibv.get_cq_event(ch, &cq, &context)) {
		weft_ibv.ack_cq_events(cq, 1);
		n++;
	}
	return n;
}

int weft_ibv_create_cq(struct ibv_context *ctx, int entries, struct ibv_comp_channel *ch, int stamps,
		       struct weft_cq *out)
{
	struct verbs_context *v = stamps ? verbs_get_ctx_op(ctx, create_cq_ex) : NULL;

	*out = (struct weft_cq){ 0 };
	if (v) {
		struct ibv_cq_init_attr_ex a = {
			.cqe = entries,
			.channel = ch,
			.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
		};
		out->ex = v->create_cq_ex(ctx, &a);
		if (out->ex) {
			out->cq = ibv_cq_ex_to_cq(out->ex);
			return 0;
		}
	}
	errno = 0;
	out->cq = weft_ibv.create_cq(ctx, entries, NULL, ch, 0);
	return out->cq ? 0 : failed();
}

int weft_ibv_destroy_cq(struct ibv_cq *cq)
{
	return weft_ibv.destroy_cq(cq);
}
int weft_ibv_arm(struct ibv_cq *cq)
{
	return cq->context->ops.req_notify_cq(cq, 0);
}

int weft_ibv_create_srq(struct ibv_pd *pd, uint32_t depth, struct ibv_srq **out)
{
	struct ibv_srq_init_attr a = { .attr = { .max_wr = depth, .max_sge = 1 } };

	errno = 0;
	*out = weft_ibv.create_srq(pd, &a);
	return *out ? 0 : failed();
}

int weft_ibv_destroy_srq(struct ibv_srq *srq)
{
	return weft_ibv.destroy_srq(srq);
}

int weft_ibv_create_qp(struct ibv_pd *pd, struct weft_qp_attr *attr, struct ibv_qp **out, uint32_t *qp_num)
{
	struct ibv_qp_init_attr a = {
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.qp_type = attr->type,
		.cap = {
			.max_send_wr = attr->max_send,
			.max_recv_wr = attr->max_recv,
			.max_send_sge = attr->max_sge,
			.max_recv_sge = attr->srq ? 0 : 1,
			.max_inline_data = attr->max_inline,
		},
	};

	errno = 0;
	*out = weft_ibv.create_qp(pd, &a);
	if (!*out)
		return failed();
	attr->max_inline = a.cap.max_inline_data;
	*qp_num = (*out)->qp_num;
	return 0;
}

int weft_ibv_destroy_qp(struct ibv_qp *qp)
{
	return weft_ibv.destroy_qp(qp);
}

int weft_ibv_init_qp(struct ibv_qp *qp, uint8_t port, uint16_t pkey_index, uint32_t access, uint32_t qkey)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = port, .pkey_index = pkey_index };
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	if (qp->qp_type == IBV_QPT_UD) {
		a.qkey = qkey;
		mask |= IBV_QP_QKEY;
	} else {
		a.qp_access_flags = access;
		mask |= IBV_QP_ACCESS_FLAGS;
	}
	return weft_ibv.modify_qp(qp, &a, mask);
}

static void set_path(struct ibv_ah_attr *a, const struct weft_path *p)
{
	memset(a, 0, sizeof *a);
	a->dlid = p->lid;
	a->sl = p->sl;
	a->port_num = p->port;
	if (!p->global)
		return;
	a->is_global = 1;
	memcpy(a->grh.dgid.raw, p->gid, 16);
	a->grh.sgid_index = p->sgid_index;
	a->grh.hop_limit = p->hop_limit;
	a->grh.traffic_class = p->traffic_class;
}

int weft_ibv_rtr_qp(struct ibv_qp *qp, const struct weft_rtr *attr)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR };
	int mask = IBV_QP_STATE;

	if (qp->qp_type != IBV_QPT_UD) {
		set_path(&a.ah_attr, &attr->path);
		a.path_mtu = attr->mtu;
		a.dest_qp_num = attr->qp_num;
		a.rq_psn = attr->psn;
		a.max_dest_rd_atomic = attr->max_dest_rd_atomic;
		a.min_rnr_timer = attr->min_rnr_timer;
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			IBV_QP_MIN_RNR_TIMER;
	}
	return weft_ibv.modify_qp(qp, &a, mask);
}

int weft_ibv_rts_qp(struct ibv_qp *qp, const struct weft_rts *attr)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS, .sq_psn = attr->psn };
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (qp->qp_type != IBV_QPT_UD) {
		a.timeout = attr->timeout;
		a.retry_cnt = attr->retry_cnt;
		a.rnr_retry = attr->rnr_retry;
		a.max_rd_atomic = attr->max_rd_atomic;
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	}
	return weft_ibv.modify_qp(qp, &a, mask);
}

int weft_ibv_reset_qp(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RESET };

	return weft_ibv.modify_qp(qp, &a, IBV_QP_STATE);
}

int weft_ibv_error_qp(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };

	return weft_ibv.modify_qp(qp, &a, IBV_QP_STATE);
}

int weft_ibv_query_qp(struct ibv_qp *qp, uint32_t *state)
{
	struct ibv_qp_attr a;
	struct ibv_qp_init_attr init;
	int err = weft_ibv.query_qp(qp, &a, IBV_QP_STATE, &init);

	*state = err ? 0 : a.qp_state;
	return err;
}

int weft_ibv_create_ah(struct ibv_pd *pd, const struct weft_path *path, struct ibv_ah **out)
{
	struct ibv_ah_attr a;

	set_path(&a, path);
	errno = 0;
	*out = weft_ibv.create_ah(pd, &a);
	return *out ? 0 : failed();
}

int weft_ibv_destroy_ah(struct ibv_ah *ah)
{
	return weft_ibv.destroy_ah(ah);
}
