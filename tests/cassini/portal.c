/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Table entries: their events and states.
 */
#include <stdlib.h>
#include "nic.h"

/* target_event writes an event of a table entry, short where it can be and nothing asks for long ones. */
void target_event(struct pte *p, uint8_t *e, bool can_be_short)
{
	uint8_t s[EVENT_TARGET_BYTES] = {};

	if (!p->eq)
		return;
	put(e, EVENT_TARGET_LONG_PTLTE_INDEX, p->pub.ptn);
	if (!can_be_short || p->opts.use_long_event || p->eq->attr.flags & EQ_TGT_LONG) {
		evq_post(p->eq, e, EVENT_SIZE_B64);
		return;
	}
	memcpy(s, e, 28); /* the two forms agree up to here */
	put(s, EVENT_TARGET_LENGTH, get(e, EVENT_TARGET_LONG_MLENGTH));
	put(s, EVENT_TARGET_RETURN_CODE, get(e, EVENT_TARGET_LONG_RETURN_CODE));
	evq_post(p->eq, s, EVENT_SIZE_B32);
}

/* event_header fills an event with what a request's header says. */
void event_header(int type, const struct request *rq, uint8_t *e)
{
	memset(e, 0, EVENT_TARGET_LONG_BYTES);
	put(e, EVENT_TARGET_LONG_EVENT_TYPE, (uint64_t)type);
	put(e, EVENT_TARGET_LONG_HEADER_DATA, rq->header_data);
	put(e, EVENT_TARGET_LONG_INITIATOR, rq->initiator);
	put(e, EVENT_TARGET_LONG_MATCH_BITS, rq->match_bits);
	put(e, EVENT_TARGET_LONG_VNI, rq->vni);
	put(e, EVENT_TARGET_LONG_RLENGTH, rq->length);
	put(e, EVENT_TARGET_LONG_REMOTE_OFFSET, rq->remote_offset);
	put(e, EVENT_TARGET_LONG_RENDEZVOUS, rq->op == OP_RENDEZVOUS_PUT);
	put(e, EVENT_TARGET_LONG_RENDEZVOUS_ID, rq->rendezvous_id);
	put(e, EVENT_TARGET_LONG_ATOMIC_OP, rq->amo);
	put(e, EVENT_TARGET_LONG_ATOMIC_TYPE, rq->amo_type);
	put(e, EVENT_TARGET_LONG_CSWAP_OP, rq->cswap);
	put(e, EVENT_TARGET_LONG_RETURN_CODE, RC_OK);
}

/* event_message is event_header with the list and the buffer that took the message, and where it lies. */
void event_message(int type, const struct request *rq, int list, const uint8_t *cmd, uint64_t start, uint32_t mlength,
		   uint8_t *e)
{
	event_header(type, rq, e);
	put(e, EVENT_TARGET_LONG_PTL_LIST, (uint64_t)list);
	put(e, EVENT_TARGET_LONG_BUFFER_ID, get(cmd, TARGET_BUFFER_ID));
	put(e, EVENT_TARGET_LONG_MLENGTH, mlength);
	put(e, EVENT_TARGET_LONG_START, start);
}

/* event_entry answers a command: LINK, UNLINK or SEARCH. */
void event_entry(struct pte *p, int type, const uint8_t *cmd, uint8_t rc, bool automatic)
{
	uint8_t e[EVENT_TARGET_LONG_BYTES] = {};

	put(e, EVENT_TARGET_LONG_EVENT_TYPE, (uint64_t)type);
	put(e, EVENT_TARGET_LONG_PTL_LIST, get(cmd, TARGET_PTL_LIST));
	put(e, EVENT_TARGET_LONG_BUFFER_ID, get(cmd, TARGET_BUFFER_ID));
	put(e, EVENT_TARGET_LONG_AUTO_UNLINKED, automatic);
	put(e, EVENT_TARGET_LONG_START, get(cmd, TARGET_START));
	put(e, EVENT_TARGET_LONG_RETURN_CODE, rc);
	target_event(p, e, false);
}

