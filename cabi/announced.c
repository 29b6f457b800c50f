/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What provider/rendezvous.go does for all announced messages, for the plainest
 * of them: of one element and at most weft_hot_ep.read_max bytes, for the first
 * posted receive, which has room for it, from a process that this one may read.
 * Whatever does not pass, or fails, is Go's, which does it again from the
 * beginning and says what is wrong.
 *
 * The peer can write the slot at any time: it is copied once and checked. The
 * peer's process id is a private copy that Go has checked; what is read there is the
 * peer's to say.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "announced.h"
#include "poster.h"
#include "posting.h"
#include "vmcopy.h"

/* An announced message at its receive. */
struct announced {
	struct weft_rts_head head;
	struct weft_arrival as; /* the message itself, as if it had come with its payload */
	const struct weft_recv_entry *to;
	uint32_t source;
	uint64_t addr; /* of the sender, plus one */
};

/* Reads what a slot announces; false: it is none for C. */
static bool described(const struct weft_hot_ep *ep, const struct weft_slot *slot,
		      const struct weft_arrival *m, struct announced *a)
{
	struct weft_rts_head *h = &a->head;

	if (m->head != sizeof(*h) || m->length || m->flags)
		return false;
	memcpy(h, slot->body, sizeof(*h));
	if (h->flags & ~(WEFT_RTS_TAGGED | WEFT_RTS_DATA) || h->count != 1 || h->element != h->length ||
	    !h->length || h->length > ep->read_max)
		return false;
	a->as = (struct weft_arrival){
		.id = (h->flags & WEFT_RTS_TAGGED ? WEFT_AM_TAG : WEFT_AM_MSG) +
		      (h->flags & WEFT_RTS_DATA ? 1 : 0),
		.head = h->flags & WEFT_RTS_DATA ? sizeof(h->data) : 0,
		.length = h->length,
		.header = m->header,
	};
	return true;
}

/* Tells the sender that its message is here, or has Go do so where there is no room. */
static void acknowledge(struct weft_hot_ep *ep, struct weft_hot_peer *peer, const struct weft_ring *ring,
			uint32_t source, uint64_t request)
{
	uint64_t pos;
	struct weft_slot *slot = weft_lane_claim(peer, ring, &pos);

	if (!slot) {
		weftGoAcknowledge(ep->handle, source, request);
		return;
	}
	slot->am_id = WEFT_AM_ACK;
	slot->flags = 0;
	slot->head = sizeof(uint64_t);
	slot->length = 0;
	slot->header = request;
	memset(slot->body, 0, sizeof(uint64_t)); /* it is done */
	weft_ring_publish(ring, &slot->seq, peer->owner, pos);
	weft_peer_wake(ep, peer);
}

/* Reads a message, completes its receive and tells its sender so, between weft_post_begin and
 * weft_post_end. */
static bool fetch(struct weft_hot_ep *ep, const struct announced *a, struct weft_reader *reader)
{
	uint64_t line = weft_peer_line(ep, a->addr - 1);
	struct weft_hot_peer *peer = &ep->peers[line];
	struct weft_place place = { 0 };
	struct weft_ring ring;
	struct weft_cqe e;

	if (line == UINT64_MAX || !weft_peer_ring(peer, &ring) ||
	    !weft_vm_copy(peer, (void *)a->to->buf, a->head.addr, a->head.length, true) ||
	    !weft_take_place(ep->rx_cq, reader, &place))
		return false;
	e = weft_received(a->to, &a->as, (const uint8_t *)&a->head.data, a->addr - 1);
	weft_fill_place(ep->rx_cq, &place, &e);
	acknowledge(ep, peer, &ring, a->source, a->head.request);
	return true;
}

bool weft_take_ack(struct weft_hot_ep *ep, const struct weft_slot *slot)
{
	uint32_t owner = weft_seq_owner(atomic_load_explicit(&slot->seq, memory_order_relaxed));
	struct weft_arrival m = weft_read_arrival(slot);
	uint64_t status;

	if (m.id != WEFT_AM_ACK || m.flags || m.length || m.head != sizeof(status) ||
	    owner - 1 >= ep->source_limit ||
	    !atomic_load_explicit(&ep->sources[owner - 1].addr, memory_order_relaxed))
		return false;
	memcpy(&status, slot->body, sizeof(status));
	weftGoAck(ep->handle, owner - 1, m.header, status);
	return true;
}

bool weft_take_announced(struct weft_hot_ep *ep, const struct weft_slot *slot, uint32_t source,
			 const struct weft_arrival *m, const struct weft_recv_entry *r,
			 struct weft_reader *to)
{
	struct announced a = { .to = r, .source = source };
	struct weft_poster *me;
	bool ok;

	a.addr = atomic_load_explicit(&ep->sources[source].addr, memory_order_relaxed);
	if (!described(ep, slot, m, &a) ||
	    !weft_fits(atomic_load_explicit(&ep->rx, memory_order_relaxed), r, &a.as, a.addr))
		return false;
	me = weft_post_begin();
	if (!me)
		return false;
	ok = fetch(ep, &a, to);
	weft_post_end(me);
	if (!ok)
		return false;
	weft_stat_add(ep->stats_rx + WEFT_STAT_RX_RENDEZVOUS, 1);
	weft_stat_add(ep->stats_rx + WEFT_STAT_RX_RENDEZVOUS_BYTES, a.head.length);
	return true;
}
