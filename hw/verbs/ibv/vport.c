// SPDX-License-Identifier: BSD-2-Clause
// What C does of an interface by itself.
#include <string.h>

#include "vport.h"

// So many receive buffers are given back at once; less in pools so small that
// these would be missed.
#define REFILL 16

static void refill(struct weft_vport *v)
{
	uint32_t least = v->buffer_count / 8 < REFILL ? v->buffer_count / 8 : REFILL;
	int taken;

	if (!v->free_count || v->free_count < least)
		return;
	taken = weft_ibv_refill(&v->buffers, v->free, (int)v->free_count);
	v->free_count -= taken;
	memmove(v->free, v->free + taken, v->free_count * sizeof(*v->free));
}

// Of so many polls one looks at queues that have nothing to tell but failures.
#define TURNS 8

// poll_queue stages what a queue has and returns how much.
static int32_t poll_queue(struct weft_vport *v, uint32_t q, bool all)
{
	struct weft_done *done = v->done + (size_t)q * v->max;
	struct weft_send_cq *end = v->ends[q];
	int64_t told = 0;

	v->next[q] = 0;
	if (end && !all && atomic_load_explicit(&end->told, memory_order_relaxed) <= 0) {
		if (v->count[q] > 0) // a broken one stays so
			v->count[q] = 0;
		return 0;
	}
	v->count[q] = weft_ibv_poll(&v->cqs[q], done, (int)v->max);
	if (end && v->count[q] > 0) {
		for (int32_t k = 0; k < v->count[q]; k++)
			told += !done[k].status;
		atomic_fetch_sub_explicit(&end->told, told, memory_order_relaxed);
	}
	return v->count[q] > 0 ? v->count[q] : 0;
}

bool weft_vport_poll(struct weft_vport *v, bool all)
{
	int64_t staged = 0;
	bool ok = true;

	refill(v);
	if (all || ++v->turn >= TURNS) {
		v->turn = 0;
		all = true;
	}
	for (uint32_t q = 0; q < v->queues; q++) {
		staged += poll_queue(v, q, all);
		ok = ok && v->count[q] >= 0;
	}
	if (staged)
		atomic_store_explicit(&v->staged, staged, memory_order_release);
	return ok;
}

// staged is how much is staged, for who polls or holds the lease.
static int64_t staged(const struct weft_vport *v)
{
	return atomic_load_explicit(&v->staged, memory_order_acquire);
}

// dealt_with counts down what is staged. The caller holds the lease.
static void dealt_with(struct weft_vport *v, int64_t n)
{
	if (n)
		atomic_store_explicit(&v->staged, atomic_load_explicit(&v->staged, memory_order_relaxed) - n,
				      memory_order_release);
}

// port_poll is weft_vport_poll unless something is staged or another thread polls.
// False: a queue is broken.
static bool port_poll(struct weft_vport *v)
{
	uint32_t free = 0;
	bool ok = true;

	if (!atomic_compare_exchange_strong(&v->polling, &free, 1))
		return true;
	if (!staged(v))
		ok = weft_vport_poll(v, false);
	atomic_store_explicit(&v->polling, 0, memory_order_release);
	return ok;
}

// finish ends plain operations whose completions are staged. False: nothing is
// staged any more, so another thread may poll.
static bool finish(struct weft_vport *v)
{
	int64_t done = 0;

	for (uint32_t q = 1; q < v->queues; q++) {
		while (v->next[q] < v->count[q]) {
			const struct weft_done *d = &v->done[(size_t)q * v->max + v->next[q]];
			uint32_t index = d->wr_id >> 40 & 0xfffff;
			struct weft_vpeer *p;

			if (d->status || d->wr_id >> 62 || index >= v->peer_limit ||
			    !(p = atomic_load(&v->peers[index])) || !weft_sendq_finish(p->q, d->wr_id))
				break;
			p->heard = 1;
			v->next[q]++;
			done++;
		}
	}
	dealt_with(v, done);
	return staged(v);
}

