/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The shim of the data plane's functions that take in arrivals (deliver.c, port.c).
 */
#ifndef WEFT_ARRIVAL_H
#define WEFT_ARRIVAL_H

#include <string.h>

#include "hotpath.h"
#include "reader.h"

/* The most messages of a port in one call, so that others get their turn. */
#define WEFT_DELIVER_MAX 64

/* The reader, if what is delivered to a queue may go to it. What another thread
 * wrote to the queue meanwhile comes first. */
static inline struct weft_reader *weft_reader_of(struct weft_reader *to, const struct weft_hot_cq *cq)
{
	return to && to->cq == cq && to->left && weft_cq_empty(cq) ? to : NULL;
}

/* Starts a delivery. What is not set here is written before it is read: the structure is large for a message's time. */
static inline void weft_delivery_begin(struct weft_delivery *d, struct weft_hot_ep *ep, struct weft_reader *to)
{
	d->ep = ep;
	d->reader = to;
	d->tx_reader = NULL;
	d->begun = 0;
	d->todo = 0;
	d->worked = 0;
	d->finish = 0;
	d->read = 0;
	d->messages = 0;
	d->bytes = 0;
	d->addr = 0;
	d->looks = 0;
	d->stream = 0;
	d->next = NULL;
}

/* Has Go do what is left of a message after SETTLE or COMPLETE. False: the code is neither of them nor DONE. */
bool weft_delivery_give(struct weft_delivery *d, enum weft_delivery_code code);

/* Wakes who sleeps on what a delivery has completed. */
void weft_delivery_end(const struct weft_delivery *d);

#endif
