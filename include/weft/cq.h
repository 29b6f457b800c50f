/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Completion queues (struct weft_hot_cq) without Go. Package cq has the same
 * algorithm and describes it; the two mix on one queue. The owner field of a
 * slot's sequence word says what it holds, so that a reader, which looks before
 * it owns the slots, looks at sequence words only. Ordering points beside ring.h's:
 *   H0 take   CAS on head: the slots below are this reader's (L0 made them visible)
 */
#ifndef WEFT_CQ_H
#define WEFT_CQ_H

#include <string.h>
#include "hot.h"

/* A slot to be filled soon: what is behind it is not seen before. */
struct weft_cq_claim {
	struct weft_cqe *slot;
	uint64_t position;
};

static inline struct weft_cq_ring *weft_cq_ring_at(const struct weft_hot_cq *cq, uint32_t ring)
{
	return (struct weft_cq_ring *)(cq->rings + ring * cq->ring_stride);
}

static inline struct weft_ring weft_cq_slots(const struct weft_hot_cq *cq, struct weft_cq_ring *r)
{
	return (struct weft_ring){ (unsigned char *)(r + 1), &r->tail, cq->log2_slots,
				   sizeof(struct weft_cqe) };
}

/* weft_cq_claim_ring takes a slot of one ring; false: full, nothing happened. */
static inline bool weft_cq_claim_ring(struct weft_hot_cq *cq, uint32_t ring,
				      struct weft_cq_claim *claim)
{
	struct weft_ring slots = weft_cq_slots(cq, weft_cq_ring_at(cq, ring));

	claim->slot = (struct weft_cqe *)weft_ring_claim(
		&slots, 0, cq->flags & WEFT_CQ_EXCLUSIVE, &claim->position);
	return claim->slot;
}

static inline void weft_cq_publish(const struct weft_hot_cq *cq, const struct weft_cq_claim *claim,
				   enum weft_cq_mark mark)
{
	struct weft_ring r = { .log2_slots = cq->log2_slots };
	weft_ring_publish(&r, &claim->slot->seq, mark, claim->position);
}

/* weft_cq_fill publishes a completion (all of *e but seq) in a claimed slot. */
static inline void weft_cq_fill(struct weft_hot_cq *cq, const struct weft_cq_claim *claim,
				const struct weft_cqe *e)
{
	memcpy(&claim->slot->context, &e->context, sizeof(*e) - sizeof(e->seq));
	weft_cq_publish(cq, claim, WEFT_CQ_MARK_ENTRY);
}

/* weft_cq_push claims, fills and publishes; false: full, nothing happened. */
static inline bool weft_cq_push(struct weft_hot_cq *cq, uint32_t ring, const struct weft_cqe *e)
{
	struct weft_cq_claim claim;
	bool ok = weft_cq_claim_ring(cq, ring, &claim);
	if (ok)
		weft_cq_fill(cq, &claim, e);
	return ok;
}

/* weft_cq_empty tells whether ring 0 has nothing to read and nothing waits for room there. */
static inline bool weft_cq_empty(const struct weft_hot_cq *cq)
{
	struct weft_cq_ring *r = weft_cq_ring_at(cq, 0);
	struct weft_ring slots = weft_cq_slots(cq, r);

	return !atomic_load_explicit(&cq->overflow, memory_order_relaxed) &&
	       !weft_ring_ready(&slots, atomic_load_explicit(&r->head, memory_order_relaxed));
}

/* weft_cq_still tells whether a pop would surely find nothing, at the cost of two
 * loads per ring. */
static inline bool weft_cq_still(const struct weft_hot_cq *cq)
{
	uint64_t last = (1ull << cq->log2_slots) - 1;
	const unsigned char *at = cq->rings;

	for (uint32_t n = cq->nrings; n; n--, at += cq->ring_stride) {
		const struct weft_cq_ring *r = (const struct weft_cq_ring *)at;
		const struct weft_cqe *slots = (const struct weft_cqe *)(r + 1);
		uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

		if ((atomic_load_explicit(&slots[head & last].seq, memory_order_relaxed) & 3) ==
		    WEFT_SLOT_READY)
			return false;
	}
	return true;
}

/* Takes up to count completions off one ring, as many as are ready in one step.
 * *error (false before): an error is at the head now. */
static inline size_t weft_cq_pop_ring(const struct weft_hot_cq *cq, struct weft_cq_ring *r,
				      struct weft_cqe *out, size_t count, bool *error)
{
	struct weft_ring slots = weft_cq_slots(cq, r);
	size_t got = 0;

	while (got < count && !*error) {
		uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed), end = head;

		for (size_t n = got; n < count; end++, n++) {
			uint64_t word = atomic_load_explicit(weft_ring_slot(&slots, end), /* L0 */
							     memory_order_acquire);
			uint32_t mark = weft_seq_owner(word);
			if (word != weft_seq(end >> cq->log2_slots, mark, WEFT_SLOT_READY))
				break;
			if ((*error = mark == WEFT_CQ_MARK_ERROR))
				break;
		}
		if (end == head)
			break;
		if (cq->flags & WEFT_CQ_EXCLUSIVE) {
			atomic_store_explicit(&r->head, end, memory_order_relaxed);
		} else if (!atomic_compare_exchange_strong_explicit( /* H0 */
				   &r->head, &head, end, memory_order_acq_rel, memory_order_relaxed)) {
			*error = false; /* another reader was faster: look again */
			continue;
		}
		for (; head != end; head++) {
			struct weft_cqe *slot = (struct weft_cqe *)weft_ring_slot(&slots, head);
			memcpy(&out[got++], slot, sizeof(*slot));
			weft_ring_release(&slots, head);
		}
	}
	return got;
}

/* weft_cq_pop takes up to count completions and returns how many. *error is
 * set when it got none because an error is next. An empty queue costs two loads
 * per ring; else there is one CAS per ring and batch, none if exclusive. */
static inline size_t weft_cq_pop(struct weft_hot_cq *cq, struct weft_cqe *out, size_t count,
				 bool *error)
{
	uint32_t ring = atomic_load_explicit(&weft_cq_ring_at(cq, 0)->turn, memory_order_relaxed);
	size_t got = 0;
	bool stop = false;

	for (uint32_t n = 0; n < cq->nrings && got < count && !stop; n++, ring += !stop) {
		if (ring >= cq->nrings)
			ring = 0;
		got += weft_cq_pop_ring(cq, weft_cq_ring_at(cq, ring), out + got, count - got, &stop);
	}
	*error = stop && !got;
	if (cq->nrings > 1 && got && (stop || got == count))
		atomic_store_explicit(&weft_cq_ring_at(cq, 0)->turn, ring, memory_order_relaxed);
	return got;
}

/* weft_cq_bad tells whether an error is next in one of the rings. */
static inline bool weft_cq_bad(const struct weft_hot_cq *cq)
{
	for (uint32_t n = 0; n < cq->nrings; n++) {
		struct weft_cq_ring *r = weft_cq_ring_at(cq, n);
		struct weft_ring slots = weft_cq_slots(cq, r);
		uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
		uint64_t word = atomic_load_explicit(weft_ring_slot(&slots, head), /* L0 */
						     memory_order_acquire);

		if (word == weft_seq(head >> cq->log2_slots, WEFT_CQ_MARK_ERROR, WEFT_SLOT_READY))
			return true;
	}
	return false;
}

#endif