// read_message finds out whether what is left of an arrival starts with a message for a handler that
// comes next from its sender. Its bytes were written by the peer's device before
// it was told, so nobody changes them any more.
static bool read_message(struct weft_vport *v, const struct weft_done *d, struct weft_port_message *m)
{
	struct weft_message_header h;
	struct weft_vpeer *p;
	const unsigned char *b;
	uint32_t bytes = d->byte_len < v->buffers.len ? d->byte_len : v->buffers.len;
	uint64_t own, all;
	bool more;

	if (d->status || d->opcode != IBV_WC_RECV || d->wr_id >= v->buffer_count || v->at > bytes ||
	    bytes - v->at < sizeof(h))
		return false;
	bytes -= v->at;
	b = (const unsigned char *)(uintptr_t)(v->buffers.base + d->wr_id * v->buffers.stride) + v->at;
	memcpy(&h, b, sizeof(h));
	own = (uint64_t)sizeof(h) + h.head + h.length;
	more = h.kind & WEFT_MESSAGE_MORE;
	all = more ? (own + 7) & ~7ull : own;
	if (h.magic != WEFT_MESSAGE_MAGIC || (h.kind & ~WEFT_MESSAGE_MORE) != WEFT_MESSAGE_USER ||
	    h.id >= WEFT_MESSAGE_IDS || (more ? all >= bytes : own != bytes) || h.index >= v->peer_limit)
		return false;
	p = atomic_load(&v->peers[h.index]);
	if (!p || atomic_load(&p->blocked) & WEFT_PEER_TRACED ||
	    (d->qp_num != p->qp_nums[0] && d->qp_num != p->qp_nums[1]) || (int32_t)(h.seq - p->last_seq) <= 0)
		return false;
	v->found = p;
	v->found_seq = h.seq;
	v->found_bytes = more ? (uint32_t)all : 0;
	*m = (struct weft_port_message){
		.header = h.header, .head = b + sizeof(h), .payload = b + sizeof(h) + h.head,
		.length = h.length, .source = h.index, .head_bytes = h.head, .id = h.id,
	};
	return true;
}

