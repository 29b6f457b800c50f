/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Announced messages (rendezvous) in C (announced.c).
 */
#ifndef WEFT_ANNOUNCED_H
#define WEFT_ANNOUNCED_H

#include "arrival.h"

/* Reads the announced message that the data plane has matched (WEFT_DELIVERY_READ) from its sender's memory and
 * acknowledges it. False: nothing of that has happened, but that the receive's buffer may have changed; the message is
 * Go's. The caller holds the lease. */
bool weft_read_announced(const struct weft_delivery *d);

/* Gives Go a receiver's acknowledgement of a message that this process has announced, without the whole
 * look that all else that is Go's has. False: it is for Go to take in. The caller holds the lease. */
bool weft_take_ack(struct weft_hot_ep *ep, const struct weft_slot *slot);

/* Go completes transmit request of an endpoint with a status, as the peer that is source says. */
extern void weftGoAck(uint64_t ep, uint32_t source, uint64_t request, uint64_t status);

/* Go acknowledges a source's request as soon as there is room. */
extern void weftGoAcknowledge(uint64_t ep, uint32_t source, uint64_t request);

#endif
