/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Bounce buffers: what is too long for a slot of the receiver's ring lies in one of
 * the sender's segment. The sender fills it and names the receiver in its state,
 * the slot has its number, and the receiver frees it.
 */
#ifndef WEFT_BOUNCE_H
#define WEFT_BOUNCE_H

#include "arrival.h"

/* Finds a free bounce buffer of a leased stripe, NULL when all are in flight. */
static inline struct weft_bounce *weft_bounce_free(struct weft_hot_stripe *stripe, uint32_t *index)
{
	for (uint32_t n = 0; n < stripe->bounce_count; n++) {
		uint32_t i = stripe->bounce_next;
		struct weft_bounce *b =
			(void *)(stripe->bounce + (uint64_t)i * stripe->bounce_stride);

		stripe->bounce_next = i + 1 == stripe->bounce_count ? 0 : i + 1;
		if (atomic_load_explicit(&b->state, memory_order_acquire) == 0) {
			stripe->starved = 0;
			*index = stripe->bounce_first + i;
			return b;
		}
	}
	return NULL;
}

/* The next buffer of a stripe will be written: its receiver wrote there last. More lines than
 * this one come with the copy. */
static inline void weft_bounce_prefetch(const struct weft_hot_stripe *stripe)
{
	weft_prefetch_write(stripe->bounce + (uint64_t)stripe->bounce_next * stripe->bounce_stride);
}

/* The bounce buffer that holds the payload of an arrival from a source, whose entry in the attach table
 * is owner; NULL if Go is to look at it. */
static inline struct weft_bounce *weft_bounce_of(const struct weft_slot *slot, const struct weft_arrival *m,
						 const struct weft_hot_source *src, uint32_t owner)
{
	uint32_t index;
	struct weft_bounce *b;

	if (m->head > WEFT_SLOT_BODY - sizeof(struct weft_bounce_ref) || m->head % sizeof(uint64_t))
		return NULL;
	index = *(const volatile uint32_t *)(slot->body + m->head);
	if (!src->bounce || index >= src->bounce_count || m->length > src->bounce_bytes)
		return NULL;
	b = (void *)(src->bounce + (uint64_t)index * src->bounce_stride);
	return atomic_load_explicit(&b->state, memory_order_acquire) == owner ? b : NULL;
}

#endif
