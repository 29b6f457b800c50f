/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Services: what may use which VNIs, traffic classes and resources.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "nic.h"

void services_init(struct nic *n)
{
	struct service *s = &n->services[DEFAULT_SERVICE];
	const long max[RES_COUNT] = {
		[RES_PTE] = set.ptes, [RES_TXQ] = set.txqs, [RES_TGQ] = set.tgqs, [RES_EQ] = set.eqs,
		[RES_CT] = set.cts,   [RES_LE] = set.les,   [RES_TLE] = set.tles, [RES_AC] = 1022,
	};

	s->exists = true;
	s->exclusive_cp = set.exclusive != 0;
	s->desc = (struct svc_desc){
		.restricted_vnis = 1,
		.resource_limits = 1,
		.enable = set.enable != 0,
		.num_vld_vnis = 2,
		.vnis = { 1, 10 },
		.tcs = { true, true, true, true, false },
		.svc_id = DEFAULT_SERVICE,
	};
	for (int i = 0; i < RES_COUNT; i++)
		s->desc.limits[i].max = (uint16_t)max[i];
	if (set.member >= 0) {
		s->desc.restricted_members = 1;
		s->desc.members[0].type = MEMBER_UID;
		s->desc.members[0].id = (uint32_t)set.member;
	}
	s->desc.limits[RES_TLE].res = (uint16_t)(set.tles < 512 ? set.tles : 512);
}

static struct service *service_of(struct cxil_dev *dev, unsigned int id)
{
	struct service *s;

	if (id < 1 || id >= SERVICES)
		return NULL;
	s = &nics[dev->info.dev_id].services[id];
	return s->exists ? s : NULL;
}

/* service_take counts a resource of a service; false at its limit. */
bool service_take(struct service *s, int resource)
{
	if (s->desc.resource_limits && s->in_use[resource] >= s->desc.limits[resource].max)
		return false;
	s->in_use[resource]++;
	return true;
}

void service_give(struct service *s, int resource)
{
	s->in_use[resource]--;
}

bool service_allows_vni(const struct service *s, unsigned int vni)
{
	if (vni < 1 || vni > 0xffff)
		return false;
	if (s->desc.restricted_vnis) {
		for (int i = 0; i < s->desc.num_vld_vnis; i++)
			if (s->desc.vnis[i] == vni)
				return true;
		return false;
	}
	return !s->has_range || (vni >= s->vni_min && vni <= s->vni_max);
}

/* List entries come from one pool of the NIC. */
bool le_take(struct pte *p)
{
	if (p->nic->les >= (unsigned long)set.les || !service_take(p->lni->svc, RES_LE))
		return false;
	p->nic->les++;
	return true;
}

void le_give(struct pte *p)
{
	p->nic->les--;
	service_give(p->lni->svc, RES_LE);
}

