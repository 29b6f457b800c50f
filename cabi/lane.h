/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Taking a slot of a peer's inbound ring. The slot's line is in the peer's cache, and
 * reading whether it is free takes it from there, only to be asked for once more when it is
 * written. Who writes to a ring alone does without: the peer frees slots in the order of
 * their positions, so one that is free some way ahead says so of all before it, and a
 * line with that position, which nobody else uses, is enough until it is reached.
 */
#ifndef WEFT_LANE_H
#define WEFT_LANE_H

#include "../include/weft/hot.h"
#include "../include/weft/segment.h"

static inline struct weft_lane *weft_lane_of(const struct weft_ring *ring)
{
	return (struct weft_lane *)((uintptr_t)ring->tail - offsetof(struct weft_lane, tail));
}

/* Tells whether the slot at a position is free for it. */
static inline bool weft_lane_free_at(const struct weft_ring *ring, uint64_t pos)
{
	return atomic_load_explicit(weft_ring_slot(ring, pos), memory_order_acquire) ==
	       weft_seq(pos >> ring->log2_slots, 0, WEFT_SLOT_FREE);
}

/* Tells whether the next slot is surely free, and weft_lane_next may take it: of a ring that only
 * we write to, and that is not nearly full. A peer that overwrites the words loses what is sent
 * to it. */
static inline bool weft_lane_free(const struct weft_hot_peer *peer, const struct weft_ring *ring)
{
	struct weft_lane *lane = weft_lane_of(ring);
	uint64_t pos = atomic_load_explicit(&lane->tail, memory_order_relaxed);
	uint64_t ahead = (1ull << ring->log2_slots) / 4;

	if (!peer->exclusive)
		return false;
	if (atomic_load_explicit(&lane->free, memory_order_relaxed) - pos - 1 <= ahead)
		return true;
	if (!weft_lane_free_at(ring, pos) || !weft_lane_free_at(ring, pos + ahead))
		return false;
	atomic_store_explicit(&lane->free, pos + ahead + 1, memory_order_relaxed);
	return true;
}

/* Takes the next slot, after weft_lane_free. */
static inline struct weft_slot *weft_lane_next(const struct weft_hot_peer *peer, const struct weft_ring *ring,
					       uint64_t *position)
{
	uint64_t pos = atomic_load_explicit(ring->tail, memory_order_relaxed);
	_Atomic uint64_t *slot = weft_ring_slot(ring, pos);

	atomic_store_explicit(slot, weft_seq(pos >> ring->log2_slots, peer->owner, WEFT_SLOT_TAKEN),
			      memory_order_relaxed);
	atomic_store_explicit(ring->tail, pos + 1, memory_order_relaxed);
	*position = pos;
	return (struct weft_slot *)slot;
}

/* Takes the next free slot, NULL: the ring is full. It is published with weft_ring_publish. */
static inline struct weft_slot *weft_lane_claim(const struct weft_hot_peer *peer, const struct weft_ring *ring,
						uint64_t *position)
{
	if (weft_lane_free(peer, ring))
		return weft_lane_next(peer, ring, position);
	return (struct weft_slot *)weft_ring_claim(ring, peer->owner, peer->exclusive, position);
}

#endif
