/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A request at its target: the table entry, the list entry, the memory; then the events and the answer.
 * Both halves are apart because the data may come in several packets.
 */
#include <stdlib.h>
#include "nic.h"

static bool is_get(const struct request *rq)
{
	return rq->op == OP_GET || rq->op == OP_FETCHING_ATOMIC;
}

static bool is_put(const struct request *rq)
{
	return rq->op == OP_PUT || rq->op == OP_RENDEZVOUS_PUT;
}

/* sent is how many bytes of data come with a request at once. */
static uint32_t sent(const struct request *rq)
{
	return rq->op == OP_RENDEZVOUS_PUT && rq->eager < rq->length ? rq->eager : rq->length;
}

/* refuse ends a landing before it began. */
static bool refuse(struct landing *l, uint8_t rc)
{
	l->rc = rc;
	return false;
}

static void drop(struct pte *p)
{
	p->drops = (p->drops + 1) & 0xffffff;
}

/* exhausted disables the table entry of a message, which is its first drop. */
static bool exhausted(struct landing *l, int reason)
{
	pte_exhausted(l->pte, reason);
	drop(l->pte);
	return refuse(l, RC_PT_DISABLED);
}

/* no_entry is what happens to a message that nothing takes. */
static bool no_entry(struct landing *l)
{
	struct pte *p = l->pte;
	uint8_t e[EVENT_TARGET_LONG_BYTES];

	if (p->opts.en_flowctrl && (p->state == PTLTE_STATE_ENABLED || p->state == PTLTE_STATE_SOFTWARE_MANAGED))
		return exhausted(l, p->state == PTLTE_STATE_ENABLED ? REASON_FC_NO_MATCH : REASON_FC_REQUEST_FULL);
	event_header(l->rq.op == OP_GET ? EVENT_GET : EVENT_PUT, &l->rq, e);
	put(e, EVENT_TARGET_LONG_RETURN_CODE, RC_ENTRY_NOT_FOUND);
	target_event(p, e, false);
	return refuse(l, RC_ENTRY_NOT_FOUND);
}

/* no_events is what happens to a message whose events have no room. */
static bool no_events(struct landing *l)
{
	return l->pte->opts.en_flowctrl ? exhausted(l, REASON_FC_EQ_FULL) : refuse(l, RC_ENTRY_NOT_FOUND);
}

/* find_table finds the table entry that a request is for. */
static struct pte *find_table(const struct request *rq, uint8_t *rc)
{
	unsigned int pid = rq->dfa & ((1u << PID_BITS) - 1);
	unsigned int index = (rq->dfa >> PID_BITS & 7) << 5 | rq->index_ext;
	struct domain *d = domain_find(rq->dfa >> 12, rq->vni, pid);
	struct pte *p = d ? d->indices[index] : NULL;

	*rc = p ? RC_OK : d ? RC_PTLTE_NOT_FOUND : RC_VNI_NOT_FOUND;
	return p;
}

/* packet_header writes what a request entry has in front of the data. */
static void packet_header(struct landing *l)
{
	const struct request *rq = &l->rq;
	uint8_t h[72] = {}, *next = h + PACKET_FABRIC_BYTES;

	put_packet(h, PACKET_FABRIC_IHL, 5);
	put_packet(h, PACKET_FABRIC_VER, 4);
	put_packet(h, PACKET_FABRIC_VNI, rq->vni);
	put_packet(h, PACKET_FABRIC_SFA, rq->src_nid << 12);
	put_packet(h, PACKET_FABRIC_DFA, rq->dfa);
	if (rq->small) {
		put_packet(next, PACKET_MESSAGE_OPCODE, rq->op);
		put_packet(next, PACKET_MESSAGE_VER_PKT_TYPE, 1);
		put_packet(next, PACKET_MESSAGE_INDEX_EXT, rq->index_ext);
		put_packet(next, PACKET_MESSAGE_HEADER_DATA, __builtin_bswap64(rq->header_data));
		put_packet(next, PACKET_MESSAGE_INITIATOR, __builtin_bswap32(rq->initiator));
		put_packet(next, PACKET_MESSAGE_MATCH_BITS, __builtin_bswap64(rq->match_bits));
	} else {
		put_packet(next, PACKET_PUT_OPCODE, rq->op);
		put_packet(next, PACKET_PUT_INDEX_EXT, rq->index_ext);
		put_packet(next, PACKET_PUT_REMOTE_OFFSET, __builtin_bswap64(rq->remote_offset) >> 8);
		put_packet(next, PACKET_PUT_REQUEST_LEN, __builtin_bswap32(rq->length));
		put_packet(next, PACKET_PUT_INITIATOR, __builtin_bswap32(rq->initiator));
		put_packet(next, PACKET_PUT_MATCH_BITS, __builtin_bswap64(rq->match_bits));
		put_packet(next, PACKET_PUT_HEADER_DATA, __builtin_bswap64(rq->header_data));
	}
	door_copy(l->at, h, l->prefix);
}

