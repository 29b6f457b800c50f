/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The target's side of the one-sided operations that C posts, and their
 * answers (rma_post.c). A peer's word is checked against the regions that Go
 * has entered (struct weft_hot_region), at the moment of access; what does not
 * pass, needs more than a copy, or finds no room for its completion or answer
 * is left where it is, for Go, which knows all cases.
 *
 * The peer can write the slot at any time: each word is read once and checked.
 */
#include <string.h>

#include "bounce.h"
#include "poster.h"
#include "posting.h"
#include "rma_apply.h"
#include "rma_post.h"

/* An arrival at its endpoint. */
struct context {
	struct weft_hot_ep *ep;
	struct weft_outlet to;
	fi_addr_t src;
	bool answers;          /* src is where an answer goes */
	bool stream;           /* the last operation was one that more may follow at once */
	bool wake_rx, wake_tx; /* completions were written to the queue */
};

/* How often a ring that has become empty is looked at again after a write. A
 * target is faster than its initiator, and each look at a slot before it is
 * written takes the line from the initiator, who needs it back. So it pauses
 * between looks, and finds several writes then. */
#define LINGER 4

/* Finds the memory of an access; NULL: Go says why there is none. */
static uint8_t *target_of(const struct weft_hot_ep *ep, uint64_t key, uint64_t addr, uint64_t len,
			  uint32_t rights)
{
	uint32_t count = ep->region_count, place = weft_key_place(key, count);

	for (uint32_t n = 0; n < WEFT_KEY_PROBES && n < count; n++) {
		const struct weft_hot_region *r = &ep->regions[(place + n) & (count - 1)];
		uint64_t offset;

		if (!atomic_load_explicit(&r->live, memory_order_acquire) || r->key != key)
			continue;
		offset = addr - r->base;
		if ((r->access & rights) != rights || offset > r->len || len > r->len - offset)
			return NULL;
		return (uint8_t *)r->addr + offset;
	}
	return NULL;
}

static bool serve_write(struct context *c, const struct weft_slot *slot, const struct weft_arrival *m,
			const void *payload)
{
	struct weft_hot_ep *ep = c->ep;
	struct weft_write_head head = { 0 };
	bool data = m->head == WEFT_WRITE_HEAD_DATA;
	struct weft_place place = { 0 };
	uint8_t *to;

	if (m->head != WEFT_WRITE_HEAD && !data)
		return false;
	memcpy(&head, slot->body, m->head);
	if (head.request || head.flags != (WEFT_WRITE_LAST | (data ? WEFT_WRITE_DATA : 0)))
		return false;
	to = target_of(ep, head.key, m->header, m->length, WEFT_KEY_WRITE);
	if (!to || (data && (!ep->rx_cq || !weft_take_place(ep->rx_cq, c->to.rx, &place))))
		return false;
	weft_copy_payload(to, payload, m->length);
	if (data) {
		struct weft_cqe e = {
			.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA, .len = head.length,
			.data = head.data, .src = c->src,
		};
		c->wake_rx |= weft_fill_place(ep->rx_cq, &place, &e);
	} else {
		c->stream = true;
	}
	weft_stat_add(ep->stats_rx + WEFT_STAT_RX_SERVED_WRITES, 1);
	return true;
}

/* Performs an operation and answers with what was there before. The operation's locked instruction
 * waits for all stores before it, and a store to the answer's slot waits for the line, which the
 * initiator polls. So where the slot is known to be free, it is taken after the
 * operation: claim, answer and publication are then one burst of stores. Asking for
 * the line beforehand (weft_expect_answer) is no use: the initiator takes it back meanwhile. */
