/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Rules that programs for the NIC rely on: which events there are, in which order and of which size, and
 * how a request is refused.
 */
#include "rig.h"

static const struct pt_opts plain = { .is_matching = 1 },
			    controlled = { .is_matching = 1, .use_long_event = 1, .en_flowctrl = 1 };

/* is takes the next event and compares it: its type, its size in bytes, its return code. */
static void is(struct rig *r, uint8_t e[64], int type, unsigned int bytes, unsigned int rc)
{
	int got = await(r, e);
	unsigned int size = 8u << get(e, EVENT_INITIATOR_EVENT_SIZE);

	if (got != type || size != bytes || event_rc(e) != rc) {
		fprintf(stderr, "event %d of %u bytes, rc %u, not %d of %u, rc %u\n", got, size, event_rc(e), type,
			bytes, rc);
		exit(1);
	}
}

/* entry fills the command that appends an entry which any put matches. */
static void entry(const struct rig *r, uint8_t c[TARGET_BYTES], int list, unsigned int id, uint64_t at, uint64_t length)
{
	memset(c, 0, TARGET_BYTES);
	put(c, COMMAND_TYPE, CMD_TYPE_CMDQ);
	put(c, COMMAND_SIZE, CMD_SIZE_B64);
	put(c, COMMAND_OPCODE, CMDQ_OP_APPEND);
	put(c, TARGET_PTL_LIST, (uint64_t)list);
	put(c, TARGET_PTLTE_INDEX, r->pte->ptn);
	put(c, TARGET_BUFFER_ID, id);
	put(c, TARGET_IGNORE_BITS, ~0ull);
	put(c, TARGET_MATCH_ID, ~0u);
	put(c, TARGET_START, r->md->iova + at);
	put(c, TARGET_LAC, r->md->lac);
	put(c, TARGET_LENGTH, length);
	put(c, TARGET_OP_PUT, 1);
	put(c, TARGET_OP_GET, 1);
}

static void add(struct rig *r, const uint8_t c[TARGET_BYTES])
{
	emit(r->target, c, TARGET_BYTES);
	ring(r->target);
}

static void put_bytes(struct rig *r, uint32_t length)
{
	dma(r, OP_PUT, r->dev->info.nid, r->domain->pid, 1, 0, length, 1);
}

/* LINK, UNLINK and the message's own event: what silences which, their order and their sizes. The ACK names the
 * list. */
static void links(void)
{
	uint8_t c[TARGET_BYTES], e[64];
	struct rig r;

	rig_open(&r, plain, 16 * PAGE);
	entry(&r, c, LIST_PRIORITY, 1, 0, 64);
	put(c, TARGET_USE_ONCE, 1);
	add(&r, c);
	is(&r, e, EVENT_LINK, 64, RC_OK);
	put_bytes(&r, 8);
	is(&r, e, EVENT_UNLINK, 64, RC_OK);
	CHECK(get(e, EVENT_TARGET_LONG_AUTO_UNLINKED) == 1);
	is(&r, e, EVENT_PUT, 32, RC_OK);
	is(&r, e, EVENT_ACK, 16, RC_OK);
	CHECK(get(e, EVENT_INITIATOR_PTL_LIST) == LIST_PRIORITY && get(e, EVENT_INITIATOR_MLENGTH) == 8);

	put(c, TARGET_EVENT_SUCCESS_DISABLE, 1);
	put(c, TARGET_EVENT_COMM_DISABLE, 1);
	add(&r, c);
	is(&r, e, EVENT_LINK, 64, RC_OK);
	put_bytes(&r, 8);
	is(&r, e, EVENT_UNLINK, 64, RC_OK);
	is(&r, e, EVENT_ACK, 16, RC_OK);

	put(c, TARGET_EVENT_LINK_DISABLE, 1);
	put(c, TARGET_EVENT_UNLINK_DISABLE, 1);
	add(&r, c);
	put_bytes(&r, 8);
	is(&r, e, EVENT_ACK, 16, RC_OK);
	add(&r, c);
	unlink_id(&r, LIST_PRIORITY, 1);
	is(&r, e, EVENT_UNLINK, 64, RC_OK);
	CHECK(get(e, EVENT_TARGET_LONG_AUTO_UNLINKED) == 0);
	unlink_id(&r, LIST_PRIORITY, 1);
	is(&r, e, EVENT_UNLINK, 64, RC_ENTRY_NOT_FOUND);

	entry(&r, c, LIST_OVERFLOW, 2, 0, 4096);
	put(c, TARGET_MANAGE_LOCAL, 1);
	put(c, TARGET_EVENT_LINK_DISABLE, 1);
	add(&r, c);
	put_bytes(&r, 24);
	is(&r, e, EVENT_PUT, 64, RC_OK);
	is(&r, e, EVENT_ACK, 16, RC_OK);
	CHECK(get(e, EVENT_INITIATOR_PTL_LIST) == LIST_OVERFLOW);
	entry(&r, c, LIST_PRIORITY, 3, 8192, 64);
	put(c, TARGET_USE_ONCE, 1);
	add(&r, c); /* takes the message at once: no LINK */
	is(&r, e, EVENT_PUT_OVERFLOW, 64, RC_OK);
	CHECK(get(e, EVENT_TARGET_LONG_BUFFER_ID) == 3 && get(e, EVENT_TARGET_LONG_MLENGTH) == 24);
	set_state(&r, PTLTE_STATE_RESET, LIMIT_NO_DROP_COUNT);
	CHECK(next(&r, e) == -1);
	rig_close(&r);
}

