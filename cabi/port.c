/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Messages of other hosts that are delivered without Go: as in deliver.c, the
 * next message that fits the first posted receive, while Go's matching holds
 * nothing. The backend's C part (struct weft_hot_port) finds them; it says when there
 * is something that only Go can deal with.
 */
#include "arrival.h"
#include "look.h"

/* Delivers the message that the port has found. False: Go is to look at it. */
static bool deliver(struct weft_hot_ep *ep, struct weft_hot_rx *rx,
		    const struct weft_port_message *pm, struct weft_reader *to)
{
	struct weft_arrival m = { .id = pm->id, .head = pm->head_bytes, .length = pm->length,
				  .header = pm->header };
	uint64_t post = atomic_load_explicit(&rx->posts_head, memory_order_relaxed);
	struct weft_recv_entry *r = (void *)weft_ring_slot(&rx->posts, post);
	struct weft_place place = { 0 };
	struct weft_cqe e;
	uint64_t addr;

	if (pm->source >= ep->source_limit || !weft_ring_ready(&rx->posts, post))
		return false;
	addr = atomic_load_explicit(&ep->port_sources[pm->source], memory_order_relaxed);
	if (!weft_fits(rx, r, &m, addr) || !weft_take_place(ep->rx_cq, to, &place))
		return false;
	e = weft_received(r, &m, pm->head, addr - 1);
	weft_copy_payload((void *)r->buf, pm->payload, pm->length);
	weft_fill_place(ep->rx_cq, &place, &e);
	weft_ring_release(&rx->posts, post);
	atomic_store_explicit(&rx->posts_head, post + 1, memory_order_relaxed);
	return true;
}

enum weft_looked weft_port_look(struct weft_hot_ep *ep, struct weft_hot_rx *rx,
				struct weft_reader *to)
{
	bool plain = rx->matcher_empty && ep->flags & WEFT_EP_PLAIN_RX;
	struct weft_port_message m;
	uint32_t messages = 0;
	uint64_t bytes = 0;
	int found = WEFT_PORT_EMPTY;
	bool active;

	if (!ep->port)
		return WEFT_LOOKED_NOTHING;
	active = atomic_load_explicit(&ep->port_active, memory_order_relaxed);
	to = weft_reader_of(to, ep->rx_cq);
	while (messages < WEFT_DELIVER_MAX && (!to || to->left)) {
		found = active ? ep->port->next(ep->port, &m) : ep->port->glance(ep->port, &m);
		if (found != WEFT_PORT_ARRIVAL)
			break;
		if (!plain || !deliver(ep, rx, &m, to)) {
			found = WEFT_PORT_GO;
			break;
		}
		messages++;
		bytes += m.length;
		if (!ep->port->take(ep->port))
			break; /* who waits for this one has it sooner without another look at the device */
	}
	weft_count_delivered(ep, messages, bytes);
	if (found == WEFT_PORT_GO)
		return WEFT_LOOKED_TO_GO;
	return messages ? WEFT_LOOKED_DELIVERED : WEFT_LOOKED_NOTHING;
}

enum weft_looked weft_work_with_port(struct weft_hot_ep *ep, struct weft_hot_rx *rx,
				     struct weft_reader *to)
{
	enum weft_looked looked;

	if (atomic_load_explicit(&rx->attention, memory_order_relaxed) & WEFT_ATTENTION_GO)
		return WEFT_LOOKED_TO_GO;
	looked = weft_port_look(ep, rx, to);
	if (looked == WEFT_LOOKED_TO_GO || (!weft_rings_have_work(ep) && !weft_posts_are_work(rx)))
		return looked;
	return weft_deliver(ep, to) ? WEFT_LOOKED_DELIVERED : WEFT_LOOKED_TO_GO;
}
