/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cxi.h: what weft uses of libcxi, the library of HPE Slingshot's NICs: its structures and functions in own
 * declarations, and weft's calls of them. Offsets are the ABI's, and are checked where the structures are declared.
 */
#ifndef WEFT_CXI_H
#define WEFT_CXI_H

#include <stddef.h>
#include <stdint.h>
#include "../shlib/shlib.h"

#define WEFT_AT(type, member, offset) _Static_assert(offsetof(struct type, member) == (offset), #type "." #member)
#define WEFT_SIZE(type, bytes) _Static_assert(sizeof(struct type) == (bytes), #type)

struct weft_cxi_devinfo {
	uint32_t dev_id, nid, pid_bits, pid_count, pid_granule, min_free_shift, rdzv_get_idx;
	char name[14];
	char driver[10];
	uint32_t vendor_id, device_id, device_rev, device_proto, platform;
	uint16_t ptes, txqs, tgqs, eqs, cts, acs, tles, les;
	uint16_t pci_domain;
	uint8_t pci_bus, pci_device, pci_function;
	size_t link_mtu, link_speed;
	uint8_t link_state;
	int32_t uc_nic;
	uint32_t pct_eq, version;
	char fru[16];
	uint8_t is_vf;
	uint32_t system_type;
};
WEFT_AT(weft_cxi_devinfo, name, 28);
WEFT_AT(weft_cxi_devinfo, driver, 42);
WEFT_AT(weft_cxi_devinfo, vendor_id, 52);
WEFT_AT(weft_cxi_devinfo, ptes, 72);
WEFT_AT(weft_cxi_devinfo, pci_domain, 88);
WEFT_AT(weft_cxi_devinfo, link_mtu, 96);
WEFT_AT(weft_cxi_devinfo, link_state, 112);
WEFT_AT(weft_cxi_devinfo, version, 124);
WEFT_AT(weft_cxi_devinfo, is_vf, 144);
WEFT_SIZE(weft_cxi_devinfo, 152);

struct weft_cxi_device_list {
	uint32_t count;
	struct weft_cxi_devinfo info[];
};
WEFT_AT(weft_cxi_device_list, info, 8);

/* flags of a service */
enum {
	WEFT_CXI_SVC_MEMBERS = 1 << 0, /* only members may use it */
	WEFT_CXI_SVC_VNIS = 1 << 1,    /* only the VNIs listed */
	WEFT_CXI_SVC_TCS = 1 << 2,     /* only the traffic classes listed */
	WEFT_CXI_SVC_LIMITS = 1 << 3,
	WEFT_CXI_SVC_ENABLED = 1 << 4,
	WEFT_CXI_SVC_SYSTEM = 1 << 5,
};

struct weft_cxi_svc {
	uint8_t flags, vni_count;
	uint16_t vnis[4];
	uint8_t tcs[6];
	struct {
		uint32_t id, type;
	} members[2];
	struct {
		uint16_t max, reserved;
	} limits[8];
	uint32_t id;
};
WEFT_AT(weft_cxi_svc, vnis, 2);
WEFT_AT(weft_cxi_svc, members, 16);
WEFT_AT(weft_cxi_svc, limits, 32);
WEFT_AT(weft_cxi_svc, id, 64);
WEFT_SIZE(weft_cxi_svc, 68);

struct weft_cxi_svc_list {
	uint32_t count;
	struct weft_cxi_svc list[];
};

struct weft_cxi_lni {
	uint32_t id;
};

struct weft_cxi_cp {
	uint32_t vni, tc, tc_type;
	uint8_t lcid;
};
WEFT_AT(weft_cxi_cp, lcid, 12);

struct weft_cxi_domain {
	uint32_t vni, pid;
};

struct weft_cxi_pte {
	uint32_t ptn;
};

struct weft_cxi_md {
	uint64_t iova, va;
	size_t len;
	uint8_t lac;
	int32_t page_shift, huge_shift;
	uint32_t id;
};
WEFT_AT(weft_cxi_md, lac, 24);
WEFT_AT(weft_cxi_md, id, 36);

/* a command queue: where its ring, its launch page and its status are */
struct weft_cxi_cq {
	uint32_t size;
	uint64_t *launch;
	void *ll_64, *ll_128a, *ll_128u;
	uint64_t *ring; /* its start is the status */
	uint32_t rp32, unused0, idx, size32, wp32, unused1, hw_wp32;
};
WEFT_AT(weft_cxi_cq, launch, 8);
WEFT_AT(weft_cxi_cq, ring, 40);
WEFT_AT(weft_cxi_cq, idx, 56);
WEFT_AT(weft_cxi_cq, size32, 60);

struct weft_cxi_cq_opts {
	uint32_t count, policy, stat_cnt_pool, flags, lcid, lpe_cdt_thresh_id;
};
WEFT_SIZE(weft_cxi_cq_opts, 24);

