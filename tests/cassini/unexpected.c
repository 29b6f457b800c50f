/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Messages that came before their receive: headers of what lies in overflow buffers, searched by
 * appends and by the program; and the gets of rendezvous, which both sorts of receive need.
 */
#include <stdlib.h>
#include "nic.h"

/* get_from is where the data of a rendezvous is: index 255 of the sender's PID, at the sender's NIC. */
static uint32_t get_from(const struct request *rq)
{
	return rq->src_nid << 12 | (GET_INDEX >> 5) << PID_BITS | rq->initiator >> (32 - PID_BITS);
}

/* rendezvous_get reports a rendezvous whose first mlength bytes are here, and gets the rest of what
 * the entry of cmd has room for, to an IOVA. A get of nothing is made, too: it notifies the sender. */
void rendezvous_get(struct pte *p, const uint8_t *cmd, const struct request *rq, uint64_t to, uint64_t room,
		    uint32_t mlength)
{
	uint64_t length = rq->length < room ? rq->length : room;
	uint8_t e[EVENT_TARGET_LONG_BYTES];
	struct operation *op;

	event_message(EVENT_RENDEZVOUS, rq, (int)get(cmd, TARGET_PTL_LIST), cmd, to + mlength, mlength, e);
	put(e, EVENT_TARGET_LONG_INITIATOR, get_from(rq));
	put(e, EVENT_TARGET_LONG_REMOTE_OFFSET, rq->remote_offset + mlength);
	put(e, EVENT_TARGET_LONG_GET_ISSUED, set.get != 0);
	target_event(p, e, false);
	if (!set.get)
		return;
	op = operation_new(p->lni);
	op->rq.op = OP_GET;
	op->rq.vni = rq->vni;
	op->rq.dfa = get_from(rq);
	op->rq.index_ext = GET_INDEX & 31;
	put(&op->rq.match_bits, RENDEZVOUS_MATCH_BITS_RENDEZVOUS_ID, rq->rendezvous_id);
	put(&op->rq.match_bits, RENDEZVOUS_MATCH_BITS_TRANSACTION_TYPE, TRANSACTION);
	put(&op->rq.match_bits, RENDEZVOUS_MATCH_BITS_MATCH_BITS, rq->match_bits >> 48);
	op->rq.remote_offset = rq->remote_offset + mlength;
	op->rq.length = (uint32_t)(length > mlength ? length - mlength : 0);
	op->rq.initiator = (rq->dfa & LIMIT_PID_ANY) << (32 - PID_BITS) | p->nic->info.nid;
	op->local = to + mlength;
	op->lac = (uint8_t)get(cmd, TARGET_LAC);
	put(&op->user_ptr, RENDEZVOUS_USER_PTR_SRC_NID, rq->src_nid);
	put(&op->user_ptr, RENDEZVOUS_USER_PTR_SRC_PID, rq->initiator >> (32 - PID_BITS));
	put(&op->user_ptr, RENDEZVOUS_USER_PTR_PTLTE_INDEX, p->pub.ptn);
	put(&op->user_ptr, RENDEZVOUS_USER_PTR_RENDEZVOUS_ID, rq->rendezvous_id);
	put(&op->user_ptr, RENDEZVOUS_USER_PTR_BUFFER_ID, get(cmd, TARGET_BUFFER_ID));
	op->is_reply = true;
	op->eq = p->eq ? p->eq->pub.eqn : 0;
	operation_queue(op);
}

/* overflow_event says that an entry took, or a search removed, an unexpected message. */
static void overflow_event(struct pte *p, const uint8_t *cmd, const struct header *h, bool unlinked, uint8_t rc)
{
	uint8_t e[EVENT_TARGET_LONG_BYTES];

	event_message(EVENT_PUT_OVERFLOW, &h->rq, LIST_UNEXPECTED, cmd, h->start, h->mlength, e);
	put(e, EVENT_TARGET_LONG_AUTO_UNLINKED, unlinked);
	put(e, EVENT_TARGET_LONG_RETURN_CODE, rc);
	target_event(p, e, false);
}

static void forget(struct pte *p, struct header *h)
{
	list_remove(&h->link);
	free(h);
	le_give(p);
}

/* unexpected_take gives an entry that is being appended the messages that wait for it. It is true when
 * they use it up. */
bool unexpected_take(struct pte *p, struct entry *e)
{
	const uint8_t *cmd = e->cmd;
	bool spent = false;
	struct link *next;

	for (struct link *i = p->lists[LIST_UNEXPECTED].next; !spent && i != &p->lists[LIST_UNEXPECTED]; i = next) {
		struct header *h = CONTAINER(i, struct header, link);
		uint64_t at = get(cmd, TARGET_START) + e->used, room = entry_left(e);

		next = i->next;
		if (!entry_matches(e, &h->rq))
			continue;
		if (get(cmd, TARGET_MANAGE_LOCAL))
			e->used += h->rq.length < room ? h->rq.length : room;
		spent = entry_spent(e);
		if (get(cmd, TARGET_EVENT_CT_OVERFLOW))
			counter_add(p->nic, (unsigned int)get(cmd, TARGET_CT), false,
				    get(cmd, TARGET_EVENT_CT_BYTES) ? h->mlength : 1);
		if (!get(cmd, TARGET_EVENT_COMM_DISABLE))
			overflow_event(p, cmd, h, spent, RC_OK);
		if (h->rq.op == OP_RENDEZVOUS_PUT)
			rendezvous_get(p, cmd, &h->rq, at, room, h->mlength);
		forget(p, h);
	}
	return spent;
}

/* search_event answers a search: with a message, or with none. */
static void search_event(struct pte *p, const uint8_t *cmd, const struct header *h)
{
	uint8_t e[EVENT_TARGET_LONG_BYTES];

	if (!h) {
		event_entry(p, EVENT_SEARCH, cmd, RC_NO_MATCH, false);
		return;
	}
	event_message(EVENT_SEARCH, &h->rq, LIST_UNEXPECTED, cmd, h->start, h->mlength, e);
	target_event(p, e, false);
}

/* unexpected_search searches for messages, or takes them away. A search for one ends with it. */
void unexpected_search(struct pte *p, const uint8_t *cmd, bool remove)
{
	bool once = get(cmd, TARGET_USE_ONCE);
	struct header none = {};
	struct link *next;

	for (struct link *i = p->lists[LIST_UNEXPECTED].next; i != &p->lists[LIST_UNEXPECTED]; i = next) {
		struct header *h = CONTAINER(i, struct header, link);

		next = i->next;
		if (!command_matches(p, cmd, &h->rq))
			continue;
		if (remove) {
			overflow_event(p, cmd, h, false, RC_OK);
			forget(p, h);
		} else {
			search_event(p, cmd, h);
		}
		if (once)
			return;
	}
	if (once && remove)
		overflow_event(p, cmd, &none, false, RC_NO_MATCH);
	else
		search_event(p, cmd, NULL);
}
