/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Operations at their initiator: from a command to its ACK or REPLY.
 */
#include <stdlib.h>
#include "nic.h"

static struct link waiting = { &waiting, &waiting };
static struct link spare = { &spare, &spare };

/* operation_new takes one from those that are spare. */
struct operation *operation_new(struct lni *l)
{
	struct operation *op;

	if (list_empty(&spare)) {
		op = malloc(sizeof *op);
		if (!op)
			abort();
	} else {
		op = CONTAINER(spare.next, struct operation, link);
		list_remove(&op->link);
	}
	memset(op, 0, offsetof(struct operation, data));
	op->id = op->received = 0;
	op->failed = 0;
	op->peer = NULL;
	op->lni = l;
	op->nic = l->nic;
	op->rq.src_nid = l->nic->info.nid;
	return op;
}

void operation_free(struct operation *op)
{
	list_append(&spare, &op->link);
}

void operation_queue(struct operation *op)
{
	list_append(&waiting, &op->link);
}

struct operation *operation_next(void)
{
	struct operation *op;

	if (list_empty(&waiting))
		return NULL;
	op = CONTAINER(waiting.next, struct operation, link);
	list_remove(&op->link);
	return op;
}

/* operations_forget drops what a LNI that goes away still waits for. */
void operations_forget(struct lni *l)
{
	struct link *next;

	for (struct link *i = waiting.next; i != &waiting; i = next) {
		struct operation *op = CONTAINER(i, struct operation, link);

		next = i->next;
		if (op->lni == l) {
			list_remove(i);
			operation_free(op);
		}
	}
	fabric_forget(l);
}

/* from_flags takes what C_STATE and DMA commands have in the same bits: what is notified of what. */
static void from_flags(struct operation *op, const uint8_t *b)
{
	op->rq.restricted = get(b, DMA_RESTRICTED);
	op->rq.reduction = get(b, DMA_REDUCTION);
	op->rq.flush = get(b, DMA_FLUSH);
	op->eq = (unsigned int)get(b, DMA_EQ);
	op->ct = (unsigned int)get(b, DMA_CT);
	op->send_disable = get(b, DMA_EVENT_SEND_DISABLE);
	op->success_disable = get(b, DMA_EVENT_SUCCESS_DISABLE);
	op->ct_send = get(b, DMA_EVENT_CT_SEND);
	op->ct_reply = get(b, DMA_EVENT_CT_REPLY);
	op->ct_ack = get(b, DMA_EVENT_CT_ACK);
	op->ct_bytes = get(b, DMA_EVENT_CT_BYTES);
}

/* count_class counts a restricted command under a profile of another type of traffic, which a NIC takes. */
static void count_class(const struct operation *op, const struct cmdq *q)
{
	counts.unclassed += op->rq.restricted && q->lni->lcids[q->lcid].tc_type != TRAFFIC_RESTRICTED;
}

/* from_state takes what C_STATE gives the inline commands. */
static void from_state(struct operation *op, const struct cmdq *q)
{
	const uint8_t *s = q->cstate;

	op->rq.vni = (uint16_t)q->lni->lcids[q->lcid].vni;
	op->rq.initiator = (uint32_t)get(s, CSTATE_INITIATOR);
	op->rq.index_ext = (uint8_t)get(s, CSTATE_INDEX_EXT);
	op->user_ptr = get(s, CSTATE_USER_PTR);
	from_flags(op, s);
	count_class(op, q);
}

/* from_dma takes what every DMA command has in its first 32 bytes. */
static void from_dma(struct operation *op, const struct cmdq *q, const uint8_t *cmd)
{
	op->rq.vni = (uint16_t)q->lni->lcids[q->lcid].vni;
	op->rq.initiator = (uint32_t)get(q->cstate, CSTATE_INITIATOR);
	op->user_ptr = get(q->cstate, CSTATE_USER_PTR);
	op->rq.index_ext = (uint8_t)get(cmd, DMA_INDEX_EXT);
	op->rq.dfa = (uint32_t)get(cmd, DMA_DFA);
	op->rq.remote_offset = get(cmd, DMA_REMOTE_OFFSET);
	op->rq.length = (uint32_t)get(cmd, DMA_REQUEST_LEN);
	op->lac = (uint8_t)get(cmd, DMA_LAC);
	op->local = get(cmd, DMA_LOCAL_ADDR);
	from_flags(op, cmd);
	count_class(op, q);
}

