/* SPDX-License-Identifier: BSD-2-Clause */
/* null.h: a queue pair that takes work requests and does nothing. */
#ifndef WEFT_IBV_NULL_H
#define WEFT_IBV_NULL_H

#include <stdint.h>
#include <infiniband/verbs.h>
#include "../ibv.h"

struct ibv_qp *weft_null_qp(void);
/* How many work requests the queue pair has taken. */
uint64_t weft_null_taken(void);
uint64_t weft_null_doorbells(void);
uint64_t weft_null_asked(void);
/* The request that was taken n before the last, 0 to 63. */
struct weft_null_request {
	uint64_t wr_id, remote_addr;
	uint32_t opcode, flags, rkey, nsge;
	struct ibv_sge sge[WEFT_GATHER];
};
struct weft_null_request weft_null_request(unsigned n);
/* Posts n inline sends of len bytes, one at a time, as a program in C does. */
void weft_null_loop(struct ibv_qp *qp, int n, int len);

/* A completion queue with what weft_null_complete puts there, up to 64; n is 0 or 1. */
struct ibv_cq *weft_null_cq(int n);
void weft_null_complete(int n, uint64_t wr_id, uint32_t status, uint32_t opcode, uint32_t bytes, uint32_t qp_num);
/* How often queue n was polled. */
uint64_t weft_null_polls(int n);
/* A device with a clock, which can be read or not. A completion queue with time stamps that is made there is queue 1
 * above, emptied. */
#define WEFT_NULL_CLOCK_MASK ((1ull << 48) - 1)
#define WEFT_NULL_CLOCK_KHZ 156250
struct ibv_context *weft_null_device(int readable);
/* What the clock says from now on, in completions too, and how often it was read. */
void weft_null_set_clock(uint64_t ticks);
uint64_t weft_null_clock_reads(void);
/* A protection domain, and the library's calls that register memory with it. */
struct ibv_pd *weft_null_pd(void);
void *weft_null_reg_mr(void);
void *weft_null_reg_dmabuf_mr(void);
void *weft_null_dereg_mr(void);
/* The library's calls that make queue pairs, which are weft_null_qp, and end them. */
void *weft_null_create_qp(void);
void *weft_null_modify_qp(void);
void *weft_null_destroy_qp(void);
/* The most local pieces of a request, and bytes in it, that they are made for from now on, and those of the last. */
void weft_null_qp_limit(uint32_t pieces, uint32_t bytes);
uint32_t weft_null_qp_pieces(void);
uint32_t weft_null_qp_inline(void);
/* What changes of their states are refused with from now on, 0: with nothing. */
void weft_null_qp_refuse(int err);
/* What dma-bufs are refused with from now on, 0: with nothing. */
void weft_null_refuse(int err);
/* How many registrations there are, and the last that was of a dma-buf. */
int weft_null_regions(void);
struct weft_null_dmabuf {
	uint64_t offset, len, at;
	int fd, access;
};
struct weft_null_dmabuf weft_null_last(void);
/* A shared receive queue that counts its buffers. */
struct ibv_srq *weft_null_srq(void);
uint64_t weft_null_buffers(void);

#endif