static bool serve_fetch(struct context *c, const struct weft_atomic_job *job, uint64_t request)
{
	uint64_t line = weft_peer_line(c->ep, c->src), pos, before;
	struct weft_hot_peer *peer = &c->ep->peers[line];
	struct weft_ring ring;
	struct weft_slot *slot;

	if (line == UINT64_MAX || !weft_peer_ring(peer, &ring))
		return false;
	if (weft_lane_free(peer, &ring)) {
		before = weft_atomic_apply(job);
		slot = weft_lane_next(peer, &ring, &pos);
	} else {
		slot = (struct weft_slot *)weft_ring_claim(&ring, peer->owner, peer->exclusive, &pos);
		if (!slot)
			return false;
		before = weft_atomic_apply(job);
	}
	slot->am_id = WEFT_AM_READ_DATA;
	slot->flags = 0;
	slot->head = sizeof(uint64_t);
	slot->length = job->size;
	slot->header = request;
	memset(slot->body, 0, sizeof(uint64_t)); /* the offset */
	weft_copy_payload(slot->body + sizeof(uint64_t), &before, job->size);
	weft_ring_publish(&ring, &slot->seq, peer->owner, pos);
	weft_peer_wake(c->ep, peer);
	return true;
}

static bool serve_atomic(struct context *c, const struct weft_slot *slot, const struct weft_arrival *m)
{
	struct weft_atomic_head head;
	struct weft_atomic_job job = { 0 };
	uint32_t size, want, rights = 0;

	if (m->head != sizeof(head))
		return false;
	memcpy(&head, slot->body, sizeof(head));
	if (head.kind != WEFT_ATOMIC_PLAIN && !c->answers)
		return false;
	size = weft_atomic_size(head.kind, head.datatype, head.op);
	want = (head.op == FI_ATOMIC_READ ? 0 : size) + (head.kind == WEFT_ATOMIC_COMPARE ? size : 0);
	if (!size || head.count != 1 || head.last != 1 || head.at || m->length != want ||
	    !head.request != (head.kind == WEFT_ATOMIC_PLAIN))
		return false;
	if (head.op != FI_ATOMIC_READ)
		rights |= WEFT_KEY_WRITE;
	if (head.kind != WEFT_ATOMIC_PLAIN)
		rights |= WEFT_KEY_READ;
	job = (struct weft_atomic_job){ .op = head.op, .datatype = head.datatype, .size = size };
	job.target = target_of(c->ep, head.key, m->header, size, rights);
	if (!job.target || (uintptr_t)job.target & (size - 1))
		return false;
	if (head.op != FI_ATOMIC_READ)
		weft_copy_payload(&job.operand, slot->body + sizeof(head), size);
	if (head.kind == WEFT_ATOMIC_COMPARE)
		weft_copy_payload(&job.compare, slot->body + sizeof(head) + size, size);
	if (head.kind == WEFT_ATOMIC_PLAIN) {
		weft_atomic_apply(&job);
		c->stream = true;
	} else if (!serve_fetch(c, &job, head.request))
		return false;
	weft_stat_add(c->ep->stats_rx + WEFT_STAT_RX_SERVED_ATOMICS, 1);
	return true;
}

/* Takes in the answer to an operation that C posted. */
static bool take_answer(struct context *c, const struct weft_slot *slot, const struct weft_arrival *m)
{
	struct weft_hot_ep *ep = c->ep;
	uint64_t at = m->header & UINT32_MAX, zero;
	struct weft_hot_fetch *f = &ep->fetches[at];
	struct weft_place place = { 0 };

	if (!(m->header & WEFT_FETCH_ID) || m->head != sizeof(zero) ||
	    at >= (uint64_t)ep->fetch_count * (ep->stripe_mask + 1) ||
	    !atomic_load_explicit(&f->busy, memory_order_acquire) ||
	    f->generation != (m->header >> 32 & INT32_MAX) || f->dest != c->src || f->bytes != m->length)
		return false;
	memcpy(&zero, slot->body, sizeof(zero));
	if (zero || (f->completes && !weft_take_place(ep->tx_cq, c->to.tx, &place)))
		return false;
	weft_copy_payload((void *)f->result, slot->body + sizeof(zero), m->length);
	if (f->completes) {
		struct weft_cqe e = {
			.context = f->context, .flags = FI_ATOMIC | FI_READ, .src = FI_ADDR_NOTAVAIL,
		};
		c->wake_tx |= weft_fill_place(ep->tx_cq, &place, &e);
	}
	atomic_store_explicit(&f->busy, 0, memory_order_release);
	/* the poll that goes into Go posts what has fired */
	if (ep->read_cntr && weft_cntr_done(ep->read_cntr, m->length))
		atomic_store_explicit(&atomic_load_explicit(&ep->rx, memory_order_relaxed)->attention, 1,
				      memory_order_relaxed);
	return true;
}

