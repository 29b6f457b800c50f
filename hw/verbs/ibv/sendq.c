// SPDX-License-Identifier: BSD-2-Clause
// Posting: claiming places, and giving the queue pair what is ready.
#include "eager.h"

bool weft_sendq_claim(struct weft_sendq *q, uint64_t keep, uint64_t *pos)
{
	uint64_t t = atomic_load(&q->tail);

	do {
		if (t & WEFT_SENDQ_CLOSED || t - atomic_load(&q->head) + keep > q->mask)
			return false;
	} while (!atomic_compare_exchange_weak(&q->tail, &t, t + 1));
	*pos = t;
	return true;
}

static bool is_ready(struct weft_sendq *q, uint64_t pos)
{
	return atomic_load(&q->places[pos & q->mask].ready) == pos + 1;
}

// sign numbers the next n operations and decides which of them are
// signaled: those that a caller waits for, and one from time to time, which ends
// all before it. An operation weighs more when it has a bounce buffer. In a crowded completion
// queue the last one is signaled, or many peers' few operations would fill it and never end.
static void sign(struct weft_sendq *q, int n, bool crowded)
{
	int64_t limit = (int64_t)(q->mask + 1) / 4;

	for (int k = 0; k < n; k++) {
		uint64_t pos = q->posted + k;
		struct weft_op *op = &q->ops[pos & q->mask];
		const struct weft_place *p = &q->places[pos & q->mask];

		q->weight += p->weight;
		if (op->opcode == WEFT_OP_JOINED)
			continue;
		op->wr_id = q->id | (uint64_t)(q->gen & 0xff) << 32 | (pos & 0xffffffff);
		op->flags &= ~(uint32_t)IBV_SEND_SIGNALED;
		if (op->opcode == IBV_WR_SEND) {
			if (n == 1 && q->eager_addr)
				weft_eager_turn(q, pos);
			q->eager_on = 1;
			atomic_store_explicit(&q->last_send, pos + 1, memory_order_release);
		}
		if (p->signal || q->weight >= limit || (crowded && k == n - 1)) {
			op->flags |= IBV_SEND_SIGNALED;
			atomic_fetch_add_explicit(&q->cq->signaled, 1, memory_order_relaxed);
			q->weight = 0;
			atomic_store(&q->last_signal, pos + 1);
		}
	}
}

// no_room has Go try again, with its next progress.
static bool no_room(struct weft_send_cq *cq, int n)
{
	atomic_fetch_sub(&cq->used, n);
	if (cq->calls)
		atomic_fetch_or(cq->calls, WEFT_CALL_POST);
	return false;
}

// post_ready posts until nothing is ready. False: the completion queue has no
// room, or the queue pair refuses. The caller holds run.
static bool post_ready(struct weft_sendq *q)
{
	for (;;) {
		int n = 0, taken, err;
		int64_t used;

		while (n < WEFT_POST_MAX && is_ready(q, q->posted + n))
			n++;
		if (!n)
			return true;
		used = atomic_fetch_add(&q->cq->used, n) + n;
		if (used > q->cq->size)
			return no_room(q->cq, n);
		if (n > 1 && q->join_bytes)
			weft_sendq_join(q, n);
		sign(q, n, used > q->cq->size / 2);
		taken = weft_ibv_post(q->qp, q->ops, q->mask, q->posted, n, &err);
		q->posted += taken;
		if (err) {
			atomic_fetch_sub(&q->cq->used, n - taken);
			atomic_store(&q->broken, 1);
			return false;
		}
		if (n < WEFT_POST_MAX)
			return true; // what has become ready since then is seen after run is given back
	}
}

bool weft_sendq_post(struct weft_sendq *q)
{
	uint32_t idle = WEFT_SENDQ_IDLE;

	while (atomic_compare_exchange_strong(&q->run, &idle, WEFT_SENDQ_BUSY)) {
		bool all = post_ready(q);
		uint64_t next = q->posted;

		atomic_store(&q->run, WEFT_SENDQ_IDLE);
		if (!all || !is_ready(q, next))
			return all;
	}
	return idle == WEFT_SENDQ_BUSY; // what the exchange has seen
}

bool weft_sendq_finish(struct weft_sendq *q, uint64_t wr_id)
{
	uint64_t head = atomic_load(&q->head);
	uint64_t pos = head + (uint64_t)(int64_t)(int32_t)((uint32_t)wr_id - (uint32_t)head);

	if ((q->gen & 0xff) != (wr_id >> 32 & 0xff) || pos < head ||
	    pos >= (atomic_load(&q->tail) & ~WEFT_SENDQ_CLOSED))
		return false;
	for (uint64_t p = head; p <= pos; p++)
		if (!q->places[p & q->mask].plain)
			return false;
	atomic_fetch_sub(&q->cq->used, (int64_t)(pos + 1 - head));
	atomic_store(&q->head, pos + 1); // last: now the places may be claimed
	return true;
}
