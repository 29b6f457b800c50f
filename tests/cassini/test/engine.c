/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The engine: transfers in each mode, rings of any bytes, event queues, flow control, counters, limits.
 */
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#include "rig.h"

static const struct pt_opts matching = { .is_matching = 1, .use_long_event = 1 };

/* transfer puts and gets where the NIC moves in one of its ways. */
static void transfer(enum mode mode)
{
	struct rig r;
	uint8_t e[64];

	set.mode = mode;
	rig_open(&r, matching, 16 * PAGE);
	for (int i = 0; i < 50000; i++)
		r.buffer[i] = (uint8_t)(i * 7);
	append(&r, LIST_PRIORITY, 1, 42, 100000, 60000, 0, 0);
	CHECK(await(&r, e) == EVENT_LINK);
	dma(&r, OP_PUT, r.dev->info.nid, r.domain->pid, 42, 0, 50000, 77);
	CHECK(await(&r, e) == EVENT_PUT && get(e, EVENT_TARGET_LONG_MLENGTH) == 50000);
	CHECK(await(&r, e) == EVENT_ACK && event_rc(e) == RC_OK && get(e, EVENT_INITIATOR_USER_PTR) == 77);
	CHECK(!memcmp(r.buffer, r.buffer + 100000, 50000));
	dma(&r, OP_GET, r.dev->info.nid, r.domain->pid, 42, 200000, 50000, 78);
	CHECK(await(&r, e) == EVENT_GET);
	CHECK(await(&r, e) == EVENT_REPLY && event_rc(e) == RC_OK && get(e, EVENT_INITIATOR_MLENGTH) == 50000);
	CHECK(!memcmp(r.buffer, r.buffer + 200000, 50000));
	dma(&r, OP_PUT, r.dev->info.nid, r.domain->pid, 42, 0, 60001, 79);
	CHECK(await(&r, e) == EVENT_ACK && event_rc(e) == RC_ADDR_OUT_OF_RANGE);
	dma(&r, OP_PUT, r.dev->info.nid, (r.domain->pid + 1) % 500, 42, 0, 8, 80);
	CHECK(await(&r, e) == EVENT_ACK && event_rc(e) == RC_PTLTE_NOT_FOUND);
	dma(&r, OP_PUT, 4711, 0, 42, 0, 8, 81);
	CHECK(await(&r, e) == EVENT_ACK && event_rc(e) == RC_UNDELIVERABLE);
	dma(&r, OP_PUT, r.dev->info.nid, r.domain->pid, 42, BUFFER, 8, 82);
	CHECK(await(&r, e) == EVENT_ACK && event_rc(e) == RC_NO_TRANSLATION);
	rig_close(&r);
}

static void direct(void)
{
	transfer(MODE_DIRECT);
}
static void threaded(void)
{
	transfer(MODE_THREADED);
}
static void stepped(void)
{
	transfer(MODE_STEPPED);
}

static void on_signal(int sig)
{
	_exit(2 + sig);
}

/* Without signals the process's handler stays, and memory that is missing is an error as with them. */
static void signals(bool caught)
{
	struct sigaction own = { .sa_handler = on_signal }, now;
	struct rig r;
	uint8_t e[64];

	sigaction(SIGSEGV, &own, NULL);
	set.mode = MODE_THREADED;
	set.signals = caught;
	rig_open(&r, matching, 16 * PAGE);
	CHECK(!sigaction(SIGSEGV, NULL, &now) && (now.sa_handler == on_signal) == !caught);
	append(&r, LIST_PRIORITY, 1, 42, 100000, 60000, 0, 0);
	CHECK(await(&r, e) == EVENT_LINK);
	memset(r.buffer, 7, 50000);
	dma(&r, OP_PUT, r.dev->info.nid, r.domain->pid, 42, 0, 50000, 77);
	CHECK(await(&r, e) == EVENT_PUT && await(&r, e) == EVENT_ACK && event_rc(e) == RC_OK);
	CHECK(!memcmp(r.buffer, r.buffer + 100000, 50000));
	CHECK(!mprotect(r.buffer, PAGE, PROT_NONE));
	dma(&r, OP_PUT, r.dev->info.nid, r.domain->pid, 42, 0, 8, 78);
	CHECK(await(&r, e) == EVENT_PUT && event_rc(e) == RC_NO_TRANSLATION);
	CHECK(await(&r, e) == EVENT_ACK && event_rc(e) == RC_NO_TRANSLATION);
	CHECK(!mprotect(r.buffer, PAGE, PROT_READ | PROT_WRITE));
	rig_close(&r);
}

