// SPDX-License-Identifier: BSD-2-Clause
// Loading libcxi, and calls of its functions: the only place that knows them.
#include <errno.h>
#include <string.h>
#include "cxi.h"

static struct {
	int (*get_device_list)(struct weft_cxi_device_list **);
	void (*free_device_list)(struct weft_cxi_device_list *);
	int (*open_device)(uint32_t, void **);
	void (*close_device)(void *);
	int (*get_svc)(void *, unsigned int, struct weft_cxi_svc *);
	int (*get_svc_list)(void *, struct weft_cxi_svc_list **);
	void (*free_svc_list)(struct weft_cxi_svc_list *);
	int (*svc_get_vni_range)(void *, unsigned int, uint16_t *, uint16_t *);
	int (*svc_get_netns)(void *, unsigned int, unsigned int *);
	int (*alloc_lni)(void *, struct weft_cxi_lni **, unsigned int);
	int (*destroy_lni)(struct weft_cxi_lni *);
	int (*alloc_cp)(struct weft_cxi_lni *, unsigned int, int, int, struct weft_cxi_cp **);
	int (*destroy_cp)(struct weft_cxi_cp *);
	int (*alloc_domain)(struct weft_cxi_lni *, unsigned int, unsigned int, struct weft_cxi_domain **);
	int (*destroy_domain)(struct weft_cxi_domain *);
	int (*alloc_cmdq)(struct weft_cxi_lni *, struct weft_cxi_eq *, const struct weft_cxi_cq_opts *,
			  struct weft_cxi_cq **);
	int (*destroy_cmdq)(struct weft_cxi_cq *);
	int (*map)(struct weft_cxi_lni *, void *, size_t, uint32_t, const struct weft_cxi_md_hints *,
		   struct weft_cxi_md **);
	int (*unmap)(struct weft_cxi_md *);
	int (*alloc_evtq)(struct weft_cxi_lni *, const struct weft_cxi_md *, const struct weft_cxi_eq_attr *, void *,
			  void *, struct weft_cxi_eq **);
	int (*destroy_evtq)(struct weft_cxi_eq *);
	int (*alloc_pte)(struct weft_cxi_lni *, struct weft_cxi_eq *, const uint64_t *, struct weft_cxi_pte **);
	int (*destroy_pte)(struct weft_cxi_pte *);
	int (*map_pte)(struct weft_cxi_pte *, struct weft_cxi_domain *, unsigned int, _Bool, void **);
	int (*unmap_pte)(void *);
	int (*invalidate_pte_le)(struct weft_cxi_pte *, unsigned int, int);
	int (*pte_status)(struct weft_cxi_pte *, struct weft_cxi_pte_status *);
	int (*pte_transition_sm)(struct weft_cxi_pte *, unsigned int);
	int (*alloc_wait_obj)(struct weft_cxi_lni *, void **);
	int (*destroy_wait_obj)(void *);
	int (*get_wait_obj_fd)(void *);
	void (*clear_wait_obj)(void *);
} cxi;

// Versions are those in which a function came.
const struct weft_shlib_symbol weft_cxi_symbols[] = {
/* clang-format off */
#define SYM(name, version, optional) {"cxil_" #name, "LIBCXI_" version, (void **)&cxi.name, optional}
	SYM(get_device_list, "1.0", 0),
	SYM(free_device_list, "1.0", 0),
	SYM(open_device, "1.0", 0),
	SYM(close_device, "1.0", 0),
	SYM(get_svc, "1.2", 0),
	SYM(get_svc_list, "1.0", 0),
	SYM(free_svc_list, "1.0", 0),
	SYM(svc_get_vni_range, "1.9", 1),
	SYM(svc_get_netns, "1.10", 1),
	SYM(alloc_lni, "1.0", 0),
	SYM(destroy_lni, "1.0", 0),
	SYM(alloc_cp, "1.0", 0),
	SYM(destroy_cp, "1.0", 0),
	SYM(alloc_domain, "1.0", 0),
	SYM(destroy_domain, "1.0", 0),
	SYM(alloc_cmdq, "1.0", 0),
	SYM(destroy_cmdq, "1.0", 0),
	SYM(map, "1.0", 0),
	SYM(unmap, "1.0", 0),
	SYM(alloc_evtq, "1.0", 0),
	SYM(destroy_evtq, "1.0", 0),
	SYM(alloc_pte, "1.0", 0),
	SYM(destroy_pte, "1.0", 0),
	SYM(map_pte, "1.0", 0),
	SYM(unmap_pte, "1.0", 0),
	SYM(invalidate_pte_le, "1.0", 0),
	SYM(pte_status, "1.0", 0),
	SYM(pte_transition_sm, "1.4", 1),
	SYM(alloc_wait_obj, "1.0", 0),
	SYM(destroy_wait_obj, "1.0", 0),
	SYM(get_wait_obj_fd, "1.0", 0),
	SYM(clear_wait_obj, "1.0", 0),
#undef SYM
};
/* clang-format on */
const size_t weft_cxi_symbol_count = sizeof(weft_cxi_symbols) / sizeof(weft_cxi_symbols[0]);