/* gets_from makes the table entry that the rendezvous gets of a test read from. */
static void gets_from(struct rig *r, struct cxil_pte **pte, struct cxil_pte_map **map)
{
	struct cxil_pte *own = r->pte;
	struct pt_opts opts = plain;
	uint8_t c[TARGET_BYTES], e[64];

	opts.use_long_event = 1;
	CHECK(!cxil_alloc_pte(r->lni, r->eq, &opts, pte) && !cxil_map_pte(*pte, r->domain, GET_INDEX, false, map));
	r->pte = *pte;
	set_state(r, PTLTE_STATE_ENABLED, LIMIT_NO_DROP_COUNT);
	entry(r, c, LIST_PRIORITY, 99, 0, BUFFER / 2);
	add(r, c);
	is(r, e, EVENT_LINK, 64, RC_OK);
	r->pte = own;
}

static void rendezvous_put(struct rig *r, uint32_t length, uint32_t eager)
{
	uint8_t c[DMA_BYTES] = {};

	put(c, COMMAND_TYPE, CMD_TYPE_DMA);
	put(c, COMMAND_SIZE, CMD_SIZE_B64);
	put(c, COMMAND_OPCODE, OP_RENDEZVOUS_PUT);
	put(c, DMA_DFA, r->dev->info.nid << 12 | r->domain->pid);
	put(c, DMA_LAC, r->md->lac);
	put(c, DMA_LOCAL_ADDR, r->md->iova);
	put(c, DMA_REQUEST_LEN, length);
	put(c, DMA_EAGER_LENGTH, eager);
	put(c, DMA_RENDEZVOUS_ID, 0x5a);
	put(c, DMA_EQ, r->eq->eqn);
	put(c, DMA_EVENT_SEND_DISABLE, 1);
	put(c, DMA_INITIATOR, r->domain->pid << (32 - PID_BITS) | r->dev->info.nid);
	put(c, DMA_MATCH_BITS, 0xabcd000000000001);
	emit(r->tx, c, sizeof c);
	ring(r->tx);
}