/* from_match takes what matching commands have behind it. */
static void from_match(struct operation *op, const uint8_t *cmd)
{
	op->rq.initiator = (uint32_t)get(cmd, DMA_INITIATOR);
	op->rq.match_bits = get(cmd, DMA_MATCH_BITS);
	op->rq.header_data = get(cmd, DMA_HEADER_DATA);
	op->user_ptr = get(cmd, DMA_USER_PTR);
}

/* is_short reports whether the short form holds an operation: one operand of a word, and no result. */
static bool is_short(const struct operation *op, unsigned int amo, unsigned int type)
{
	return op->rq.op == OP_ATOMIC && amo != AMO_CSWAP && amo != AMO_AXOR && type != AMO_TYPE_C64;
}

/* inline_atomic reads the operands of both forms, of which the command's length says which it is. */
static uint8_t inline_atomic(struct operation *op, const struct cmdq *q, const uint8_t *cmd, unsigned int bytes)
{
	if (get(cmd, INLINE_HEAD_LENGTH) != bytes || bytes > INLINE_ATOMIC_BYTES)
		return RC_CMD_INVALID_ARG;
	if (bytes == 32) {
		if (!is_short(op, (unsigned int)get(cmd + INLINE_HEAD_BYTES, INLINE_ATOMIC_SMALL_AMO_OP),
			      (unsigned int)get(cmd + INLINE_HEAD_BYTES, INLINE_ATOMIC_SMALL_AMO_TYPE)))
			return RC_CMD_INVALID_ARG;
		op->rq.amo = (uint8_t)get(cmd + INLINE_HEAD_BYTES, INLINE_ATOMIC_SMALL_AMO_OP);
		op->rq.amo_type = (uint8_t)get(cmd + INLINE_HEAD_BYTES, INLINE_ATOMIC_SMALL_AMO_TYPE);
		op->rq.op1[0] = get(cmd + INLINE_HEAD_BYTES, INLINE_ATOMIC_SMALL_OP1_WORD1);
	} else {
		op->rq.amo = (uint8_t)get(cmd, INLINE_ATOMIC_ATOMIC_OP);
		op->rq.amo_type = (uint8_t)get(cmd, INLINE_ATOMIC_ATOMIC_TYPE);
		op->rq.cswap = (uint8_t)get(cmd, INLINE_ATOMIC_CSWAP_OP);
		op->rq.op1[0] = get(cmd, INLINE_ATOMIC_OP1_WORD1);
		op->rq.op1[1] = get(cmd, INLINE_ATOMIC_OP1_WORD2);
		op->rq.op2[0] = get(cmd, INLINE_ATOMIC_OP2_WORD1);
		op->rq.op2[1] = get(cmd, INLINE_ATOMIC_OP2_WORD2);
		op->result = get(cmd, INLINE_ATOMIC_LOCAL_ADDR);
		op->result_lac = (uint8_t)get(q->cstate, CSTATE_WRITE_LAC);
		op->has_result = op->rq.op == OP_FETCHING_ATOMIC;
	}
	op->rq.length = atomic_size(op->rq.amo_type);
	return op->rq.length ? RC_OK : RC_AMO_INVALID_OP;
}

/* inline_data takes the data behind a head: less where it is to keep an order. */
static uint8_t inline_data(struct operation *op, const uint8_t *cmd, unsigned int bytes, unsigned int head)
{
	unsigned int length = (unsigned int)get(cmd, INLINE_HEAD_LENGTH);

	if (length < head || length > bytes ||
	    length - head > (op->rq.restricted ? LIMIT_INLINE_RESTRICTED : LIMIT_INLINE_UNRESTRICTED))
		return RC_CMD_INVALID_ARG;
	op->rq.length = length - head;
	op->inlined = true;
	memcpy(op->data, cmd + head, op->rq.length);
	return RC_OK;
}

