/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What takes in arrivals in C: the shim of the data plane (deliver.c) and one-sided
 * operations (rma_serve.c).
 */
#ifndef WEFT_ARRIVAL_H
#define WEFT_ARRIVAL_H

#include <string.h>

#include "hotpath.h"
#include "reader.h"

/* The most arrivals of one ring in one call, so that others get their turn. */
#define WEFT_DELIVER_MAX 64

/* What a slot says, read once. */
struct weft_arrival {
	uint32_t id;
	uint32_t flags;
	uint32_t head;
	uint32_t length;
	uint64_t header;   /* a message's tag */
};

static inline struct weft_arrival weft_read_arrival(const struct weft_slot *slot)
{
	uint64_t word = atomic_load_explicit(
		(_Atomic uint64_t *)((uintptr_t)slot + offsetof(struct weft_slot, am_id)),
		memory_order_relaxed);

	return (struct weft_arrival){
		.id = word & 0xff,
		.flags = word >> 8 & 0xff,
		.head = word >> 16 & 0xffff,
		.length = word >> 32,
		.header = *(const volatile uint64_t *)&slot->header,
	};
}

/* Where a call of weft_deliver puts completions, of either direction: a reader
 * whose queue was found empty, NULL: the queue. */
struct weft_outlet {
	struct weft_reader *rx;
	struct weft_reader *tx;
};

/* The reader, if what is delivered to a queue may go to it. What another thread
 * wrote to the queue meanwhile comes first. */
static inline struct weft_reader *weft_reader_of(struct weft_reader *to, const struct weft_hot_cq *cq)
{
	return to && to->cq == cq && to->left && weft_cq_empty(cq) ? to : NULL;
}

/* A place for a completion: a reader, or a slot of the queue. What takes one fills it. */
struct weft_place {
	struct weft_reader *reader;
	struct weft_cq_claim claim;
};

static inline bool weft_take_place(struct weft_hot_cq *cq, struct weft_reader *reader, struct weft_place *p)
{
	p->reader = reader;
	return reader ? reader->left != 0 :
			!atomic_load_explicit(&cq->overflow, memory_order_relaxed) &&
				weft_cq_claim_ring(cq, 0, &p->claim);
}

/* Tells whether somebody may have to be woken for it. */
static inline bool weft_fill_place(struct weft_hot_cq *cq, struct weft_place *p, const struct weft_cqe *e)
{
	if (p->reader) {
		weft_reader_put(p->reader, e);
		return false;
	}
	weft_cq_fill(cq, &p->claim, e);
	return true;
}

/* What became of the one-sided operations at the head of an inbound ring. */
struct weft_served {
	uint32_t n;
	bool to_go; /* the next is Go's */
};

/* Takes in the one-sided operations at the head of an inbound ring, one after
 * the other up to the first message of another kind. The caller holds the lease. */
struct weft_served weft_rma_serve(struct weft_hot_ep *ep, struct weft_inbound *lane,
				  const struct weft_outlet *to);

/* Go gives a message to the receive that it has matched; see weft_delivery_code. */
extern void weftGoGiveMessage(uint64_t ep, struct weft_delivery *d);
/* Go writes a completion to a queue whose ring is full. */
extern void weftGoCompleteReceive(uint64_t ep, struct weft_delivery *d);

/* Starts a delivery. What is not set here is written before it is read: the structure is large for a message's time. */
static inline void weft_delivery_begin(struct weft_delivery *d, struct weft_hot_ep *ep, struct weft_reader *to)
{
	d->ep = ep;
	d->reader = to;
	d->begun = 0;
	d->todo = 0;
	d->worked = 0;
	d->finish = 0;
	d->read = 0;
	d->messages = 0;
	d->bytes = 0;
	d->addr = 0;
}

/* Has Go do what is left of a message after SETTLE or COMPLETE. False: the code is neither of them nor DONE. */
bool weft_delivery_give(struct weft_delivery *d, enum weft_delivery_code code);

/* Wakes who sleeps on what a delivery has completed. */
void weft_delivery_end(const struct weft_delivery *d);

/* A message from an address is likely to be answered. The slot that the answer goes to is in
 * the cache of the peer, who polls it: fetching it now takes its way off the
 * answer's. */
static inline void weft_expect_answer(const struct weft_hot_ep *ep, uint64_t addr)
{
	uint64_t line = weft_peer_line(ep, addr);
	struct weft_hot_peer *peer = &ep->peers[line];
	struct weft_ring ring = { .slot_bytes = WEFT_SLOT_BYTES };

	if (line == UINT64_MAX)
		return;
	ring.slots = atomic_load_explicit(&peer->slots, memory_order_acquire);
	if (!ring.slots)
		return;
	ring.log2_slots = peer->log2_slots;
	weft_prefetch_write(
		weft_ring_slot(&ring, atomic_load_explicit(peer->tail, memory_order_relaxed)));
}

static inline void weft_copy_payload(void *dst, const void *src, size_t len)
{
	if (len == sizeof(uint64_t))
		memcpy(dst, src, sizeof(uint64_t));
	else
		memcpy(dst, src, len);
}

/* The id of a message that has arrived, to see what it may be. */
static inline uint8_t weft_arrival_id(const struct weft_slot *slot)
{
	return *(const volatile uint8_t *)&slot->am_id;
}

static inline bool weft_one_sided(const struct weft_hot_ep *ep, uint8_t id)
{
	return ep->fetch_count &&
	       (id == WEFT_AM_WRITE || id == WEFT_AM_ATOMIC || id == WEFT_AM_READ_DATA);
}

#endif