/* A rendezvous: PUT, RENDEZVOUS, and the NIC's own get, which there is for no bytes, too, with its REPLY. */
static void rendezvous(void)
{
	static const uint32_t eager[] = { 1000, 5000 };
	struct cxil_pte *pte;
	struct cxil_pte_map *map;
	uint8_t c[TARGET_BYTES], e[64];
	uint64_t word;
	struct rig r;

	rig_open(&r, plain, 16 * PAGE);
	gets_from(&r, &pte, &map);
	for (int i = 0; i < 5000; i++)
		r.buffer[i] = (uint8_t)(i * 11);
	for (int i = 0; i < 2; i++) {
		uint64_t at = BUFFER / 2 + (uint64_t)i * 8192;

		entry(&r, c, LIST_PRIORITY, 7, at, 5000);
		put(c, TARGET_USE_ONCE, 1);
		put(c, TARGET_MANAGE_LOCAL, 1);
		put(c, TARGET_EVENT_LINK_DISABLE, 1);
		put(c, TARGET_EVENT_UNLINK_DISABLE, 1);
		add(&r, c);
		rendezvous_put(&r, 5000, eager[i]);
		is(&r, e, EVENT_PUT, 64, RC_OK);
		CHECK(get(e, EVENT_TARGET_LONG_RENDEZVOUS) == 1 && get(e, EVENT_TARGET_LONG_MLENGTH) == eager[i]);
		is(&r, e, EVENT_RENDEZVOUS, 64, RC_OK);
		CHECK(get(e, EVENT_TARGET_LONG_INITIATOR) ==
		      (r.dev->info.nid << 12 | (GET_INDEX >> 5) << PID_BITS | r.domain->pid));
		CHECK(get(e, EVENT_TARGET_LONG_START) == r.md->iova + at + eager[i] &&
		      get(e, EVENT_TARGET_LONG_GET_ISSUED) == 1);
		CHECK(get(e, EVENT_TARGET_LONG_REMOTE_OFFSET) == eager[i] &&
		      get(e, EVENT_TARGET_LONG_RENDEZVOUS_ID) == 0x5a);
		is(&r, e, EVENT_ACK, 16, RC_OK);
		is(&r, e, EVENT_GET, 64, RC_OK);
		word = get(e, EVENT_TARGET_LONG_MATCH_BITS);
		CHECK(get(&word, RENDEZVOUS_MATCH_BITS_RENDEZVOUS_ID) == 0x5a && word >> 48 == 0xabcd);
		CHECK(get(e, EVENT_TARGET_LONG_MLENGTH) == 5000 - eager[i]);
		is(&r, e, EVENT_REPLY, 16, RC_OK);
		word = get(e, EVENT_INITIATOR_USER_PTR);
		CHECK(get(e, EVENT_INITIATOR_RENDEZVOUS) == 1 && get(&word, RENDEZVOUS_USER_PTR_BUFFER_ID) == 7);
		CHECK(get(&word, RENDEZVOUS_USER_PTR_SRC_PID) == r.domain->pid &&
		      get(&word, RENDEZVOUS_USER_PTR_RENDEZVOUS_ID) == 0x5a);
		CHECK(!memcmp(r.buffer, r.buffer + at, 5000));
	}
	CHECK(!cxil_unmap_pte(map) && !cxil_destroy_pte(pte));
	rig_close(&r);
}

/* Where software matches, the packet's header lies in front of the data, and no receive is linked: one that is there
 * takes its message still. */
static void software_managed(void)
{
	enum { HEADER = PACKET_FABRIC_BYTES + PACKET_PUT_BYTES };
	uint8_t c[TARGET_BYTES], e[64];
	struct rig r;

	CHECK(HEADER == 63 && PACKET_FABRIC_BYTES + PACKET_MESSAGE_BYTES == 49);
	rig_open(&r, controlled, 16 * PAGE);
	entry(&r, c, LIST_REQUEST, 5, 4096, 4096);
	put(c, TARGET_MANAGE_LOCAL, 1);
	add(&r, c);
	is(&r, e, EVENT_LINK, 64, RC_OK);
	entry(&r, c, LIST_PRIORITY, 7, 8192, 64);
	put(c, TARGET_USE_ONCE, 1);
	put(c, TARGET_EVENT_UNLINK_DISABLE, 1);
	add(&r, c);
	is(&r, e, EVENT_LINK, 64, RC_OK);
	set_state(&r, PTLTE_STATE_SOFTWARE_MANAGED, LIMIT_NO_DROP_COUNT);
	put_bytes(&r, 8);
	is(&r, e, EVENT_PUT, 64, RC_OK);
	CHECK(get(e, EVENT_TARGET_LONG_PTL_LIST) == LIST_PRIORITY && get(e, EVENT_TARGET_LONG_BUFFER_ID) == 7);
	is(&r, e, EVENT_ACK, 16, RC_OK);
	append(&r, LIST_PRIORITY, 6, 1, 0, 64, 0, 0);
	is(&r, e, EVENT_LINK, 64, RC_PTLTE_SW_MANAGED);
	memcpy(r.buffer, "12345678", 8);
	put_bytes(&r, 8);
	is(&r, e, EVENT_PUT, 64, RC_OK);
	CHECK(get(e, EVENT_TARGET_LONG_PTL_LIST) == LIST_REQUEST && get(e, EVENT_TARGET_LONG_MLENGTH) == HEADER + 8);
	CHECK(!memcmp(r.buffer + 4096 + HEADER, "12345678", 8));
	is(&r, e, EVENT_ACK, 16, RC_OK);
	CHECK(get(e, EVENT_INITIATOR_MLENGTH) == 8 && get(e, EVENT_INITIATOR_PTL_LIST) == LIST_REQUEST);
	rig_close(&r);
}

