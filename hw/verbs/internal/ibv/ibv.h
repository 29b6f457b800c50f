/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv.h: what package ibv calls of libibverbs. The library is loaded at run
 * time; its structures come from rdma-core's headers, whose layout is part of
 * the library's ABI (symbol versions IBVERBS_1.x). Functions return 0 or an
 * errno value unless they say otherwise.
 */
#ifndef WEFT_IBV_H
#define WEFT_IBV_H

#include <stdint.h>
#include <infiniband/verbs.h>

/* One posted work request, written by Go. 128 bytes. */
struct weft_op {
	uint64_t wr_id;
	uint32_t opcode; /* enum ibv_wr_opcode */
	uint32_t flags;	 /* enum ibv_send_flags */
	uint32_t imm;	 /* host order */
	uint32_t nsge;	 /* at most WEFT_SGE */
	uint64_t remote_addr;
	uint32_t rkey;
	uint32_t with; /* not 0: the next one goes in one request with it, and its bytes at the peer follow */
	uint64_t pad[3];
	struct ibv_sge sge[4];
};
#define WEFT_SGE 4
#define WEFT_GATHER 16	   /* most pieces of a request of several operations */
#define WEFT_OP_JOINED ~0u /* opcode: goes with a later one, which has its bytes */

/* One completion. 48 bytes. */
struct weft_done {
	uint64_t wr_id;
	uint64_t stamp; /* device clock, 0 where the queue has none */
	uint32_t status;
	uint32_t opcode;
	uint32_t byte_len;
	uint32_t imm; /* host order */
	uint32_t qp_num;
	uint32_t src_qp;
	uint32_t wc_flags;
	uint32_t vendor_err;
};

/* A shared receive queue's buffers: buffer n starts at base + n * stride. */
struct weft_buffers {
	struct ibv_srq *srq;
	uint64_t base;
	uint32_t stride;
	uint32_t len;
	uint32_t lkey;
};

struct weft_cq {
	struct ibv_cq *cq;
	struct ibv_cq_ex *ex; /* cq's extended form when completions carry time stamps, else NULL */
};

struct weft_qp_attr {
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq; /* NULL: its own receive queue of max_recv */
	uint32_t type;	     /* enum ibv_qp_type */
	uint32_t max_send, max_recv, max_sge;
	uint32_t max_inline; /* in: wanted; out: had */
};

/* Where a peer's port is. */
struct weft_path {
	uint8_t gid[16];
	uint32_t global; /* use gid */
	uint16_t lid;
	uint8_t sgid_index, sl, hop_limit, traffic_class, port, pad;
};

struct weft_rtr {
	struct weft_path path;
	uint32_t mtu; /* enum ibv_mtu */
	uint32_t qp_num, psn;
	uint32_t max_dest_rd_atomic, min_rnr_timer;
};

struct weft_rts {
	uint32_t psn, timeout, retry_cnt, rnr_retry, max_rd_atomic;
};

struct weft_port {
	uint32_t state, max_mtu, active_mtu, link_layer, lid, lmc, sm_lid, max_msg_sz;
	uint32_t gid_tbl_len, pkey_tbl_len, flags, active_speed, active_width;
};

/* Once, before any memory is registered. */
int weft_ibv_fork_init(void);
const char *weft_ibv_status_str(uint32_t status);
const char *weft_ibv_event_str(uint32_t type);

/* Opens the device called name, ENODEV if there is none. */
int weft_ibv_open(const char *name, struct ibv_context **out);
int weft_ibv_close(struct ibv_context *ctx);
int weft_ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *out);
/* Bits of the device clock and its frequency in kHz, both 0 where it cannot be read or one of
 * them is unknown. */
void weft_ibv_query_clock(struct ibv_context *ctx, uint64_t *mask, uint64_t *khz);
/* What the device clock says, in the ticks of completions' stamps. ENOTSUP without one. */
int weft_ibv_clock(struct ibv_context *ctx, uint64_t *ticks);
int weft_ibv_query_port(struct ibv_context *ctx, uint8_t port, struct weft_port *out);
int weft_ibv_query_gid(struct ibv_context *ctx, uint8_t port, int index, uint8_t gid[16]);
int weft_ibv_async_fd(struct ibv_context *ctx);
/* Takes one asynchronous event without waiting, EAGAIN if there is none. */
int weft_ibv_async_event(struct ibv_context *ctx, uint32_t *type, uint32_t *port, uint32_t *qp_num);

