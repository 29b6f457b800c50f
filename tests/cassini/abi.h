/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a program that is linked to libcxi.so.1 exchanges with it: the structures in memory, with the
 * offsets that the library's users were compiled with, and the functions.
 */
#ifndef CASSINI_ABI_H
#define CASSINI_ABI_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct devinfo {
	unsigned int dev_id, nid, pid_bits, pid_count, pid_granule, min_free_shift, rdzv_get_idx;
	char device_name[14], driver_name[9];
	unsigned int vendor_id, device_id, device_rev, device_proto, device_platform;
	uint16_t num_ptes, num_txqs, num_tgqs, num_eqs, num_cts, num_acs, num_tles, num_les;
	uint16_t pci_domain;
	uint8_t pci_bus, pci_device, pci_function;
	size_t link_mtu, link_speed;
	uint8_t link_state;
	int uc_nic;
	unsigned int pct_eq;
	int cassini_version;
	char fru_description[16];
	bool is_vf;
	int system_type;
};
static_assert(sizeof(struct devinfo) == 152 && offsetof(struct devinfo, vendor_id) == 52 &&
		      offsetof(struct devinfo, pci_domain) == 88 && offsetof(struct devinfo, link_mtu) == 96 &&
		      offsetof(struct devinfo, uc_nic) == 116 && offsetof(struct devinfo, is_vf) == 144,
	      "device information");

struct device_list {
	unsigned int count;
	struct devinfo info[];
};
struct cxil_dev {
	struct devinfo info;
};
struct cxil_lni {
	unsigned int id;
};
struct cxil_domain {
	unsigned int vni, pid;
};
struct cxil_pte {
	unsigned int ptn;
};

/* Resources, in the order of limits and uses. */
enum { RES_PTE, RES_TXQ, RES_TGQ, RES_EQ, RES_CT, RES_LE, RES_TLE, RES_AC, RES_COUNT };
enum { SVC_MEMBERS = 2, SVC_VNIS = 4, TRAFFIC_CLASSES = 5, TRAFFIC_TYPES = 4, TRAFFIC_RESTRICTED = 2 };
enum { MEMBER_IGNORE, MEMBER_UID, MEMBER_GID, MEMBER_NETNS, MEMBER_TYPES };

struct svc_desc {
	uint8_t restricted_members : 1, restricted_vnis : 1, restricted_tcs : 1, resource_limits : 1;
	uint8_t enable : 1, is_system_svc : 1, cntr_pool_id : 2;
	uint8_t num_vld_vnis;
	uint16_t vnis[SVC_VNIS];
	bool tcs[TRAFFIC_CLASSES];
	struct {
		uint32_t id;
		int type;
	} members[SVC_MEMBERS];
	struct {
		uint16_t max, res;
	} limits[RES_COUNT];
	unsigned int svc_id;
};
static_assert(sizeof(struct svc_desc) == 68 && offsetof(struct svc_desc, members) == 16, "service");

struct svc_list {
	unsigned int count;
	struct svc_desc descs[];
};
struct svc_use {
	unsigned int svc_id, tle_pool_id;
	uint16_t in_use[RES_COUNT];
};
struct svc_fail {
	uint16_t available[RES_COUNT];
	bool no_le_pools, no_tle_pools, no_cntr_pools;
};
static_assert(sizeof(struct svc_use) == 24 && sizeof(struct svc_fail) == 20, "uses of a service");

struct cp {
	unsigned int vni;
	int tc, tc_type;
	unsigned int lcid;
};
enum { CP_TRIGGERED, CP_PLAIN, CP_ANY };

struct md {
	uint64_t iova, va;
	size_t len;
	uint8_t lac;
	int page_shift, huge_shift;
	unsigned int id;
};
struct md_hints {
	int page_shift, huge_shift, ptg_mode;
	bool ptg_mode_valid;
	int dmabuf_fd;
	unsigned long dmabuf_offset;
	bool dmabuf_valid;
};
enum {
	MAP_PIN = 1,
	MAP_ATS = 2,
	MAP_NIC_WRITE = 4,
	MAP_NIC_READ = 8,
	MAP_FAULT = 16,
	MAP_NOCACHE = 32,
	MAP_DEVICE = 512,
	MAP_PREFETCH = 4096,
	MAP_KNOWN = 0x1fff,
};
static_assert(sizeof(struct md) == 40 && sizeof(struct md_hints) == 40, "memory");

