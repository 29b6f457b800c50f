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

static void ring(const struct weft_cxi_bell *b)
{
	if (!b->word)
		return;
	fence();
	*(volatile uint64_t *)b->word = b->value;
	fence();
	if (b->lock)
		atomic_store_explicit(b->lock, 0, memory_order_release);
}

static int path_send(struct weft_hot_path *path, const struct weft_port_message *m)
{
	struct weft_cxi_path *p = (struct weft_cxi_path *)path;
	struct weft_cxi_bell bell = { 0 };
	int said = (int)p->enter(p->send, (uintptr_t)p, (uintptr_t)m, (uintptr_t)&bell, 0);

	ring(&bell);
	return said;
}

static int port_next(struct weft_hot_port *port, struct weft_port_message *m)
{
	struct weft_cxi_port *p = (struct weft_cxi_port *)port;
	int found;

	do {
		struct weft_cxi_bell bell = { 0 };

		found = (int)p->enter(p->next, (uintptr_t)p, (uintptr_t)m, (uintptr_t)&bell, 0);
		ring(&bell);
	} while (found == WEFT_CXI_AGAIN);
	return found;
}

static struct weft_cxi_port *of_match(struct weft_hot_match_port *m)
{
	return (struct weft_cxi_port *)((char *)m - offsetof(struct weft_cxi_port, match));
}

// ring_rest rings the doorbells of queues in which posts before this one have left commands, one at a time.
static void ring_rest(struct weft_cxi_port *p)
{
	uintptr_t from = 0;

	do {
		struct weft_cxi_bell bell;

		bell.word = NULL;
		from = p->enter(p->rest, (uintptr_t)&p->match, (uintptr_t)&bell, from, 0);
		ring(&bell);
	} while (from);
}

static int match_post(struct weft_hot_match_port *m, const struct weft_match_post *post)
{
	struct weft_cxi_port *p = of_match(m);
	struct weft_cxi_bell bell;
	int said;

	bell.word = NULL;
	bell.rest = 0;
	said = (int)p->enter(p->post, (uintptr_t)m, (uintptr_t)post, (uintptr_t)&bell, 0);
	ring(&bell);
	if (__builtin_expect(bell.rest != 0, 0))
		ring_rest(p);
	// No other thread is inside.
	if (m->gate && atomic_load_explicit(&m->gate->inside, memory_order_relaxed) == WEFT_GATE_ALONE)
		atomic_store_explicit(&m->gate->inside, WEFT_GATE_OUT, memory_order_release);
	return said;
}

static int match_next(struct weft_hot_match_port *m, struct weft_match_event *e)
{
	struct weft_cxi_port *p = of_match(m);
	int found;

	do {
		struct weft_cxi_bell bell;

		bell.word = NULL;
		found = (int)p->enter(p->matched, (uintptr_t)m, (uintptr_t)e, (uintptr_t)&bell, 0);
		ring(&bell);
	} while (found == WEFT_CXI_AGAIN);
	return found;
}

static bool port_take(struct weft_hot_port *port)
{
	struct weft_cxi_port *p = (struct weft_cxi_port *)port;
	struct weft_cxi_bell bell = { 0 };
	bool more = p->enter(p->take, (uintptr_t)p, (uintptr_t)&bell, 0, 0);

	ring(&bell);
	return more;
}

static void port_flush(struct weft_hot_port *port)
{
	struct weft_cxi_port *p = (struct weft_cxi_port *)port;
	uintptr_t again;

	do {
		struct weft_cxi_bell bell = { 0 };

		again = p->enter(p->flush, (uintptr_t)p, (uintptr_t)&bell, 0, 0);
		ring(&bell);
	} while (again);
}

// No sender's messages come without an event.
static int port_peek(struct weft_hot_port *port, struct weft_port_message *m)
{
	(void)port;
	(void)m;
	return WEFT_PORT_EMPTY;
}

void weft_cxi_port_init(struct weft_cxi_port *p)
{
	p->hot.next = port_next;
	p->hot.take = port_take;
	p->hot.flush = port_flush;
	p->hot.peek = port_peek;
	p->match.post = match_post;
	p->match.next = match_next;
}

void weft_cxi_path_init(struct weft_cxi_path *p)
{
	p->hot.send = path_send;
}