/* Each way to refuse a request has its code; one that nothing matches is notified to both sides. */
static void refusals(void)
{
	uint8_t c[TARGET_BYTES], e[64], again[DMA_BYTES] = {};
	struct cq_opts opts = { .count = 64, .flags = CQ_TX };
	struct cp *cp;
	struct cq *q, *own;
	struct rig r;

	rig_open(&r, plain, 16 * PAGE);
	put_bytes(&r, 8);
	is(&r, e, EVENT_PUT, 64, RC_ENTRY_NOT_FOUND);
	CHECK(get(e, EVENT_TARGET_LONG_BUFFER_ID) == 0);
	is(&r, e, EVENT_ACK, 16, RC_ENTRY_NOT_FOUND);
	entry(&r, c, LIST_PRIORITY, 1, 0, 64);
	put(c, TARGET_OP_PUT, 0);
	put(c, TARGET_EVENT_LINK_DISABLE, 1);
	add(&r, c);
	put_bytes(&r, 8);
	is(&r, e, EVENT_ACK, 16, RC_OP_VIOLATION);
	put(again, COMMAND_TYPE, CMD_TYPE_DMA);
	put(again, COMMAND_SIZE, CMD_SIZE_B64);
	put(again, COMMAND_OPCODE, OP_PUT);
	put(again, DMA_DFA, r.dev->info.nid << 12 | r.domain->pid);
	put(again, DMA_EQ, r.eq->eqn);
	put(again, DMA_INDEX_EXT, 5);
	emit(r.tx, again, sizeof again);
	ring(r.tx);
	is(&r, e, EVENT_ACK, 16, RC_PTLTE_NOT_FOUND);
	CHECK(!cxil_alloc_cp(r.lni, 1, 0, 0, &cp)); /* nothing has a PID in this VNI */
	opts.lcid = cp->lcid;
	CHECK(!cxil_alloc_cmdq(r.lni, r.eq, &opts, &q));
	own = r.tx;
	r.tx = q;
	put_bytes(&r, 8);
	is(&r, e, EVENT_ACK, 16, RC_VNI_NOT_FOUND);
	r.tx = own;
	CHECK(!cxil_destroy_cmdq(q) && !cxil_destroy_cp(cp));
	rig_close(&r);
}

/* Inline commands have no more data than they may, atomic operations the form that holds them, and of two commands in a
 * slot each is refused alone. */
