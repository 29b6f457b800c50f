/* SPDX-License-Identifier: BSD-2-Clause */
/* lib.h: the functions of the loaded library, under their names without ibv_. */
#ifndef WEFT_IBV_LIB_H
#define WEFT_IBV_LIB_H

#include "ibv.h"
#include "../../../../internal/shlib/shlib.h"

struct weft_ibv_lib {
	struct ibv_device **(*get_device_list)(int *);
	void (*free_device_list)(struct ibv_device **);
	const char *(*get_device_name)(struct ibv_device *);
	struct ibv_context *(*open_device)(struct ibv_device *);
	int (*close_device)(struct ibv_context *);
	int (*query_device)(struct ibv_context *, struct ibv_device_attr *);
	int (*query_port)(struct ibv_context *, uint8_t, struct _compat_ibv_port_attr *);
	int (*query_gid)(struct ibv_context *, uint8_t, int, union ibv_gid *);
	int (*get_async_event)(struct ibv_context *, struct ibv_async_event *);
	void (*ack_async_event)(struct ibv_async_event *);
	struct ibv_pd *(*alloc_pd)(struct ibv_context *);
	int (*dealloc_pd)(struct ibv_pd *);
	struct ibv_mr *(*reg_mr)(struct ibv_pd *, void *, size_t, int);
	int (*dereg_mr)(struct ibv_mr *);
	struct ibv_comp_channel *(*create_comp_channel)(struct ibv_context *);
	int (*destroy_comp_channel)(struct ibv_comp_channel *);
	int (*get_cq_event)(struct ibv_comp_channel *, struct ibv_cq **, void **);
	void (*ack_cq_events)(struct ibv_cq *, unsigned int);
	struct ibv_cq *(*create_cq)(struct ibv_context *, int, void *, struct ibv_comp_channel *, int);
	int (*destroy_cq)(struct ibv_cq *);
	struct ibv_srq *(*create_srq)(struct ibv_pd *, struct ibv_srq_init_attr *);
	int (*destroy_srq)(struct ibv_srq *);
	struct ibv_qp *(*create_qp)(struct ibv_pd *, struct ibv_qp_init_attr *);
	int (*destroy_qp)(struct ibv_qp *);
	int (*modify_qp)(struct ibv_qp *, struct ibv_qp_attr *, int);
	int (*query_qp)(struct ibv_qp *, struct ibv_qp_attr *, int, struct ibv_qp_init_attr *);
	struct ibv_ah *(*create_ah)(struct ibv_pd *, struct ibv_ah_attr *);
	int (*destroy_ah)(struct ibv_ah *);
	int (*fork_init)(void);
	const char *(*wc_status_str)(enum ibv_wc_status);
	const char *(*event_type_str)(enum ibv_event_type);
	/* Libraries have it since rdma-core 34; NULL in older ones. */
	struct ibv_mr *(*reg_dmabuf_mr)(struct ibv_pd *, uint64_t offset, size_t len, uint64_t iova, int fd,
					int access);
};

/* Filled when the library is loaded, constant afterwards. */
extern struct weft_ibv_lib weft_ibv;

/* What is loaded of the library; nothing of it may be called before. */
extern const struct weft_shlib_symbol weft_ibv_symbols[];
extern const size_t weft_ibv_symbol_count;

#endif
