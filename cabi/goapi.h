/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The Go functions that the C files call (goapi_gen.h), and what they share with
 * C. The Go files include this header, so that the compiler compares both sides.
 */
#ifndef WEFT_GOAPI_H
#define WEFT_GOAPI_H

#include <netinet/in.h>

#include "../include/weft/coll.h"
#include "../include/weft/ext.h"
#include "goapi_gen.h"
#include "host.h"
#include "objects.h"

/* What the opening of an object gives to C. */
struct weft_opened {
	uint64_t handle;
	void *hot;     /* table of plain words, where the class has one */
	void *rx;      /* struct weft_hot_rx, likewise */
	bool deaf;     /* endpoints: nothing that receives could complete on */
	uint64_t caps; /* endpoints: with every default filled in; shared contexts: FI_HMEM */
	uint64_t tx_op_flags;
	uint64_t rx_op_flags;
	enum fi_ep_type ep_type; /* endpoints: likewise */
};

/* waitobj.c: wakes the threads that wait on the condition of FI_WAIT_MUTEX_COND; the handle of a wait set. */
void weft_wait_signal(struct weft_wait_native *wait);
uint64_t weft_wait_set_of(const struct fid_wait *set);

/* struct fi_mr_dmabuf, which came with libfabric 1.20. With the flag
 * FI_MR_DMABUF struct fi_mr_attr points to one in the place of mr_iov. */
struct weft_mr_dmabuf {
	int fd;
	uint64_t offset;
	size_t len;
	void *base_addr;
};

/* ext.c: the counters' operations; Go enters the table before they are given out. */
extern struct weft_stats_ops weft_stats_ops;

/* What libfabric has not (tables_gen.c). */
extern struct weft_coll_ops weft_coll_ops;

/* nic.c: makes one that knows nothing, with all attributes; NULL when memory is short. Text put into it is malloc'd. */
struct fid_nic *weft_nic_new(void);

static inline void weft_nic_set_pci(struct fid_nic *nic, uint16_t domain, uint8_t bus, uint8_t device, uint8_t function)
{
	nic->bus_attr->bus_type = FI_BUS_PCI;
	nic->bus_attr->attr.pci = (struct fi_pci_attr){ domain, bus, device, function };
}

/* longdouble.c: performs one element of an atomic operation on FI_LONG_DOUBLE or FI_LONG_DOUBLE_COMPLEX. Pointers need
 * no alignment. */
void weft_long_double(int datatype, int op, void *target, const void *operand, const void *compare);

/* struct fi_profile_desc of 2.0. */
struct weft_profile_desc {
	uint32_t id;
	int datatype_sel; /* 0: datatype is an enum fi_datatype */
	int datatype;
	uint64_t flags;
	size_t size;
	const char *name;
	const char *desc;
};

#endif
