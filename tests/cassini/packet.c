/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Packets at their receiver. A request whose data comes in several is a train: it is matched by its
 * first packet, and its state stays until the last.
 */
#include <stdlib.h>
#include "fabric.h"

struct train {
	struct link link;
	struct landing landing;
	struct link_to *back;
	char from[NAME];
	uint32_t id, total, got;
	long last; /* when a packet came, ms */
};

static struct link trains = { &trains, &trains };

/* answer sends what became of a request, with the data of a get. */
static void answer(const char *to, uint32_t id, const struct answer *a, const uint8_t *data, uint32_t n)
{
	struct packet p = { .kind = PACKET_ANSWER, .id = id, .total = n, .a = *a };
	struct link_to *l = link_of(to);
	uint32_t at = 0;

	if (!l)
		return;
	do {
		p.offset = at;
		p.n = n - at < CHUNK ? n - at : CHUNK;
		if (!link_send(l, &p, data + at, p.n)) {
			link_failed(l);
			return;
		}
		at += p.n;
	} while (at < n);
}

/* put_chunk writes data that arrives where its message lands, as far as there is room. */
static void put_chunk(struct landing *l, uint32_t offset, const uint8_t *data, uint32_t n)
{
	uint64_t room = l->mlength - l->prefix;

	if (l->rc != RC_OK || offset >= room)
		return;
	if (n > room - offset)
		n = (uint32_t)(room - offset);
	if (!door_copy(l->at + l->prefix + offset, data, n))
		l->rc = RC_NO_TRANSLATION;
}

/* complete ends a landing whose data is complete, and answers. */
static void complete(struct landing *l, const char *from, uint32_t id)
{
	struct answer a = {};
	bool get = l->rq.op == OP_GET && l->rc == RC_OK;

	/* The data of a get leaves before the event that says so. */
	if (get) {
		a = (struct answer){ .rc = RC_OK, .list = l->list, .mlength = l->mlength };
		answer(from, id, &a, l->at, l->mlength);
	}
	land_end(l, NULL, &a);
	if (!get)
		answer(from, id, &a, NULL, 0);
}

static void request(const struct packet *p, const uint8_t *data)
{
	struct landing l = {};
	struct train *t;

	land_begin(&l, &p->rq);
	if (p->n)
		put_chunk(&l, 0, data, p->n);
	if (p->n == p->total) {
		complete(&l, p->from, p->id);
		return;
	}
	t = calloc(1, sizeof *t);
	if (!t)
		abort();
	t->landing = l;
	t->id = p->id;
	t->total = p->total;
	t->got = p->n;
	t->last = now_ms();
	memcpy(t->from, p->from, sizeof t->from);
	list_append(&trains, &t->link);
}

static void more(const struct packet *p, const uint8_t *data)
{
	for (struct link *i = trains.next; i != &trains; i = i->next) {
		struct train *t = CONTAINER(i, struct train, link);

		if (t->id != p->id || strcmp(t->from, p->from))
			continue;
		put_chunk(&t->landing, p->offset, data, p->n);
		t->got += p->n;
		t->last = now_ms();
		if (t->got >= t->total) {
			list_remove(i);
			complete(&t->landing, t->from, t->id);
			free(t);
		}
		return;
	}
}

static void answered(const struct packet *p, const uint8_t *data)
{
	struct operation *op = operation_sent(p->id);
	struct answer a = p->a;
	uint8_t *to, rc = RC_OK;

	if (!op)
		return;
	if (p->n) {
		to = translate(op->lni, op->lac, op->local + p->offset, p->n, true, &rc);
		if (!to || !door_copy(to, data, p->n))
			op->failed = to ? RC_NO_TRANSLATION : rc;
	}
	op->received += p->n;
	if (op->received < p->total)
		return;
	if (op->failed)
		a.rc = op->failed;
	list_remove(&op->link);
	operation_complete(op, &a);
}

void packet_receive(const struct packet *p, const uint8_t *data)
{
	switch (p->kind) {
	case PACKET_REQUEST:
		request(p, data);
		break;
	case PACKET_DATA:
		more(p, data);
		break;
	case PACKET_ANSWER:
		answered(p, data);
		break;
	}
	engine_work();
}

bool trains_busy(void)
{
	return !list_empty(&trains);
}

/* cancel ends a train before all of it is here. */
static void cancel(struct train *t, uint8_t rc)
{
	list_remove(&t->link);
	if (t->landing.rc == RC_OK)
		t->landing.rc = rc;
	complete(&t->landing, t->from, t->id);
	free(t);
}

/* trains_check gives up those of which nothing comes any more. */
void trains_check(void)
{
	long now = now_ms();
	struct link *next;

	for (struct link *i = trains.next; i != &trains; i = next) {
		struct train *t = CONTAINER(i, struct train, link);

		next = i->next;
		if (now - t->last >= set.timeout || !link_of(t->from))
			cancel(t, RC_UNDELIVERABLE);
	}
}

/* fabric_invalidate cancels what lands in a buffer that goes away. */
void fabric_invalidate(struct pte *p, unsigned int buffer_id, int list)
{
	struct link *next;

	for (struct link *i = trains.next; i != &trains; i = next) {
		struct train *t = CONTAINER(i, struct train, link);
		struct landing *l = &t->landing;

		next = i->next;
		if (l->pte == p && l->entry && l->list == list && get(l->entry->cmd, TARGET_BUFFER_ID) == buffer_id)
			cancel(t, RC_MST_CANCELLED);
	}
}

/* fabric_leave drops the trains of a table entry that goes away. */
void fabric_leave(struct pte *p)
{
	struct link *next;

	for (struct link *i = trains.next; i != &trains; i = next) {
		struct train *t = CONTAINER(i, struct train, link);

		next = i->next;
		if (t->landing.pte != p)
			continue;
		list_remove(i);
		if (t->landing.entry && t->landing.entry->busy) {
			t->landing.entry->busy--;
			entry_release(t->landing.entry);
		}
		free(t);
	}
}
