/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Announced messages that C takes in (announced.c).
 */
#ifndef WEFT_ANNOUNCED_H
#define WEFT_ANNOUNCED_H

#include "arrival.h"

/* Reads an announced message of a source, which is below source_limit, from its sender's memory into
 * a receive, completes that for a reader, NULL: on its queue, and acknowledges the message. False:
 * nothing of that has happened, but that the receive's buffer may have changed; the message is
 * Go's. The caller holds the lease. */
bool weft_take_announced(struct weft_hot_ep *ep, const struct weft_slot *slot, uint32_t source,
			 const struct weft_arrival *m, const struct weft_recv_entry *r,
			 struct weft_reader *to);

/* Gives Go a receiver's acknowledgement of a message that this process has announced, without the whole
 * look that all else that is Go's has. False: it is for Go to take in. The caller holds the lease. */
bool weft_take_ack(struct weft_hot_ep *ep, const struct weft_slot *slot);

/* Go completes transmit request of an endpoint with a status, as the peer that is source says. */
extern void weftGoAck(uint64_t ep, uint32_t source, uint64_t request, uint64_t status);

/* Go acknowledges a source's request as soon as there is room. */
extern void weftGoAcknowledge(uint64_t ep, uint32_t source, uint64_t request);

#endif