static void signals_caught(void)
{
	signals(true);
}
static void signals_left(void)
{
	signals(false);
}

/* In steps, nothing happens until the test says so. */
static void stands_still(void)
{
	uint8_t c[DMA_BYTES] = {}, e[64];
	struct rig r;

	set.mode = MODE_STEPPED;
	rig_open(&r, matching, 16 * PAGE);
	put(c, COMMAND_TYPE, CMD_TYPE_DMA);
	put(c, COMMAND_SIZE, CMD_SIZE_B64);
	put(c, COMMAND_OPCODE, OP_PUT);
	put(c, DMA_DFA, 4711u << 12);
	put(c, DMA_EQ, r.eq->eqn);
	put(c, DMA_EVENT_SEND_DISABLE, 1);
	emit(r.tx, c, sizeof c);
	emit(r.tx, c, sizeof c);
	*(volatile uint64_t *)r.tx->wp_addr = r.tx->wp32 / 2;
	CHECK(next(&r, e) == -1);
	CHECK(cassini_step(1) == 1 && next(&r, e) == EVENT_ACK && next(&r, e) == -1);
	CHECK(cassini_step(9) == 1 && next(&r, e) == EVENT_ACK && cassini_step(9) == 0);
	rig_close(&r);
}

/* scramble fills a command with bytes of which some make sense. */
static void scramble(struct rig *r, uint64_t *seed, uint8_t *c, bool tx)
{
	for (int i = 0; i < 256; i++)
		c[i] = (uint8_t)draw(seed);
	if (draw(seed) % 4 == 0)
		return;
	if (!tx) {
		put(c, COMMAND_TYPE, CMD_TYPE_CMDQ);
		put(c, COMMAND_SIZE, CMD_SIZE_B64);
		put(c, TARGET_PTLTE_INDEX, r->pte->ptn);
		put(c, TARGET_START, r->md->iova + draw(seed) % (2 * BUFFER));
		put(c, TARGET_LAC, r->md->lac);
		put(c, TARGET_LENGTH, draw(seed) % (2 * BUFFER));
		put(c, TARGET_IGNORE_BITS, ~0ull);
		put(c, TARGET_MATCH_ID, ~0u);
		return;
	}
	put(c, DMA_DFA, r->dev->info.nid << 12 | r->domain->pid);
	if (draw(seed) % 8)
		put(c, DMA_INDEX_EXT, 0);
	put(c, DMA_EQ, r->eq->eqn);
	put(c, DMA_LAC, r->md->lac);
	put(c, DMA_LOCAL_ADDR, r->md->iova + draw(seed) % (2 * BUFFER));
	put(c, DMA_REQUEST_LEN, draw(seed) % BUFFER);
	put(c, DMA_REMOTE_OFFSET, draw(seed) % (2 * BUFFER));
}

