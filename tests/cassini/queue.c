/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Command queues, event queues and counters as the control interface has them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "nic.h"

/* given raises the end of the numbers that were given out. */
static void given(unsigned int *end, unsigned int number)
{
	if (*end <= number)
		*end = number + 1;
}

/* free_number finds a number that nothing has, from first to before end. */
static int free_number(void **table, unsigned int first, unsigned int end)
{
	for (unsigned int i = first; i < end; i++)
		if (!table[i])
			return (int)i;
	return -ENOSPC;
}

/* ring_slots is how many entries a queue gets: what fills its pages, which are a power of two. */
static unsigned int ring_slots(unsigned int count)
{
	unsigned int slots = PAGE / SLOT;

	while (slots < count)
		slots *= 2;
	return slots;
}

static int cmdq_valid(struct lni *l, const struct cq_buf_opts *o)
{
	const struct cq_opts *opts = &o->opts;

	if (opts->policy < 0 || opts->policy >= CQ_POLICIES || opts->count > LIMIT_CMDQ_COUNT ||
	    opts->count > (unsigned long)set.slots)
		return -EINVAL;
	if (!(opts->flags & CQ_TX))
		return opts->lpe_cdt_thresh_id > 3 ? -EINVAL : 0;
	if (opts->flags & CQ_ETHERNET)
		return -EPERM;
	if (opts->lcid >= LIMIT_LCIDS || !l->lcids[opts->lcid].refs || (opts->flags & CQ_TRIGGERED && opts->lcid))
		return -EINVAL;
	return o->buf && (uint64_t)o->buf % PAGE ? -EINVAL : 0;
}