struct weft_cxi_eq {
	uint32_t bytes;
	uint64_t sw_state;
	uint64_t *sw_state_addr;
	uint64_t last_sec, last_ns;
	uint32_t rd_offset, prev_rd_offset, eqn;
	void *context;
	uint64_t *events; /* their start is the status */
};
WEFT_AT(weft_cxi_eq, sw_state_addr, 16);
WEFT_AT(weft_cxi_eq, eqn, 48);
WEFT_AT(weft_cxi_eq, events, 64);

struct weft_cxi_eq_attr {
	void *queue;
	size_t queue_len;
	uint64_t flags;
	uint32_t thresh_base, thresh_delta, thresh_count, ec_delay, cpu_affinity, reserved_slots;
};
WEFT_AT(weft_cxi_eq_attr, flags, 16);
WEFT_AT(weft_cxi_eq_attr, reserved_slots, 44);
WEFT_SIZE(weft_cxi_eq_attr, 48);

struct weft_cxi_md_hints {
	uint32_t words[10];
};

// What a portal table entry is at.
struct weft_cxi_pte_status {
	uint32_t drops;
	uint8_t state, pad;
	uint16_t entries[4]; // reserved, allocated, most, and none
	uint64_t *offsets;   // of unexpected messages at their senders, count of them
	uint16_t count, rest[3];
};
WEFT_AT(weft_cxi_pte_status, offsets, 16);
WEFT_AT(weft_cxi_pte_status, count, 24);
WEFT_SIZE(weft_cxi_pte_status, 32);

/* What is loaded of the library; nothing else may be called before. */
extern const struct weft_shlib_symbol weft_cxi_symbols[];
extern const size_t weft_cxi_symbol_count;

int weft_cxi_get_device_list(struct weft_cxi_device_list **list);
void weft_cxi_free_device_list(struct weft_cxi_device_list *list);
struct weft_cxi_devinfo *weft_cxi_device_at(struct weft_cxi_device_list *list, uint32_t n);
int weft_cxi_open_device(uint32_t id, void **dev);
void weft_cxi_close_device(void *dev);
int weft_cxi_get_svc(void *dev, uint32_t id, struct weft_cxi_svc *svc);
int weft_cxi_get_svc_list(void *dev, struct weft_cxi_svc_list **list);
void weft_cxi_free_svc_list(struct weft_cxi_svc_list *list);
struct weft_cxi_svc *weft_cxi_svc_at(struct weft_cxi_svc_list *list, uint32_t n);
int weft_cxi_svc_get_vni_range(void *dev, uint32_t id, uint16_t *min, uint16_t *max);
int weft_cxi_svc_get_netns(void *dev, uint32_t id, uint32_t *netns);
int weft_cxi_alloc_lni(void *dev, uint32_t svc, struct weft_cxi_lni **lni);
int weft_cxi_destroy_lni(struct weft_cxi_lni *lni);
int weft_cxi_alloc_cp(struct weft_cxi_lni *lni, uint32_t vni, uint32_t tc, uint32_t type, struct weft_cxi_cp **cp);
int weft_cxi_destroy_cp(struct weft_cxi_cp *cp);
int weft_cxi_alloc_domain(struct weft_cxi_lni *lni, uint32_t vni, uint32_t pid, struct weft_cxi_domain **d);
int weft_cxi_destroy_domain(struct weft_cxi_domain *d);
int weft_cxi_alloc_cmdq(struct weft_cxi_lni *lni, struct weft_cxi_eq *eq, const struct weft_cxi_cq_opts *opts,
			struct weft_cxi_cq **cq);
int weft_cxi_destroy_cmdq(struct weft_cxi_cq *cq);
int weft_cxi_map(struct weft_cxi_lni *lni, uintptr_t va, size_t len, uint32_t flags, struct weft_cxi_md **md);
int weft_cxi_unmap(struct weft_cxi_md *md);
int weft_cxi_alloc_evtq(struct weft_cxi_lni *lni, struct weft_cxi_md *md, uintptr_t queue, size_t len, uint64_t flags,
			void *wait, uint32_t reserved, struct weft_cxi_eq **eq);
int weft_cxi_destroy_evtq(struct weft_cxi_eq *eq);
int weft_cxi_alloc_pte(struct weft_cxi_lni *lni, struct weft_cxi_eq *eq, uint64_t opts, struct weft_cxi_pte **pte);
int weft_cxi_destroy_pte(struct weft_cxi_pte *pte);
int weft_cxi_map_pte(struct weft_cxi_pte *pte, struct weft_cxi_domain *d, uint32_t index, void **map);
int weft_cxi_unmap_pte(void *map);
int weft_cxi_pte_status(struct weft_cxi_pte *pte, uint64_t *offsets, uint32_t *count, uint32_t *drops);
int weft_cxi_pte_transition_sm(struct weft_cxi_pte *pte, uint32_t drops);
int weft_cxi_manages(void); // whether the library has that
int weft_cxi_invalidate_pte_le(struct weft_cxi_pte *pte, uint32_t buffer, uint32_t list);
int weft_cxi_alloc_wait(struct weft_cxi_lni *lni, void **wait);
int weft_cxi_destroy_wait(void *wait);
int weft_cxi_wait_fd(void *wait);
void weft_cxi_clear_wait(void *wait);

#endif
