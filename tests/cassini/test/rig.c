/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the tests of the model share.
 */
#include "rig.h"
#include <sys/mman.h>
#include <unistd.h>

static void queue(struct rig *r, bool tx, struct cq **q)
{
	struct cq_opts opts = { .count = 256, .flags = tx ? CQ_TX : 0, .lcid = tx ? r->cp->lcid : 0 };

	CHECK(!cxil_alloc_cmdq(r->lni, r->eq, &opts, q));
}

void rig_open(struct rig *r, struct pt_opts opts, size_t eq_bytes)
{
	struct device_list *list;
	struct eq_attr attr = { .queue_len = eq_bytes };

	memset(r, 0, sizeof *r);
	CHECK(!cxil_get_device_list(&list) && list->count >= 1);
	cxil_free_device_list(list);
	CHECK(!cxil_open_device(0, &r->dev));
	CHECK(!cxil_alloc_lni(r->dev, &r->lni, DEFAULT_SERVICE));
	CHECK(!cxil_alloc_cp(r->lni, VNI, 0, 0, &r->cp));
	CHECK(!cxil_alloc_domain(r->lni, VNI, LIMIT_PID_ANY, &r->domain));
	attr.queue = mmap(NULL, eq_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(!cxil_map(r->lni, attr.queue, eq_bytes, MAP_PIN | MAP_NIC_READ | MAP_NIC_WRITE, NULL, &r->eq_md));
	CHECK(!cxil_alloc_evtq(r->lni, r->eq_md, &attr, NULL, NULL, &r->eq));
	CHECK(cassini_count("queue_bytes") == eq_bytes);
	queue(r, true, &r->tx);
	queue(r, false, &r->target);
	CHECK(!cxil_alloc_pte(r->lni, r->eq, &opts, &r->pte));
	CHECK(!cxil_map_pte(r->pte, r->domain, 0, false, &r->map));
	r->buffer = mmap(NULL, BUFFER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(!cxil_map(r->lni, r->buffer, BUFFER, MAP_PIN | MAP_NIC_READ | MAP_NIC_WRITE, NULL, &r->md));
	CHECK(r->md->iova != r->md->va);
	set_state(r, PTLTE_STATE_ENABLED, LIMIT_NO_DROP_COUNT);
}

void rig_close(struct rig *r)
{
	void *events = r->eq->events;
	size_t n = r->eq->byte_size;

	CHECK(cxil_destroy_lni(r->lni) == -16); /* EBUSY */
	CHECK(!cxil_unmap_pte(r->map) && !cxil_destroy_pte(r->pte));
	CHECK(!cxil_destroy_cmdq(r->tx) && !cxil_destroy_cmdq(r->target));
	CHECK(!cxil_destroy_evtq(r->eq) && !cassini_count("queue_bytes"));
	CHECK(!cxil_unmap(r->eq_md) && !cxil_unmap(r->md));
	CHECK(!cxil_destroy_domain(r->domain) && !cxil_destroy_cp(r->cp) && !cxil_destroy_lni(r->lni));
	cxil_close_device(r->dev);
	munmap(events, n);
	munmap(r->buffer, BUFFER);
}

/* emit aligns a command as the queue wants it, with nothing before it. */
void emit(struct cq *q, const void *cmd, unsigned int bytes)
{
	unsigned int half = bytes / 32;

	while (q->wp32 % half) {
		memset(q->ring + q->wp32 * 32, 0, 32);
		if (++q->wp32 >= q->size32)
			q->wp32 = 2 * LIMIT_CMDQ_FIRST;
	}
	memcpy(q->ring + q->wp32 * 32, cmd, bytes);
	q->wp32 += half;
	if (q->wp32 >= q->size32)
		q->wp32 = 2 * LIMIT_CMDQ_FIRST;
}

void ring(struct cq *q)
{
	if (q->wp32 % 2) {
		memset(q->ring + q->wp32 * 32, 0, 32);
		if (++q->wp32 >= q->size32)
			q->wp32 = 2 * LIMIT_CMDQ_FIRST;
	}
	__atomic_store_n(q->wp_addr, q->wp32 / 2, __ATOMIC_RELEASE);
	settle();
}

void settle(void)
{
	if (set.mode == MODE_STEPPED)
		while (cassini_step(~0u))
			;
}

static unsigned int size_of(const uint8_t *e)
{
	return 8u << get(e, EVENT_INITIATOR_EVENT_SIZE);
}

unsigned int event_rc(const uint8_t *e)
{
	return e[size_of(e) - 1] & 63;
}

int next(struct rig *r, uint8_t e[64])
{
	struct eq *q = r->eq;

	for (;;) {
		uint8_t *at = q->events + q->rd_offset;
		unsigned int n = __atomic_load_n((uint64_t *)(at + 8), __ATOMIC_ACQUIRE) >> 48 & 3;

		if (!n)
			return -1;
		n = 8u << n;
		while (!(__atomic_load_n((uint64_t *)(at + n - 8), __ATOMIC_ACQUIRE) >> 56 & 63))
			;
		memset(e, 0, 64);
		memcpy(e, at, n);
		memset(at, 0, n);
		q->rd_offset += n;
		if (q->rd_offset >= q->byte_size)
			q->rd_offset = SLOT;
		__atomic_store_n(q->sw_state_addr, q->rd_offset / SLOT, __ATOMIC_RELEASE);
		if (get(e, EVENT_INITIATOR_EVENT_TYPE) != EVENT_NULL)
			return (int)get(e, EVENT_INITIATOR_EVENT_TYPE);
	}
}

int await(struct rig *r, uint8_t e[64])
{
	for (int ms = 0; ms < 20000; ms++) {
		int type;

		settle();
		type = next(r, e);
		if (type >= 0)
			return type;
		usleep(1000);
	}
	fprintf(stderr, "no event\n");
	abort();
}

static void head(uint8_t *cmd, int type, int size, int op)
{
	put(cmd, COMMAND_TYPE, (uint64_t)type);
	put(cmd, COMMAND_SIZE, (uint64_t)size);
	put(cmd, COMMAND_OPCODE, (uint64_t)op);
}

void append(struct rig *r, int list, unsigned int id, uint64_t bits, uint64_t at, uint64_t length, uint32_t flags,
	    uint32_t min_free)
{
	uint8_t c[TARGET_BYTES] = {};

	head(c, CMD_TYPE_CMDQ, CMD_SIZE_B64, CMDQ_OP_APPEND);
	put(c, TARGET_PTL_LIST, (uint64_t)list);
	put(c, TARGET_PTLTE_INDEX, r->pte->ptn);
	put(c, TARGET_BUFFER_ID, id);
	put(c, TARGET_MATCH_BITS, bits);
	put(c, TARGET_IGNORE_BITS, list == LIST_OVERFLOW ? ~0ull : 0);
	put(c, TARGET_MATCH_ID, ~0u);
	put(c, TARGET_START, r->md->iova + at);
	put(c, TARGET_LAC, r->md->lac);
	put(c, TARGET_LENGTH, length);
	put(c, TARGET_MIN_FREE, min_free);
	put(c, TARGET_OP_PUT, 1);
	put(c, TARGET_OP_GET, 1);
	put(c, TARGET_USE_ONCE, flags & USE_ONCE ? 1 : 0);
	put(c, TARGET_MANAGE_LOCAL, flags & MANAGED ? 1 : 0);
	put(c, TARGET_NO_TRUNCATE, flags & NO_TRUNCATE ? 1 : 0);
	put(c, TARGET_EVENT_LINK_DISABLE, flags & NO_LINK ? 1 : 0);
	emit(r->target, c, sizeof c);
	ring(r->target);
}

void unlink_id(struct rig *r, int list, unsigned int id)
{
	uint8_t c[TARGET_BYTES] = {};

	head(c, CMD_TYPE_CMDQ, CMD_SIZE_B64, CMDQ_OP_UNLINK);
	put(c, TARGET_PTL_LIST, (uint64_t)list);
	put(c, TARGET_PTLTE_INDEX, r->pte->ptn);
	put(c, TARGET_BUFFER_ID, id);
	emit(r->target, c, sizeof c);
	ring(r->target);
}

void set_state(struct rig *r, int state, uint32_t drops)
{
	uint8_t c[SET_STATE_BYTES] = {}, e[64];

	head(c, CMD_TYPE_CMDQ, CMD_SIZE_B64, CMDQ_OP_SET_STATE);
	put(c, SET_STATE_PTLTE_INDEX, r->pte->ptn);
	put(c, SET_STATE_PTLTE_STATE, (uint64_t)state);
	put(c, SET_STATE_DROP_COUNT, drops);
	emit(r->target, c, sizeof c);
	ring(r->target);
	CHECK(await(r, e) == EVENT_STATE_CHANGE);
}

void dma(struct rig *r, int op, uint32_t nid, unsigned int pid, uint64_t bits, uint64_t from, uint32_t length,
	 uint64_t user)
{
	uint8_t c[DMA_BYTES] = {};

	head(c, CMD_TYPE_DMA, CMD_SIZE_B64, op);
	put(c, DMA_DFA, nid << 12 | pid);
	put(c, DMA_LAC, r->md->lac);
	put(c, DMA_LOCAL_ADDR, r->md->iova + from);
	put(c, DMA_REQUEST_LEN, length);
	put(c, DMA_EQ, r->eq->eqn);
	put(c, DMA_EVENT_SEND_DISABLE, 1);
	put(c, DMA_INITIATOR, r->domain->pid << (32 - PID_BITS) | r->dev->info.nid);
	put(c, DMA_MATCH_BITS, bits);
	put(c, DMA_USER_PTR, user);
	emit(r->tx, c, sizeof c);
	ring(r->tx);
}

uint32_t draw(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (uint32_t)(*state >> 32);
}