int weft_cxi_get_device_list(struct weft_cxi_device_list **list)
{
	return cxi.get_device_list(list);
}
void weft_cxi_free_device_list(struct weft_cxi_device_list *list)
{
	cxi.free_device_list(list);
}
struct weft_cxi_devinfo *weft_cxi_device_at(struct weft_cxi_device_list *list, uint32_t n)
{
	return &list->info[n];
}
int weft_cxi_open_device(uint32_t id, void **dev)
{
	return cxi.open_device(id, dev);
}
void weft_cxi_close_device(void *dev)
{
	cxi.close_device(dev);
}
int weft_cxi_get_svc(void *dev, uint32_t id, struct weft_cxi_svc *svc)
{
	return cxi.get_svc(dev, id, svc);
}
int weft_cxi_get_svc_list(void *dev, struct weft_cxi_svc_list **list)
{
	return cxi.get_svc_list(dev, list);
}
void weft_cxi_free_svc_list(struct weft_cxi_svc_list *list)
{
	cxi.free_svc_list(list);
}
struct weft_cxi_svc *weft_cxi_svc_at(struct weft_cxi_svc_list *list, uint32_t n)
{
	return &list->list[n];
}

int weft_cxi_svc_get_vni_range(void *dev, uint32_t id, uint16_t *min, uint16_t *max)
{
	return cxi.svc_get_vni_range ? cxi.svc_get_vni_range(dev, id, min, max) : -ENOSYS;
}

int weft_cxi_svc_get_netns(void *dev, uint32_t id, uint32_t *netns)
{
	return cxi.svc_get_netns ? cxi.svc_get_netns(dev, id, netns) : -ENOSYS;
}

int weft_cxi_alloc_lni(void *dev, uint32_t svc, struct weft_cxi_lni **lni)
{
	return cxi.alloc_lni(dev, lni, svc);
}
int weft_cxi_destroy_lni(struct weft_cxi_lni *lni)
{
	return cxi.destroy_lni(lni);
}

int weft_cxi_alloc_cp(struct weft_cxi_lni *lni, uint32_t vni, uint32_t tc, uint32_t type, struct weft_cxi_cp **cp)
{
	return cxi.alloc_cp(lni, vni, (int)tc, (int)type, cp);
}

int weft_cxi_destroy_cp(struct weft_cxi_cp *cp)
{
	return cxi.destroy_cp(cp);
}

int weft_cxi_alloc_domain(struct weft_cxi_lni *lni, uint32_t vni, uint32_t pid, struct weft_cxi_domain **d)
{
	return cxi.alloc_domain(lni, vni, pid, d);
}

int weft_cxi_destroy_domain(struct weft_cxi_domain *d)
{
	return cxi.destroy_domain(d);
}

int weft_cxi_alloc_cmdq(struct weft_cxi_lni *lni, struct weft_cxi_eq *eq, const struct weft_cxi_cq_opts *opts,
			struct weft_cxi_cq **cq)
{
	return cxi.alloc_cmdq(lni, eq, opts, cq);
}

int weft_cxi_destroy_cmdq(struct weft_cxi_cq *cq)
{
	return cxi.destroy_cmdq(cq);
}

int weft_cxi_map(struct weft_cxi_lni *lni, uintptr_t va, size_t len, uint32_t flags, struct weft_cxi_md **md)
{
	return cxi.map(lni, (void *)va, len, flags, NULL, md);
}

int weft_cxi_unmap(struct weft_cxi_md *md)
{
	return cxi.unmap(md);
}

int weft_cxi_alloc_evtq(struct weft_cxi_lni *lni, struct weft_cxi_md *md, uintptr_t queue, size_t len, uint64_t flags,
			void *wait, uint32_t reserved, struct weft_cxi_eq **eq)
{
	struct weft_cxi_eq_attr attr = {
		.queue = (void *)queue, .queue_len = len, .flags = flags, .reserved_slots = reserved
	};

	return cxi.alloc_evtq(lni, md, &attr, wait, NULL, eq);
}

int weft_cxi_destroy_evtq(struct weft_cxi_eq *eq)
{
	return cxi.destroy_evtq(eq);
}

int weft_cxi_alloc_pte(struct weft_cxi_lni *lni, struct weft_cxi_eq *eq, uint64_t opts, struct weft_cxi_pte **pte)
{
	return cxi.alloc_pte(lni, eq, &opts, pte);
}

int weft_cxi_destroy_pte(struct weft_cxi_pte *pte)
{
	return cxi.destroy_pte(pte);
}

int weft_cxi_map_pte(struct weft_cxi_pte *pte, struct weft_cxi_domain *d, uint32_t index, void **map)
{
	return cxi.map_pte(pte, d, index, 0, map);
}

int weft_cxi_unmap_pte(void *map)
{
	return cxi.unmap_pte(map);
}

int weft_cxi_invalidate_pte_le(struct weft_cxi_pte *pte, uint32_t buffer, uint32_t list)
{
	return cxi.invalidate_pte_le(pte, buffer, (int)list);
}

int weft_cxi_pte_status(struct weft_cxi_pte *pte, uint64_t *offsets, uint32_t *count, uint32_t *drops)
{
	struct weft_cxi_pte_status s = { .offsets = offsets, .count = (uint16_t)*count };
	int rc = cxi.pte_status(pte, &s);

	*count = s.count;
	*drops = s.drops;
	return rc;
}

int weft_cxi_pte_transition_sm(struct weft_cxi_pte *pte, uint32_t drops)
{
	return cxi.pte_transition_sm ? cxi.pte_transition_sm(pte, drops) : -ENOSYS;
}

int weft_cxi_manages(void)
{
	return cxi.pte_transition_sm != NULL;
}

int weft_cxi_alloc_wait(struct weft_cxi_lni *lni, void **wait)
{
	return cxi.alloc_wait_obj(lni, wait);
}
int weft_cxi_destroy_wait(void *wait)
{
	return cxi.destroy_wait_obj(wait);
}
int weft_cxi_wait_fd(void *wait)
{
	return cxi.get_wait_obj_fd(wait);
}
void weft_cxi_clear_wait(void *wait)
{
	cxi.clear_wait_obj(wait);
}