/* Rings of any bytes, and write pointers of any value, are answered by events. */
static void fuzz(void)
{
	struct rig r;
	uint8_t c[256], e[64];

	rig_open(&r, matching, 64 * PAGE);
	for (uint64_t n = 1; n <= 6000; n++) {
		uint64_t seed = n * 0x9e3779b97f4a7c15;
		bool tx = draw(&seed) % 2;
		struct cq *q = tx ? r.tx : r.target;

		for (unsigned int i = draw(&seed) % 4; i < 4; i++) {
			unsigned int bytes = 32u << draw(&seed) % 4;

			scramble(&r, &seed, c, tx);
			emit(q, c, bytes);
		}
		ring(q);
		if (n % 64 == 0)
			*(volatile uint64_t *)q->wp_addr = draw(&seed) % 4096 + 65536;
		while (next(&r, e) >= 0)
			;
	}
	CHECK(cassini_count("commands") > 6000);
	while (next(&r, e) >= 0)
		;
	set_state(&r, PTLTE_STATE_RESET, LIMIT_NO_DROP_COUNT);
	set_state(&r, PTLTE_STATE_ENABLED, LIMIT_NO_DROP_COUNT);
	append(&r, LIST_PRIORITY, 9, 1, 0, 64, NO_LINK, 0);
	dma(&r, OP_PUT, r.dev->info.nid, r.domain->pid, 1, 64, 64, 1);
	CHECK(await(&r, e) == EVENT_PUT && await(&r, e) == EVENT_ACK && event_rc(e) == RC_OK);
	rig_close(&r);
}

/* A full event queue drops events and says so; what it has is whole. */
static void full_queue(void)
{
	struct rig r;
	uint8_t e[64];
	unsigned int n = 0;

	rig_open(&r, matching, PAGE);
	for (int i = 0; i < 300; i++)
		dma(&r, OP_PUT, 4711, 0, 0, 0, 8, (uint64_t)i);
	CHECK(get(r.eq->events, EQ_STATUS_UNACKD_DROPPED_EVENT));
	while (next(&r, e) >= 0)
		CHECK(get(e, EVENT_INITIATOR_USER_PTR) == n++);
	/* Of 64 blocks one is for status, one stays free, and one had begun. */
	CHECK(n >= 61 * 4 && n <= 62 * 4);
	CHECK(n + cassini_count("dropped") == 300);
	rig_close(&r);
}

/* The message that disables a table entry is its first drop, and enabling wants the right count. */
static void drops(unsigned int version)
{
	struct pt_opts opts = matching;
	struct rig r;
	uint8_t e[64];
	uint32_t first = version == 2 ? 1 : 0;

	set.version = version;
	opts.en_flowctrl = 1;
	rig_open(&r, opts, 16 * PAGE);
	for (int i = 0; i < 3; i++) {
		dma(&r, OP_PUT, r.dev->info.nid, r.domain->pid, 1, 0, 8, 1);
		if (!i) {
			CHECK(await(&r, e) == EVENT_STATE_CHANGE);
			CHECK(get_small(get(e, EVENT_TARGET_LONG_INITIATOR), STATE_CHANGE_SC_NIC_AUTO) == 1);
			CHECK(get_small(get(e, EVENT_TARGET_LONG_INITIATOR), STATE_CHANGE_SC_REASON) ==
			      REASON_FC_NO_MATCH);
		}
		CHECK(await(&r, e) == EVENT_ACK && event_rc(e) == RC_PT_DISABLED);
	}
	struct pt_status status = {};

	CHECK(!cxil_pte_status(r.pte, &status) && status.drop_count == first + 2 &&
	      status.state == PTLTE_STATE_DISABLED);
	CHECK(cxil_pte_transition_sm(r.pte, first + 1) == -11); /* EAGAIN */
	set_state(&r, PTLTE_STATE_ENABLED, first + 1);
	CHECK(!cxil_pte_status(r.pte, &status) && status.state == PTLTE_STATE_DISABLED);
	set_state(&r, PTLTE_STATE_ENABLED, first + 2);
	CHECK(!cxil_pte_status(r.pte, &status) && status.state == PTLTE_STATE_ENABLED && !status.drop_count);
	rig_close(&r);
}

static void drops_1(void)
{
	drops(1);
}
static void drops_2(void)
{
	drops(2);
}

