/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Delivering the message at the head of the inbound ring to the receive at the
 * head of the post ring.
 *
 * While Go's matching holds nothing, the post ring is all the receives there
 * are, in the order they were posted, and the inbound ring all the messages, in
 * the order they arrived. If then the first message fits the first receive,
 * libfabric's matching rules leave no other choice, and the two are put
 * together here: one copy and one completion, without the call into Go, which
 * costs more than both. One-sided operations need no receive, and are taken in
 * where they come in between (rma_serve.c). Announced messages are read, and
 * acknowledgements are given to Go one by one (announced.c). Everything else is
 * Go's: a message that finds no receive or fits another one, long ones,
 * truncation, errors. Once Go holds a receive or a message this file stands
 * back until it holds none.
 *
 * The peer can write the slot at any time: each word is read once and checked.
 */
#include <string.h>

#include "announced.h"
#include "arrival.h"
#include "bounce.h"

/* What one call of weft_deliver has done. */
struct delivered {
	uint32_t messages;  /* whose payload came with them */
	uint32_t announced;
	uint32_t acks;
	uint32_t one_sided;
	uint64_t bytes;     /* of messages */
};

static bool deliver_one(struct weft_hot_ep *ep, struct weft_slot *slot, struct weft_recv_entry *r,
			struct weft_reader *to, bool first, struct delivered *d)
{
	uint32_t owner = weft_seq_owner(atomic_load_explicit(&slot->seq, memory_order_relaxed));
	struct weft_arrival m = weft_read_arrival(slot);
	struct weft_bounce *bounce = NULL;
	const void *payload;
	struct weft_hot_source *src;
	uint64_t addr;

	if (owner - 1 >= ep->source_limit)
		return false;
	src = &ep->sources[owner - 1];
	addr = atomic_load_explicit(&src->addr, memory_order_relaxed);
	if (m.id == WEFT_AM_RTS) {
		if (src->context || !weft_take_announced(ep, slot, owner - 1, &m, r, to))
			return false;
		d->announced++;
		return true;
	}
	if (!weft_fits(atomic_load_explicit(&ep->rx, memory_order_relaxed), r, &m, addr))
		return false;
	if (first)
		weft_expect_answer(ep, addr - 1);
	payload = slot->body + m.head;
	if (m.flags & WEFT_SLOT_BOUNCE) {
		bounce = weft_bounce_of(slot, &m, src, owner);
		if (!bounce)
			return false;
		payload = bounce->payload;
	} else if (m.length > WEFT_SLOT_BODY - m.head) {
		return false;
	}
	struct weft_cqe e = weft_received(r, &m, slot->body, addr - 1);
	struct weft_place place = { 0 };
	if (!weft_take_place(ep->rx_cq, to, &place))
		return false;
	weft_copy_payload((void *)r->buf, payload, m.length);
	weft_fill_place(ep->rx_cq, &place, &e);
	if (bounce)
		atomic_store_explicit(&bounce->state, 0, memory_order_release);
	d->messages++;
	d->bytes += m.length;
	return true;
}

/* Delivers from one inbound ring; false: its next message cannot be delivered here. */
static bool deliver_lane(struct weft_hot_ep *ep, struct weft_inbound *lane,
			 struct weft_hot_rx *rx, struct weft_reader *to, struct delivered *d)
{
	uint64_t in = atomic_load_explicit(&lane->head, memory_order_relaxed), begin = in;
	uint64_t post = atomic_load_explicit(&rx->posts_head, memory_order_relaxed);
	bool all = true;

	while (in - begin < WEFT_DELIVER_MAX && (!to || to->left) && weft_ring_ready(&lane->ring, in)) {
		if (!weft_ring_ready(&rx->posts, post) ||
		    !deliver_one(ep, (void *)weft_ring_slot(&lane->ring, in),
				 (void *)weft_ring_slot(&rx->posts, post), to, in == begin, d)) {
			all = false;
			break;
		}
		weft_ring_release(&lane->ring, in++);
		weft_ring_release(&rx->posts, post++);
	}
	if (in != begin) {
		atomic_store_explicit(&lane->head, in, memory_order_relaxed);
		atomic_store_explicit(&rx->posts_head, post, memory_order_relaxed);
	}
	return all;
}

/* How often messages and others may alternate in one ring. */
#define TURNS 8

/* Takes in what is at the head of one inbound ring, messages only if plain;
 * false: Go must look at what is next there. */
static bool take_in(struct weft_hot_ep *ep, struct weft_inbound *lane, struct weft_hot_rx *rx,
		    bool plain, const struct weft_outlet *to, struct delivered *d)
{
	uint64_t stuck = UINT64_MAX; /* a message that is not delivered here */

	for (int turn = 0; turn < TURNS; turn++) {
		uint64_t head = atomic_load_explicit(&lane->head, memory_order_relaxed);
		struct weft_slot *slot = (void *)weft_ring_slot(&lane->ring, head);
		uint8_t id;

		if (!weft_ring_ready(&lane->ring, head))
			return true;
		id = weft_arrival_id(slot);
		if (plain && id <= WEFT_AM_RTS) {
			if (head == stuck)
				return false;
			if (deliver_lane(ep, lane, rx, to->rx, d))
				return true;
			stuck = atomic_load_explicit(&lane->head, memory_order_relaxed);
		} else if (plain && id == WEFT_AM_ACK) {
			if (!weft_take_ack(ep, slot))
				return false;
			weft_ring_release(&lane->ring, head);
			atomic_store_explicit(&lane->head, head + 1, memory_order_relaxed);
			d->acks++;
		} else if (weft_one_sided(ep, id)) {
			struct weft_served s = weft_rma_serve(ep, lane, to);

			d->one_sided += s.n;
			if (s.to_go || !s.n)
				return !s.to_go;
		} else {
			return false;
		}
	}
	return true;
}

bool weft_deliver(struct weft_hot_ep *ep, struct weft_reader *to)
{
	struct weft_hot_rx *rx = atomic_load_explicit(&ep->rx, memory_order_relaxed);
	uint32_t lanes = weft_lanes_in_use(ep), lane = rx->turn;
	bool plain = rx->matcher_empty && ep->flags & WEFT_EP_PLAIN_RX, all = true;
	struct delivered d = { 0 };
	struct weft_outlet out;

	if (!plain && !ep->fetch_count)
		return false;
	out.rx = weft_reader_of(to, ep->rx_cq);
	out.tx = ep->tx_cq == ep->rx_cq ? out.rx : weft_reader_of(to, ep->tx_cq);
	for (uint32_t i = 0; i < lanes && all && (!out.rx || out.rx->left); i++, lane++) {
		if (lane >= lanes)
			lane = 0;
		all = take_in(ep, &ep->inbound[lane], rx, plain, &out, &d);
	}
	rx->turn = lane; /* behind the last, for one that has more than fits the reader */
	weft_count_delivered(ep, d.messages, d.bytes);
	if (d.announced && weft_cq_wake_needed(ep->rx_cq))
		weftGoWakeCQ(ep->rx_cq->handle);
	if (!plain && atomic_load_explicit(&rx->want_posts, memory_order_relaxed))
		return false; /* there may be a receive for a message that Go holds */
	return all && d.messages + d.announced + d.acks + d.one_sided;
}
