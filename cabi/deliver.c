/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Arrivals in shared memory: the data plane (package dataplane) takes them in, and says where it needs the runtime, a
 * system call or a pause.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "arrival.h"
#include "look.h"
#include "plane.h"
#include "poster.h"
#include "vmcopy.h"

void weft_delivery_end(const struct weft_delivery *d)
{
	if (d->todo & WEFT_TODO_WAKE_CQ)
		weftGoWakeCQ(d->ep->rx_cq->handle);
	if (d->todo & WEFT_TODO_WAKE_CNTR)
		weftGoWakeCntr(d->ep->rx_cntr->handle);
	if (d->todo & WEFT_TODO_WAKE_TX_CQ)
		weftGoWakeCQ(d->ep->tx_cq->handle);
	if (d->todo & WEFT_TODO_WAKE_READ_CNTR)
		weftGoWakeCntr(d->ep->read_cntr->handle);
}

bool weft_delivery_give(struct weft_delivery *d, enum weft_delivery_code code)
{
	if (code == WEFT_DELIVERY_SETTLE)
		weftGoGiveMessage(d->ep->handle, d);
	else if (code == WEFT_DELIVERY_COMPLETE)
		weftGoCompleteReceive(d->ep->handle, d);
	else
		return code == WEFT_DELIVERY_DONE;
	return true;
}

/* Does what the data plane asks for; false: the rest is Go's. */
static bool perform(struct weft_delivery *d, enum weft_delivery_code code)
{
	struct weft_hot_ep *ep = d->ep;

	switch (code) {
	case WEFT_DELIVERY_PAUSE:
		weft_pause();
		return true;
	case WEFT_DELIVERY_ACK:
		weftGoAck(ep->handle, d->source, d->request, d->data);
		return true;
	case WEFT_DELIVERY_READ:
		d->read = weft_vm_copy(&ep->peers[d->line], (void *)d->buf, d->payload, d->length, true);
		return true;
	case WEFT_DELIVERY_ACKNOWLEDGE:
		weftGoAcknowledge(ep->handle, d->source, d->request);
		return true;
	case WEFT_DELIVERY_WAKE_PEER:
		weftGoWakePeer(ep->handle, d->peer);
		return true;
	default:
		return weft_delivery_give(d, code);
	}
}

/* Calls the data plane, which may write to the segments of peers. */
static enum weft_delivery_code call(struct weft_delivery *d, struct weft_poster *me)
{
	enum weft_delivery_code code;

	weft_post_resume(me);
	code = (enum weft_delivery_code)weft_plane_call(WEFT_PLANE_DELIVER, d);
	weft_post_end(me);
	return code;
}

bool weft_deliver(struct weft_hot_ep *ep, struct weft_reader *to)
{
	struct weft_poster *me = weft_post_line();
	enum weft_delivery_code code;
	struct weft_delivery d;

	if (!me)
		return false;
	weft_delivery_begin(&d, ep, weft_reader_of(to, ep->rx_cq));
	d.tx_reader = ep->tx_cq == ep->rx_cq ? d.reader : weft_reader_of(to, ep->tx_cq);
	do {
		code = call(&d, me);
	} while (code != WEFT_DELIVERY_DONE && perform(&d, code));
	if (d.next)
		weft_prefetch_write(d.next);
	weft_delivery_end(&d);
	return code == WEFT_DELIVERY_DONE && !(d.todo & WEFT_TODO_TRIGGERED);
}