/* add_below adds one to a count that stays below a limit. */
static bool add_below(unsigned int *count, unsigned int limit)
{
	unsigned int n = __atomic_load_n(count, __ATOMIC_RELAXED);

	while (n < limit)
		if (__atomic_compare_exchange_n(count, &n, n + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return true;
	return false;
}

/* tle_take takes a triggered entry, within the limits of the NIC and of the service. */
bool tle_take(struct lni *l)
{
	unsigned int id = l->svc->desc.svc_id, limit = (unsigned int)set.tles, used;
	struct tles *t = l->nic->tles;

	if (l->svc->desc.resource_limits && l->svc->desc.limits[RES_TLE].max < limit)
		limit = l->svc->desc.limits[RES_TLE].max;
	if (!add_below(&t->of_service[id], limit))
		return false;
	if (!add_below(&t->used, (unsigned int)set.tles)) {
		__atomic_sub_fetch(&t->of_service[id], 1, __ATOMIC_RELAXED);
		return false;
	}
	used = __atomic_load_n(&t->used, __ATOMIC_RELAXED);
	if (used > __atomic_load_n(&t->peak, __ATOMIC_RELAXED))
		__atomic_store_n(&t->peak, used, __ATOMIC_RELAXED);
	return true;
}

void tle_give(struct lni *l)
{
	__atomic_sub_fetch(&l->nic->tles->used, 1, __ATOMIC_RELAXED);
	__atomic_sub_fetch(&l->nic->tles->of_service[l->svc->desc.svc_id], 1, __ATOMIC_RELAXED);
}

/* of_caller finds a service for a call and leaves the lock taken, or is NULL with an error and without the lock. What
 * changes a service is for the administrator. */
static struct service *of_caller(struct cxil_dev *dev, unsigned int id, bool changes, int *rc)
{
	struct service *s;

	*rc = !dev || id < 1 ? -EINVAL : changes && geteuid() != 0 ? -EPERM : 0;
	if (*rc)
		return NULL;
	nic_lock();
	s = service_of(dev, id);
	if (!s) {
		*rc = -EINVAL;
		nic_unlock();
	}
	return s;
}

API int cxil_get_svc(struct cxil_dev *dev, unsigned int id, struct svc_desc *desc)
{
	int rc = dev && desc ? fault_of_call() : -EINVAL;
	struct service *s = rc ? NULL : of_caller(dev, id, false, &rc);

	if (!s)
		return rc;
	*desc = s->desc;
	nic_unlock();
	return 0;
}

API int cxil_get_svc_list(struct cxil_dev *dev, struct svc_list **list)
{
	struct svc_list *l;
	int rc;

	if (!dev || !list)
		return -EINVAL;
	rc = fault_of_call();
	if (rc)
		return rc;
	l = calloc(1, sizeof *l + SERVICES * sizeof *l->descs);
	if (!l)
		return -ENOMEM;
	nic_lock();
	for (unsigned int i = 1; i < SERVICES; i++)
		if (service_of(dev, i))
			l->descs[l->count++] = service_of(dev, i)->desc;
	nic_unlock();
	*list = l;
	return 0;
}

API void cxil_free_svc_list(struct svc_list *list)
{
	free(list);
}

API int cxil_get_svc_rsrc_use(struct cxil_dev *dev, unsigned int id, struct svc_use *use)
{
	int rc = -EINVAL;
	struct service *s = use ? of_caller(dev, id, false, &rc) : NULL;

	if (!s)
		return rc;
	use->svc_id = id;
	use->tle_pool_id = 0;
	memcpy(use->in_use, s->in_use, sizeof use->in_use);
	use->in_use[RES_TLE] = (uint16_t)nics[dev->info.dev_id].tles->of_service[id];
	nic_unlock();
	return 0;
}

/* valid reports whether a description can be a service at all. */
static bool valid(const struct svc_desc *d)
{
	if (d->restricted_vnis) {
		if (d->num_vld_vnis > SVC_VNIS)
			return false;
		for (int i = 0; i < d->num_vld_vnis; i++)
			if (!d->vnis[i])
				return false;
	}
	for (int i = 0; d->restricted_members && i < SVC_MEMBERS; i++)
		if (d->members[i].type < 0 || d->members[i].type >= MEMBER_TYPES)
			return false;
	for (int i = 0; d->resource_limits && i < RES_COUNT; i++)
		if (d->limits[i].max < d->limits[i].res)
			return false;
	return true;
}

/* pools counts the services of a NIC that have a pool of some resource of their own. */
static int pools(const struct nic *n, int resource)
{
	int count = 0;

	for (int i = 1; i < SERVICES; i++)
		count += n->services[i].exists && n->services[i].desc.limits[resource].res;
	return count;
}

/* pool_left reports whether a service that reserves list or triggered entries finds a pool. The first one of list
 * entries is of all that reserve none. */
static bool pool_left(const struct nic *n, const struct svc_desc *d)
{
	if (!d->resource_limits)
		return true;
	return (!d->limits[RES_LE].res || pools(n, RES_LE) < LE_POOLS - 1) &&
	       (!d->limits[RES_TLE].res || pools(n, RES_TLE) < TLE_POOLS);
}

API int cxil_alloc_svc(struct cxil_dev *dev, const struct svc_desc *desc, struct svc_fail *fail)
{
	int rc = -ENOSPC;

	if (!dev || !desc || !valid(desc))
		return -EINVAL;
	if (geteuid() != 0)
		return -EPERM;
	nic_lock();
	for (unsigned int i = 1; i < SERVICES && pool_left(&nics[dev->info.dev_id], desc); i++) {
		struct service *s = &nics[dev->info.dev_id].services[i];

		if (s->exists)
			continue;
		*s = (struct service){ .desc = *desc, .exists = true };
		s->desc.svc_id = i;
		s->desc.enable = 1;
		rc = (int)i;
		break;
	}
	nic_unlock();
	if (rc < 0 && fail)
		memset(fail, 0, sizeof *fail);
	return rc;
}

/* unused is of_caller for a service that no LNI may use. */
static struct service *unused(struct cxil_dev *dev, unsigned int id, int *rc)
{
	struct service *s = of_caller(dev, id, true, rc);

	if (!s || !s->users)
		return s;
	*rc = -EBUSY;
	nic_unlock();
	return NULL;
}

API int cxil_destroy_svc(struct cxil_dev *dev, unsigned int id)
{
	int rc = -EINVAL;
	struct service *s = id == DEFAULT_SERVICE ? NULL : unused(dev, id, &rc);

	if (!s)
		return rc;
	s->exists = false;
	nic_unlock();
	return 0;
}

API int cxil_update_svc(struct cxil_dev *dev, const struct svc_desc *desc, struct svc_fail *fail)
{
	int rc = -EINVAL;
	struct service *s = desc && valid(desc) ? unused(dev, desc->svc_id, &rc) : NULL;

	(void)fail;
	if (!s)
		return rc;
	if (s->desc.resource_limits == desc->resource_limits)
		s->desc = *desc;
	else
		rc = -EINVAL;
	nic_unlock();
	return rc;
}

API int cxil_svc_enable(struct cxil_dev *dev, unsigned int id, bool enable)
{
	int rc;
	struct service *s = unused(dev, id, &rc);

	if (!s)
		return rc;
	s->desc.enable = enable;
	nic_unlock();
	return 0;
}

/* A range is a power of two long and aligned to it. */
API int cxil_svc_set_vni_range(struct cxil_dev *dev, unsigned int id, uint16_t min, uint16_t max)
{
	unsigned int range = (unsigned int)max - min + 1;
	int rc;
	struct service *s = of_caller(dev, id, true, &rc);

	if (!s)
		return rc;
	if (s->desc.restricted_vnis || !min || max < min || range & (range - 1) || min & (range - 1)) {
		rc = -EINVAL;
	} else {
		s->has_range = true;
		s->vni_min = min;
		s->vni_max = max;
	}
	nic_unlock();
	return rc;
}

API int cxil_svc_get_vni_range(struct cxil_dev *dev, unsigned int id, uint16_t *min, uint16_t *max)
{
	int rc = dev && min && max ? fault_of_call() : -EINVAL;
	struct service *s = rc ? NULL : of_caller(dev, id, false, &rc);

	if (!s)
		return rc;
	if (s->desc.restricted_vnis || !s->has_range) {
		rc = -EINVAL;
	} else {
		*min = s->vni_min;
		*max = s->vni_max;
	}
	nic_unlock();
	return rc;
}

API int cxil_svc_set_exclusive_cp(struct cxil_dev *dev, unsigned int id, bool exclusive)
{
	int rc;
	struct service *s = of_caller(dev, id, true, &rc);

	if (!s)
		return rc;
	if (s->desc.restricted_vnis)
		rc = -EINVAL;
	else
		s->exclusive_cp = exclusive;
	nic_unlock();
	return rc;
}

API int cxil_svc_get_exclusive_cp(struct cxil_dev *dev, unsigned int id, bool *exclusive)
{
	int rc = -EINVAL;
	struct service *s = exclusive ? of_caller(dev, id, false, &rc) : NULL;

	if (!s)
		return rc;
	*exclusive = s->exclusive_cp;
	nic_unlock();
	return 0;
}

/* add_netns lets a network namespace use a service to which nothing else is admitted. */
static int add_netns(struct service *s, unsigned int netns)
{
	struct svc_desc *d = &s->desc;

	if (!d->restricted_members)
		return -EEXIST;
	for (int i = 0; i < SVC_MEMBERS; i++)
		if (d->members[i].type == MEMBER_UID || d->members[i].type == MEMBER_GID)
			return -EEXIST;
	d->members[0].type = MEMBER_NETNS;
	d->members[0].id = netns;
	return 0;
}

API int cxil_svc_set_netns(struct cxil_dev *dev, unsigned int id, unsigned int netns)
{
	int rc;
	struct service *s = of_caller(dev, id, true, &rc);

	if (!s)
		return rc;
	rc = add_netns(s, netns);
	nic_unlock();
	return rc;
}

API int cxil_svc_get_netns(struct cxil_dev *dev, unsigned int id, unsigned int *netns)
{
	int rc = -EINVAL;
	struct service *s = netns ? of_caller(dev, id, false, &rc) : NULL;

	if (!s)
		return rc;
	*netns = 0;
	for (int i = 0; i < SVC_MEMBERS; i++)
		if (s->desc.restricted_members && s->desc.members[i].type == MEMBER_NETNS)
			*netns = s->desc.members[i].id;
	nic_unlock();
	return 0;
}
