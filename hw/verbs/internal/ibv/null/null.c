// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include "null.h"

static uint64_t taken, doorbells, asked;
static unsigned char ring[64][256];
static struct weft_null_request requests[64];

static void note(struct weft_null_request *r, const struct ibv_send_wr *wr)
{
	*r = (struct weft_null_request){
		.wr_id = wr->wr_id,
		.remote_addr = wr->wr.rdma.remote_addr,
		.opcode = wr->opcode,
		.flags = wr->send_flags,
		.rkey = wr->wr.rdma.rkey,
		.nsge = wr->num_sge,
	};
	if (wr->num_sge > 0 && wr->num_sge <= WEFT_GATHER)
		memcpy(r->sge, wr->sg_list, wr->num_sge * sizeof(*r->sge));
}

// What a driver does at least: it walks the list and copies inline data into
// its ring.
static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)qp;
	(void)bad;
	doorbells++;
	for (; wr; wr = wr->next) {
		unsigned char *at = ring[taken & 63];

		note(&requests[taken & 63], wr);
		asked += (wr->send_flags & IBV_SEND_SIGNALED) != 0;
		memcpy(at, &wr->wr_id, 8);
		if (wr->num_sge && wr->send_flags & IBV_SEND_INLINE && wr->sg_list[0].length <= 248)
			memcpy(at + 8, (void *)(uintptr_t)wr->sg_list[0].addr, wr->sg_list[0].length);
		taken++;
	}
	return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)qp;
	(void)wr;
	(void)bad;
	return 0;
}

struct ibv_qp *weft_null_qp(void)
{
	static struct ibv_context ctx;
	static struct ibv_qp qp;

	ctx.ops.post_send = post_send;
	ctx.ops.post_recv = post_recv;
	qp.context = &ctx;
	qp.qp_num = 1;
	return &qp;
}

struct weft_null_request weft_null_request(unsigned n)
{
	return requests[(taken - 1 - n) & 63];
}
uint64_t weft_null_taken(void)
{
	return taken;
}
uint64_t weft_null_doorbells(void)
{
	return doorbells;
}
uint64_t weft_null_asked(void)
{
	return asked;
}

void weft_null_loop(struct ibv_qp *qp, int n, int len)
{
	static unsigned char data[256];
	struct ibv_send_wr *bad;

	for (int i = 0; i < n; i++) {
		struct ibv_sge sge = { (uintptr_t)data, len, 0 };
		struct ibv_send_wr wr = {
			.wr_id = i,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_INLINE,
		};

		if (qp->context->ops.post_send(qp, &wr, &bad))
			return;
	}
}

static struct queue {
	union {
		struct ibv_cq cq;
		struct ibv_cq_ex ex; // begins as cq does
	};
	struct ibv_wc wc[64];
	uint64_t stamps[64];
	unsigned head, tail;
	uint64_t polls;
} queues[2];

static uint64_t now; // what the device's clock says

static int poll_cq(struct ibv_cq *cq, int max, struct ibv_wc *wc)
{
	int n = 0;

	for (unsigned q = 0; q < 2; q++) {
		if (cq != &queues[q].cq)
			continue;
		queues[q].polls++;
		while (n < max && queues[q].head != queues[q].tail)
			wc[n++] = queues[q].wc[queues[q].head++ & 63];
	}
	return n;
}

uint64_t weft_null_polls(int n)
{
	return queues[n].polls;
}

struct ibv_cq *weft_null_cq(int n)
{
	static struct ibv_context ctx;

	ctx.ops.poll_cq = poll_cq;
	memset(&queues[n].ex, 0, sizeof(queues[n].ex));
	queues[n].cq.context = &ctx;
	queues[n].head = queues[n].tail = 0;
	return &queues[n].cq;
}

void weft_null_complete(int n, uint64_t wr_id, uint32_t status, uint32_t opcode, uint32_t bytes, uint32_t qp_num)
{
	queues[n].stamps[queues[n].tail & 63] = now & WEFT_NULL_CLOCK_MASK;
	queues[n].wc[queues[n].tail++ & 63] = (struct ibv_wc){
		.wr_id = wr_id,
		.status = status,
		.opcode = opcode,
		.byte_len = bytes,
		.qp_num = qp_num,
	};
}

// What of queues[1] is being read by the calls of an extended queue.
static const struct ibv_wc *current(void)
{
	return &queues[1].wc[queues[1].head & 63];
}

static int here(struct ibv_cq_ex *cq)
{
	if (queues[1].head == queues[1].tail)
		return ENOENT;
	cq->wr_id = current()->wr_id;
	cq->status = current()->status;
	return 0;
}

static int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	(void)attr;
	queues[1].polls++;
	return here(cq);
}

static int next_poll(struct ibv_cq_ex *cq)
{
	queues[1].head++;
	int err = here(cq);
	if (err)
		queues[1].head--; // end_poll passes the last one
	return err;
}

static void end_poll(struct ibv_cq_ex *cq)
{
	(void)cq;
	queues[1].head++;
}

#define READ(name, type, value) \
	static type name(struct ibv_cq_ex *cq) \
	{ \
		(void)cq; \
		return value; \
	}
READ(read_opcode, enum ibv_wc_opcode, current()->opcode)
READ(read_byte_len, uint32_t, current()->byte_len)
READ(read_qp_num, uint32_t, current()->qp_num)
READ(read_src_qp, uint32_t, current()->src_qp)
READ(read_vendor_err, uint32_t, current()->vendor_err)
READ(read_wc_flags, unsigned int, current()->wc_flags)
READ(read_imm_data, __be32, current()->imm_data)
READ(read_completion_ts, uint64_t, queues[1].stamps[queues[1].head & 63])