/* Equal increments in a row all count; the failure half is written back by itself. */
static void counters(enum mode mode)
{
	struct rig r;
	uint64_t wb = 0;
	struct ct *ct;

	set.mode = mode;
	rig_open(&r, matching, 16 * PAGE);
	CHECK(!cxil_alloc_ct(r.lni, &wb, &ct));
	for (int i = 0; i < 1000; i++)
		*(volatile uint64_t *)((uint8_t *)ct->doorbell + COUNTER_PAGE_INC_SUCCESS) = 3;
	*(volatile uint64_t *)((uint8_t *)ct->doorbell + COUNTER_PAGE_INC_FAILURE) = 2;
	settle();
	CHECK(get(&wb, COUNTER_WRITEBACK_CT_SUCCESS) == 3000 && get(&wb, COUNTER_WRITEBACK_CT_FAILURE) == 2);
	*(volatile uint64_t *)((uint8_t *)ct->doorbell + COUNTER_PAGE_RESET_SUCCESS) = 0;
	settle();
	CHECK(get(&wb, COUNTER_WRITEBACK_CT_SUCCESS) == 0);
	CHECK(!cxil_destroy_ct(ct));
	rig_close(&r);
}

static void counters_direct(void)
{
	counters(MODE_DIRECT);
}
static void counters_stepped(void)
{
	counters(MODE_STEPPED);
}

/* A wait object raises POLLPRI while interrupts are on, and is quiet after it was cleared. */
static void wait_object(void)
{
	struct eq_attr attr = { .queue_len = PAGE };
	struct cxil_wait_obj *w;
	struct pollfd p = { .events = POLLPRI };
	struct eq *eq, *ours;
	struct md *md;
	struct rig r;
	uint8_t e[64];

	rig_open(&r, matching, 16 * PAGE);
	attr.queue = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(!cxil_map(r.lni, attr.queue, PAGE, MAP_PIN | MAP_NIC_READ | MAP_NIC_WRITE, NULL, &md));
	CHECK(!cxil_alloc_wait_obj(r.lni, &w) && !cxil_alloc_evtq(r.lni, md, &attr, w, NULL, &eq));
	ours = r.eq;
	r.eq = eq;
	p.fd = cxil_get_wait_obj_fd(w);
	CHECK(poll(&p, 1, 0) == 0);
	dma(&r, OP_PUT, 4711, 0, 0, 0, 8, 1);
	CHECK(poll(&p, 1, 1000) == 1 && p.revents & POLLPRI);
	CHECK(next(&r, e) == EVENT_ACK);
	cxil_clear_wait_obj(w);
	CHECK(poll(&p, 1, 0) == 0);
	*(volatile uint64_t *)eq->sw_state_addr = (eq->rd_offset / SLOT) | 1ull << 32; /* interrupts off */
	dma(&r, OP_PUT, 4711, 0, 0, 0, 8, 1);
	CHECK(poll(&p, 1, 0) == 0);
	*(volatile uint64_t *)eq->sw_state_addr = eq->rd_offset / SLOT; /* on, with an event unread */
	CHECK(poll(&p, 1, 1000) == 1);
	r.eq = ours;
	CHECK(!cxil_destroy_evtq(eq) && !cxil_unmap(md) && !cxil_destroy_wait_obj(w));
	munmap(attr.queue, PAGE);
	rig_close(&r);
}

