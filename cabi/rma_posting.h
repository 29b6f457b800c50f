/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What posting short writes (rma.c) and atomic operations on one integer
 * (rma_post.c) have in common: one message in the peer's ring each, as
 * provider/rma_wire.go has them.
 *
 * The peer's key table is mapped here, so a key, a range or a right that the
 * peer does not have is found before anything is sent; such an operation is
 * Go's, which has the peer refuse it in so many words. The peer looks again when
 * the message arrives. What it refuses then, because the region was closed in
 * between, is known to nobody here any more if the operation has completed: that
 * is what FI_TRANSMIT_COMPLETE promises, and FI_DELIVERY_COMPLETE is Go's.
 *
 * All of it is inlined into the calls of libfabric, so that a message is built in
 * registers: a store buffer holds some 60 stores, and those to the peer's ring
 * wait in it until the line has come from the peer. What is stored on the way
 * there bounds how many messages are on their way.
 */
#ifndef WEFT_RMA_POSTING_H
#define WEFT_RMA_POSTING_H

#include <string.h>

#include "posting.h"
#include "rma.h"
#include "rma_post.h"

#define WEFT_POSTED static inline __attribute__((always_inline))

/* Flags of operations that complete when they are posted. */
#define WEFT_PUT_FLAGS                                                                             \
	(FI_COMPLETION | FI_MORE | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |         \
	 FI_REMOTE_CQ_DATA)

/* A message to be. */
struct weft_message {
	uint8_t am_id;
	uint8_t flags;         /* the slot's */
	uint64_t addr;
	const void *head;
	uint32_t head_bytes;
	uint32_t length;       /* of the payload */
	const void *part[2];   /* the payload, or a weft_bounce_ref */
	uint32_t bytes[2];
};

WEFT_POSTED void weft_rma_push(const struct weft_ring *ring, const struct weft_hot_peer *peer,
			       const struct weft_message *m, struct weft_slot *slot, uint64_t pos)
{
	uint64_t word = m->am_id | (uint64_t)m->flags << 8 | (uint64_t)m->head_bytes << 16 |
			(uint64_t)m->length << 32;
	uint8_t *body = slot->body;

	memcpy((unsigned char *)slot + offsetof(struct weft_slot, am_id), &word, sizeof(word));
	slot->header = m->addr;
	memcpy(body, m->head, m->head_bytes);
	body += m->head_bytes;
	if (m->bytes[0] == sizeof(uint64_t))
		memcpy(body, m->part[0], sizeof(uint64_t));
	else if (m->bytes[0])
		memcpy(body, m->part[0], m->bytes[0]);
	if (m->bytes[1])
		memcpy(body + m->bytes[0], m->part[1], m->bytes[1]);
	weft_ring_publish(ring, &slot->seq, peer->owner, pos);
	weft_prefetch_write(weft_ring_slot(ring, pos + WEFT_PREFETCH_SLOTS));
}

/* The entry of a key in the peer's table; NULL: it has none. */
WEFT_POSTED const volatile struct weft_key *weft_rma_key(const struct weft_hot_peer *peer, uint64_t key)
{
	uint32_t count = peer->key_count, place = weft_key_place(key, count);

	for (uint32_t n = 0; n < WEFT_KEY_PROBES && n < count; n++) {
		const volatile struct weft_key *k = &peer->keys[(place + n) & (count - 1)];

		if (k->name == key && atomic_load_explicit(&k->state, memory_order_relaxed) & 1)
			return k;
	}
	return NULL;
}

/* Tells whether an entry allows an access. */
WEFT_POSTED bool weft_rma_covers(const volatile struct weft_key *k, uint64_t addr, uint64_t len,
				 uint32_t rights)
{
	uint64_t offset = addr - k->base, all = k->len;

	return (k->access & rights) == rights && offset <= all && len <= all - offset;
}

/* Tells whether the peer has a region of this key, range and rights now. */
WEFT_POSTED bool weft_rma_allowed(const struct weft_hot_peer *peer, uint64_t key, uint64_t addr,
				  uint64_t len, uint32_t rights)
{
	const volatile struct weft_key *k = weft_rma_key(peer, key);

	return k && weft_rma_covers(k, addr, len, rights);
}

/* What is returned besides errors and WEFT_RMA_TO_GO: the operation is posted, and triggers may
 * have fired. */
#define WEFT_RMA_TRIGGERED 2

/* Sends a message whose operation completes now. 0, -FI_EAGAIN, or
 * WEFT_RMA_TRIGGERED when it is out and triggers may have fired. */
WEFT_POSTED int weft_rma_send(struct weft_hot_ep *ep, struct weft_hot_peer *peer,
			      const struct weft_ring *ring, const struct weft_message *m,
			      uint64_t flags, void *context, bool inject)
{
	struct weft_end end;
	struct weft_slot *slot;
	uint64_t pos;
	int rc;

	if (!weft_end_room(ep, flags, inject, &end))
		return -FI_EAGAIN;
	slot = weft_lane_claim(peer, ring, &pos);
	if (!slot) {
		weft_post_count(ep, WEFT_STAT_EAGAIN_RING, 1);
		return -FI_EAGAIN;
	}
	weft_rma_push(ring, peer, m, slot, pos);
	atomic_store_explicit(&peer->put, pos + 1, memory_order_relaxed);
	rc = weft_end_done(&end, ep->write_cntr, FI_WRITE | (m->am_id == WEFT_AM_WRITE ? FI_RMA : FI_ATOMIC),
			   context, m->length) ? WEFT_RMA_TRIGGERED : 0;
	weft_peer_wake(ep, peer);
	return rc;
}

/* Has triggers that fired posted, now that the thread holds nothing. */
WEFT_POSTED ssize_t weft_rma_settle(const struct weft_hot_ep *ep, ssize_t rc)
{
	if (__builtin_expect(rc != WEFT_RMA_TRIGGERED, 1))
		return rc;
	weftGoTriggered(ep->handle);
	return 0;
}

/* The line of the peer if the endpoint posts here, else NULL. */
WEFT_POSTED struct weft_hot_peer *weft_rma_peer(const struct weft_hot_ep *ep, fi_addr_t dest)
{
	uint64_t line;

	if (!ep || !weft_ep_fast(ep) || !ep->fetch_count)
		return NULL;
	line = weft_peer_line(ep, dest);
	return line == UINT64_MAX ? NULL : &ep->peers[line];
}

#endif