/* state_change makes a state the table entry's and reports it. */
void state_change(struct pte *p, int state, int reason, bool automatic, uint8_t rc)
{
	uint8_t e[EVENT_TARGET_LONG_BYTES] = {};
	uint64_t fields = 0;

	if (rc == RC_OK)
		p->state = state;
	put(&fields, STATE_CHANGE_PTLTE_STATE, (uint64_t)p->state);
	put(&fields, STATE_CHANGE_SC_REASON, (uint64_t)reason);
	put(&fields, STATE_CHANGE_SC_NIC_AUTO, automatic);
	put(e, EVENT_TARGET_LONG_EVENT_TYPE, EVENT_STATE_CHANGE);
	put(e, EVENT_TARGET_LONG_INITIATOR, fields);
	put(e, EVENT_TARGET_LONG_RETURN_CODE, rc);
	target_event(p, e, false);
}

/* pte_exhausted takes a table entry out of hardware matching. It is true when software manages it now,
 * so that the message goes to the request list; else it is disabled and the message its first drop. */
bool pte_exhausted(struct pte *p, int reason)
{
	bool software = !list_empty(&p->lists[LIST_REQUEST]) &&
			(reason == REASON_FC_UNEXPECTED_FAIL || reason == REASON_SM_APPEND_FAIL);

	if (software) {
		state_change(p, PTLTE_STATE_SOFTWARE_MANAGED,
			     reason == REASON_SM_APPEND_FAIL ? reason : REASON_SM_UNEXPECTED_FAIL, true, RC_OK);
		return true;
	}
	p->drops = set.version == 2 ? 0 : 0xffffff;
	state_change(p, PTLTE_STATE_DISABLED, reason, true, RC_OK);
	return false;
}

/* pte_clear drops every entry and unexpected header. */
void pte_clear(struct pte *p)
{
	for (int list = LIST_PRIORITY; list <= LIST_UNEXPECTED; list++)
		while (!list_empty(&p->lists[list])) {
			struct link *i = p->lists[list].next;

			list_remove(i);
			if (list == LIST_UNEXPECTED) {
				free(CONTAINER(i, struct header, link));
				le_give(p);
			} else {
				CONTAINER(i, struct entry, link)->unlinked = true;
				entry_release(CONTAINER(i, struct entry, link));
			}
		}
}

/* An answer that comes later. */
struct late {
	struct link link;
	struct pte *p;
	uint8_t cmd[TARGET_BYTES];
};

static struct link lates = { &lates, &lates };

/* no_room answers an append for which the NIC has no entry. Where there is no flow control the program
 * appends again at once, and a queue whose events are there as soon as the command would never be
 * empty: the answer takes its time. */
static void no_room(struct pte *p, const uint8_t *cmd)
{
	struct late *l;

	if (p->opts.en_flowctrl || set.mode == MODE_THREADED || !station_wake()) {
		event_entry(p, EVENT_LINK, cmd, RC_NO_SPACE, false);
		return;
	}
	l = malloc(sizeof *l);
	if (!l)
		abort();
	l->p = p;
	memcpy(l->cmd, cmd, sizeof l->cmd);
	list_append(&lates, &l->link);
}

/* late_answers gives the answers that are due, to a table entry alone when it goes away. */
void late_answers(struct pte *p)
{
	struct link *next;

	for (struct link *i = lates.next; i != &lates; i = next) {
		struct late *l = CONTAINER(i, struct late, link);

		next = i->next;
		if (p && l->p != p)
			continue;
		list_remove(i);
		event_entry(l->p, EVENT_LINK, l->cmd, RC_NO_SPACE, false);
		free(l);
	}
}