int weft_ibv_alloc_pd(struct ibv_context *ctx, struct ibv_pd **out);
int weft_ibv_dealloc_pd(struct ibv_pd *pd);
int weft_ibv_reg_mr(struct ibv_pd *pd, uint64_t addr, uint64_t len, uint32_t access, struct ibv_mr **out,
		    uint32_t *lkey, uint32_t *rkey);
/* Memory of another device. EOPNOTSUPP where the library does not have the call. */
struct weft_dmabuf {
	uint64_t offset, len, at;
	int fd;
};
int weft_ibv_reg_dmabuf(struct ibv_pd *pd, const struct weft_dmabuf *d, uint32_t access, struct ibv_mr **out,
			uint32_t *lkey, uint32_t *rkey);
int weft_ibv_dereg_mr(struct ibv_mr *mr);
/* For tests: swaps ibv_reg_mr, ibv_reg_dmabuf_mr, ibv_dereg_mr, ibv_create_qp, ibv_modify_qp and ibv_destroy_qp for
 * others. */
#define WEFT_SWAPPED 6
void weft_ibv_swap(void *calls[WEFT_SWAPPED]);

int weft_ibv_create_channel(struct ibv_context *ctx, struct ibv_comp_channel **out, int *fd);
int weft_ibv_destroy_channel(struct ibv_comp_channel *ch);
/* Takes and acknowledges all events of the channel; returns how many. */
int weft_ibv_drain_channel(struct ibv_comp_channel *ch);
/* With stamps the queue's completions have time stamps, if the device can do that. */
int weft_ibv_create_cq(struct ibv_context *ctx, int entries, struct ibv_comp_channel *ch, int stamps,
		       struct weft_cq *out);
int weft_ibv_destroy_cq(struct ibv_cq *cq);
int weft_ibv_arm(struct ibv_cq *cq);
int weft_ibv_create_srq(struct ibv_pd *pd, uint32_t depth, struct ibv_srq **out);
int weft_ibv_destroy_srq(struct ibv_srq *srq);

int weft_ibv_create_qp(struct ibv_pd *pd, struct weft_qp_attr *attr, struct ibv_qp **out, uint32_t *qp_num);
int weft_ibv_destroy_qp(struct ibv_qp *qp);
/* To INIT: access for connected queue pairs, qkey for datagrams. */
int weft_ibv_init_qp(struct ibv_qp *qp, uint8_t port, uint16_t pkey_index, uint32_t access, uint32_t qkey);
int weft_ibv_rtr_qp(struct ibv_qp *qp, const struct weft_rtr *attr);
int weft_ibv_rts_qp(struct ibv_qp *qp, const struct weft_rts *attr);
int weft_ibv_error_qp(struct ibv_qp *qp);
/* To RESET. Everything that was posted has come back. */
int weft_ibv_reset_qp(struct ibv_qp *qp);
int weft_ibv_query_qp(struct ibv_qp *qp, uint32_t *state);

int weft_ibv_create_ah(struct ibv_pd *pd, const struct weft_path *path, struct ibv_ah **out);
int weft_ibv_destroy_ah(struct ibv_ah *ah);
int weft_ibv_post_recv(struct ibv_qp *qp, uint64_t addr, uint32_t len, uint32_t lkey, uint64_t wr_id);
int weft_ibv_send_ud(struct ibv_qp *qp, struct ibv_ah *ah, uint32_t qp_num, uint32_t qkey, uint64_t addr, uint32_t len,
		     uint32_t lkey, uint64_t wr_id);

/*
 * The data path. Each call does many operations.
 *
 * post: n operations, 1 to WEFT_POST_MAX, ring[(from + k) & mask], each a work request, or a part of
 * that of a later one; returns how many were taken and the errno value of the first that was not.
 * refill: gives n buffers to the shared receive queue; returns how many it took.
 * poll: up to max completions, and at most WEFT_POLL_MAX; returns how many, or -1.
 */
#define WEFT_POST_MAX 32
#define WEFT_POLL_MAX 64
int weft_ibv_post(struct ibv_qp *qp, const struct weft_op *ring, uint64_t mask, uint64_t from, int n, int *err);
int weft_ibv_refill(const struct weft_buffers *b, const uint32_t *index, int n);
int weft_ibv_poll(const struct weft_cq *cq, struct weft_done *done, int max);

#endif