/* place finds the bytes in an entry's buffer, and keeps account of them. */
static bool place(struct landing *l)
{
	const uint8_t *cmd = l->entry->cmd;
	bool managed = get(cmd, TARGET_MANAGE_LOCAL);
	uint64_t room = managed ? entry_left(l->entry) : get(cmd, TARGET_LENGTH), offset = l->entry->used, n;
	uint8_t rc = RC_OK;

	if (!managed) {
		offset = l->rq.remote_offset;
		if (sent(&l->rq) && (offset > room || sent(&l->rq) > room - offset))
			return refuse(l, RC_ADDR_OUT_OF_RANGE);
		room -= offset < room ? offset : room;
	}
	if (l->list == LIST_REQUEST) {
		l->prefix = PACKET_FABRIC_BYTES + (l->rq.small ? PACKET_MESSAGE_BYTES : PACKET_PUT_BYTES);
		if (room < l->prefix)
			return no_entry(l);
	}
	n = (uint64_t)l->prefix + sent(&l->rq);
	l->mlength = (uint32_t)(n < room ? n : room);
	l->start = get(cmd, TARGET_START) + offset;
	if (l->mlength)
		l->at = translate(l->pte->lni, (unsigned int)get(cmd, TARGET_LAC), l->start, l->mlength,
				  l->rq.op != OP_GET, &rc);
	if (rc != RC_OK)
		return refuse(l, rc);
	l->room = room;
	return true;
}

/* consume takes the room that a message gets, and the entry out of its list when it is spent. */
static void consume(struct landing *l)
{
	struct entry *e = l->entry;

	if (get(e->cmd, TARGET_MANAGE_LOCAL)) {
		uint64_t n = l->list == LIST_PRIORITY && is_put(&l->rq) ? l->rq.length : l->mlength;

		e->used += n < l->room ? n : l->room;
	}
	e->busy++;
	if (entry_spent(e)) {
		list_remove(&e->link);
		e->unlinked = l->unlink = true;
	}
}

/* keep_header puts the header of a message in an overflow buffer where appends find it. */
static void keep_header(struct landing *l)
{
	struct header *h = calloc(1, sizeof *h);

	if (!h)
		abort();
	h->rq = l->rq;
	h->start = l->start;
	h->mlength = l->mlength;
	h->buffer_id = (uint16_t)get(l->entry->cmd, TARGET_BUFFER_ID);
	list_append(&l->pte->lists[LIST_UNEXPECTED], &h->link);
}

/* choose finds the entry that takes a message. */
static bool choose(struct landing *l)
{
	struct pte *p = l->pte;
	bool unexpected;
	int list;

	for (;;) {
		l->entry = match_entry(p, &l->rq, &list);
		if (!l->entry)
			return no_entry(l);
		l->list = (uint8_t)list;
		if (!(is_get(&l->rq) ? get(l->entry->cmd, TARGET_OP_GET) : get(l->entry->cmd, TARGET_OP_PUT)))
			return refuse(l, RC_OP_VIOLATION);
		unexpected = list == LIST_OVERFLOW && !get(l->entry->cmd, TARGET_UNEXPECTED_HDR_DISABLE);
		if (!unexpected || le_take(p))
			break;
		if (!pte_exhausted(p, REASON_FC_UNEXPECTED_FAIL)) {
			drop(p);
			return refuse(l, RC_PT_DISABLED);
		}
	}
	if (!place(l)) {
		if (unexpected)
			le_give(p);
		return false;
	}
	if (unexpected)
		keep_header(l);
	consume(l);
	return true;
}

