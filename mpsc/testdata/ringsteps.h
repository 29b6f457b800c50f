/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The steps of package mpsc in C, for tests: producers and a consumer that know of the ring's layout only what
 * weft/ring.h says, and that the C compiler's sanitizer and memory model see. The caller has included weft/ring.h.
 */
#ifndef RINGSTEPS_H
#define RINGSTEPS_H

static inline uint64_t weft_seq(uint64_t lap, uint32_t owner, enum weft_slot_state state)
{
	return lap << WEFT_SEQ_LAP_SHIFT | (uint64_t)(owner & WEFT_SEQ_OWNER_MASK) << WEFT_SEQ_OWNER_SHIFT | state;
}

static inline uint32_t weft_seq_owner(uint64_t seq)
{
	return seq >> WEFT_SEQ_OWNER_SHIFT & WEFT_SEQ_OWNER_MASK;
}

/* weft_ring_claim takes the next free slot for owner and stores its position.
 * It returns the slot, or NULL when the ring is full. exclusive says that the
 * caller is the only producer, so that no locked instruction is needed. */
static inline _Atomic uint64_t *weft_ring_claim(const struct weft_ring *r, uint32_t owner, bool exclusive,
						uint64_t *position)
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
			else if (!atomic_compare_exchange_strong_explicit(/* C0 */
									  slot, &word, taken, memory_order_acquire,
									  memory_order_relaxed))
				continue; /* another producer has this one: try the next */
			atomic_store_explicit(r->tail, pos + 1, memory_order_relaxed);
			*position = pos;
			return slot;
		}
		int64_t ahead = (int64_t)(word - weft_seq(lap, 0, WEFT_SLOT_FREE)) >> WEFT_SEQ_LAP_SHIFT;
		if (ahead < 0)
			return NULL; /* still in use from the lap before: full */
		if (ahead > 1)	     /* stale tail: this slot was claimed in the lap before, so all before it were */
			pos += (uint64_t)(ahead - 1) << r->log2_slots;
	}
	return NULL;
}

/* weft_ring_publish makes a claimed slot visible to the consumer. (P0) */
static inline void weft_ring_publish(const struct weft_ring *r, _Atomic uint64_t *slot, uint32_t owner,
				     uint64_t position)
{
	atomic_store_explicit(slot, weft_seq(position >> r->log2_slots, owner, WEFT_SLOT_READY), memory_order_release);
}

/* weft_ring_release gives the slot at position back to the producers. (R0) */
static inline void weft_ring_release(const struct weft_ring *r, uint64_t position)
{
	atomic_store_explicit(weft_ring_slot(r, position), weft_seq((position >> r->log2_slots) + 1, 0, WEFT_SLOT_FREE),
			      memory_order_release);
}

#endif
