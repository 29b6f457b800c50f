/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The Go functions that the C files call (goapi_gen.h), and what they share with
 * C. The Go files include this header, so that the compiler compares both sides.
 */
#ifndef WEFT_GOAPI_H
#define WEFT_GOAPI_H

#include <netinet/in.h>

#include "../include/weft/ext.h"
#include "goapi_gen.h"
#include "host.h"
#include "objects.h"

/* What the opening of an object gives to C. */
struct weft_opened {
	uint64_t handle;
	void *hot;                      /* table of plain words, where the class has one */
	void *rx;                       /* struct weft_hot_rx, likewise */
	bool deaf;                      /* endpoints: nothing that receives could complete on */
	uint64_t caps;                  /* endpoints: with every default filled in; shared contexts: FI_HMEM */
	uint64_t tx_op_flags;
	uint64_t rx_op_flags;
	uint64_t key;                   /* memory regions */
	void *desc;
	enum fi_ep_type ep_type;        /* endpoints: likewise */
};

/* waitobj.c: wakes whoever waits on the condition of FI_WAIT_MUTEX_COND; the handle of a wait set. */
void weft_wait_signal(struct weft_wait_native *wait);
uint64_t weft_wait_set_of(const struct fid_wait *set);

/* Stores of addresses that Go has as numbers. */
static inline void weft_av_set_map(struct fi_av_attr *attr, uint64_t addr)
{
	attr->map_addr = (void *)(uintptr_t)addr;
}

static inline void weft_err_set_addrs(struct fi_cq_err_entry *entry, uint64_t context, uint64_t buf)
{
	entry->op_context = (void *)(uintptr_t)context;
	entry->buf = (void *)(uintptr_t)buf;
}

static inline void weft_eq_err_set_addrs(struct fi_eq_err_entry *entry, uint64_t fid,
					 uint64_t context)
{
	entry->fid = (fid_t)(uintptr_t)fid;
	entry->context = (void *)(uintptr_t)context;
}

static inline void weft_opened_set_desc(struct weft_opened *out, uint64_t desc)
{
	out->desc = (void *)(uintptr_t)desc;
}

/* struct fi_mr_dmabuf, which came with libfabric 1.20. With the flag
 * FI_MR_DMABUF struct fi_mr_attr points to one in the place of mr_iov. */
struct weft_mr_dmabuf {
	int fd;
	uint64_t offset;
	size_t len;
	void *base_addr;
};

/* ext.c: the counters' operations, whose table Go enters before they are given out. */
extern struct weft_stats_ops weft_stats_ops;

/* struct fi_profile_desc of 2.0. */
struct weft_profile_desc {
	uint32_t id;
	int datatype_sel;       /* 0: datatype is an enum fi_datatype */
	int datatype;
	uint64_t flags;
	size_t size;
	const char *name;
	const char *desc;
};

#endif
