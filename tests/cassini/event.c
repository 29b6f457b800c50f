/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Event queues as the NIC writes them. The first block is for status. An event crosses no multiple of
 * 64 bytes: null events fill. One block stays free, so that a full ring differs from an empty one.
 */
#include <stdlib.h>
#include "nic.h"

/* read_block is the block that the program has read up to. */
static unsigned int read_block(const struct evq *q)
{
	uint64_t state = __atomic_load_n(q->state, __ATOMIC_ACQUIRE);
	unsigned int b = (unsigned int)get(&state, EQ_STATE_RD_PTR);

	return b >= 1 && b < q->blocks ? b : 1;
}

static unsigned int blocks_free(const struct evq *q)
{
	unsigned int ring = q->blocks - 1, at = q->wr / SLOT;
	unsigned int used = (at + ring - read_block(q)) % ring + (q->wr % SLOT ? 1 : 0);

	return used + 1 > ring ? 0 : ring - 1 - used;
}

/* evq_room reports whether a message that needs so many blocks leaves those that are reserved. */
bool evq_room(const struct evq *q, unsigned int blocks)
{
	return blocks_free(q) >= blocks + q->reserved;
}

/* write_status writes the first block; a program takes it by its two timestamps, which must differ from
 * those before and agree. */
static void write_status(struct evq *q, int threshold)
{
	static uint64_t last;
	uint8_t status[EQ_STATUS_BYTES] = {};
	struct timespec now;
	uint64_t ns;

	clock_gettime(CLOCK_REALTIME, &now);
	ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	last = ns = ns > last ? ns : last + 1;
	put(status, EQ_STATUS_TIMESTAMP_NS_CPY, ns % 1000000000);
	put(status, EQ_STATUS_TIMESTAMP_SEC_CPY, ns / 1000000000);
	put(status, EQ_STATUS_THLD_STS, threshold >= 0);
	put(status, EQ_STATUS_THLD_ID, threshold >= 0 ? (uint64_t)threshold : 0);
	put(status, EQ_STATUS_UNACKD_DROPPED_EVENT, q->shut);
	put(status, EQ_STATUS_EVENT_DROP_SEQ_NO, q->drops);
	put(status, EQ_STATUS_EVENT_SLOTS_FREE, blocks_free(q));
	put(status, EQ_STATUS_EVENT_SLOTS_RSRVD, q->reserved);
	put(status, EQ_STATUS_WR_PTR, q->wr / SLOT);
	put(status, EQ_STATUS_TIMESTAMP_NS, ns % 1000000000);
	put(status, EQ_STATUS_TIMESTAMP_SEC, ns / 1000000000);
	door_words(q->attr.queue, status, sizeof status / 8);
	wait_raise(q->status_wait);
}

/* thresholds writes the status when the queue fills beyond one more threshold. */
static void thresholds(struct evq *q)
{
	unsigned int ring = q->blocks - 1, crossed = 0, free_now = blocks_free(q);
	unsigned int base = ring * (100 - q->attr.thresh_base) / 100, delta = ring * q->attr.thresh_delta / 100;
	int newest = -1;

	for (unsigned int i = 0; i < q->attr.thresh_count; i++)
		if (free_now <= base + i * delta) {
			crossed |= 1u << i;
			if (!(q->thresholds >> i & 1))
				newest = (int)i;
		}
	q->thresholds = crossed;
	if (newest >= 0)
		write_status(q, newest);
}

static void interrupt(struct evq *q)
{
	uint64_t state = __atomic_load_n(q->state, __ATOMIC_ACQUIRE);

	if (q->event_wait && !get(&state, EQ_STATE_EVENT_INT_DISABLE))
		wait_raise(q->event_wait);
}

/* store writes an event; its last word, which has the return code, comes last. */
static void store(struct evq *q, const uint8_t *event, unsigned int size)
{
	door_words((uint8_t *)q->attr.queue + q->wr, event, size / 8);
	q->wr += size;
	if (q->wr >= q->attr.queue_len)
		q->wr = SLOT;
}

static void pad(struct evq *q, unsigned int size)
{
	while (q->wr % SLOT && q->wr % SLOT + size > SLOT) {
		unsigned int fill = SLOT - q->wr % SLOT >= 32 ? 32 : 16;
		uint8_t null[32] = {};

		put(null, EVENT_INITIATOR_EVENT_SIZE, fill == 32 ? EVENT_SIZE_B32 : EVENT_SIZE_B16);
		put(null, EVENT_INITIATOR_EVENT_TYPE, EVENT_NULL);
		null[fill - 1] = RC_OK;
		store(q, null, fill);
	}
}

/* write_event writes an event, or drops it. */
static void write_event(struct evq *q, void *event, unsigned int size_class)
{
	unsigned int size = 8u << size_class, in_block = q->wr % SLOT;

	if ((!in_block || in_block + size > SLOT) && !blocks_free(q)) {
		counts.dropped++;
		if (!q->shut) {
			q->shut = true;
			q->drops = (q->drops + 1) & 1;
		}
		if (!(q->attr.flags & EQ_DROP_STATUS_DISABLE))
			write_status(q, -1);
		return;
	}
	pad(q, size);
	store(q, event, size);
	counts.events++;
	record('e', q->pub.eqn, event, size);
	if (q->attr.thresh_count)
		thresholds(q);
	interrupt(q);
}

/* waits reports whether an event may come after one behind it: the NIC orders no ACK against the GET of the
 * rendezvous that it acknowledges, no PUT to an overflow buffer against the PUT_OVERFLOW for it, and no PUTs of two
 * initiators. */
static bool waits(const void *event)
{
	uint64_t type = get(event, EVENT_TARGET_LONG_EVENT_TYPE);

	return type == EVENT_ACK || type == EVENT_PUT;
}

