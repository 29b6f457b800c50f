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
 * costs more than both. Everything else is Go's: a message that finds no
 * receive or fits another one, rendezvous, acknowledgements, truncation,
 * errors. Once Go holds a receive or a message this file stands back until it
 * holds none.
 *
 * The peer can write the slot at any time: each word is read once and checked.
 */
#include <string.h>

#include "hotpath.h"

/* The most messages of one call, so that other endpoints get their turn. */
#define DELIVER_MAX 64

/* What a slot says, read once. */
struct message {
	uint32_t id;
	uint32_t flags;
	uint32_t head;
	uint32_t length;
	uint64_t tag;
};

static inline struct message read_message(const struct weft_slot *slot)
{
	uint64_t word = atomic_load_explicit(
		(_Atomic uint64_t *)((uintptr_t)slot + offsetof(struct weft_slot, am_id)),
		memory_order_relaxed);

	return (struct message){
		.id = word & 0xff,
		.flags = word >> 8 & 0xff,
		.head = word >> 16 & 0xffff,
		.length = word >> 32,
		.tag = *(const volatile uint64_t *)&slot->header,
	};
}

/* The bounce buffer that holds a message's payload, NULL if Go is to look. */
static inline struct weft_bounce *bounce_of(const struct weft_slot *slot, const struct message *m,
					    const struct weft_hot_source *src, uint32_t owner)
{
	uint32_t index = *(const volatile uint32_t *)(slot->body + m->head);
	struct weft_bounce *b;

	if (!src->bounce || index >= src->bounce_count || m->length > src->bounce_bytes)
		return NULL;
	b = (void *)(src->bounce + (uint64_t)index * src->bounce_stride);
	return atomic_load_explicit(&b->state, memory_order_acquire) == owner ? b : NULL;
}

/* Tells whether message and receive fit, for messages that need nothing but a
 * copy and a completion. */
static inline bool fits(const struct weft_hot_rx *rx, const struct weft_recv_entry *r,
			const struct message *m, uint64_t addr)
{
	bool tagged = m->id >= WEFT_AM_TAG;
	uint32_t head = (m->id - WEFT_AM_MSG) & 1 ? sizeof(uint64_t) : 0;

	if (m->id < WEFT_AM_MSG || m->id > WEFT_AM_TAG_DATA || m->head != head || !addr ||
	    m->flags & ~WEFT_SLOT_BOUNCE || m->length > r->len)
		return false;
	if (r->flags & ~(WEFT_RECV_TAGGED | FI_COMPLETION | FI_MORE) ||
	    !(r->flags & WEFT_RECV_TAGGED) == tagged)
		return false;
	if (rx->flags & WEFT_RX_DIRECTED && r->src != FI_ADDR_UNSPEC && r->src != addr - 1)
		return false;
	return !tagged || !((m->tag ^ r->tag) & ~r->ignore);
}

static bool deliver_one(struct weft_hot_ep *ep, struct weft_slot *slot, struct weft_recv_entry *r)
{
	uint32_t owner = weft_seq_owner(atomic_load_explicit(&slot->seq, memory_order_relaxed));
	struct message m = read_message(slot);
	struct weft_bounce *bounce = NULL;
	const void *payload;
	struct weft_hot_source *src;
	uint64_t addr;

	if (owner - 1 >= ep->source_limit)
		return false;
	src = &ep->sources[owner - 1];
	addr = atomic_load_explicit(&src->addr, memory_order_relaxed);
	if (!fits(atomic_load_explicit(&ep->rx, memory_order_relaxed), r, &m, addr))
		return false;
	payload = slot->body + m.head;
	if (m.flags & WEFT_SLOT_BOUNCE) {
		bounce = bounce_of(slot, &m, src, owner);
		if (!bounce)
			return false;
		payload = bounce->payload;
	} else if (m.length > WEFT_SLOT_BODY - m.head) {
		return false;
	}
	struct weft_cqe e = {
		.context = r->context,
		.flags = FI_RECV | (r->flags & WEFT_RECV_TAGGED ? FI_TAGGED : FI_MSG),
		.len = m.length,
		.buf = r->buf,
		.tag = m.tag,
		.src = addr - 1,
	};
	if (m.head) {
		memcpy(&e.data, slot->body, sizeof(e.data));
		e.flags |= FI_REMOTE_CQ_DATA;
	}
	struct weft_cq_claim claim;
	if (atomic_load_explicit(&ep->rx_cq->overflow, memory_order_relaxed) ||
	    !weft_cq_claim_ring(ep->rx_cq, 0, &claim))
		return false;
	memcpy((void *)r->buf, payload, m.length);
	weft_cq_fill(ep->rx_cq, &claim, &e);
	if (bounce)
		atomic_store_explicit(&bounce->state, 0, memory_order_release);
	return true;
}

uint32_t weft_deliver(struct weft_hot_ep *ep)
{
	struct weft_hot_rx *rx = atomic_load_explicit(&ep->rx, memory_order_relaxed);
	uint64_t in = atomic_load_explicit(&ep->inbound_head, memory_order_relaxed);
	uint64_t post = atomic_load_explicit(&rx->posts_head, memory_order_relaxed);
	uint32_t n = 0;

	if (!rx->matcher_empty || !(ep->flags & WEFT_EP_PLAIN_RX))
		return 0;
	while (n < DELIVER_MAX && weft_ring_ready(&ep->inbound, in) &&
	       weft_ring_ready(&rx->posts, post)) {
		if (!deliver_one(ep, (void *)weft_ring_slot(&ep->inbound, in),
				 (void *)weft_ring_slot(&rx->posts, post)))
			break;
		weft_ring_release(&ep->inbound, in++);
		weft_ring_release(&rx->posts, post++);
		n++;
	}
	if (n) {
		atomic_store_explicit(&ep->inbound_head, in, memory_order_relaxed);
		atomic_store_explicit(&rx->posts_head, post, memory_order_relaxed);
		if (weft_cq_wake_needed(ep->rx_cq))
			weftGoWakeCQ(ep->rx_cq->handle);
	}
	return n;
}
