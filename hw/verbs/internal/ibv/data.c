// SPDX-License-Identifier: BSD-2-Clause
// The data path: posting and polling, many operations in one call.
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include "lib.h"

#define BATCH 32 // receive buffers that are given back at a time

_Static_assert(sizeof(struct weft_op) == 128, "mirrored by type Op");
_Static_assert(sizeof(struct weft_done) == 48, "mirrored by type Done");
_Static_assert(sizeof(struct ibv_sge) == 16, "mirrored by type SGE");

// request turns op into the library's form.
static void request(struct ibv_send_wr *wr, const struct weft_op *op)
{
	wr->wr_id = op->wr_id;
	wr->sg_list = (struct ibv_sge *)op->sge;
	wr->num_sge = op->nsge;
	wr->opcode = op->opcode;
	wr->send_flags = op->flags;
	wr->imm_data = htonl(op->imm);
	wr->wr.rdma.remote_addr = op->remote_addr;
	wr->wr.rdma.rkey = op->rkey;
}

// gather has wr, the request of the operation at from, move the bytes of those that go with it, too: their pieces go
// into sge. The last one's end is that of all. Returns how many operations these are.
static int gather(struct ibv_send_wr *wr, struct ibv_sge *sge, const struct weft_op *ring, uint64_t mask, uint64_t from)
{
	const struct weft_op *op;
	int count = 0;

	wr->sg_list = sge;
	wr->num_sge = 0;
	do {
		op = &ring[(from + count++) & mask];
		memcpy(&sge[wr->num_sge], op->sge, op->nsge * sizeof(*sge));
		wr->num_sge += op->nsge;
		wr->send_flags |= op->flags;
	} while (op->with);
	wr->wr_id = op->wr_id;
	return count;
}

// operations is how many of ring's from one on the first requests of a post were made of.
static int operations(const struct weft_op *ring, uint64_t mask, uint64_t from, long requests)
{
	int n = 0;

	while (requests) {
		const struct weft_op *op = &ring[(from + n++) & mask];

		requests -= op->opcode != WEFT_OP_JOINED && !op->with;
	}
	return n;
}

int weft_ibv_post(struct ibv_qp *qp, const struct weft_op *ring, uint64_t mask, uint64_t from, int n, int *err)
{
	struct ibv_send_wr wr[WEFT_POST_MAX], *bad;
	struct ibv_sge sge[WEFT_POST_MAX * WEFT_SGE];
	int k = 0, used = 0;

	for (int j = 0; j < n; j++) {
		const struct weft_op *op = &ring[(from + j) & mask];

		if (op->opcode == WEFT_OP_JOINED)
			continue;
		request(&wr[k], op);
		if (op->with) {
			j += gather(&wr[k], &sge[used], ring, mask, from + j) - 1;
			used += wr[k].num_sge;
		}
		wr[k].next = &wr[k + 1];
		k++;
	}
	wr[k - 1].next = NULL; // the last one goes with no later one
	*err = qp->context->ops.post_send(qp, wr, &bad);
	return *err ? operations(ring, mask, from, bad - wr) : n;
}

int weft_ibv_refill(const struct weft_buffers *b, const uint32_t *index, int n)
{
	struct ibv_recv_wr wr[BATCH], *bad;
	struct ibv_sge sge[BATCH];
	int done = 0;

	while (done < n) {
		int k = 0, want = n - done < BATCH ? n - done : BATCH;

		for (; k < want; k++) {
			uint32_t i = index[done + k];

			sge[k] = (struct ibv_sge){ b->base + (uint64_t)i * b->stride, b->len, b->lkey };
			wr[k] = (struct ibv_recv_wr){
				.wr_id = i, .next = &wr[k + 1], .sg_list = &sge[k], .num_sge = 1
			};
		}
		wr[k - 1].next = NULL;
		if (b->srq->context->ops.post_srq_recv(b->srq, wr, &bad))
			return done + (int)(bad - wr);
		done += k;
	}
	return done;
}

static int poll_stamped(struct ibv_cq_ex *cq, struct weft_done *done, int max)
{
	struct ibv_poll_cq_attr none = { 0 };
	int n = 0, err = ibv_start_poll(cq, &none);

	if (err)
		return err == ENOENT ? 0 : -1;
	do {
		struct weft_done *d = &done[n++];

		*d = (struct weft_done){ .wr_id = cq->wr_id, .status = cq->status, .vendor_err = 0 };
		if (cq->status) {
			d->vendor_err = ibv_wc_read_vendor_err(cq);
			d->qp_num = ibv_wc_read_qp_num(cq);
			continue;
		}
		d->stamp = ibv_wc_read_completion_ts(cq);
		d->opcode = ibv_wc_read_opcode(cq);
		d->byte_len = ibv_wc_read_byte_len(cq);
		d->qp_num = ibv_wc_read_qp_num(cq);
		d->src_qp = ibv_wc_read_src_qp(cq);
		d->wc_flags = ibv_wc_read_wc_flags(cq);
		d->imm = d->wc_flags & IBV_WC_WITH_IMM ? ntohl(ibv_wc_read_imm_data(cq)) : 0;
	} while (n < max && !ibv_next_poll(cq));
	ibv_end_poll(cq);
	return n;
}

int weft_ibv_poll(const struct weft_cq *cq, struct weft_done *done, int max)
{
	struct ibv_wc wc[WEFT_POLL_MAX];
	int n;

	if (cq->ex)
		return poll_stamped(cq->ex, done, max);
	n = cq->cq->context->ops.poll_cq(cq->cq, max < WEFT_POLL_MAX ? max : WEFT_POLL_MAX, wc);
	for (int k = 0; k < n; k++)
		done[k] = (struct weft_done){
			.wr_id = wc[k].wr_id,
			.status = wc[k].status,
			.opcode = wc[k].opcode,
			.byte_len = wc[k].byte_len,
			.imm = ntohl(wc[k].imm_data),
			.qp_num = wc[k].qp_num,
			.src_qp = wc[k].src_qp,
			.wc_flags = wc[k].wc_flags,
			.vendor_err = wc[k].vendor_err,
		};
	return n < 0 ? -1 : n;
}

int weft_ibv_post_recv(struct ibv_qp *qp, uint64_t addr, uint32_t len, uint32_t lkey, uint64_t wr_id)
{
	struct ibv_sge sge = { addr, len, lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return qp->context->ops.post_recv(qp, &wr, &bad);
}

int weft_ibv_send_ud(struct ibv_qp *qp, struct ibv_ah *ah, uint32_t qp_num, uint32_t qkey, uint64_t addr, uint32_t len,
		     uint32_t lkey, uint64_t wr_id)
{
	struct ibv_sge sge = { addr, len, lkey };
	struct ibv_send_wr wr, *bad;

	memset(&wr, 0, sizeof wr);
	wr.wr_id = wr_id;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.opcode = IBV_WR_SEND;
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qp_num;
	wr.wr.ud.remote_qkey = qkey;
	return qp->context->ops.post_send(qp, &wr, &bad);
}
