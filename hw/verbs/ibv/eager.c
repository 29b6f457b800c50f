// SPDX-License-Identifier: BSD-2-Clause
// Writing into a peer's eager ring, and reading the own ones.
#include <string.h>

#include "vport.h"

// sum_of distinguishes a slot that has all its bytes from one that has some of a former message. Each step
// is invertible, so any one word that differs makes a difference; the shift takes it to the lower bits,
// where later multiplications spread it again.
static uint32_t sum_of(const unsigned char *b, uint32_t bytes, uint32_t before)
{
	uint64_t s = before, w;

	for (uint32_t k = 0; k < bytes; k += 8) {
		memcpy(&w, b + k, 8);
		s = (s ^ w) * 0x9e3779b97f4a7c15u;
		s ^= s >> 32;
	}
	return (uint32_t)s;
}

void weft_eager_turn(struct weft_sendq *q, uint64_t pos)
{
	struct weft_op *op = &q->ops[pos & q->mask];
	uint32_t sent = atomic_load_explicit(&q->eager_sent, memory_order_relaxed);
	uint32_t n = op->sge[0].length, all = weft_aligned(n) + sizeof(struct weft_eager_end);
	struct weft_eager_end end;
	unsigned char *b;

	if (!q->eager_on || !q->places[pos & q->mask].plain || all > WEFT_EAGER_SLOT ||
	    ((sent - atomic_load_explicit(&q->eager_taken, memory_order_relaxed)) & WEFT_COUNT_MASK) >= WEFT_EAGER_SLOTS)
		return;
	b = weft_sendq_slot(q, pos);
	memset(b + n, 0, weft_aligned(n) - n);
	end.before = (uint32_t)atomic_load_explicit(&q->last_send, memory_order_relaxed);
	end.sum = sum_of(b, weft_aligned(n), end.before);
	memcpy(b + weft_aligned(n), &end, sizeof(end));
	op->opcode = IBV_WR_RDMA_WRITE;
	op->flags = all <= q->max_inline ? IBV_SEND_INLINE : 0;
	op->sge[0].length = all;
	op->remote_addr = q->eager_addr + sent % WEFT_EAGER_SLOTS * WEFT_EAGER_SLOT;
	op->rkey = q->eager_rkey;
	atomic_store_explicit(&q->eager_sent, sent + 1, memory_order_relaxed);
}

bool weft_eager_ready(const struct weft_vpeer *p)
{
	return __atomic_load_n((const uint32_t *)p->ring_at, __ATOMIC_ACQUIRE);
}

// length_of is how long a message says it is, wherever it lies.
static uint64_t length_of(const unsigned char *b)
{
	struct weft_message_header h;

	memcpy(&h, b, sizeof(h));
	return weft_message_bytes(&h);
}

// What a message ends with is read before the rest: where devices write in order, as most do, all of it
// has come then.
uint32_t weft_eager_read(const struct weft_vpeer *p, unsigned char *to)
{
	struct weft_eager_end end;
	uint64_t n, tail;

	if (!weft_eager_ready(p) || (n = length_of(p->ring_at)) > WEFT_EAGER_SLOT - sizeof(end))
		return 0;
	tail = __atomic_load_n((const uint64_t *)(p->ring_at + weft_aligned((uint32_t)n)), __ATOMIC_ACQUIRE);
	memcpy(&end, &tail, sizeof(end));
	if (end.before != p->last_seq)
		return 0;
	memcpy(to, p->ring_at, WEFT_EAGER_SLOT);
	atomic_signal_fence(memory_order_acq_rel); // from here on the copy counts
	if (length_of(to) != n || memcmp(to + weft_aligned((uint32_t)n), &end, sizeof(end)) ||
	    end.sum != sum_of(to, weft_aligned((uint32_t)n), end.before))
		return 0;
	return (uint32_t)n;
}

bool weft_eager_there(const struct weft_vpeer *p)
{
	unsigned char copy[WEFT_EAGER_SLOT];

	return weft_eager_read(p, copy) != 0;
}

void weft_eager_take(struct weft_vpeer *p)
{
	uint32_t taken = atomic_load_explicit(&p->ring_taken, memory_order_relaxed) + 1;

	__atomic_store_n((uint32_t *)p->ring_at, 0, __ATOMIC_RELEASE);
	p->ring_at = p->ring + taken % WEFT_EAGER_SLOTS * WEFT_EAGER_SLOT;
	atomic_store_explicit(&p->ring_taken, taken, memory_order_release); // last: it gives the slot back to the peer
}

void weft_eager_heard(struct weft_sendq *q, uint32_t index)
{
	uint32_t taken = atomic_load_explicit(&q->eager_taken, memory_order_relaxed);
	uint32_t more = ((index >> WEFT_INDEX_BITS) - taken) & WEFT_COUNT_MASK;
	uint32_t out = (atomic_load_explicit(&q->eager_sent, memory_order_relaxed) - taken) & WEFT_COUNT_MASK;

	if (more && more <= out) // else what it says is older, or false
		atomic_store_explicit(&q->eager_taken, taken + more, memory_order_relaxed);
}