/* match_event says that a message has found its entry, before its data has landed. */
static void match_event(struct landing *l)
{
	uint8_t e[EVENT_TARGET_LONG_BYTES];

	event_message(EVENT_MATCH, &l->rq, l->list, l->entry->cmd, l->start, l->mlength, e);
	target_event(l->pte, e, false);
}

/* land_begin finds where a request's data goes or comes from; false where it is refused. */
bool land_begin(struct landing *l, const struct request *rq)
{
	struct pte *p;

	l->rq = *rq;
	l->rc = RC_OK;
	counts.restricted += rq->restricted;
	counts.flushes += rq->flush;
	p = l->pte = find_table(rq, &l->rc);
	if (!p)
		return false;
	if (p->state == PTLTE_STATE_RESET || p->state == PTLTE_STATE_DISABLED) {
		if (p->opts.en_flowctrl)
			drop(p);
		return refuse(l, RC_PT_DISABLED);
	}
	if (p->eq && !evq_room(p->eq, 2))
		return no_events(l);
	if (!choose(l))
		return false;
	if (l->prefix)
		packet_header(l);
	if (p->opts.en_event_match)
		match_event(l);
	return true;
}

static int event_type(const struct request *rq)
{
	switch (rq->op) {
	case OP_GET:
		return EVENT_GET;
	case OP_ATOMIC:
		return EVENT_ATOMIC;
	case OP_FETCHING_ATOMIC:
		return EVENT_FETCH_ATOMIC;
	default:
		return EVENT_PUT;
	}
}

/* say writes the events of a message that has landed. */
static void notify(struct landing *l)
{
	const uint8_t *cmd = l->entry->cmd;
	uint8_t e[EVENT_TARGET_LONG_BYTES];
	bool silent = get(cmd, TARGET_EVENT_COMM_DISABLE) || (get(cmd, TARGET_EVENT_SUCCESS_DISABLE) && l->rc == RC_OK);

	if (get(cmd, TARGET_EVENT_CT_COMM))
		counter_add(l->pte->nic, (unsigned int)get(cmd, TARGET_CT), l->rc != RC_OK,
			    get(cmd, TARGET_EVENT_CT_BYTES) && l->rc == RC_OK ? l->mlength : 1);
	if (l->unlink && !get(cmd, TARGET_EVENT_UNLINK_DISABLE))
		event_entry(l->pte, EVENT_UNLINK, cmd, RC_OK, true);
	if (silent)
		return;
	event_message(event_type(&l->rq), &l->rq, l->list, cmd, l->start, l->mlength, e);
	put(e, EVENT_TARGET_LONG_AUTO_UNLINKED, l->unlink);
	put(e, EVENT_TARGET_LONG_RETURN_CODE, l->rc);
	target_event(l->pte, e, l->list == LIST_PRIORITY && (l->rq.op == OP_PUT || l->rq.op == OP_GET));
}

/* land_end takes the data, where it comes at once, and says what became of the request. */
void land_end(struct landing *l, const void *data, struct answer *a)
{
	if (l->rc == RC_OK && l->entry) {
		if (l->rq.op == OP_ATOMIC || l->rq.op == OP_FETCHING_ATOMIC)
			l->rc = atomic_apply(&l->rq, l->at, a->result);
		else if (data && l->rq.op != OP_GET && l->mlength > l->prefix &&
			 !door_copy(l->at + l->prefix, data, l->mlength - l->prefix))
			l->rc = RC_NO_TRANSLATION;
	}
	a->rc = l->rc;
	a->list = l->list;
	a->mlength = l->rc == RC_OK ? l->mlength - l->prefix : 0;
	if (!l->entry || !l->entry->busy)
		return;
	counts.success += l->rc == RC_OK;
	notify(l);
	if (l->rc == RC_OK && l->rq.op == OP_RENDEZVOUS_PUT && l->list == LIST_PRIORITY)
		rendezvous_get(l->pte, l->entry->cmd, &l->rq, l->start, l->room, l->mlength);
	l->entry->busy--;
	entry_release(l->entry);
}
