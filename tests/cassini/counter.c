/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Counters, and the commands that wait for one to reach a threshold.
 */
#include <stdlib.h>
#include "nic.h"

enum { SUCCESS_BITS = 48, FAILURE_BITS = 7 };

/* A command that waits. It holds a triggered entry of the NIC. */
struct trigger {
	struct link link; /* in the counter's list, by threshold */
	struct cmdq *q;
	uint64_t threshold;
	uint8_t cmd[128];
};

static struct counter *counter_of(struct nic *n, uint64_t ct)
{
	return ct && ct < LIMIT_COUNTERS ? n->cts[ct] : NULL;
}

/* write_back writes a counter's value where its owner reads it. */
static void write_back(struct counter *c)
{
	uint64_t w = 0;

	put(&w, COUNTER_WRITEBACK_CT_SUCCESS, c->success);
	put(&w, COUNTER_WRITEBACK_CT_FAILURE, c->failure);
	put(&w, COUNTER_WRITEBACK_CT_WRITEBACK, 1);
	if (c->wb)
		door_words(c->wb, &w, 1);
}

static void trigger_free(struct trigger *t)
{
	list_remove(&t->link);
	tle_give(t->q->lni);
	free(t);
}

/* event_triggered says that a threshold was reached. */
static void event_triggered(struct nic *n, const struct trigger *t)
{
	uint64_t eqn = get(t->cmd, COUNTER_EQ);
	uint8_t e[EVENT_TRIGGERED_BYTES] = {};

	if (!eqn || !n->eqs[eqn])
		return;
	put(e, EVENT_TRIGGERED_THRESHOLD, t->threshold);
	put(e, EVENT_TRIGGERED_CT_HANDLE, get(t->cmd, COUNTER_TRIG_CT));
	put(e, EVENT_TRIGGERED_EVENT_TYPE, EVENT_TRIGGERED_OP);
	put(e, EVENT_TRIGGERED_RETURN_CODE, RC_OK);
	evq_post(n->eqs[eqn], e, EVENT_SIZE_B16);
}

static void check(struct counter *c);

/* set_halves does what a SET says: one half or both. */
static void set_halves(struct counter *c, const uint8_t *cmd)
{
	if (get(cmd, COUNTER_SET_CT_SUCCESS))
		c->success = get(cmd, COUNTER_CT_SUCCESS);
	if (get(cmd, COUNTER_SET_CT_FAILURE))
		c->failure = get(cmd, COUNTER_CT_FAILURE);
	write_back(c);
	check(c);
}

/* increase adds to both halves, which go round. */
static void increase(struct counter *c, uint64_t success, uint64_t failure)
{
	c->success = (c->success + success) & ((1ull << SUCCESS_BITS) - 1);
	if (failure) {
		c->failure = (c->failure + failure) & ((1u << FAILURE_BITS) - 1);
		write_back(c);
	}
	check(c);
}

/* fire does what waited for a counter. */
static void fire(struct counter *c, struct trigger *t)
{
	struct nic *n = c->nic;
	struct counter *other = counter_of(n, get(t->cmd, COUNTER_CT));
	unsigned int bytes;

	switch (get(t->cmd, COMMAND_OPCODE)) {
	case COUNTER_OP_TRIG_DMA:
		bytes = get(t->cmd + COUNTER_BYTES, COMMAND_SIZE) == CMD_SIZE_B32   ? 32
			: get(t->cmd + COUNTER_BYTES, COMMAND_SIZE) == CMD_SIZE_B64 ? 64
										    : 96;
		issue_dma(t->q, t->cmd + COUNTER_BYTES, bytes);
		break;
	case COUNTER_OP_TRIG_SET:
		if (other)
			set_halves(other, t->cmd);
		break;
	case COUNTER_OP_TRIG_INC:
		if (other)
			increase(other, get(t->cmd, COUNTER_CT_SUCCESS), get(t->cmd, COUNTER_CT_FAILURE));
		break;
	case COUNTER_OP_TRIG_EVENT:
		write_back(c);
		event_triggered(n, t);
	}
}

