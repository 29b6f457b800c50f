/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The front of the engine: rings of commands, in the order in which their doorbells were rung.
 */
#include "cassini.h"
#include "nic.h"

static bool working;

/* engine_work performs the operations that wait: of commands, of counters that reached a threshold, and
 * the gets of rendezvous. */
void engine_work(void)
{
	struct operation *op;

	if (working)
		return;
	working = true;
	while ((op = operation_next()))
		operation_run(op);
	working = false;
}

/* queue_command does what a command about the queue itself says. */
static uint8_t queue_command(struct cmdq *q, const uint8_t *cmd, unsigned int opcode)
{
	unsigned int lcid;

	switch (opcode) {
	case CMDQ_OP_NOOP:
	case CMDQ_OP_FENCE: /* what was before is complete or on its way, in order */
		return RC_OK;
	case CMDQ_OP_LCID:
		lcid = (unsigned int)get(cmd, CMDQ_LCID);
		if (!q->tx || !q->lni->lcids[lcid].refs || (q->triggered && lcid))
			return RC_CMD_INVALID_ARG;
		q->lcid = lcid;
		return RC_OK;
	default:
		if (q->tx)
			return RC_ILLEGAL_OP;
		cmdq_target(q, cmd);
		return RC_OK;
	}
}

/* perform does one command of so many bytes and returns how it went. */
static uint8_t perform(struct cmdq *q, const uint8_t *cmd, unsigned int bytes)
{
	unsigned int type = (unsigned int)get(cmd, COMMAND_TYPE), opcode = (unsigned int)get(cmd, COMMAND_OPCODE);
	int fault;

	if (type != CMD_TYPE_CMDQ && !q->tx)
		return RC_ILLEGAL_OP;
	if (opcode) {
		counts.commands++;
		record('c', q->pub.idx, cmd, bytes);
		fault = fault_of_command();
		if (fault)
			return (uint8_t)fault;
	}
	switch (type) {
	case CMD_TYPE_INLINE:
		return issue_inline(q, cmd, bytes);
	case CMD_TYPE_DMA:
		return issue_dma(q, cmd, bytes);
	case CMD_TYPE_COUNTER:
		return counter_command(q, cmd, bytes);
	default:
		return bytes < 64 ? RC_CMD_ALIGN_ERROR : queue_command(q, cmd, opcode);
	}
}

/* advance gives the slots of what was performed back to the program. */
static void advance(struct cmdq *q, unsigned int slots)
{
	q->rd += slots;
	if (q->rd >= q->pub.size)
		q->rd = LIMIT_CMDQ_FIRST;
	__atomic_store_n((uint16_t *)q->ring, (uint16_t)q->rd, __ATOMIC_RELEASE);
	counts.pointers++;
	counts.ring_bytes += (uint64_t)slots * SLOT;
}

/* step performs the command at the read pointer, or the two that share its slot. */
static void step(struct cmdq *q)
{
	uint8_t cmd[256];
	unsigned int slots, end = q->wr > q->rd ? q->wr : q->pub.size, at = q->rd;
	uint8_t rc = RC_OK, second;

	memcpy(cmd, q->ring + (size_t)at * SLOT, SLOT);
	if (get(cmd, COMMAND_SIZE) == CMD_SIZE_B32) {
		rc = perform(q, cmd, 32);
		second = get(cmd + 32, COMMAND_SIZE) == CMD_SIZE_B32 ? perform(q, cmd + 32, 32) : RC_CMD_ALIGN_ERROR;
		if (second != RC_OK)
			event_failure(q, at, cmd[32], second);
		slots = 1;
	} else {
		slots = 1u << (get(cmd, COMMAND_SIZE) - 1);
		if (at % slots || at + slots > end) {
			rc = RC_CMD_ALIGN_ERROR;
			slots = 1;
		} else {
			memcpy(cmd, q->ring + (size_t)at * SLOT, (size_t)slots * SLOT);
			rc = perform(q, cmd, slots * SLOT);
		}
	}
	if (rc != RC_OK)
		event_failure(q, at, cmd[0], rc);
	engine_work();
	advance(q, slots);
}

/* pending reports whether a queue has commands, up to a write pointer that it takes if it is one. */
static bool pending(struct cmdq *q, uint64_t wr)
{
	if (wr < LIMIT_CMDQ_FIRST || wr >= q->pub.size) {
		if (wr) /* a page that nothing was stored to */
			event_failure(q, q->rd, 0, RC_CMD_INVALID_ARG);
		return false;
	}
	q->wr = (unsigned int)wr;
	return q->rd != q->wr;
}

/* cmdq_ring performs all commands before a write pointer. */
void cmdq_ring(struct cmdq *q, uint64_t wr)
{
	if (pending(q, wr))
		while (q->rd != q->wr)
			step(q);
}

/* pass performs the commands of every queue of one kind; limits are their write pointers, or NULL. */
static unsigned int pass(struct nic *n, unsigned int first, unsigned int end, const uint64_t *limits, unsigned int most)
{
	unsigned int done = 0;

	for (unsigned int i = first; i < end; i++) {
		struct cmdq *q = n->cmdqs[i];

		if (!q)
			continue;
		if (!pending(q, limits ? limits[i] : __atomic_load_n(q->page, __ATOMIC_ACQUIRE)))
			continue;
		for (; q->rd != q->wr && done < most; done++)
			step(q);
	}
	return done;
}

/* poll_once reads every queue. The write pointers of the transmit queues are read before the target
 * queues are read, so that a receive which was posted before a send is there for it. */
static unsigned int poll_once(unsigned int most)
{
	static uint64_t limits[LIMIT_TXQS];
	unsigned int done = 0;

	for (unsigned int d = 0; d < nic_count; d++) {
		struct nic *n = &nics[d];

		for (unsigned int i = 0; i < n->txqs; i++)
			limits[i] = n->cmdqs[i] ? __atomic_load_n(n->cmdqs[i]->page, __ATOMIC_ACQUIRE) : 0;
		done += pass(n, LIMIT_TXQS, n->tgqs, NULL, most - done);
		done += pass(n, 0, n->txqs, limits, most - done);
		for (unsigned int i = 1; i < n->evqs; i++)
			if (n->eqs[i] && __atomic_load_n(n->eqs[i]->state, __ATOMIC_ACQUIRE) != n->eqs[i]->seen)
				evq_state(n->eqs[i]);
	}
	return done;
}

void engine_poll(void)
{
	poll_once(~0u);
}

API unsigned int cassini_step(unsigned int n)
{
	unsigned int done;

	station_step();
	nic_lock();
	door_deferred();
	done = poll_once(n);
	events_release();
	nic_unlock();
	return done;
}
