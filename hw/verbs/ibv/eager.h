/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * eager.h: eager rings. A receiver gives a peer a ring of slots in its memory, into which
 * the peer writes short messages (RDMA WRITE) instead of sending them. That spares the
 * receiver a completion and a receive buffer, but wakes no thread: the lease holder must poll.
 * A peer that has written as many messages as there are slots sends until it hears that
 * some were taken: of the index that messages carry (struct weft_message_header) the upper
 * bits count those that their sender has taken.
 *
 * In its slot a message is followed, at the next multiple of 8 bytes, by what comes before
 * it in order and by a sum: a message whose bytes have not all come is not there yet,
 * whatever the order in which the device writes them.
 */
#ifndef WEFT_EAGER_H
#define WEFT_EAGER_H

#include "sendq.h"

#define WEFT_EAGER_SLOTS 16u
#define WEFT_EAGER_SLOT 128u /* bytes */

/* The index that a message carries: whose it is, and above it the count. */
#define WEFT_INDEX_BITS 20
#define WEFT_INDEX_MASK ((1u << WEFT_INDEX_BITS) - 1)
#define WEFT_COUNT_MASK 0xfffu

struct weft_vpeer;

struct weft_eager_end {
	uint32_t before; /* position after the message that the sender sent or wrote before, as the header's seq */
	uint32_t sum;
};

/* Has the message at pos, which is about to be posted alone, written into the ring that the peer
 * has given, if a slot is free and the message fits. The caller holds run. */
void weft_eager_turn(struct weft_sendq *q, uint64_t pos);

/* Whether something has come to the slot that the next message of p comes to. */
bool weft_eager_ready(const struct weft_vpeer *p);

/* Copies the message that comes next from p into to, of WEFT_EAGER_SLOT bytes, and returns its length;
 * 0: it is not there, or not whole. What lies in the ring may change at any time. The caller
 * holds the lease. */
uint32_t weft_eager_read(const struct weft_vpeer *p, unsigned char *to);

/* Whether it is there. The caller holds the lease. */
bool weft_eager_there(const struct weft_vpeer *p);

/* Frees that message's slot. The caller holds the lease. */
void weft_eager_take(struct weft_vpeer *p);

/* Takes in what the index of a peer's message says. The caller holds the lease. */
void weft_eager_heard(struct weft_sendq *q, uint32_t index);

#endif