/* append links an entry, unless a message that is there already uses it up. */
static void append(struct pte *p, const uint8_t *cmd)
{
	unsigned int list = (unsigned int)get(cmd, TARGET_PTL_LIST);
	struct entry *e;

	if (list > LIST_REQUEST) {
		event_entry(p, EVENT_LINK, cmd, RC_CMD_INVALID_ARG, false);
		return;
	}
	if (get(cmd, TARGET_RESTART_SEQ))
		p->append_failed = false;
	if (p->append_failed) {
		event_entry(p, EVENT_LINK, cmd, RC_NO_SPACE, false);
		return;
	}
	if (p->state == PTLTE_STATE_SOFTWARE_MANAGED && list == LIST_PRIORITY) {
		event_entry(p, EVENT_LINK, cmd, RC_PTLTE_SW_MANAGED, false);
		return;
	}
	e = le_take(p) ? calloc(1, sizeof *e) : NULL;
	if (!e) {
		p->append_failed = p->opts.en_flowctrl;
		no_room(p, cmd);
		if (list == LIST_PRIORITY && p->state == PTLTE_STATE_ENABLED && !list_empty(&p->lists[LIST_REQUEST]))
			pte_exhausted(p, REASON_SM_APPEND_FAIL);
		return;
	}
	e->pte = p;
	memcpy(e->cmd, cmd, sizeof e->cmd);
	list_init(&e->link);
	if (list == LIST_PRIORITY && unexpected_take(p, e)) {
		e->unlinked = true;
		entry_release(e);
		return;
	}
	list_append(&p->lists[list], &e->link);
	if (!get(cmd, TARGET_EVENT_LINK_DISABLE))
		event_entry(p, EVENT_LINK, cmd, RC_OK, false);
}

/* unlink takes the first entry with a buffer id out of a list. */
static void unlink_entry(struct pte *p, const uint8_t *cmd)
{
	unsigned int list = (unsigned int)get(cmd, TARGET_PTL_LIST);

	for (struct link *i = p->lists[list].next; list <= LIST_REQUEST && i != &p->lists[list]; i = i->next) {
		struct entry *e = CONTAINER(i, struct entry, link);

		if (get(e->cmd, TARGET_BUFFER_ID) != get(cmd, TARGET_BUFFER_ID))
			continue;
		list_remove(i);
		e->unlinked = true;
		event_entry(p, EVENT_UNLINK, e->cmd, RC_OK, false);
		entry_release(e);
		return;
	}
	event_entry(p, EVENT_UNLINK, cmd, RC_ENTRY_NOT_FOUND, false);
}

/* set_state is the program's. Enabling wants the count of drops, where it gives one. */
static void set_state(struct pte *p, const uint8_t *cmd)
{
	int state = (int)get(cmd, SET_STATE_PTLTE_STATE);
	uint32_t count = (uint32_t)get(cmd, SET_STATE_DROP_COUNT);

	if (state == PTLTE_STATE_ENABLED || state == PTLTE_STATE_SOFTWARE_MANAGED) {
		if (count != LIMIT_NO_DROP_COUNT && count != (p->drops & 0xffffff)) {
			state_change(p, state, 0, false, RC_NO_MATCH);
			return;
		}
		p->drops = 0;
	} else if (state == PTLTE_STATE_DISABLED && p->state != PTLTE_STATE_DISABLED) {
		p->drops = 0;
	} else if (state == PTLTE_STATE_RESET) {
		pte_clear(p);
	}
	state_change(p, state, 0, false, RC_OK);
}

/* cmdq_target performs a command for a table entry. */
void cmdq_target(struct cmdq *q, const uint8_t *cmd)
{
	unsigned int n = (unsigned int)get(cmd, TARGET_PTLTE_INDEX);
	struct pte *p = q->lni->nic->ptes[n];

	if (!p || p->lni != q->lni) {
		event_failure(q, q->rd, cmd[0], RC_PTLTE_NOT_FOUND);
		return;
	}
	switch (get(cmd, COMMAND_OPCODE)) {
	case CMDQ_OP_APPEND:
		append(p, cmd);
		break;
	case CMDQ_OP_UNLINK:
		unlink_entry(p, cmd);
		break;
	case CMDQ_OP_SEARCH:
		unexpected_search(p, cmd, false);
		break;
	case CMDQ_OP_SEARCH_AND_DELETE:
		unexpected_search(p, cmd, true);
		break;
	case CMDQ_OP_SET_STATE:
		if (get(cmd, SET_STATE_PTLTE_STATE) <= PTLTE_STATE_SOFTWARE_MANAGED)
			set_state(p, cmd);
		else
			event_failure(q, q->rd, cmd[0], RC_CMD_INVALID_ARG);
		break;
	default:
		event_failure(q, q->rd, cmd[0], RC_ILLEGAL_OP);
	}
}
