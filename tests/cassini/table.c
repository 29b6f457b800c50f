/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Table entries as the control interface has them.
 */
#include <errno.h>
#include <stdlib.h>
#include "nic.h"

struct cxil_pte_map {
	struct pte *pte;
	struct domain *domain;
	unsigned int offset;
	bool multicast;
};

API int cxil_alloc_pte(struct cxil_lni *lni, struct eq *eq, struct pt_opts *opts, struct cxil_pte **pte)
{
	struct lni *l = (struct lni *)lni;
	struct pte *p = NULL;
	unsigned int n;
	int rc;

	if (!l || !opts || !pte)
		return -EINVAL;
	if (opts->ethernet)
		return -EPERM;
	rc = fault_of_call();
	if (rc)
		return rc;
	rc = -ENOSPC;
	nic_lock();
	/* The first is never given out. */
	for (n = 1; n < (unsigned int)set.ptes && l->nic->ptes[n]; n++)
		;
	if (n < (unsigned int)set.ptes && service_take(l->svc, RES_PTE)) {
		p = calloc(1, sizeof *p);
		rc = p ? 0 : -ENOMEM;
		if (!p)
			service_give(l->svc, RES_PTE);
	}
	if (p) {
		p->nic = l->nic;
		p->lni = l;
		p->eq = (struct evq *)eq;
		p->opts = *opts;
		if (!p->opts.is_matching)
			p->opts.do_space_check = 1;
		p->state = PTLTE_STATE_DISABLED;
		p->pub.ptn = n;
		for (int i = 0; i < 4; i++)
			list_init(&p->lists[i]);
		l->nic->ptes[n] = p;
		l->users++;
		if (p->eq)
			p->eq->users++;
		*pte = &p->pub;
	}
	nic_unlock();
	return rc;
}

API int cxil_destroy_pte(struct cxil_pte *pte)
{
	struct pte *p = (struct pte *)pte;
	int rc = 0;

	if (!p)
		return -EINVAL;
	nic_lock();
	if (p->users) {
		rc = -EBUSY;
	} else {
		p->state = PTLTE_STATE_RESET;
		fabric_leave(p);
		late_answers(p);
		pte_clear(p);
		p->nic->ptes[pte->ptn] = NULL;
		service_give(p->lni->svc, RES_PTE);
		p->lni->users--;
		if (p->eq)
			p->eq->users--;
	}
	nic_unlock();
	if (!rc)
		free(p);
	return rc;
}

API int cxil_map_pte(struct cxil_pte *pte, struct cxil_domain *domain, unsigned int offset, bool multicast,
		     struct cxil_pte_map **map)
{
	struct pte *p = (struct pte *)pte;
	struct domain *d = (struct domain *)domain;
	struct cxil_pte_map *m;
	int rc;

	if (!p || !d || !map || p->lni != d->lni || offset >= (multicast ? 1u << 18 : GRANULE))
		return -EINVAL;
	rc = fault_of_call();
	if (rc)
		return rc;
	m = calloc(1, sizeof *m);
	if (!m)
		return -ENOMEM;
	nic_lock();
	if (!multicast && d->indices[offset]) {
		rc = -EEXIST;
	} else {
		*m = (struct cxil_pte_map){ p, d, offset, multicast };
		if (!multicast)
			d->indices[offset] = p;
		p->users++;
		d->users++;
		*map = m;
	}
	nic_unlock();
	if (rc)
		free(m);
	return rc;
}

API int cxil_unmap_pte(struct cxil_pte_map *m)
{
	if (!m)
		return -EINVAL;
	nic_lock();
	if (!m->multicast)
		m->domain->indices[m->offset] = NULL;
	m->pte->users--;
	m->domain->users--;
	nic_unlock();
	free(m);
	return 0;
}

API int cxil_invalidate_pte_le(struct cxil_pte *pte, unsigned int buffer_id, int list)
{
	struct pte *p = (struct pte *)pte;

	if (!p || list < LIST_PRIORITY || list > LIST_UNEXPECTED)
		return -EINVAL;
	nic_lock();
	fabric_invalidate(p, buffer_id, list);
	nic_unlock();
	return 0;
}

/* offset_of is what the NIC keeps of an unexpected message: where the rest of a rendezvous is, and where another one
 * lies. */
static uint64_t offset_of(const struct header *h)
{
	return h->rq.op == OP_RENDEZVOUS_PUT ? h->rq.remote_offset : h->start;
}

API int cxil_pte_status(struct cxil_pte *pte, struct pt_status *s)
{
	struct pte *p = (struct pte *)pte;
	unsigned int n = 0;
	int rc = p && s ? fault_of_call() : -EINVAL;

	if (rc)
		return rc;
	nic_lock();
	s->drop_count = p->drops & 0xffffff;
	s->state = (uint8_t)p->state;
	s->les_reserved = p->lni->svc->desc.limits[RES_LE].res;
	s->les_allocated = (uint16_t)p->nic->les;
	s->les_max = (uint16_t)set.les;
	for (struct link *i = p->lists[LIST_UNEXPECTED].next; i != &p->lists[LIST_UNEXPECTED]; i = i->next, n++)
		if (s->ule_offsets && n < s->ule_count)
			s->ule_offsets[n] = offset_of(CONTAINER(i, struct header, link));
	s->ule_count = (uint16_t)n;
	nic_unlock();
	return 0;
}

API int cxil_pte_transition_sm(struct cxil_pte *pte, unsigned int drop_count)
{
	struct pte *p = (struct pte *)pte;
	int rc = p ? fault_of_call() : -EINVAL;

	if (rc)
		return rc;
	nic_lock();
	if (p->state == PTLTE_STATE_SOFTWARE_MANAGED) {
		rc = 0;
	} else if (p->state != PTLTE_STATE_DISABLED) {
		rc = -EINVAL;
	} else if (drop_count != (p->drops & 0xffffff)) {
		rc = -EAGAIN;
	} else {
		p->drops = 0;
		p->state = PTLTE_STATE_SOFTWARE_MANAGED;
	}
	nic_unlock();
	return rc;
}
