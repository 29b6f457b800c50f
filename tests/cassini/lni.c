/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A process's context on a device: LNI, communication profiles, and domains, which are PIDs in a VNI.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "nic.h"

/* member reports whether this process may use a service. */
static bool member(const struct service *s)
{
	struct stat ns;

	if (!s->desc.restricted_members)
		return true;
	for (int i = 0; i < SVC_MEMBERS; i++) {
		uint32_t id = s->desc.members[i].id;

		switch (s->desc.members[i].type) {
		case MEMBER_UID:
			if (id == geteuid())
				return true;
			break;
		case MEMBER_GID:
			if (id == getegid())
				return true;
			break;
		case MEMBER_NETNS:
			if (!stat("/proc/self/ns/net", &ns) && id == ns.st_ino)
				return true;
			break;
		}
	}
	return false;
}

/* vni_allowed finds the service that has a VNI, be it another than the interface's, and reports whether this process
 * may use it now:
 * 0, -EPERM or -EINVAL. */
static int vni_allowed(const struct lni *l, unsigned int vni)
{
	if (service_allows_vni(l->svc, vni))
		return member(l->svc) ? 0 : -EPERM;
	for (int i = 0; i < SERVICES; i++) {
		const struct service *s = &l->nic->services[i];

		if (s->exists && s->desc.enable && (s->desc.restricted_vnis || s->has_range) &&
		    service_allows_vni(s, vni))
			return member(s) ? 0 : -EPERM;
	}
	return -EINVAL;
}

API int cxil_alloc_lni(struct cxil_dev *dev, struct cxil_lni **lni, unsigned int svc_id)
{
	struct service *s;
	struct lni *l = NULL;
	struct nic *n;
	int rc;

	if (!dev || !lni || !svc_id)
		return -EINVAL;
	rc = fault_of_call();
	if (rc)
		return rc;
	nic_lock();
	n = &nics[dev->info.dev_id];
	s = svc_id < SERVICES && n->services[svc_id].exists ? &n->services[svc_id] : NULL;
	if (!s)
		rc = -EINVAL;
	else if (!s->desc.enable)
		rc = -EKEYREVOKED;
	else if (!member(s))
		rc = -EPERM;
	else if (!(l = calloc(1, sizeof *l)))
		rc = -ENOMEM;
	if (l) {
		l->nic = n;
		l->svc = s;
		l->pub.id = n->next_lni++;
		s->users++;
		for (unsigned int i = 0; i < LIMIT_LACS; i++)
			l->contexts[i].next = (uint64_t)(i + 1) << 44;
		*lni = &l->pub;
	}
	nic_unlock();
	return rc;
}

API int cxil_destroy_lni(struct cxil_lni *lni)
{
	struct lni *l = (struct lni *)lni;
	int rc = 0;

	if (!l)
		return -EINVAL;
	nic_lock();
	if (l->users) {
		rc = -EBUSY;
	} else {
		operations_forget(l);
		for (int i = 0; i < LIMIT_LACS; i++) {
			free(l->contexts[i].regions);
			if (l->contexts[i].taken)
				service_give(l->svc, RES_AC);
		}
		l->svc->users--;
	}
	nic_unlock();
	if (!rc)
		free(l);
	return rc;
}

/* same finds a profile that may be shared: triggered queues have LCID 0, plain ones any other. */
static int same(struct lni *l, unsigned int vni, int tc, int tc_type, int cp_type)
{
	for (int i = 0; i < LIMIT_LCIDS && !l->svc->exclusive_cp; i++)
		if (l->lcids[i].refs && l->lcids[i].vni == vni && l->lcids[i].tc == tc &&
		    l->lcids[i].tc_type == tc_type && (cp_type != CP_TRIGGERED || !i) && (cp_type != CP_PLAIN || i))
			return i;
	return -ENOENT;
}

static int unused_lcid(struct lni *l, int cp_type)
{
	int first = cp_type == CP_PLAIN ? 1 : 0, end = cp_type == CP_TRIGGERED ? 1 : (int)set.lcids;

	for (int i = first; i < end; i++)
		if (!l->lcids[i].refs)
			return i;
	return -ENOSPC;
}