static bool overflow_put(const void *event)
{
	return get(event, EVENT_INITIATOR_EVENT_SIZE) == EVENT_SIZE_B64 &&
	       get(event, EVENT_TARGET_LONG_PTL_LIST) == LIST_OVERFLOW;
}

/* overtakes reports whether an event may come before one that waits. */
static bool overtakes(const void *event, const void *waiting)
{
	uint64_t type = get(event, EVENT_TARGET_LONG_EVENT_TYPE);

	if (get(waiting, EVENT_TARGET_LONG_EVENT_TYPE) == EVENT_ACK)
		return type == EVENT_GET;
	return (type == EVENT_PUT &&
		get(event, EVENT_TARGET_LONG_INITIATOR) != get(waiting, EVENT_TARGET_LONG_INITIATOR)) ||
	       (type == EVENT_PUT_OVERFLOW && overflow_put(waiting));
}

static void release(struct evq *q)
{
	unsigned int size_class = q->waiting_class;

	q->waiting_class = 0;
	if (size_class)
		write_event(q, q->waiting, size_class);
}

/* events_release writes every event that waits for another to overtake it. */
void events_release(void)
{
	for (unsigned int d = 0; set.shuffle && d < nic_count; d++)
		for (unsigned int i = 1; i < nics[d].evqs; i++)
			if (nics[d].eqs[i])
				release(nics[d].eqs[i]);
}

/* evq_post writes an event of 8 << size_class bytes, whose type and return code are set. Where events
 * change places, every so many-th of those that may waits for the next, or for the thread that receives. */
void evq_post(struct evq *q, void *event, unsigned int size_class)
{
	static unsigned long candidates;
	bool first;

	put(event, EVENT_INITIATOR_EVENT_SIZE, size_class);
	first = q->waiting_class && overtakes(event, q->waiting);
	if (!first)
		release(q);
	if (set.shuffle && !first && waits(event) && ++candidates % (unsigned long)set.shuffle == 0 && station_wake()) {
		memcpy(q->waiting, event, 8u << size_class);
		q->waiting_class = size_class;
		return;
	}
	write_event(q, event, size_class);
	if (first)
		release(q);
}

/* unread reports whether events remain behind those that the program has read, which it has zeroed. */
static bool unread(struct evq *q)
{
	unsigned int b = read_block(q);
	uint8_t *block = (uint8_t *)q->attr.queue + (size_t)b * SLOT;

	if (b != q->wr / SLOT)
		return true;
	for (unsigned int i = 0; i < q->wr % SLOT; i++)
		if (block[i])
			return true;
	return false;
}

/* evq_state acts on what the program wrote to the queue's page. */
void evq_state(struct evq *q)
{
	uint64_t state = __atomic_load_n(q->state, __ATOMIC_ACQUIRE);

	q->seen = state;
	if (q->shut && get(&state, EQ_STATE_EVENT_DROP_SEQ_NO) == q->drops)
		q->shut = false;
	if (q->attr.thresh_count)
		thresholds(q);
	if (q->event_wait && !get(&state, EQ_STATE_EVENT_INT_DISABLE) && unread(q))
		wait_raise(q->event_wait);
}

/* event_initiator writes a SEND, ACK or REPLY. */
void event_initiator(struct nic *n, unsigned int eqn, int type, const struct operation *op, const struct answer *a)
{
	struct evq *q = eqn && eqn < LIMIT_EQS ? n->eqs[eqn] : NULL;
	uint8_t e[EVENT_INITIATOR_LONG_BYTES] = {};
	bool is_long;

	if (!q)
		return;
	is_long = q->attr.flags & EQ_INIT_LONG;
	put(e, EVENT_INITIATOR_USER_PTR, op->user_ptr);
	put(e, EVENT_INITIATOR_MLENGTH, a->mlength);
	put(e, EVENT_INITIATOR_PTL_LIST, a->list);
	put(e, EVENT_INITIATOR_RENDEZVOUS, op->is_reply);
	put(e, EVENT_INITIATOR_TARGET_ERROR, a->rc != RC_OK);
	put(e, EVENT_INITIATOR_EVENT_TYPE, (uint64_t)type);
	if (is_long)
		put(e, EVENT_INITIATOR_LONG_RETURN_CODE, a->rc);
	else
		put(e, EVENT_INITIATOR_RETURN_CODE, a->rc);
	evq_post(q, e, is_long ? EVENT_SIZE_B32 : EVENT_SIZE_B16);
}

/* event_failure reports a command that the NIC refuses, in the queue's status and as an event. */
void event_failure(struct cmdq *q, unsigned int slot, uint8_t command, uint8_t rc)
{
	uint8_t e[EVENT_COMMAND_FAILURE_BYTES] = {};
	unsigned int number = q->tx ? q->pub.idx : q->pub.idx - LIMIT_TXQS;

	put(q->ring, CMDQ_STATUS_FAIL_COMMAND, command);
	put(q->ring, CMDQ_STATUS_RETURN_CODE, rc);
	if (!q->eq)
		return;
	put(e, EVENT_COMMAND_FAILURE_CQ_ID, number);
	put(e, EVENT_COMMAND_FAILURE_IS_TARGET, !q->tx);
	put(e, EVENT_COMMAND_FAILURE_FAIL_LOC, slot);
	put(e, EVENT_COMMAND_FAILURE_FAIL_COMMAND, command);
	put(e, EVENT_COMMAND_FAILURE_EVENT_TYPE, EVENT_COMMAND_FAILURE);
	put(e, EVENT_COMMAND_FAILURE_RETURN_CODE, rc);
	evq_post(q->eq, e, EVENT_SIZE_B16);
}
