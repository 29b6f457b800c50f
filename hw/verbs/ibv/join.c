// SPDX-License-Identifier: BSD-2-Clause
// Several short messages in one operation, and so in one packet: those that are ready when the
// queue is posted, because another thread was posting or because they were corked
// (path_send). The first one's slot and those behind it hold them packed, each at a
// multiple of 8 bytes. All but the last of them say that another one follows.
#include <string.h>

#include "vport.h"

static void set_op(const struct weft_sendq *q, uint64_t pos, const unsigned char *at, uint32_t bytes)
{
	struct weft_op *op = &q->ops[pos & q->mask];

	op->opcode = IBV_WR_SEND;
	op->flags = bytes <= q->max_inline ? IBV_SEND_INLINE : 0;
	op->nsge = 1;
	op->sge[0] = (struct ibv_sge){(uintptr_t)at, bytes, q->lkey};
}

static bool alone(const struct weft_sendq *q, uint64_t pos)
{
	const struct weft_place *p = &q->places[pos & q->mask];

	return p->plain && !p->joined && q->ops[pos & q->mask].opcode == IBV_WR_SEND;
}

static void mark(unsigned char *message, bool more)
{
	struct weft_message_header *h = (void *)message;

	h->kind = more ? h->kind | WEFT_MESSAGE_MORE : h->kind & ~WEFT_MESSAGE_MORE;
}

// join_from joins what follows the operation at first, of n at most, to it, and returns how many go
// together.
static int join_from(struct weft_sendq *q, uint64_t first, int n)
{
	unsigned char *at = weft_sendq_slot(q, first), *last = at;
	uint32_t bytes = q->ops[first & q->mask].sge[0].length;
	int count = 1;

	if (!alone(q, first))
		return 1;
	for (; count < n && count < WEFT_SENDQ_JOIN; count++) {
		uint64_t pos = first + count;
		uint32_t from = weft_aligned(bytes), more = q->ops[pos & q->mask].sge[0].length;

		if (!(pos & q->mask) || !alone(q, pos) || from + more > q->join_bytes)
			break;
		mark(last, true);
		memset(at + bytes, 0, from - bytes);
		last = memmove(at + from, weft_sendq_slot(q, pos), more);
		q->ops[(pos - 1) & q->mask].opcode = WEFT_OP_JOINED;
		bytes = from + more;
	}
	if (count > 1) {
		set_op(q, first + count - 1, at, bytes);
		q->places[(first + count - 1) & q->mask].joined = count - 1;
	}
	return count;
}

void weft_sendq_join(struct weft_sendq *q, int n)
{
	for (int k = 0; k < n;)
		k += join_from(q, q->posted + k, n - k);
}

// part_at gives each message of the operation at position last its own slot and operation again: to be sent,
// also one that would be written into a ring (eager.c).
static void part_at(struct weft_sendq *q, uint64_t last)
{
	struct weft_place *p = &q->places[last & q->mask];
	int n = p->joined;
	uint64_t first = last - n;
	const unsigned char *from[WEFT_SENDQ_JOIN], *at = weft_sendq_slot(q, first);
	uint32_t bytes[WEFT_SENDQ_JOIN];

	for (int k = 0; k <= n; k++) {
		const struct weft_message_header *h = (const void *)at;

		from[k] = at;
		bytes[k] = (uint32_t)weft_message_bytes(h);
		at += weft_aligned(bytes[k]);
	}
	for (int k = n; k >= 0; k--) { // from the last on, which lies behind where it was moved to
		unsigned char *own = weft_sendq_slot(q, first + k);

		memmove(own, from[k], bytes[k]);
		mark(own, false);
		set_op(q, first + k, own, bytes[k]);
	}
	p->joined = 0;
}

void weft_sendq_part(struct weft_sendq *q)
{
	uint64_t end = atomic_load(&q->tail) & ~WEFT_SENDQ_CLOSED;

	for (uint64_t pos = atomic_load(&q->head); pos < end; pos++) {
		const struct weft_place *p = &q->places[pos & q->mask];

		if (atomic_load(&p->ready) == pos + 1 &&
		    (p->joined || (p->plain && q->ops[pos & q->mask].opcode == IBV_WR_RDMA_WRITE)))
			part_at(q, pos);
	}
}
