// SPDX-License-Identifier: BSD-2-Clause
#include "seam.h"

#include <stddef.h>

// fence has the device see the stores before it before those after it, and none stay in a buffer of the processor.
static inline void fence(void)
{
#if defined(__x86_64__)
	__asm__ volatile("sfence" ::: "memory");
#elif defined(__aarch64__)
	__asm__ volatile("dmb oshst" ::: "memory");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

static void ring(const struct weft_bell *b)
{
	if (!b->word)
		return;
	fence();
	*(volatile uint64_t *)b->word = b->value;
	fence();
	if (b->lock)
		atomic_store_explicit(b->lock, 0, memory_order_release);
}

static int path_send(struct weft_hot_path *path, const struct weft_transport_message *m)
{
	struct weft_cxi_path *p = (struct weft_cxi_path *)path;
	struct weft_bell bell = { 0 };
	int said = (int)p->enter(p->send, (uintptr_t)p, (uintptr_t)m, (uintptr_t)&bell, 0);

	ring(&bell);
	return said;
}

static int transport_next(struct weft_hot_transport *transport, struct weft_transport_message *m)
{
	struct weft_cxi_transport *p = (struct weft_cxi_transport *)transport;
	int found;

	do {
		struct weft_bell bell = { 0 };

		found = (int)p->enter(p->next, (uintptr_t)p, (uintptr_t)m, (uintptr_t)&bell, 0);
		ring(&bell);
	} while (found == WEFT_CXI_AGAIN);
	return found;
}

static struct weft_cxi_transport *of_match(struct weft_hot_match_transport *m)
{
	return (struct weft_cxi_transport *)((char *)m - offsetof(struct weft_cxi_transport, match));
}

// ring_rest rings the doorbells of queues in which posts before this one have left commands, one at a time.
static void ring_rest(struct weft_cxi_transport *p)
{
	uintptr_t from = 0;

	do {
		struct weft_bell bell;

		bell.word = NULL;
		from = p->enter(p->rest, (uintptr_t)&p->match, (uintptr_t)&bell, from, 0);
		ring(&bell);
	} while (from);
}

static void match_ring(struct weft_hot_match_transport *m, const struct weft_bell *b, bool posts)
{
	ring(b);
	if (posts && __builtin_expect(b->rest != 0, 0))
		ring_rest(of_match(m));
	// No other thread is inside.
	if (posts && m->gate && atomic_load_explicit(&m->gate->inside, memory_order_relaxed) == WEFT_GATE_ALONE)
		atomic_store_explicit(&m->gate->inside, WEFT_GATE_OUT, memory_order_release);
}

static bool transport_take(struct weft_hot_transport *transport)
{
	struct weft_cxi_transport *p = (struct weft_cxi_transport *)transport;
	struct weft_bell bell = { 0 };
	bool more = p->enter(p->take, (uintptr_t)p, (uintptr_t)&bell, 0, 0);

	ring(&bell);
	return more;
}

static void transport_flush(struct weft_hot_transport *transport)
{
	struct weft_cxi_transport *p = (struct weft_cxi_transport *)transport;
	uintptr_t again;

	do {
		struct weft_bell bell = { 0 };

		again = p->enter(p->flush, (uintptr_t)p, (uintptr_t)&bell, 0, 0);
		ring(&bell);
	} while (again);
}

// No sender's messages come without an event.
static int transport_peek(struct weft_hot_transport *transport, struct weft_transport_message *m)
{
	(void)transport;
	(void)m;
	return WEFT_TRANSPORT_EMPTY;
}

void weft_cxi_transport_init(struct weft_cxi_transport *p)
{
	p->hot.next = transport_next;
	p->hot.take = transport_take;
	p->hot.flush = transport_flush;
	p->hot.peek = transport_peek;
	p->match.ring = match_ring;
}

void weft_cxi_path_init(struct weft_cxi_path *p)
{
	p->hot.send = path_send;
}