API int cxil_alloc_trig_cp(struct cxil_lni *lni, unsigned int vni, int tc, int tc_type, int cp_type, struct cp **cp)
{
	struct lni *l = (struct lni *)lni;
	struct profile *p;
	int lcid;

	if (!l || !cp || tc < 0 || tc >= TRAFFIC_CLASSES || tc_type < 0 || tc_type >= TRAFFIC_TYPES)
		return -EINVAL;
	lcid = fault_of_call();
	if (lcid)
		return lcid;
	p = calloc(1, sizeof *p);
	if (!p)
		return -ENOMEM;
	nic_lock();
	lcid = vni_allowed(l, vni);
	if (!lcid && l->svc->desc.restricted_tcs && !l->svc->desc.tcs[tc])
		lcid = -EINVAL;
	if (!lcid && (lcid = same(l, vni, tc, tc_type, cp_type)) < 0)
		lcid = unused_lcid(l, cp_type);
	if (lcid >= 0) {
		p->pub = (struct cp){ vni, tc, tc_type, (unsigned int)lcid };
		p->lni = l;
		l->lcids[lcid].refs++;
		l->lcids[lcid].vni = vni;
		l->lcids[lcid].tc = tc;
		l->lcids[lcid].tc_type = tc_type;
		l->users++;
		*cp = &p->pub;
	}
	nic_unlock();
	if (lcid < 0) {
		free(p);
		return lcid;
	}
	return 0;
}

API int cxil_alloc_cp(struct cxil_lni *lni, unsigned int vni, int tc, int tc_type, struct cp **cp)
{
	return cxil_alloc_trig_cp(lni, vni, tc, tc_type, CP_ANY, cp);
}

API int cxil_modify_cp(struct cxil_lni *lni, struct cp *cp, unsigned int vni)
{
	struct lni *l = (struct lni *)lni;
	int rc = 0;

	if (!l || !cp)
		return -EINVAL;
	nic_lock();
	if (!l->svc->exclusive_cp || !service_allows_vni(l->svc, vni))
		rc = -EINVAL;
	else
		l->lcids[cp->lcid].vni = cp->vni = vni;
	nic_unlock();
	return rc;
}

API int cxil_destroy_cp(struct cp *cp)
{
	struct profile *p = (struct profile *)cp;

	if (!p)
		return -EINVAL;
	nic_lock();
	p->lni->lcids[cp->lcid].refs--;
	p->lni->users--;
	nic_unlock();
	free(p);
	return 0;
}

struct domain *domain_find(uint32_t nid, unsigned int vni, unsigned int pid)
{
	for (struct link *i = domains.next; i != &domains; i = i->next) {
		struct domain *d = CONTAINER(i, struct domain, link);

		if (d->lni->nic->info.nid == nid && d->pub.vni == vni && d->pub.pid == pid)
			return d;
	}
	return NULL;
}

/* claim takes a PID on the NIC: nothing in this process nor on this host may have it. */
static bool claim(struct domain *d, unsigned int pid)
{
	if (pid >= (unsigned int)set.pids || domain_find(d->lni->nic->info.nid, d->pub.vni, pid))
		return false;
	d->pub.pid = pid;
	return fabric_open(d);
}

API int cxil_alloc_domain(struct cxil_lni *lni, unsigned int vni, unsigned int pid, struct cxil_domain **domain)
{
	struct lni *l = (struct lni *)lni;
	struct domain *d = NULL;
	int rc;

	if (!l || !domain || pid > LIMIT_PID_ANY)
		return -EINVAL;
	rc = fault_of_call();
	if (rc)
		return rc;
	nic_lock();
	rc = vni_allowed(l, vni);
	if (!rc && !(d = calloc(1, sizeof *d))) {
		rc = -ENOMEM;
	} else if (!rc) {
		d->lni = l;
		d->pub.vni = vni;
		d->fd = -1;
		if (pid != LIMIT_PID_ANY) {
			rc = claim(d, pid) ? 0 : -EEXIST;
		} else {
			for (pid = 0; pid < LIMIT_PID_ANY && !claim(d, pid); pid++)
				;
			rc = pid < LIMIT_PID_ANY ? 0 : -ENOSPC;
		}
		if (!rc) {
			list_append(&domains, &d->link);
			l->users++;
			*domain = &d->pub;
		}
	}
	nic_unlock();
	if (rc)
		free(d);
	return rc;
}

API int cxil_destroy_domain(struct cxil_domain *domain)
{
	struct domain *d = (struct domain *)domain;
	int rc = 0;

	if (!d)
		return -EINVAL;
	nic_lock();
	if (d->users) {
		rc = -EBUSY;
	} else {
		fabric_close(d);
		list_remove(&d->link);
		d->lni->users--;
	}
	nic_unlock();
	if (!rc)
		free(d);
	return rc;
}