struct cq {
	unsigned int size;
	uint64_t *wp_addr;
	uint8_t *ll_64, *ll_128a, *ll_128u;
	uint8_t *ring; /* status, then commands */
	uint64_t rp32;
	unsigned int idx, size32;
	uint64_t wp32, hw_wp32;
};
struct cq_opts {
	unsigned int count;
	int policy;
	unsigned int stat_cnt_pool;
	uint32_t flags;
	unsigned int lcid, lpe_cdt_thresh_id;
};
struct cq_buf_opts {
	struct cq_opts opts;
	void *buf;
	bool is_host_mem;
	int dmabuf_fd;
	unsigned long dmabuf_offset;
};
enum { CQ_TX = 2, CQ_ETHERNET = 4, CQ_TRIGGERED = 8, CQ_POLICIES = 4 };
static_assert(sizeof(struct cq) == 80 && sizeof(struct cq_opts) == 24 && sizeof(struct cq_buf_opts) == 48,
	      "command queue");

struct eq {
	unsigned int byte_size;
	uint64_t sw_state, *sw_state_addr, last_ts_sec, last_ts_ns;
	unsigned int rd_offset, prev_rd_offset, eqn;
	void *context;
	uint8_t *events;
};
struct eq_attr {
	void *queue;
	size_t queue_len;
	uint64_t flags;
	unsigned int thresh_base, thresh_delta, thresh_count, ec_delay, cpu_affinity, reserved_slots;
};
enum { EQ_PASSTHROUGH = 2, EQ_INIT_LONG = 4, EQ_TGT_LONG = 8, EQ_DROP_STATUS_DISABLE = 16 };
static_assert(sizeof(struct eq) == 72 && sizeof(struct eq_attr) == 48, "event queue");

struct ct {
	uint64_t *doorbell;
	unsigned int ctn;
	uint64_t *wb;
};

struct pt_opts {
	uint64_t en_event_match : 1, clr_remote_offset : 1, en_flowctrl : 1, use_long_event : 1, lossless : 1;
	uint64_t en_restricted_unicast_lm : 1, use_logical : 1, is_matching : 1, do_space_check : 1, en_align_lm : 1;
	uint64_t en_sw_hw_st_chng : 1, ethernet : 1, signals : 4, en_match_on_vni : 1;
};
struct pt_status {
	uint32_t drop_count;
	uint8_t state;
	uint16_t les_reserved, les_allocated, les_max;
	uint64_t *ule_offsets;
	uint16_t ule_count;
};
static_assert(sizeof(struct ct) == 24 && sizeof(struct pt_opts) == 8 && sizeof(struct pt_status) == 32, "table entry");

struct cxil_wait_obj;
struct cxil_pte_map;

#define API __attribute__((visibility("default")))

API int cxil_get_device_list(struct device_list **list);
API void cxil_free_device_list(struct device_list *list);
API int cxil_open_device(uint32_t id, struct cxil_dev **dev);
API void cxil_close_device(struct cxil_dev *dev);
API int cxil_get_amo_remap_to_pcie_fadd(struct cxil_dev *dev, int *op);
API int cxil_read_cntr(struct cxil_dev *dev, unsigned int cntr, uint64_t *value, struct timespec *ts);
API bool cxil_is_copy_on_fork(void);
API int cxil_map_csr(struct cxil_dev *dev);
API int cxil_read_csr(struct cxil_dev *dev, unsigned int csr, void *value, size_t len);
API int cxil_write_csr(struct cxil_dev *dev, unsigned int csr, const void *value, size_t len);