/* Limits and faults that are ordered. */
static void ordered(void)
{
	struct rig r;
	struct md *md;
	struct cxil_domain *d;
	uint8_t e[64];
	char *page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	rig_open(&r, matching, 16 * PAGE);
	CHECK(cassini_set("les", 2) && !cassini_set("no such thing", 1));
	append(&r, LIST_PRIORITY, 1, 1, 0, 8, 0, 0);
	append(&r, LIST_PRIORITY, 2, 2, 0, 8, 0, 0);
	append(&r, LIST_PRIORITY, 3, 3, 0, 8, 0, 0);
	CHECK(await(&r, e) == EVENT_LINK && await(&r, e) == EVENT_LINK && event_rc(e) == RC_OK);
	CHECK(await(&r, e) == EVENT_LINK && event_rc(e) == RC_NO_SPACE);
	CHECK(cxil_map(r.lni, page, PAGE, MAP_PIN | MAP_NIC_WRITE, NULL, &md) == -22);
	munmap(page, PAGE);
	CHECK(cxil_map(r.lni, page, PAGE, MAP_PIN | MAP_NIC_WRITE, NULL, &md) == -14);
	CHECK(cxil_alloc_domain(r.lni, VNI, r.domain->pid, &d) == -17);
	CHECK(cxil_alloc_domain(r.lni, 0x1234, 1, &d) == -22);
	cassini_set("fault_at", (long)cassini_count("commands") + 2);
	cassini_set("fault_rc", RC_UNCOR);
	dma(&r, OP_PUT, 4711, 0, 0, 0, 8, 1);
	CHECK(await(&r, e) == EVENT_ACK);
	dma(&r, OP_PUT, 4711, 0, 0, 0, 8, 1);
	CHECK(await(&r, e) == EVENT_COMMAND_FAILURE && event_rc(e) == RC_UNCOR);
	dma(&r, OP_PUT, 4711, 0, 0, 0, 8, 1);
	CHECK(await(&r, e) == EVENT_ACK);
	rig_close(&r);
}

/* write_of is an operation of some initiator on no bytes; silent: without an ACK. */
static void write_of(struct rig *r, int op, uint32_t initiator, bool silent)
{
	uint8_t c[DMA_BYTES] = {};

	put(c, COMMAND_TYPE, CMD_TYPE_DMA);
	put(c, COMMAND_SIZE, CMD_SIZE_B64);
	put(c, COMMAND_OPCODE, (uint64_t)op);
	put(c, DMA_DFA, r->dev->info.nid << 12 | r->domain->pid);
	put(c, DMA_EQ, r->eq->eqn);
	put(c, DMA_EVENT_SEND_DISABLE, 1);
	put(c, DMA_EVENT_SUCCESS_DISABLE, silent);
	put(c, DMA_INITIATOR, initiator);
	emit(r->tx, c, sizeof c);
}

/* Where events change places, a message overtakes that of another initiator, and a GET an ACK; nothing else does. */
static void shuffled(void)
{
	static const uint32_t from[] = { 1, 2, 2, 1, 3 }, order[] = { 2, 1, 1, 2, 3 };
	static const int ops[] = { OP_PUT, OP_GET, OP_PUT, OP_PUT };
	static const int kinds[] = { EVENT_PUT, EVENT_GET, EVENT_ACK, EVENT_REPLY,
				     EVENT_PUT, EVENT_ACK, EVENT_PUT, EVENT_ACK };
	uint8_t e[64];
	struct rig r;

	set.mode = MODE_STEPPED;
	rig_open(&r, matching, 16 * PAGE);
	append(&r, LIST_PRIORITY, 1, 0, 0, 64, NO_LINK, 0);
	cassini_set("shuffle", 1);
	for (int i = 0; i < 5; i++)
		write_of(&r, OP_PUT, from[i], true);
	ring(r.tx);
	for (int i = 0; i < 5; i++)
		CHECK(await(&r, e) == EVENT_PUT && get(e, EVENT_TARGET_LONG_INITIATOR) == order[i]);
	for (int i = 0; i < 4; i++)
		write_of(&r, ops[i], 1, false);
	ring(r.tx);
	for (int i = 0; i < 8; i++)
		CHECK(await(&r, e) == kinds[i]);
	rig_close(&r);
}

const struct test engine_tests[] = {
	{ "direct", direct },
	{ "threaded", threaded },
	{ "stepped", stepped },
	{ "stands_still", stands_still },
	{ "signals_caught", signals_caught },
	{ "signals_left", signals_left },
	{ "fuzz", fuzz },
	{ "full_queue", full_queue },
	{ "drops_1", drops_1 },
	{ "drops_2", drops_2 },
	{ "counters_direct", counters_direct },
	{ "counters_stepped", counters_stepped },
	{ "wait_object", wait_object },
	{ "ordered", ordered },
	{ "shuffled", shuffled },
	{},
};