/* issue_inline performs a command that carries its data. */
uint8_t issue_inline(struct cmdq *q, const uint8_t *cmd, unsigned int bytes)
{
	unsigned int opcode = (unsigned int)get(cmd, COMMAND_OPCODE);
	struct operation *op;
	uint8_t rc;

	if (opcode == OP_NOOP)
		return RC_OK;
	if (q->triggered)
		return RC_ILLEGAL_OP;
	if (opcode == OP_CSTATE) {
		counts.cstates++;
		memcpy(q->cstate, cmd, sizeof q->cstate);
		return RC_OK;
	}
	op = operation_new(q->lni);
	from_state(op, q);
	op->rq.op = (uint8_t)opcode;
	op->rq.dfa = (uint32_t)get(cmd, INLINE_HEAD_DFA);
	switch (opcode) {
	case OP_PUT:
		op->rq.remote_offset = get(cmd, INLINE_HEAD_REMOTE_OFFSET);
		rc = inline_data(op, cmd, bytes, INLINE_HEAD_BYTES);
		break;
	case OP_SMALL_MESSAGE:
		op->rq.small = true;
		op->rq.op = OP_PUT;
		op->rq.match_bits = get(cmd, INLINE_MESSAGE_MATCH_BITS);
		op->rq.header_data = get(cmd, INLINE_MESSAGE_HEADER_DATA);
		op->user_ptr = get(cmd, INLINE_MESSAGE_USER_PTR);
		rc = bytes < 64 ? RC_CMD_INVALID_ARG : inline_data(op, cmd, bytes, INLINE_MESSAGE_BYTES);
		break;
	case OP_ATOMIC:
	case OP_FETCHING_ATOMIC:
		op->rq.remote_offset = get(cmd, INLINE_HEAD_REMOTE_OFFSET);
		rc = inline_atomic(op, q, cmd, bytes);
		break;
	default:
		rc = RC_ILLEGAL_OP;
	}
	if (rc == RC_OK)
		operation_queue(op);
	else
		operation_free(op);
	return rc;
}

/* dma_atomic reads an atomic's other half. Its operand is fetched when it runs. */
static void dma_atomic(struct operation *op, const uint8_t *cmd)
{
	op->rq.amo = (uint8_t)get(cmd, DMA_ATOMIC_ATOMIC_OP);
	op->rq.amo_type = (uint8_t)get(cmd, DMA_ATOMIC_ATOMIC_TYPE);
	op->rq.cswap = (uint8_t)get(cmd, DMA_ATOMIC_CSWAP_OP);
	op->rq.op2[0] = get(cmd, DMA_ATOMIC_OP2_WORD1);
	op->rq.op2[1] = get(cmd, DMA_ATOMIC_OP2_WORD2);
	op->result = get(cmd, DMA_ATOMIC_LOCAL_WRITE_ADDR);
	op->result_lac = (uint8_t)get(cmd, DMA_ATOMIC_WRITE_LAC);
	op->has_result = op->rq.op == OP_FETCHING_ATOMIC;
	op->rq.length = atomic_size(op->rq.amo_type);
}

/* issue_dma performs a command whose data lies in memory, or which brings some. */
uint8_t issue_dma(struct cmdq *q, const uint8_t *cmd, unsigned int bytes)
{
	unsigned int opcode = (unsigned int)get(cmd, COMMAND_OPCODE), need = 64;
	struct operation *op;

	switch (opcode) {
	case OP_NOOP:
		return RC_OK;
	case OP_NOMATCH_PUT:
	case OP_NOMATCH_GET:
		need = 32;
		break;
	case OP_PUT:
	case OP_GET:
		need = bytes == 32 ? 32 : 64;
		break;
	case OP_RENDEZVOUS_PUT:
		break;
	case OP_ATOMIC:
	case OP_FETCHING_ATOMIC:
		need = DMA_ATOMIC_BYTES;
		break;
	default:
		return RC_ILLEGAL_OP;
	}
	if (bytes < need)
		return RC_CMD_INVALID_ARG;
	op = operation_new(q->lni);
	op->rq.op = (uint8_t)(opcode == OP_NOMATCH_PUT ? OP_PUT : opcode == OP_NOMATCH_GET ? OP_GET : opcode);
	from_dma(op, q, cmd);
	if (need >= 64)
		from_match(op, cmd);
	if (need == DMA_ATOMIC_BYTES)
		dma_atomic(op, cmd);
	if (opcode == OP_RENDEZVOUS_PUT) {
		op->rq.eager = (uint32_t)get(cmd, DMA_EAGER_LENGTH);
		op->rq.rendezvous_id = (uint8_t)get(cmd, DMA_RENDEZVOUS_ID);
	}
	if (need == DMA_ATOMIC_BYTES && !op->rq.length) {
		operation_free(op);
		return RC_AMO_INVALID_OP;
	}
	operation_queue(op);
	return RC_OK;
}

/* count_at_initiator counts a completion where the command asks for it. */
static void count_at_initiator(const struct operation *op, const struct answer *a, bool wanted)
{
	if (wanted && op->ct)
		counter_add(op->nic, op->ct, a->rc != RC_OK, op->ct_bytes && a->rc == RC_OK ? a->mlength : 1);
}

