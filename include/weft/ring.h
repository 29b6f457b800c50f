/* SPDX-License-Identifier: BSD-2-Clause
 *
 * weft rings: bounded, many producers, one layout for C and Go.
 *
 * A ring is an array of 2^log2 slots, each a whole number of cache lines, and
 * one tail word. Package mpsc has the same steps in Go.
 *
 * Every slot starts with a 64-bit sequence word
 *
 *      63                18 17        2 1   0
 *     +--------------------+-----------+-----+
 *     |        lap         |   owner   |state|
 *     +--------------------+-----------+-----+
 *
 * where lap counts how often the ring has wrapped for the position that the
 * slot serves, owner is the producer that took the slot (0 inside one process, the attach
 * index between processes) and state is
 *
 *     FREE  --claim: CAS by a producer-->  TAKEN
 *     TAKEN --publish: store-release------> READY
 *     READY --release: store-release by the consumer--> FREE of the next lap
 *     TAKEN --reclaim: CAS by the consumer when the owner died--> FREE, next lap
 *
 * Zeroed memory is a valid empty ring. A full ring is left untouched by a
 * failing claim. A consumer never sees a slot that is taken but not written.
 * Because the claiming step itself records the owner, a slot held by a process
 * that was killed is recognised.
 *
 * Positions are free running 64-bit numbers, masked on use, compared only by
 * difference. The tail is a hint: every position below it has been claimed; a
 * producer that finds it stale walks forward. It is stored with a plain store
 * after each claim and may briefly move backwards, which costs steps and never
 * correctness.
 *
 * Ordering points:
 *   C0 claim    CAS acquire on seq     <-> R0: the slot's previous contents are done with
 *   P0 publish  store release on seq   <-> L0: the body is visible
 *   L0 poll     load acquire on seq    <-> P0
 *   R0 release  store release on seq   <-> C0
 */
#ifndef WEFT_RING_H
#define WEFT_RING_H

#include "ring_layout.h"

static inline uint64_t weft_seq(uint64_t lap, uint32_t owner, enum weft_slot_state state)
{
	return lap << WEFT_SEQ_LAP_SHIFT |
	       (uint64_t)(owner & WEFT_SEQ_OWNER_MASK) << WEFT_SEQ_OWNER_SHIFT | state;
}

static inline uint32_t weft_seq_owner(uint64_t seq)
{
	return seq >> WEFT_SEQ_OWNER_SHIFT & WEFT_SEQ_OWNER_MASK;
}

static inline _Atomic uint64_t *weft_ring_slot(const struct weft_ring *r, uint64_t pos)
{
	uint64_t i = pos & ((1ull << r->log2_slots) - 1);
	return (_Atomic uint64_t *)(r->slots + i * r->slot_bytes);
}

/* weft_ring_claim takes the next free slot for owner and stores its position.
 * It returns the slot, or NULL when the ring is full. exclusive says that the
 * caller is the only producer, so that no locked instruction is needed. */
static inline _Atomic uint64_t *weft_ring_claim(const struct weft_ring *r, uint32_t owner,
						bool exclusive, uint64_t *position)
{
	uint64_t pos = atomic_load_explicit(r->tail, memory_order_relaxed);
	uint64_t slots = 1ull << r->log2_slots;

	for (uint64_t step = 0; step <= slots; step++, pos++) {
		_Atomic uint64_t *slot = weft_ring_slot(r, pos);
		uint64_t lap = pos >> r->log2_slots;
		uint64_t word = atomic_load_explicit(slot, memory_order_acquire);

		if (word == weft_seq(lap, 0, WEFT_SLOT_FREE)) {
			uint64_t taken = weft_seq(lap, owner, WEFT_SLOT_TAKEN);
			if (exclusive)
				atomic_store_explicit(slot, taken, memory_order_relaxed);
			else if (!atomic_compare_exchange_strong_explicit( /* C0 */
					 slot, &word, taken, memory_order_acquire,
					 memory_order_relaxed))
				continue; /* another producer has this one: try the next */
			atomic_store_explicit(r->tail, pos + 1, memory_order_relaxed);
			*position = pos;
			return slot;
		}
		int64_t ahead = (int64_t)(word - weft_seq(lap, 0, WEFT_SLOT_FREE)) >>
				WEFT_SEQ_LAP_SHIFT;
		if (ahead < 0)
			return NULL; /* still in use from the lap before: full */
		if (ahead > 1) /* stale tail: this slot was claimed in the lap before, so all before it were */
			pos += (uint64_t)(ahead - 1) << r->log2_slots;
	}
	return NULL;
}

/* weft_ring_publish makes a claimed slot visible to the consumer. (P0) */
static inline void weft_ring_publish(const struct weft_ring *r, _Atomic uint64_t *slot,
				     uint32_t owner, uint64_t position)
{
	atomic_store_explicit(slot, weft_seq(position >> r->log2_slots, owner, WEFT_SLOT_READY),
			      memory_order_release);
}

/* weft_ring_ready reports whether the slot at position holds a message. (L0) */
static inline bool weft_ring_ready(const struct weft_ring *r, uint64_t position)
{
	uint64_t word = atomic_load_explicit(weft_ring_slot(r, position), memory_order_acquire);

	return (word & 3) == WEFT_SLOT_READY &&
	       !((word >> WEFT_SEQ_LAP_SHIFT ^ position >> r->log2_slots) << WEFT_SEQ_LAP_SHIFT);
}

/* weft_ring_release gives the slot at position back to the producers. (R0) */
static inline void weft_ring_release(const struct weft_ring *r, uint64_t position)
{
	atomic_store_explicit(weft_ring_slot(r, position),
			      weft_seq((position >> r->log2_slots) + 1, 0, WEFT_SLOT_FREE),
			      memory_order_release);
}

#endif