static void inlines(void)
{
	static const struct {
		int op, size;
		unsigned int length, amo, type, restricted, rc;
	} cases[] = {
		{ OP_PUT, CMD_SIZE_B256, INLINE_HEAD_BYTES + 192, 0, 0, 0, RC_ENTRY_NOT_FOUND },
		{ OP_PUT, CMD_SIZE_B256, INLINE_HEAD_BYTES + 193, 0, 0, 0, RC_CMD_INVALID_ARG },
		{ OP_PUT, CMD_SIZE_B256, INLINE_HEAD_BYTES + 224, 0, 0, 1, RC_ENTRY_NOT_FOUND },
		{ OP_PUT, CMD_SIZE_B256, INLINE_HEAD_BYTES + 225, 0, 0, 1, RC_CMD_INVALID_ARG },
		{ OP_PUT, CMD_SIZE_B64, INLINE_HEAD_BYTES + 49, 0, 0, 0, RC_CMD_INVALID_ARG },
		{ OP_PUT, CMD_SIZE_B64, INLINE_HEAD_BYTES - 1, 0, 0, 0, RC_CMD_INVALID_ARG },
		{ OP_ATOMIC, CMD_SIZE_B32, 32, AMO_SUM, AMO_TYPE_U64, 0, RC_ENTRY_NOT_FOUND },
		{ OP_ATOMIC, CMD_SIZE_B32, 31, AMO_SUM, AMO_TYPE_U64, 0, RC_CMD_INVALID_ARG },
		{ OP_ATOMIC, CMD_SIZE_B32, 32, AMO_SUM, AMO_TYPE_C64, 0, RC_CMD_INVALID_ARG },
		{ OP_ATOMIC, CMD_SIZE_B32, 32, AMO_CSWAP, AMO_TYPE_U64, 0, RC_CMD_INVALID_ARG },
		{ OP_FETCHING_ATOMIC, CMD_SIZE_B32, 32, AMO_SUM, AMO_TYPE_U64, 0, RC_CMD_INVALID_ARG },
		{ OP_FETCHING_ATOMIC, CMD_SIZE_B64, 32, AMO_SUM, AMO_TYPE_U64, 0, RC_CMD_INVALID_ARG },
	};
	uint8_t c[256], s[CSTATE_BYTES], e[64];
	struct rig r;

	rig_open(&r, plain, 16 * PAGE);
	for (unsigned int i = 0; i < sizeof cases / sizeof *cases; i++) {
		memset(s, 0, sizeof s);
		put(s, COMMAND_OPCODE, OP_CSTATE);
		put(s, CSTATE_LENGTH, sizeof s);
		put(s, CSTATE_EVENT_SEND_DISABLE, 1);
		put(s, CSTATE_RESTRICTED, cases[i].restricted);
		put(s, CSTATE_EQ, r.eq->eqn);
		memset(c, 0, sizeof c);
		put(c, COMMAND_OPCODE, (uint64_t)cases[i].op);
		put(c, COMMAND_SIZE, (uint64_t)cases[i].size);
		put(c, INLINE_HEAD_LENGTH, cases[i].length);
		put(c, INLINE_HEAD_DFA, r.dev->info.nid << 12 | r.domain->pid);
		if (cases[i].size == CMD_SIZE_B32) {
			put(c + INLINE_HEAD_BYTES, INLINE_ATOMIC_SMALL_AMO_OP, cases[i].amo);
			put(c + INLINE_HEAD_BYTES, INLINE_ATOMIC_SMALL_AMO_TYPE, cases[i].type);
		} else if (cases[i].op != OP_PUT) {
			put(c, INLINE_ATOMIC_ATOMIC_OP, cases[i].amo);
			put(c, INLINE_ATOMIC_ATOMIC_TYPE, cases[i].type);
		}
		emit(r.tx, s, sizeof s);
		emit(r.tx, c, 32u << cases[i].size);
		ring(r.tx);
		if (cases[i].rc == RC_CMD_INVALID_ARG) {
			is(&r, e, EVENT_COMMAND_FAILURE, 16, RC_CMD_INVALID_ARG);
			CHECK(get(e, EVENT_COMMAND_FAILURE_FAIL_COMMAND) == c[0]);
			continue;
		}
		is(&r, e, EVENT_PUT, 64, cases[i].rc);
		is(&r, e, EVENT_ACK, 16, cases[i].rc);
	}
	rig_close(&r);
}

/* With flow control an append that finds no room fails all behind it, until one says that the sequence begins again. */
static void sequence(void)
{
	uint8_t c[TARGET_BYTES], e[64];
	struct rig r;

	rig_open(&r, controlled, 16 * PAGE);
	cassini_set("les", 1);
	entry(&r, c, LIST_PRIORITY, 1, 0, 64);
	add(&r, c);
	is(&r, e, EVENT_LINK, 64, RC_OK);
	add(&r, c);
	is(&r, e, EVENT_LINK, 64, RC_NO_SPACE);
	cassini_set("les", 10);
	add(&r, c);
	is(&r, e, EVENT_LINK, 64, RC_NO_SPACE);
	put(c, TARGET_RESTART_SEQ, 1);
	add(&r, c);
	is(&r, e, EVENT_LINK, 64, RC_OK);
	rig_close(&r);
}

const struct test rule_tests[] = {
	{ "links", links },
	{ "rendezvous", rendezvous },
	{ "software_managed", software_managed },
	{ "refusals", refusals },
	{ "sequence", sequence },
	{ "inlines", inlines },
	{},
};