/* operation_complete counts and says what became of an operation, which is gone then. */
void operation_complete(struct operation *op, const struct answer *answer)
{
	bool reply = op->rq.op == OP_GET || op->rq.op == OP_FETCHING_ATOMIC;
	struct answer a = *answer;
	uint8_t *to, rc;

	if (op->has_result && a.rc == RC_OK) {
		to = translate(op->lni, op->result_lac, op->result, op->rq.length, true, &rc);
		if (!to || !door_copy(to, a.result, op->rq.length))
			a.rc = to ? RC_NO_TRANSLATION : rc;
	}
	if (a.rc == RC_OK)
		counts.bytes += a.mlength;
	count_at_initiator(op, &a, op->ct_send);
	count_at_initiator(op, &a, reply ? op->ct_reply : op->ct_ack);
	if (!op->send_disable && !reply && a.rc == RC_OK && !op->success_disable)
		event_initiator(op->nic, op->eq, EVENT_SEND, op, &a);
	if (a.rc != RC_OK || !op->success_disable)
		event_initiator(op->nic, op->eq, reply ? EVENT_REPLY : EVENT_ACK, op, &a);
	operation_free(op);
}

/* source finds the data that an operation sends: it is in the command, in memory, or there is none. */
static const uint8_t *source(struct operation *op, uint32_t *n, uint8_t *rc)
{
	const uint8_t *data = op->data;

	*rc = RC_OK;
	*n = op->rq.op == OP_RENDEZVOUS_PUT && op->rq.eager < op->rq.length ? op->rq.eager : op->rq.length;
	if (op->rq.op == OP_GET)
		*n = 0;
	if (!*n || op->inlined)
		return data;
	if (op->rq.op != OP_ATOMIC && op->rq.op != OP_FETCHING_ATOMIC)
		return translate(op->lni, op->lac, op->local, *n, false, rc);
	if (op->lac || op->local) { /* of a DMA command; inline ones have their operand */
		data = translate(op->lni, op->lac, op->local, *n, false, rc);
		if (data && !door_copy(op->rq.op1, data, *n)) {
			*rc = RC_NO_TRANSLATION;
			return NULL;
		}
	}
	*n = 0;
	return data;
}

/* deliver moves an operation's data at a table entry of this process. */
static void deliver(struct operation *op, struct domain *d, const uint8_t *data, struct answer *a)
{
	struct landing l = { .nic = d->lni->nic };
	uint8_t *to, rc = RC_OK;

	if (land_begin(&l, &op->rq) && op->rq.op == OP_GET && l.mlength) {
		to = translate(op->lni, op->lac, op->local, l.mlength, true, &rc);
		if (!to || !door_copy(to, l.at, l.mlength))
			rc = to ? RC_NO_TRANSLATION : rc;
	}
	land_end(&l, data, a);
	if (rc != RC_OK)
		a->rc = rc;
}

/* unreachable says why nothing has the address of a request. */
static uint8_t unreachable(const struct request *rq)
{
	uint32_t nid = rq->dfa >> 12;
	bool known = false;

	for (unsigned int i = 0; i < nic_count; i++)
		known |= nics[i].info.nid == nid;
	if (!known)
		return rq->dfa >> 23 == 0x1ff ? RC_INVALID_DFA_FORMAT : RC_UNDELIVERABLE;
	for (struct link *i = domains.next; i != &domains; i = i->next) {
		struct domain *d = CONTAINER(i, struct domain, link);

		if (d->lni->nic->info.nid == nid && d->pub.vni == rq->vni)
			return RC_PTLTE_NOT_FOUND;
	}
	return RC_VNI_NOT_FOUND;
}

/* operation_run performs an operation, at once where the target is in this process. */
void operation_run(struct operation *op)
{
	struct answer a = { .rc = RC_OK };
	struct domain *d;
	const uint8_t *data;
	uint32_t n;

	data = source(op, &n, &a.rc);
	if (a.rc == RC_OK) {
		d = domain_find(op->rq.dfa >> 12, op->rq.vni, op->rq.dfa & ((1u << PID_BITS) - 1));
		if (d)
			deliver(op, d, data, &a);
		else if (fabric_send(op, data, n))
			return;
		else
			a.rc = unreachable(&op->rq);
	}
	operation_complete(op, &a);
}