/* cmdq_memory gives the queue its ring and its page. */
static bool cmdq_memory(struct cmdq *q, const struct cq_buf_opts *opts)
{
	q->ring_bytes = (size_t)q->pub.size * SLOT;
	q->ring = opts->buf;
	if (!q->ring) {
		q->ring = mmap(NULL, q->ring_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		q->ring_is_ours = true;
		if (q->ring == MAP_FAILED)
			return false;
	}
	q->page = door_open(DOOR_CMDQ, q);
	if (!q->page && q->ring_is_ours)
		munmap(q->ring, q->ring_bytes);
	return q->page;
}

static void cmdq_fill(struct cmdq *q, unsigned int idx)
{
	struct cq *pub = &q->pub;

	q->rd = q->wr = LIMIT_CMDQ_FIRST;
	pub->size32 = 2 * pub->size;
	pub->rp32 = pub->wp32 = pub->hw_wp32 = 2 * LIMIT_CMDQ_FIRST;
	pub->wp_addr = q->page;
	pub->ll_64 = (uint8_t *)q->page + 1024;
	pub->ll_128a = (uint8_t *)q->page + 2048;
	pub->ll_128u = (uint8_t *)q->page + 3072;
	pub->ring = q->ring;
	pub->idx = idx;
	put(q->ring, CMDQ_STATUS_RD_PTR, LIMIT_CMDQ_FIRST);
	put(q->ring, CMDQ_STATUS_RETURN_CODE, RC_OK);
}

API int cxil_alloc_buf_cmdq(struct cxil_lni *lni, struct eq *eq, const struct cq_buf_opts *opts, struct cq **cq)
{
	struct lni *l = (struct lni *)lni;
	struct cmdq *q = NULL;
	int rc, kind, idx = -1;

	if (!l || !cq || !opts)
		return -EINVAL;
	rc = fault_of_call();
	if (rc)
		return rc;
	kind = opts->opts.flags & CQ_TX ? RES_TXQ : RES_TGQ;
	nic_lock();
	rc = cmdq_valid(l, opts);
	if (!rc)
		rc = idx = kind == RES_TXQ ? free_number((void **)l->nic->cmdqs, 0, (unsigned int)set.txqs)
					   : free_number((void **)l->nic->cmdqs, LIMIT_TXQS,
							 LIMIT_TXQS + (unsigned int)set.tgqs);
	if (rc >= 0 && !service_take(l->svc, kind))
		rc = -ENOSPC;
	if (rc >= 0 && (q = calloc(1, sizeof *q))) {
		q->lni = l;
		q->eq = (struct evq *)eq;
		q->tx = kind == RES_TXQ;
		q->triggered = opts->opts.flags & CQ_TRIGGERED;
		q->lcid = opts->opts.lcid;
		q->pub.size = ring_slots(opts->opts.count);
		if (q->pub.size > LIMIT_CMDQ_COUNT || !cmdq_memory(q, opts)) {
			free(q);
			q = NULL;
		}
	}
	if (q) {
		cmdq_fill(q, (unsigned int)idx);
		given(q->tx ? &l->nic->txqs : &l->nic->tgqs, (unsigned int)idx);
		polling_start();
		l->nic->cmdqs[idx] = q;
		l->users++;
		if (q->eq)
			q->eq->users++;
		*cq = &q->pub;
	} else if (rc >= 0) {
		service_give(l->svc, kind);
		rc = -ENOMEM;
	}
	nic_unlock();
	return rc < 0 ? rc : 0;
}

API int cxil_alloc_cmdq(struct cxil_lni *lni, struct eq *eq, const struct cq_opts *opts, struct cq **cq)
{
	struct cq_buf_opts o = {};

	if (!opts)
		return -EINVAL;
	o.opts = *opts;
	return cxil_alloc_buf_cmdq(lni, eq, &o, cq);
}

API int cxil_destroy_cmdq(struct cq *cq)
{
	struct cmdq *q = (struct cmdq *)cq;

	if (!q)
		return -EINVAL;
	nic_lock();
	engine_work();
	q->lni->nic->cmdqs[cq->idx] = NULL;
	service_give(q->lni->svc, q->tx ? RES_TXQ : RES_TGQ);
	q->lni->users--;
	if (q->eq)
		q->eq->users--;
	door_close(q->page);
	nic_unlock();
	if (q->ring_is_ours)
		munmap(q->ring, q->ring_bytes);
	free(q);
	return 0;
}

API int cxil_cmdq_ack_counter(struct cq *cq, unsigned int *counter)
{
	struct cmdq *q = (struct cmdq *)cq;

	if (!q || !counter)
		return -EINVAL;
	nic_lock();
	*counter = q->acks;
	nic_unlock();
	return 0;
}

/* one_piece reports whether memory is one piece for a NIC that takes addresses of the machine: within a page,
 * whatever its size. */
static bool one_piece(uint64_t at, size_t len)
{
	unsigned long low, high, kb = 0;
	bool within = false, found = false;
	char line[512];
	FILE *f;

	if (len <= PAGE)
		return true;
	f = fopen("/proc/self/smaps", "re");
	while (!found && f && fgets(line, sizeof line, f)) {
		if (sscanf(line, "%lx-%lx ", &low, &high) == 2)
			within = at >= low && at + len <= high;
		else if (within && sscanf(line, "KernelPageSize: %lu kB", &kb) == 1)
			found = true;
	}
	if (f)
		fclose(f);
	return found && at / (kb << 10) == (at + len - 1) / (kb << 10);
}

static int evq_valid(const struct md *md, const struct eq_attr *a)
{
	uint64_t at = (uint64_t)a->queue;

	if (!at || at % PAGE || !a->queue_len || a->queue_len % PAGE || a->queue_len > (size_t)SLOT << 26 ||
	    a->queue_len > (size_t)set.eq_bytes)
		return -EINVAL;
	if (a->flags & EQ_PASSTHROUGH ? !one_piece(at, a->queue_len)
				      : !md || at < md->va || at + a->queue_len > md->va + md->len)
		return -EINVAL;
	if (a->thresh_count > 4 || a->reserved_slots > a->queue_len / SLOT - 1)
		return -EINVAL;
	if (a->thresh_count && (a->thresh_base > 100 || a->thresh_delta * (a->thresh_count - 1) > a->thresh_base))
		return -EINVAL;
	return 0;
}

API int cxil_alloc_evtq(struct cxil_lni *lni, const struct md *md, const struct eq_attr *attr,
			struct cxil_wait_obj *event_wait, struct cxil_wait_obj *status_wait, struct eq **eq)
{
	struct lni *l = (struct lni *)lni;
	struct evq *q = NULL;
	int rc, eqn;

	if (!l || !attr || !eq)
		return -EINVAL;
	rc = fault_of_call();
	if (!rc)
		rc = evq_valid(md, attr);
	if (rc)
		return rc;
	memset(attr->queue, 0, attr->queue_len);
	nic_lock();
	rc = eqn = free_number((void **)l->nic->eqs, 1, (unsigned int)set.eqs);
	if (rc >= 0 && !service_take(l->svc, RES_EQ))
		rc = -ENOSPC;
	if (rc >= 0 && (q = calloc(1, sizeof *q)) && (q->page = door_open(DOOR_EQ, q))) {
		q->nic = l->nic;
		q->lni = l;
		q->attr = *attr;
		q->event_wait = event_wait;
		q->status_wait = status_wait;
		q->state = set.mode == MODE_DIRECT ? &q->trapped : q->page;
		q->wr = SLOT;
		q->blocks = (unsigned int)(attr->queue_len / SLOT);
		q->reserved = attr->reserved_slots;
		q->trapped = q->seen = 1;
		*q->state = 1;
		q->pub = (struct eq){
			.byte_size = (unsigned int)attr->queue_len,
			.sw_state_addr = q->page,
			.rd_offset = SLOT,
			.prev_rd_offset = SLOT,
			.eqn = (unsigned int)eqn,
			.events = attr->queue,
		};
		l->nic->eqs[eqn] = q;
		counts.queue_bytes += attr->queue_len;
		given(&l->nic->evqs, (unsigned int)eqn);
		l->users++;
		*eq = &q->pub;
	} else if (rc >= 0) {
		free(q);
		service_give(l->svc, RES_EQ);
		rc = -ENOMEM;
	}
	nic_unlock();
	return rc < 0 ? rc : 0;
}

API int cxil_destroy_evtq(struct eq *eq)
{
	struct evq *q = (struct evq *)eq;
	int rc = 0;

	if (!q)
		return -EINVAL;
	nic_lock();
	if (q->users) {
		rc = -EBUSY;
	} else {
		q->nic->eqs[eq->eqn] = NULL;
		counts.queue_bytes -= q->attr.queue_len;
		service_give(q->lni->svc, RES_EQ);
		q->lni->users--;
		door_close(q->page);
	}
	nic_unlock();
	if (!rc)
		free(q);
	return rc;
}

API int cxil_evtq_adjust_reserved_fc(struct eq *eq, int value)
{
	struct evq *q = (struct evq *)eq;
	const int most = (1 << 14) - 1;
	int rc, now;

	if (!q)
		return -EINVAL;
	nic_lock();
	now = (int)q->reserved + value;
	if (value > most || value < -most || now > most || now < 0)
		rc = -EINVAL;
	else if (now > (int)q->blocks - 1)
		rc = -ENOSPC;
	else
		rc = (int)(q->reserved = (unsigned int)now);
	nic_unlock();
	return rc;
}

API int cxil_alloc_ct(struct cxil_lni *lni, uint64_t *wb, struct ct **ct)
{
	struct lni *l = (struct lni *)lni;
	struct counter *c = NULL;
	int rc, ctn;

	if (!l || !ct || (uint64_t)wb % 8)
		return -EINVAL;
	rc = fault_of_call();
	if (rc)
		return rc;
	nic_lock();
	rc = ctn = free_number((void **)l->nic->cts, 1, (unsigned int)set.cts);
	if (rc >= 0 && !service_take(l->svc, RES_CT))
		rc = -ENOSPC;
	if (rc >= 0 && (c = calloc(1, sizeof *c)) && (c->page = door_open(DOOR_CT, c))) {
		c->nic = l->nic;
		c->lni = l;
		c->wb = wb;
		list_init(&c->triggers);
		c->pub = (struct ct){ .doorbell = c->page, .ctn = (unsigned int)ctn, .wb = wb };
		l->nic->cts[ctn] = c;
		l->users++;
		*ct = &c->pub;
	} else if (rc >= 0) {
		free(c);
		service_give(l->svc, RES_CT);
		rc = -ENOMEM;
	}
	nic_unlock();
	return rc < 0 ? rc : 0;
}

API int cxil_ct_wb_update(struct ct *ct, uint64_t *wb)
{
	struct counter *c = (struct counter *)ct;

	if (!c || !wb || (uint64_t)wb % 8)
		return -EINVAL;
	nic_lock();
	c->wb = c->pub.wb = wb;
	nic_unlock();
	return 0;
}

API int cxil_destroy_ct(struct ct *ct)
{
	struct counter *c = (struct counter *)ct;

	if (!c)
		return -EINVAL;
	nic_lock();
	c->nic->cts[ct->ctn] = NULL;
	counter_forget(c);
	service_give(c->lni->svc, RES_CT);
	c->lni->users--;
	door_close(c->page);
	nic_unlock();
	free(c);
	return 0;
}