static int port_next(struct weft_hot_port *port, struct weft_port_message *m)
{
	struct weft_vport *v = (struct weft_vport *)port;

	atomic_store_explicit(&v->looks, atomic_load_explicit(&v->looks, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	weft_vport_flush(v);
	if (atomic_load(&v->calls))
		return WEFT_PORT_GO;
	if (!staged(v)) {
		if (!port_poll(v))
			return WEFT_PORT_GO;
		if (!staged(v) || !finish(v))
			return WEFT_PORT_EMPTY;
	}
	if (v->next[0] < v->count[0] && read_message(v, &v->done[v->next[0]], m))
		return WEFT_PORT_ARRIVAL;
	return WEFT_PORT_GO;
}

static bool port_take(struct weft_hot_port *port)
{
	struct weft_vport *v = (struct weft_vport *)port;
	struct weft_vpeer *p = v->found;
	bool more;

	p->last_seq = v->found_seq;
	p->heard = p->source = 1;
	atomic_store_explicit(&port->taken, atomic_load_explicit(&port->taken, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	if (v->found_bytes) {
		v->at += v->found_bytes;
		return true;
	}
	v->at = 0;
	v->free[v->free_count++] = (uint32_t)v->done[v->next[0]++].wr_id;
	more = v->next[0] < v->count[0];
	dealt_with(v, 1); // last: now another thread may poll
	return more;
}

// flush posts what is ready for the peer with a number plus one. What finds no room in the completion
// queue is Go's.
static void flush(struct weft_vport *v, uint32_t held)
{
	struct weft_vpeer *p = held && held <= v->peer_limit ? atomic_load(&v->peers[held - 1]) : NULL;

	if (p)
		weft_sendq_post(p->q);
}

void weft_vport_flush(struct weft_vport *v)
{
	if (atomic_load_explicit(&v->held, memory_order_relaxed))
		flush(v, atomic_exchange(&v->held, 0));
}

static void port_flush(struct weft_hot_port *port)
{
	weft_vport_flush((struct weft_vport *)port);
}

// fills tells whether a message of n bytes is the last for which there is room in a packet with those
// that are held, if the next one is as long.
static bool fills(struct weft_vpeer *p, bool first, uint32_t n)
{
	uint32_t own = (n + 7) & ~7u;

	p->bytes = first ? own : p->bytes + own;
	if (p->bytes + own <= p->q->join_bytes)
		return false;
	p->bytes = 0;
	return true;
}

// holds tells whether a message of n bytes that is ready is held. Those of one peer are at a time.
static bool holds(struct weft_vpeer *p, uint8_t hold, uint32_t n)
{
	struct weft_vport *v = p->port;
	uint32_t look = atomic_load_explicit(&v->looks, memory_order_relaxed);
	uint32_t own = (p->q->id >> 40 & 0xfffff) + 1, before;

	if (!hold || !p->q->join_bytes || own > v->peer_limit)
		return false;
	if (p->look != look) {
		p->look = look;
		p->row = 0;
	}
	if (p->row < WEFT_ROW && hold != WEFT_HOLD_MORE) {
		p->row++;
		return false;
	}
	if (fills(p, atomic_load_explicit(&v->held, memory_order_relaxed) != own, n))
		return false;
	before = atomic_exchange(&v->held, own);
	if (before != own)
		flush(v, before);
	return true;
}

// path_full says that there is no place. If nothing on its way tells of one that will
// be free, Go sees to it.
static int path_full(struct weft_vpeer *p)
{
	struct weft_sendq *q = p->q;
	uint64_t tail = atomic_load(&q->tail);

	if (tail & WEFT_SENDQ_CLOSED)
		return WEFT_PATH_GO;
	if (atomic_load(&q->last_signal) > atomic_load(&q->head) &&
	    __atomic_load_n(&q->posted, __ATOMIC_RELAXED) == tail)
		return WEFT_PATH_FULL;
	return WEFT_PATH_GO;
}

static int path_send(struct weft_hot_path *path, const struct weft_port_message *m)
{
	struct weft_vpeer *p = (struct weft_vpeer *)path;
	struct weft_sendq *q = p->q;
	uint32_t n = sizeof(struct weft_message_header) + m->head_bytes + m->length;
	struct weft_place *place;
	struct weft_op *op;
	unsigned char *b;
	uint64_t pos;

	if (atomic_load(&p->blocked) || atomic_load(&p->window))
		return WEFT_PATH_GO;
	if (!weft_sendq_claim(q, WEFT_SENDQ_RESERVE, &pos)) {
		weft_vport_flush(p->port);
		return path_full(p);
	}
	b = q->slots + (pos & q->mask) * WEFT_SENDQ_SLOT;
	struct weft_message_header h = {
		.id = m->id, .head = m->head_bytes, .kind = WEFT_MESSAGE_USER, .magic = WEFT_MESSAGE_MAGIC,
		.index = atomic_load(&p->index), .seq = (uint32_t)(pos + 1), .length = m->length,
		.header = m->header,
	};
	memcpy(b, &h, sizeof(h));
	if (m->head_bytes)
		memcpy(b + sizeof(h), m->head, m->head_bytes);
	if (m->length == sizeof(uint64_t)) // as a plain store
		memcpy(b + sizeof(h) + m->head_bytes, m->payload, sizeof(uint64_t));
	else if (m->length)
		memcpy(b + sizeof(h) + m->head_bytes, m->payload, m->length);
	op = &q->ops[pos & q->mask];
	op->opcode = IBV_WR_SEND;
	op->flags = n <= q->max_inline ? IBV_SEND_INLINE : 0;
	op->nsge = 1;
	op->sge[0] = (struct ibv_sge){(uintptr_t)b, n, q->lkey};
	place = &q->places[pos & q->mask];
	place->signal = 0;
	place->weight = 1;
	place->plain = 1;
	place->joined = 0;
	place->bounce = -1;
	atomic_store(&place->ready, pos + 1);
	if (holds(p, m->hold, n))
		return WEFT_PATH_HELD;
	weft_sendq_post(q);
	return WEFT_PATH_SENT;
}

void weft_vport_init(struct weft_vport *v)
{
	v->port.next = port_next;
	v->port.take = port_take;
	v->port.flush = port_flush;
}

void weft_vpeer_init(struct weft_vpeer *p, struct weft_vport *v)
{
	p->port = v;
	p->path.send = path_send;
	p->path.max = WEFT_SHORT;
	atomic_store(&p->blocked, WEFT_PEER_UNREADY);
}