static struct ibv_cq_ex *create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr)
{
	struct ibv_cq_ex *cq = &queues[1].ex;

	if (!(attr->wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	*cq = (struct ibv_cq_ex){
		.context = ctx,
		.start_poll = start_poll,
		.next_poll = next_poll,
		.end_poll = end_poll,
		.read_opcode = read_opcode,
		.read_byte_len = read_byte_len,
		.read_qp_num = read_qp_num,
		.read_src_qp = read_src_qp,
		.read_vendor_err = read_vendor_err,
		.read_wc_flags = read_wc_flags,
		.read_imm_data = read_imm_data,
		.read_completion_ts = read_completion_ts,
	};
	queues[1].head = queues[1].tail = 0;
	return cq;
}

static uint64_t clock_reads;

static int query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values)
{
	(void)ctx;
	if (!(values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK))
		return EINVAL;
	clock_reads++;
	*values = (struct ibv_values_ex){ .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	values->raw_clock.tv_nsec = (long)(now & WEFT_NULL_CLOCK_MASK);
	return 0;
}

static int query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *in,
			   struct ibv_device_attr_ex *attr, size_t size)
{
	(void)ctx;
	(void)in;
	if (size < sizeof(*attr))
		return EINVAL;
	memset(attr, 0, size);
	attr->completion_timestamp_mask = WEFT_NULL_CLOCK_MASK;
	attr->hca_core_clock = WEFT_NULL_CLOCK_KHZ;
	return 0;
}

struct ibv_context *weft_null_device(int readable)
{
	static struct verbs_context devices[2];
	struct verbs_context *d = &devices[!!readable];

	*d = (struct verbs_context){
		.sz = sizeof(*d),
		.create_cq_ex = create_cq_ex,
		.query_device_ex = query_device_ex,
		.query_rt_values = readable ? query_rt_values : NULL,
	};
	d->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	return &d->context;
}

void weft_null_set_clock(uint64_t ticks)
{
	now = ticks;
}
uint64_t weft_null_clock_reads(void)
{
	return clock_reads;
}

static int regions, refusal;
static struct weft_null_dmabuf last;

static struct ibv_mr *registered(struct ibv_pd *pd)
{
	static struct ibv_mr list[64];
	static uint32_t key = 100;
	struct ibv_mr *m = &list[key % 64];

	*m = (struct ibv_mr){ .pd = pd, .lkey = key, .rkey = key };
	key++;
	regions++;
	return m;
}

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	(void)addr;
	(void)len;
	(void)access;
	return registered(pd);
}

// As the kernel: whether the device takes dma-bufs comes before which one, and that before what its exporter says,
// which may be the same.
static struct ibv_mr *reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t len, uint64_t at, int fd, int access)
{
	int never = refusal == EOPNOTSUPP || refusal == EPROTONOSUPPORT || refusal == ENOSYS;

	errno = 0;
	if (never)
		errno = refusal;
	else if (fcntl(fd, F_GETFD) < 0)
		errno = EBADF;
	else if ((offset ^ at) & 4095)
		errno = EINVAL;
	else
		errno = refusal;
	if (errno)
		return NULL;
	last = (struct weft_null_dmabuf){ offset, len, at, fd, access };
	return registered(pd);
}

static int dereg_mr(struct ibv_mr *mr)
{
	(void)mr;
	regions--;
	return 0;
}

struct ibv_pd *weft_null_pd(void)
{
	static struct ibv_pd pd;

	return &pd;
}

static uint32_t most_pieces = WEFT_GATHER, most_inline = UINT32_MAX, pieces, inlined;
static int unchanged;

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	(void)pd;
	if (attr->cap.max_send_sge > most_pieces || attr->cap.max_inline_data > most_inline) {
		errno = EINVAL;
		return NULL;
	}
	pieces = attr->cap.max_send_sge;
	inlined = attr->cap.max_inline_data;
	return weft_null_qp();
}

static int modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	(void)qp;
	(void)attr;
	(void)mask;
	return unchanged;
}

static int destroy_qp(struct ibv_qp *qp)
{
	(void)qp;
	return 0;
}

void *weft_null_create_qp(void)
{
	return (void *)create_qp;
}
void *weft_null_modify_qp(void)
{
	return (void *)modify_qp;
}
void *weft_null_destroy_qp(void)
{
	return (void *)destroy_qp;
}
void weft_null_qp_limit(uint32_t n, uint32_t bytes)
{
	most_pieces = n;
	most_inline = bytes;
}
void weft_null_qp_refuse(int err)
{
	unchanged = err;
}
uint32_t weft_null_qp_inline(void)
{
	return inlined;
}
uint32_t weft_null_qp_pieces(void)
{
	return pieces;
}

void *weft_null_reg_mr(void)
{
	return (void *)reg_mr;
}
void *weft_null_reg_dmabuf_mr(void)
{
	return (void *)reg_dmabuf_mr;
}
void *weft_null_dereg_mr(void)
{
	return (void *)dereg_mr;
}
void weft_null_refuse(int err)
{
	refusal = err;
}
int weft_null_regions(void)
{
	return regions;
}
struct weft_null_dmabuf weft_null_last(void)
{
	return last;
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

uint64_t weft_null_buffers(void)
{
	return buffers;
}