API int cxil_get_svc(struct cxil_dev *dev, unsigned int id, struct svc_desc *desc);
API int cxil_get_svc_list(struct cxil_dev *dev, struct svc_list **list);
API void cxil_free_svc_list(struct svc_list *list);
API int cxil_get_svc_rsrc_use(struct cxil_dev *dev, unsigned int id, struct svc_use *use);
API int cxil_alloc_svc(struct cxil_dev *dev, const struct svc_desc *desc, struct svc_fail *fail);
API int cxil_destroy_svc(struct cxil_dev *dev, unsigned int id);
API int cxil_update_svc(struct cxil_dev *dev, const struct svc_desc *desc, struct svc_fail *fail);
API int cxil_svc_enable(struct cxil_dev *dev, unsigned int id, bool enable);
API int cxil_svc_set_vni_range(struct cxil_dev *dev, unsigned int id, uint16_t min, uint16_t max);
API int cxil_svc_get_vni_range(struct cxil_dev *dev, unsigned int id, uint16_t *min, uint16_t *max);
API int cxil_svc_set_exclusive_cp(struct cxil_dev *dev, unsigned int id, bool exclusive);
API int cxil_svc_get_exclusive_cp(struct cxil_dev *dev, unsigned int id, bool *exclusive);
API int cxil_svc_set_netns(struct cxil_dev *dev, unsigned int id, unsigned int netns);
API int cxil_svc_get_netns(struct cxil_dev *dev, unsigned int id, unsigned int *netns);

API int cxil_alloc_lni(struct cxil_dev *dev, struct cxil_lni **lni, unsigned int svc_id);
API int cxil_destroy_lni(struct cxil_lni *lni);
API int cxil_alloc_cp(struct cxil_lni *lni, unsigned int vni, int tc, int tc_type, struct cp **cp);
API int cxil_alloc_trig_cp(struct cxil_lni *lni, unsigned int vni, int tc, int tc_type, int cp_type, struct cp **cp);
API int cxil_modify_cp(struct cxil_lni *lni, struct cp *cp, unsigned int vni);
API int cxil_destroy_cp(struct cp *cp);
API int cxil_alloc_domain(struct cxil_lni *lni, unsigned int vni, unsigned int pid, struct cxil_domain **domain);
API int cxil_destroy_domain(struct cxil_domain *domain);

API int cxil_alloc_cmdq(struct cxil_lni *lni, struct eq *eq, const struct cq_opts *opts, struct cq **cq);
API int cxil_alloc_buf_cmdq(struct cxil_lni *lni, struct eq *eq, const struct cq_buf_opts *opts, struct cq **cq);
API int cxil_destroy_cmdq(struct cq *cq);
API int cxil_cmdq_ack_counter(struct cq *cq, unsigned int *counter);
API int cxil_map(struct cxil_lni *lni, void *va, size_t len, uint32_t flags, struct md_hints *hints, struct md **md);
API int cxil_unmap(struct md *md);
API int cxil_alloc_evtq(struct cxil_lni *lni, const struct md *md, const struct eq_attr *attr,
			struct cxil_wait_obj *event_wait, struct cxil_wait_obj *status_wait, struct eq **eq);
API int cxil_destroy_evtq(struct eq *eq);
API int cxil_evtq_adjust_reserved_fc(struct eq *eq, int value);

API int cxil_alloc_pte(struct cxil_lni *lni, struct eq *eq, struct pt_opts *opts, struct cxil_pte **pte);
API int cxil_destroy_pte(struct cxil_pte *pte);
API int cxil_map_pte(struct cxil_pte *pte, struct cxil_domain *domain, unsigned int offset, bool multicast,
		     struct cxil_pte_map **map);
API int cxil_unmap_pte(struct cxil_pte_map *map);
API int cxil_invalidate_pte_le(struct cxil_pte *pte, unsigned int buffer_id, int list);
API int cxil_pte_status(struct cxil_pte *pte, struct pt_status *status);
API int cxil_pte_transition_sm(struct cxil_pte *pte, unsigned int drop_count);

API int cxil_alloc_ct(struct cxil_lni *lni, uint64_t *wb, struct ct **ct);
API int cxil_ct_wb_update(struct ct *ct, uint64_t *wb);
API int cxil_destroy_ct(struct ct *ct);
API int cxil_alloc_wait_obj(struct cxil_lni *lni, struct cxil_wait_obj **wait);
API int cxil_destroy_wait_obj(struct cxil_wait_obj *wait);
API int cxil_get_wait_obj_fd(struct cxil_wait_obj *wait);
API void cxil_clear_wait_obj(struct cxil_wait_obj *wait);

#endif
