/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Messages of other hosts. The backend's C part (struct weft_hot_port) finds them, the data plane takes them in; the
 * backend says when there is something that only Go can deal with.
 */
#include "arrival.h"
#include "look.h"
#include "plane.h"

/* Has the data plane take in the message that the port has found. False: Go is to look at it. */
static bool deliver(struct weft_delivery *d, const struct weft_port_message *m)
{
	uint32_t head = (m->id - WEFT_AM_MSG) & 1 ? sizeof(d->data) : 0;

	if (m->id < WEFT_AM_MSG || m->id > WEFT_AM_TAG_DATA || m->head_bytes != head)
		return false;
	d->flags = (m->id >= WEFT_AM_TAG ? WEFT_MESSAGE_TAGGED : 0) | (head ? WEFT_MESSAGE_DATA : 0);
	d->data = 0;
	if (head)
		memcpy(&d->data, m->head, sizeof(d->data));
	d->source = m->source;
	d->tag = m->header;
	d->length = m->length;
	d->payload = (uintptr_t)m->payload;
	return weft_delivery_give(d, (enum weft_delivery_code)weft_plane_call(WEFT_PLANE_ACCEPT, d));
}

enum weft_looked weft_port_look(struct weft_hot_ep *ep, struct weft_reader *to)
{
	struct weft_delivery d;
	struct weft_port_message m;
	uint32_t messages = 0;
	int found = WEFT_PORT_EMPTY;
	bool active;

	if (!ep->port)
		return WEFT_LOOKED_NOTHING;
	active = atomic_load_explicit(&ep->port_active, memory_order_relaxed);
	weft_delivery_begin(&d, ep, weft_reader_of(to, ep->rx_cq));
	while (messages < WEFT_DELIVER_MAX && (!d.reader || d.reader->left)) {
		found = active ? ep->port->next(ep->port, &m) : ep->port->glance(ep->port, &m);
		if (found != WEFT_PORT_ARRIVAL)
			break;
		if (!deliver(&d, &m)) {
			found = WEFT_PORT_GO;
			break;
		}
		messages++;
		if (!ep->port->take(ep->port))
			break; /* who waits for this one has it sooner without another look at the device */
	}
	weft_delivery_end(&d);
	if (found == WEFT_PORT_GO || d.todo & WEFT_TODO_TRIGGERED)
		return WEFT_LOOKED_TO_GO;
	return messages ? WEFT_LOOKED_DELIVERED : WEFT_LOOKED_NOTHING;
}

enum weft_looked weft_work_with_port(struct weft_hot_ep *ep, struct weft_hot_rx *rx,
				     struct weft_reader *to)
{
	enum weft_looked looked;

	if (atomic_load_explicit(&rx->attention, memory_order_relaxed) & WEFT_ATTENTION_GO)
		return WEFT_LOOKED_TO_GO;
	looked = weft_port_look(ep, to);
	if (looked == WEFT_LOOKED_TO_GO || (!weft_rings_have_work(ep) && !weft_posts_are_work(rx)))
		return looked;
	return weft_deliver(ep, to) ? WEFT_LOOKED_DELIVERED : WEFT_LOOKED_TO_GO;
}