/* Takes in a write whose payload lies in a bounce buffer. */
static bool serve_bounced(struct context *c, const struct weft_slot *slot, const struct weft_arrival *m,
			  const struct weft_hot_source *src, uint32_t owner)
{
	struct weft_bounce *b = weft_bounce_of(slot, m, src, owner);

	if (!b || !serve_write(c, slot, m, b->payload))
		return false;
	atomic_store_explicit(&b->state, 0, memory_order_release);
	return true;
}

static bool serve_one(struct context *c, const struct weft_slot *slot)
{
	struct weft_arrival m = weft_read_arrival(slot);
	uint32_t owner = weft_seq_owner(atomic_load_explicit(&slot->seq, memory_order_relaxed));
	const struct weft_hot_source *src;
	uint64_t addr;

	if (owner - 1 >= c->ep->source_limit)
		return false;
	src = &c->ep->sources[owner - 1];
	addr = atomic_load_explicit(&src->addr, memory_order_relaxed);
	if (!addr)
		return false;
	c->src = addr - 1;
	c->answers = !src->context;
	c->stream = false;
	if (m.flags == WEFT_SLOT_BOUNCE && m.id == WEFT_AM_WRITE)
		return c->ep->regions && serve_bounced(c, slot, &m, src, owner);
	if (m.flags || m.head > WEFT_SLOT_BODY || m.length > WEFT_SLOT_BODY - m.head)
		return false;
	switch (m.id) {
	case WEFT_AM_WRITE:
		return c->ep->regions && serve_write(c, slot, &m, slot->body + m.head);
	case WEFT_AM_ATOMIC:
		return c->ep->regions && serve_atomic(c, slot, &m);
	case WEFT_AM_READ_DATA:
		return take_answer(c, slot, &m);
	}
	return false;
}

/* Tells whether there is a next message; after a write it has some patience. */
static inline bool await(const struct context *c, const struct weft_ring *ring, uint64_t in,
			 uint32_t *looks)
{
	while (!weft_ring_ready(ring, in)) {
		if (!c->stream || ++*looks > LINGER)
			return false;
		weft_pause();
	}
	return true;
}

struct weft_served weft_rma_serve(struct weft_hot_ep *ep, struct weft_inbound *lane,
				  const struct weft_outlet *to)
{
	uint64_t in = atomic_load_explicit(&lane->head, memory_order_relaxed), begin = in;
	struct context c = { .ep = ep, .to = *to };
	struct weft_poster *me = weft_post_begin();
	struct weft_served s = { 0 };
	uint32_t looks = 0;

	if (!me)
		return (struct weft_served){ .to_go = true };
	while (in - begin < WEFT_DELIVER_MAX && await(&c, &lane->ring, in, &looks)) {
		const struct weft_slot *slot = (void *)weft_ring_slot(&lane->ring, in);

		if (!weft_one_sided(ep, weft_arrival_id(slot)) || (c.to.tx && !c.to.tx->left))
			break;
		if (!serve_one(&c, slot)) {
			s.to_go = true;
			break;
		}
		weft_ring_release(&lane->ring, in++);
	}
	weft_post_end(me);
	s.n = in - begin;
	if (s.n)
		atomic_store_explicit(&lane->head, in, memory_order_relaxed);
	if (c.wake_rx && weft_cq_wake_needed(ep->rx_cq))
		weftGoWakeCQ(ep->rx_cq->handle);
	if (c.wake_tx && weft_cq_wake_needed(ep->tx_cq))
		weftGoWakeCQ(ep->tx_cq->handle);
	return s;
}
