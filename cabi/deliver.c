/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Arrivals in shared memory: the data plane (package dataplane) takes them in, and says where it needs the runtime, a
 * system call, or what is still C (rma_serve.c).
 */
#include "announced.h"
#include "arrival.h"
#include "look.h"
#include "plane.h"

void weft_delivery_end(const struct weft_delivery *d)
{
	if (d->todo & WEFT_TODO_WAKE_CQ)
		weftGoWakeCQ(d->ep->rx_cq->handle);
	if (d->todo & WEFT_TODO_WAKE_CNTR)
		weftGoWakeCntr(d->ep->rx_cntr->handle);
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

/* Serves the one-sided operations at the head of a ring; false: what is next there is Go's. */
static bool serve(struct weft_delivery *d, const struct weft_outlet *to)
{
	struct weft_served s = weft_rma_serve(d->ep, &d->ep->inbound[d->ring], to);

	d->worked |= s.n != 0;
	return s.n && !s.to_go;
}

/* Takes the acknowledgement at the head of a ring; false: it is Go's. */
static bool take_ack(struct weft_delivery *d)
{
	struct weft_inbound *in = &d->ep->inbound[d->ring];
	uint64_t head = atomic_load_explicit(&in->head, memory_order_relaxed);

	if (!weft_take_ack(d->ep, (void *)weft_ring_slot(&in->ring, head)))
		return false;
	weft_ring_release(&in->ring, head);
	atomic_store_explicit(&in->head, head + 1, memory_order_relaxed);
	d->worked = 1;
	return true;
}

/* Does what the data plane asks for; false: the rest is Go's. */
static bool perform(struct weft_delivery *d, enum weft_delivery_code code, const struct weft_outlet *to)
{
	switch (code) {
	case WEFT_DELIVERY_ONE_SIDED:
		return serve(d, to);
	case WEFT_DELIVERY_ACK:
		return take_ack(d);
	case WEFT_DELIVERY_READ:
		d->read = weft_read_announced(d);
		return true;
	default:
		return weft_delivery_give(d, code);
	}
}

bool weft_deliver(struct weft_hot_ep *ep, struct weft_reader *to)
{
	struct weft_outlet out = { .rx = weft_reader_of(to, ep->rx_cq) };
	enum weft_delivery_code code;
	struct weft_delivery d;

	weft_delivery_begin(&d, ep, out.rx);
	out.tx = ep->tx_cq == ep->rx_cq ? out.rx : weft_reader_of(to, ep->tx_cq);
	do {
		code = (enum weft_delivery_code)weft_plane_call(WEFT_PLANE_DELIVER, &d);
	} while (code != WEFT_DELIVERY_DONE && perform(&d, code, &out));
	if (d.messages && d.addr)
		weft_expect_answer(ep, d.addr - 1);
	weft_delivery_end(&d);
	return code == WEFT_DELIVERY_DONE && !(d.todo & WEFT_TODO_TRIGGERED);
}