/* check fires what has reached its threshold. What fires may change this counter. */
static void check(struct counter *c)
{
	while (!list_empty(&c->triggers)) {
		struct trigger *t = CONTAINER(c->triggers.next, struct trigger, link), copy;

		if (c->success + c->failure < t->threshold)
			return;
		copy = *t;
		trigger_free(t);
		fire(c, &copy);
	}
}

void counter_add(struct nic *n, unsigned int ct, bool failed, uint64_t value)
{
	struct counter *c = counter_of(n, ct);

	if (c)
		increase(c, failed ? 0 : value, failed ? 1 : 0);
}

/* counter_door performs a store to a counter's page. */
void counter_door(struct counter *c, unsigned int offset, uint64_t value)
{
	switch (offset) {
	case COUNTER_PAGE_INC_SUCCESS:
		increase(c, value & ((1ull << SUCCESS_BITS) - 1), 0);
		break;
	case COUNTER_PAGE_INC_FAILURE:
		increase(c, 0, value & ((1u << FAILURE_BITS) - 1));
		break;
	case COUNTER_PAGE_RESET_SUCCESS:
		c->success = 0;
		write_back(c);
		break;
	case COUNTER_PAGE_RESET_FAILURE:
		c->failure = 0;
		write_back(c);
		break;
	}
}

/* wait_for queues a command behind those with the same or a smaller threshold. */
static uint8_t wait_for(struct cmdq *q, struct counter *c, const uint8_t *cmd, unsigned int bytes)
{
	struct trigger *t;
	struct link *at;

	if (!tle_take(q->lni))
		return RC_NO_SPACE;
	t = calloc(1, sizeof *t);
	if (!t)
		abort();
	t->q = q;
	t->threshold = get(cmd, COUNTER_THRESHOLD);
	memcpy(t->cmd, cmd, bytes < sizeof t->cmd ? bytes : sizeof t->cmd);
	for (at = c->triggers.next; at != &c->triggers; at = at->next)
		if (CONTAINER(at, struct trigger, link)->threshold > t->threshold)
			break;
	list_append(at, &t->link);
	check(c);
	return RC_OK;
}

/* cancel removes what waits for a counter up to a threshold that is given, or all. */
static void cancel(struct counter *c)
{
	while (!list_empty(&c->triggers))
		trigger_free(CONTAINER(c->triggers.next, struct trigger, link));
}

uint8_t counter_command(struct cmdq *q, const uint8_t *cmd, unsigned int bytes)
{
	unsigned int opcode = (unsigned int)get(cmd, COMMAND_OPCODE);
	struct nic *n = q->lni->nic;
	struct counter *c =
		counter_of(n, opcode >= COUNTER_OP_TRIG_DMA ? get(cmd, COUNTER_TRIG_CT) : get(cmd, COUNTER_CT));

	if (opcode == COUNTER_OP_NOOP)
		return RC_OK;
	if (opcode > COUNTER_OP_TRIG_EVENT)
		return RC_ILLEGAL_OP;
	if (!c || bytes < 64)
		return RC_CMD_INVALID_ARG;
	switch (opcode) {
	case COUNTER_OP_SET:
		set_halves(c, cmd);
		return RC_OK;
	case COUNTER_OP_GET:
		write_back(c);
		return RC_OK;
	case COUNTER_OP_INC:
		increase(c, get(cmd, COUNTER_CT_SUCCESS), get(cmd, COUNTER_CT_FAILURE));
		return RC_OK;
	case COUNTER_OP_CANCEL:
		cancel(c);
		return RC_OK;
	case COUNTER_OP_TRIG_DMA:
		if (bytes < 128)
			return RC_CMD_INVALID_ARG;
		break;
	}
	return q->triggered ? wait_for(q, c, cmd, bytes) : RC_ILLEGAL_OP;
}

/* counter_forget cancels what waits for a counter that goes away. */
void counter_forget(struct counter *c)
{
	cancel(c);
}
