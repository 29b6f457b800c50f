/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The system call and the answer of an announced message that the data plane has matched. The peer's process id is a
 * private copy that Go has checked; what is read there is the peer's to say.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "announced.h"
#include "poster.h"
#include "posting.h"
#include "vmcopy.h"

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

bool weft_read_announced(const struct weft_delivery *d)
{
	struct weft_hot_ep *ep = d->ep;
	uint64_t line = weft_peer_line(ep, d->addr - 1);
	struct weft_hot_peer *peer = &ep->peers[line];
	struct weft_poster *me;
	struct weft_ring ring;
	bool ok;

	if (line == UINT64_MAX || !(me = weft_post_begin()))
		return false;
	ok = weft_peer_ring(peer, &ring) && weft_vm_copy(peer, (void *)d->buf, d->payload, d->length, true);
	if (ok)
		acknowledge(ep, peer, &ring, d->source, d->request);
	weft_post_end(me);
	return ok;
}
