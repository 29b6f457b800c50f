// SPDX-License-Identifier: BSD-2-Clause
#include <stdatomic.h>

#include "seam.h"

// Go: the function with a number, by a callback.
extern uintptr_t weftGoVerbs(uintptr_t function, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d);

// The two routes into Go.
struct route {
	weft_enter enter;
	uintptr_t entry[WEFT_FUNCTIONS];
};

static const struct route callbacks = {
	weftGoVerbs,
	{ WEFT_FUNCTION_SEND, WEFT_FUNCTION_NEXT, WEFT_FUNCTION_PEEK, WEFT_FUNCTION_TAKE, WEFT_FUNCTION_FLUSH,
	  WEFT_FUNCTION_AGAIN },
};
static struct route direct;

// Stored before interfaces are opened (release), read by any thread that drives one (acquire).
static _Atomic(const struct route *) route = &callbacks;

void weft_ibv_route(weft_enter trampoline, const uintptr_t entry[WEFT_FUNCTIONS])
{
	if (trampoline && !direct.enter) {
		for (int k = 0; k < WEFT_FUNCTIONS; k++)
			direct.entry[k] = entry[k];
		direct.enter = trampoline;
	}
	atomic_store_explicit(&route, trampoline ? &direct : &callbacks, memory_order_release);
}

void weft_ibv_perform(struct weft_call *c)
{
	int32_t *count = (int32_t *)c->count;

	if (c->want == WEFT_WANT_POST) {
		c->taken = weft_ibv_post((struct ibv_qp *)c->qp, (const struct weft_op *)c->ring, c->mask, c->from,
					 c->n, &c->err);
		return;
	}
	c->taken =
		c->n ? weft_ibv_refill((const struct weft_buffers *)c->buffers, (const uint32_t *)c->index, c->n) : 0;
	for (uint32_t q = 0; q < c->queues; q++)
		if (count[q] == WEFT_POLL_WANTED)
			count[q] = weft_ibv_poll((const struct weft_cq *)c->cqs + q,
						 (struct weft_done *)c->done + (size_t)q * c->max, (int)c->max);
}

// Calls a function, and again as long as it wants something of the device.
static inline uintptr_t call(enum weft_function f, void *object, const void *message)
{
	const struct route *r = atomic_load_explicit(&route, memory_order_acquire);
	uintptr_t a = (uintptr_t)object, b = (uintptr_t)message, said;
	struct weft_call c;

	c.want = WEFT_WANT_NOTHING;
	said = r->enter(r->entry[f], a, b, (uintptr_t)&c, 0);
	while (c.want) {
		weft_ibv_perform(&c);
		said = r->enter(r->entry[WEFT_FUNCTION_AGAIN], a, b, (uintptr_t)&c, 0);
	}
	return said;
}

static int path_send(struct weft_hot_path *path, const struct weft_transport_message *m)
{
	return (int)call(WEFT_FUNCTION_SEND, path, m);
}

static int transport_next(struct weft_hot_transport *transport, struct weft_transport_message *m)
{
	return (int)call(WEFT_FUNCTION_NEXT, transport, m);
}

static int transport_peek(struct weft_hot_transport *transport, struct weft_transport_message *m)
{
	return (int)call(WEFT_FUNCTION_PEEK, transport, m);
}

static bool transport_take(struct weft_hot_transport *transport)
{
	return call(WEFT_FUNCTION_TAKE, transport, NULL);
}

static void transport_flush(struct weft_hot_transport *transport)
{
	call(WEFT_FUNCTION_FLUSH, transport, NULL);
}

void weft_ibv_transport_init(struct weft_hot_transport *transport)
{
	transport->next = transport_next;
	transport->take = transport_take;
	transport->flush = transport_flush;
	transport->peek = transport_peek;
}

void weft_ibv_path_init(struct weft_hot_path *path)
{
	path->send = path_send;
}
