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

// One poll in so many includes the queues from which only failures can come.
#define TURNS 8

// poll_queue stages what a queue has and returns how much.
static int32_t poll_queue(struct weft_vport *v, uint32_t q, bool all)
{
	struct weft_done *done = v->done + (size_t)q * v->max;
	struct weft_send_cq *end = v->ends[q];
	int64_t ended = 0;

	v->next[q] = 0;
	if (end && !all && atomic_load_explicit(&end->signaled, memory_order_relaxed) <= 0) {
		if (v->count[q] > 0) // a broken one stays so
			v->count[q] = 0;
		return 0;
	}
	v->count[q] = weft_ibv_poll(&v->cqs[q], done, (int)v->max);
	if (end && v->count[q] > 0) {
		for (int32_t k = 0; k < v->count[q]; k++)
			ended += !done[k].status;
		atomic_fetch_sub_explicit(&end->signaled, ended, memory_order_relaxed);
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

bool weft_vport_poll_ends(struct weft_vport *v)
{
	int64_t staged = 0;
	bool ok = true;

	for (uint32_t q = 1; q < v->queues; q++) {
		staged += poll_queue(v, q, true);
		ok = ok && v->count[q] >= 0;
	}
	if (staged)
		atomic_fetch_add_explicit(&v->staged, staged, memory_order_release);
	return ok;
}

// staged is how much is staged, for the thread that polls or holds the lease.
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

// finish ends plain operations with staged completions. False: nothing is
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

// read_header finds out whether n bytes start with a message for a handler that comes next from its
// sender, and whether another one follows it. The bytes do not change any more.
static struct weft_vpeer *read_header(struct weft_vport *v, const unsigned char *b, uint32_t n,
				      struct weft_port_message *m)
{
	struct weft_message_header h;
	struct weft_vpeer *p;
	uint64_t own, all;
	uint32_t index;
	bool more;

	if (n < sizeof(h))
		return NULL;
	memcpy(&h, b, sizeof(h));
	own = weft_message_bytes(&h);
	more = h.kind & WEFT_MESSAGE_MORE;
	all = more ? (own + 7) & ~7ull : own;
	index = h.index & WEFT_INDEX_MASK;
	if (h.magic != WEFT_MESSAGE_MAGIC || (h.kind & ~WEFT_MESSAGE_MORE) != WEFT_MESSAGE_USER ||
	    h.id >= WEFT_MESSAGE_IDS || (more ? all >= n : own != n) || index >= v->peer_limit)
		return NULL;
	p = atomic_load(&v->peers[index]);
	if (!p || (int32_t)(h.seq - p->last_seq) <= 0)
		return NULL;
	v->found = p;
	v->found_seq = h.seq;
	v->found_index = h.index;
	v->found_bytes = more ? (uint32_t)all : 0;
	*m = (struct weft_port_message){
		.header = h.header, .head = b + sizeof(h), .payload = b + sizeof(h) + h.head,
		.length = h.length, .source = index, .head_bytes = h.head, .id = h.id,
	};
	return p;
}

// read_ring finds the message that comes next from p in its ring.
static int read_ring(struct weft_vport *v, struct weft_vpeer *p, struct weft_port_message *m)
{
	uint32_t n = weft_eager_read(p, v->copy);

	if (!n)
		return WEFT_PORT_EMPTY;
	v->found_ring = true;
	return read_header(v, v->copy, n, m) == p && !v->found_bytes ? WEFT_PORT_ARRIVAL : WEFT_PORT_GO;
}

// read_rings finds a message in one of the rings, which have their turns.
static int read_rings(struct weft_vport *v, struct weft_port_message *m)
{
	int found = WEFT_PORT_EMPTY;

	if (!atomic_load_explicit(&v->port.silent, memory_order_relaxed))
		return found;
	for (uint32_t k = 0; k < WEFT_EAGER_RINGS && found == WEFT_PORT_EMPTY; k++) {
		uint32_t at = (v->ring_turn + k) % WEFT_EAGER_RINGS;
		struct weft_vpeer *p = atomic_load_explicit(&v->rings[at], memory_order_acquire);

		if (!p || !weft_eager_ready(p))
			continue;
		found = read_ring(v, p, m);
		v->found_turn = at + 1;
	}
	return found;
}

// read_arrival finds out whether C can take what is left of an arrival. Its bytes were written by the
// peer's device before its completion. What its sender has written into a ring before comes first: the
// device has written that, too.
static int read_arrival(struct weft_vport *v, const struct weft_done *d, struct weft_port_message *m)
{
	uint32_t bytes = d->byte_len < v->buffers.len ? d->byte_len : v->buffers.len;
	const unsigned char *b;
	struct weft_vpeer *p;
	int found;

	if (d->status || d->opcode != IBV_WC_RECV || d->wr_id >= v->buffer_count || v->at > bytes)
		return WEFT_PORT_GO;
	b = (const unsigned char *)(uintptr_t)(v->buffers.base + d->wr_id * v->buffers.stride) + v->at;
	p = read_header(v, b, bytes - v->at, m);
	if (!p || (d->qp_num != p->qp_nums[0] && d->qp_num != p->qp_nums[1]))
		return WEFT_PORT_GO;
	if (p->ring && (found = read_ring(v, p, m)) != WEFT_PORT_EMPTY)
		return found;
	v->found_ring = false;
	return WEFT_PORT_ARRIVAL;
}

static int port_peek(struct weft_hot_port *port, struct weft_port_message *m)
{
	return read_rings((struct weft_vport *)port, m);
}

// While messages come by rings, one poll in so many includes the queues.
#define RING_POLLS 4

// passes_by reports whether a poll is of the rings only.
static bool passes_by(struct weft_vport *v)
{
	if (v->rings_had && ++v->passed < RING_POLLS)
		return true;
	v->passed = 0;
	return false;
}

static int port_next(struct weft_hot_port *port, struct weft_port_message *m)
{
	struct weft_vport *v = (struct weft_vport *)port;
	int found;

	atomic_store_explicit(&v->polls, atomic_load_explicit(&v->polls, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	weft_vport_flush(v);
	if (atomic_load(&v->calls))
		return WEFT_PORT_GO;
	if (!staged(v)) {
		if (v->rings_due) {
			v->rings_due = false;
			if ((found = read_rings(v, m)) != WEFT_PORT_EMPTY)
				return found;
		}
		if (!passes_by(v) && !port_poll(v))
			return WEFT_PORT_GO;
		if (!staged(v) || !finish(v))
			return read_rings(v, m);
		v->rings_due = true;
	}
	return v->next[0] < v->count[0] ? read_arrival(v, &v->done[v->next[0]], m) : WEFT_PORT_GO;
}

static bool port_take(struct weft_hot_port *port)
{
	struct weft_vport *v = (struct weft_vport *)port;
	struct weft_vpeer *p = v->found;
	bool more;

	p->last_seq = v->found_seq;
	p->heard = p->source = 1;
	weft_eager_heard(p->q, v->found_index);
	atomic_store_explicit(&port->taken, atomic_load_explicit(&port->taken, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	v->rings_had = v->found_ring;
	if (v->found_ring) {
		v->ring_turn = v->found_turn;
		weft_eager_take(p);
		return weft_eager_ready(p);
	}
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
static void flush(struct weft_vport *v, uint32_t corked)
{
	struct weft_vpeer *p = corked && corked <= v->peer_limit ? atomic_load(&v->peers[corked - 1]) : NULL;

	if (p)
		weft_sendq_post(p->q);
}

void weft_vport_flush(struct weft_vport *v)
{
	if (atomic_load_explicit(&v->corked, memory_order_relaxed))
		flush(v, atomic_exchange(&v->corked, 0));
}

static void port_flush(struct weft_hot_port *port)
{
	weft_vport_flush((struct weft_vport *)port);
}

// fills reports whether a message of n bytes is the last for which there is room in a packet with those
// that are corked, if the next one is as long.
static bool fills(struct weft_vpeer *p, bool first, uint32_t n)
{
	uint32_t own = (n + 7) & ~7u;

	p->bytes = first ? own : p->bytes + own;
	if (p->bytes + own <= p->q->join_bytes)
		return false;
	p->bytes = 0;
	return true;
}

// holds reports whether a message of n bytes that is ready is corked. Of one peer at a time some are.
static bool holds(struct weft_vpeer *p, uint8_t hold, uint32_t n)
{
	struct weft_vport *v = p->port;
	uint32_t poll = atomic_load_explicit(&v->polls, memory_order_relaxed);
	uint32_t own = (p->q->id >> 40 & 0xfffff) + 1, before;

	if (!hold || !p->q->join_bytes || own > v->peer_limit)
		return false;
	if (p->poll != poll) {
		p->poll = poll;
		p->row = 0;
	}
	if (p->row < WEFT_ROW && hold != WEFT_HOLD_MORE) {
		p->row++;
		return false;
	}
	if (fills(p, atomic_load_explicit(&v->corked, memory_order_relaxed) != own, n))
		return false;
	before = atomic_exchange(&v->corked, own);
	if (before != own)
		flush(v, before);
	return true;
}

// message_index is what a message to p carries: its number for us, and the count of what was taken.
static uint32_t message_index(struct weft_vpeer *p)
{
	return atomic_load_explicit(&p->index, memory_order_relaxed) |
	       atomic_load_explicit(&p->ring_taken, memory_order_acquire) << WEFT_INDEX_BITS;
}

// path_full says that there is no place. If no signaled operation on its way will free
// one, Go sees to it.
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
	b = weft_sendq_slot(q, pos);
	struct weft_message_header h = {
		.id = m->id, .head = m->head_bytes, .kind = WEFT_MESSAGE_USER, .magic = WEFT_MESSAGE_MAGIC,
		.index = message_index(p), .seq = (uint32_t)(pos + 1), .length = m->length,
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
		return WEFT_PATH_CORKED;
	weft_sendq_post(q);
	return WEFT_PATH_SENT;
}

void weft_vport_init(struct weft_vport *v)
{
	v->port.next = port_next;
	v->port.take = port_take;
	v->port.flush = port_flush;
	v->port.peek = port_peek;
}

void weft_vpeer_init(struct weft_vpeer *p, struct weft_vport *v)
{
	p->port = v;
	p->path.send = path_send;
	p->path.max = WEFT_SHORT;
	atomic_store(&p->blocked, WEFT_PEER_UNREADY);
}
