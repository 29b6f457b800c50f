/* SPDX-License-Identifier: BSD-2-Clause
 *
 * weft rings: bounded, many producers, one layout for C and Go.
 *
 * A ring is an array of 2^log2 slots, each a whole number of cache lines, and
 * one tail word. The steps of producers and of the consumer are package mpsc's; C
 * only polls.
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
 * Because the claiming step itself records the owner, a slot taken by a process
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

static inline _Atomic uint64_t *weft_ring_slot(const struct weft_ring *r, uint64_t pos)
{
	uint64_t i = pos & ((1ull << r->log2_slots) - 1);
	return (_Atomic uint64_t *)(r->slots + i * r->slot_bytes);
}

/* weft_ring_ready reports whether the slot at position holds a message. (L0) */
static inline bool weft_ring_ready(const struct weft_ring *r, uint64_t position)
{
	uint64_t word = atomic_load_explicit(weft_ring_slot(r, position), memory_order_acquire);

	return (word & 3) == WEFT_SLOT_READY &&
	       !((word >> WEFT_SEQ_LAP_SHIFT ^ position >> r->log2_slots) << WEFT_SEQ_LAP_SHIFT);
}

#endif
