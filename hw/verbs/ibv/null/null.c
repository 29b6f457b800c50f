// SPDX-License-Identifier: BSD-2-Clause
#include <string.h>
#include "null.h"

static uint64_t taken;
static unsigned char ring[64][256];

// What a driver does at least: it walks the list and copies inline data into
// its ring.
static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)qp;
	(void)bad;
	for (; wr; wr = wr->next) {
		unsigned char *at = ring[taken & 63];

		memcpy(at, &wr->wr_id, 8);
		if (wr->num_sge && wr->send_flags & IBV_SEND_INLINE && wr->sg_list[0].length <= 248)
			memcpy(at + 8, (void *)(uintptr_t)wr->sg_list[0].addr, wr->sg_list[0].length);
		taken++;
	}
	return 0;
}

struct ibv_qp *weft_null_qp(void)
{
	static struct ibv_context ctx;
	static struct ibv_qp qp;

	ctx.ops.post_send = post_send;
	qp.context = &ctx;
	qp.qp_num = 1;
	return &qp;
}

uint64_t weft_null_taken(void) { return taken; }

void weft_null_loop(struct ibv_qp *qp, int n, int len)
{
	static unsigned char data[256];
	struct ibv_send_wr *bad;

	for (int i = 0; i < n; i++) {
		struct ibv_sge sge = {(uintptr_t)data, len, 0};
		struct ibv_send_wr wr = {
			.wr_id = i, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE,
		};

		if (qp->context->ops.post_send(qp, &wr, &bad))
			return;
	}
}

static struct {
	struct ibv_cq cq;
	struct ibv_wc wc[64];
	unsigned head, tail;
	uint64_t looks;
} queues[2];

static int poll_cq(struct ibv_cq *cq, int max, struct ibv_wc *wc)
{
	int n = 0;

	for (unsigned q = 0; q < 2; q++) {
		if (cq != &queues[q].cq)
			continue;
		queues[q].looks++;
		while (n < max && queues[q].head != queues[q].tail)
			wc[n++] = queues[q].wc[queues[q].head++ & 63];
	}
	return n;
}

uint64_t weft_null_looks(int n) { return queues[n].looks; }

struct ibv_cq *weft_null_cq(int n)
{
	static struct ibv_context ctx;

	ctx.ops.poll_cq = poll_cq;
	queues[n].cq.context = &ctx;
	queues[n].head = queues[n].tail = 0;
	return &queues[n].cq;
}

void weft_null_complete(int n, uint64_t wr_id, uint32_t status, uint32_t opcode, uint32_t bytes, uint32_t qp_num)
{
	queues[n].wc[queues[n].tail++ & 63] = (struct ibv_wc){
		.wr_id = wr_id, .status = status, .opcode = opcode, .byte_len = bytes, .qp_num = qp_num,
	};
}

static uint64_t buffers;

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)srq;
	(void)bad;
	for (; wr; wr = wr->next)
		buffers++;
	return 0;
}

struct ibv_srq *weft_null_srq(void)
{
	static struct ibv_context ctx;
	static struct ibv_srq srq;

	ctx.ops.post_srq_recv = post_srq_recv;
	srq.context = &ctx;
	buffers = 0;
	return &srq;
}

uint64_t weft_null_buffers(void) { return buffers; }
