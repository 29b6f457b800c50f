/* SPDX-License-Identifier: BSD-2-Clause
 * What of a poll is C (cabi/idle.h) under ThreadSanitizer: two threads poll for work while a third puts messages into
 * an inbound ring and a fourth has the list of endpoints replaced. What finds a message takes it, under the lease. With
 * MUTANT messages are published without release, which the sanitizer is to find. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef MUTANT
#define memory_order_release memory_order_relaxed
#endif
#include "../../../include/weft/ring.h"
#include "../../../mpsc/testdata/ringsteps.h"
#undef memory_order_release

#include "../../../cabi/idle.h"

#define MESSAGES 20000
#define LOG2 3
#define SLOT 64

__thread struct weft_hot_thread weft_self;

static _Alignas(64) unsigned char slots[SLOT << LOG2];
static _Atomic uint64_t tail;
static _Atomic uint32_t rings = 1;
static struct weft_hot_rx rx;
static struct weft_hot_ep ep;
static struct weft_hot_ep *lists[2][3];
static struct weft_hot_ep **_Atomic list;
static _Atomic bool over;
static uint64_t taken; /* of the lease holder */

static void *fill(void *arg)
{
	const struct weft_ring *r = &ep.inbound[0].ring;
	uint64_t pos;

	for (uint64_t i = 0; i < MESSAGES;) {
		_Atomic uint64_t *slot = weft_ring_claim(r, 1, true, &pos);

		if (!slot) {
			sched_yield();
			continue;
		}
		((uint64_t *)slot)[1] = ++i; /* its payload */
		weft_ring_publish(r, slot, 1, pos);
	}
	return arg;
}

/* Takes what is there. The caller has found some, and has the lease. */
static void take(void)
{
	const struct weft_ring *r = &ep.inbound[0].ring;
	uint64_t head = atomic_load_explicit(&ep.inbound[0].head, memory_order_relaxed);

	while (weft_ring_ready(r, head)) {
		_Atomic uint64_t *slot = weft_ring_slot(r, head);
		uint64_t seq = atomic_load_explicit(slot, memory_order_acquire);

		if (weft_seq_owner(seq) != 1 || ((uint64_t *)slot)[1] != ++taken)
			abort();
		atomic_store_explicit(slot, weft_seq((head >> LOG2) + 1, 0, WEFT_SLOT_FREE), memory_order_release);
		atomic_store_explicit(&ep.inbound[0].head, ++head, memory_order_relaxed);
	}
	if (taken == MESSAGES)
		atomic_store(&over, true);
}

static void *poller(void *arg)
{
	while (!atomic_load_explicit(&over, memory_order_relaxed)) {
		uint32_t free = 0;

		weft_self.left += weft_due() ? 100 : 0;
		if (!weft_busy_endpoint(&list) ||
		    !atomic_compare_exchange_strong_explicit(&rx.lease, &free, 1, memory_order_acquire,
							     memory_order_relaxed)) {
			sched_yield();
			continue;
		}
		take();
		atomic_store_explicit(&rx.lease, 0, memory_order_release);
	}
	return arg;
}

/* Lists are replaced as a whole, and written again while another thread still walks them. */
static void *replace(void *arg)
{
	for (int i = 0; !atomic_load_explicit(&over, memory_order_relaxed); i++) {
		struct weft_hot_ep **l = lists[i & 1];

		__atomic_store_n(&l[0], &ep, __ATOMIC_RELEASE);
		__atomic_store_n(&l[1], i & 2 ? &ep : NULL, __ATOMIC_RELEASE);
		atomic_store_explicit(&list, l, memory_order_release);
		sched_yield();
	}
	return arg;
}

int main(void)
{
	void *(*const works[])(void *) = { fill, poller, poller, replace };
	pthread_t t[4];

	ep.inbound[0].ring =
		(struct weft_ring){ .slots = slots, .tail = &tail, .slot_bytes = SLOT, .log2_slots = LOG2 };
	ep.rx_rings = &rings;
	atomic_store(&ep.rx, &rx);
	lists[0][0] = lists[1][0] = lists[1][1] = &ep;
	atomic_store(&list, lists[0]);
	for (int i = 0; i < 4; i++)
		if (pthread_create(&t[i], NULL, works[i], NULL))
			abort();
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	printf("%llu messages\n", (unsigned long long)taken);
	return taken != MESSAGES;
}
