/* SPDX-License-Identifier: BSD-2-Clause */
/* Short writes and atomics on one integer, which no process enters Go for: against a plain model. */
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <stdlib.h>

#include "common.h"

#define LEN ((size_t)4096)
#define KEY 0x78
#define DEPTH 32

struct rma {
	struct node n;
	struct fid_mr *mr; /* rank 1's memory */
	char *mem;	   /* LEN bytes, the target or the local side */
};

static void open_rma_counted(struct rma *r, uint64_t tx_flags, struct fid_cntr **cntr)
{
	struct node_opts o = {
		.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC,
		.tx_flags = tx_flags,
		.disabled = cntr != NULL,
	};
	struct fi_info *info = node_info(&o);

	NEED(info != NULL, "one-sided operations");
	fi_freeinfo(info);
	memset(r, 0, sizeof(*r));
	node_open(&r->n, &o);
	if (cntr) {
		struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };

		OK(fi_cntr_open(r->n.domain, &attr, cntr, NULL));
		OK(fi_ep_bind(r->n.ep, &(*cntr)->fid, FI_WRITE));
		OK(fi_enable(r->n.ep));
		r->n.o.disabled = false;
	}
	node_connect(&r->n);
	r->mem = guard_alloc(LEN);
	memset(r->mem, 0, LEN);
	if (test_rank == 1)
		OK(fi_mr_reg(r->n.domain, r->mem, LEN, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &r->mr, NULL));
	barrier(&r->n);
}

static void open_rma(struct rma *r)
{
	open_rma_counted(r, 0, NULL);
}

static void close_rma(struct rma *r)
{
	barrier(&r->n);
	if (r->mr)
		OK(fi_close(&r->mr->fid));
	node_close(&r->n);
	guard_free(r->mem, LEN);
}

/* Posts until there is room. */
#define POST(r, call) \
	do { \
		ssize_t rc_; \
		while ((rc_ = (call)) == -FI_EAGAIN) \
			progress(&(r)->n); \
		CHECKF(rc_ == 0, "%s: %zd", #call, rc_); \
	} while (0)

static void done(struct rma *r, uint64_t flags)
{
	struct fi_cq_tagged_entry e;

	wait_ok(&r->n, r->n.txcq, &e);
	CHECK(e.op_context == r);
	CHECK((e.flags & flags) == flags);
}

/* Both ranks add to one word of rank 1's; every second operation fetches. Nothing
 * is lost, and what one rank fetches only grows. */
static void test_one_word(long rounds)
{
	const char *env = getenv("WEFT_TEST_ROUNDS");
	uint64_t one = 1, old[DEPTH] = { 0 }, last = 0;
	struct rma r;

	if (env)
		rounds = atol(env);
	open_rma(&r);
	for (long i = 0; i < rounds; i += DEPTH) {
		for (int k = 0; k < DEPTH; k++)
			if (k & 1)
				POST(&r, fi_fetch_atomic(r.n.ep, &one, 1, NULL, &old[k], NULL, r.n.peer[1], 8, KEY,
							 FI_UINT64, FI_SUM, &r));
			else
				POST(&r, fi_inject_atomic(r.n.ep, &one, 1, r.n.peer[1], 8, KEY, FI_UINT64, FI_SUM));
		for (int k = 1; k < DEPTH; k += 2)
			done(&r, FI_ATOMIC | FI_READ);
		for (int k = 1; k < DEPTH; k += 2) {
			CHECKF(old[k] > last, "fetched %lu after %lu", (unsigned long)old[k], (unsigned long)last);
			last = old[k];
		}
	}
	barrier(&r.n);
	if (test_rank == 1) {
		uint64_t want = 2 * (uint64_t)((rounds + DEPTH - 1) / DEPTH * DEPTH), sum;

		memcpy(&sum, r.mem + 8, sizeof(sum));
		CHECKF(sum == want, "%lu, expected %lu", (unsigned long)sum, (unsigned long)want);
	}
	close_rma(&r);
}

/* What a word of 4 or 8 bytes becomes. */
static uint64_t model(enum fi_datatype t, enum fi_op op, uint64_t cur, uint64_t x, uint64_t c)
{
	bool narrow = t == FI_INT32 || t == FI_UINT32, is_signed = t == FI_INT32 || t == FI_INT64;
	uint64_t mask = narrow ? UINT32_MAX : UINT64_MAX, next = x;
	int64_t s = narrow ? (int32_t)cur : (int64_t)cur, sx = narrow ? (int32_t)x : (int64_t)x;
	int64_t sc = narrow ? (int32_t)c : (int64_t)c;

	cur &= mask, x &= mask, c &= mask;
	switch (op) {
	case FI_MIN:
		next = (is_signed ? sx < s : x < cur) ? x : cur;
		break;
	case FI_MAX:
		next = (is_signed ? sx > s : x > cur) ? x : cur;
		break;
	case FI_SUM:
		next = cur + x;
		break;
	case FI_PROD:
		next = cur * x;
		break;
	case FI_LOR:
		next = cur || x;
		break;
	case FI_LAND:
		next = cur && x;
		break;
	case FI_BOR:
		next = cur | x;
		break;
	case FI_BAND:
		next = cur & x;
		break;
	case FI_LXOR:
		next = (cur != 0) != (x != 0);
		break;
	case FI_BXOR:
		next = cur ^ x;
		break;
	case FI_ATOMIC_READ:
		next = cur;
		break;
	case FI_CSWAP:
		next = c == cur ? x : cur;
		break;
	case FI_CSWAP_NE:
		next = c != cur ? x : cur;
		break;
	case FI_CSWAP_LE:
		next = (is_signed ? sc <= s : c <= cur) ? x : cur;
		break;
	case FI_CSWAP_LT:
		next = (is_signed ? sc < s : c < cur) ? x : cur;
		break;
	case FI_CSWAP_GE:
		next = (is_signed ? sc >= s : c >= cur) ? x : cur;
		break;
	case FI_CSWAP_GT:
		next = (is_signed ? sc > s : c > cur) ? x : cur;
		break;
	case FI_MSWAP:
		next = (x & c) | (cur & ~c);
		break;
	default:
		break;
	}
	return next & mask;
}

static uint64_t some(uint64_t i)
{
	static const uint64_t edges[] = { 0,	      1,	 2,	     INT32_MAX,	 UINT32_MAX,
					  1ull << 31, INT64_MAX, 1ull << 63, UINT64_MAX, 0x123456789abcdef0ull };

	i = (i + 1) * 0x9E3779B97F4A7C15ull;
	return i >> 60 < 12 ? edges[(i >> 32) % ARRAY_LEN(edges)] : i;
}

/* Every operation that C performs, in all forms, one after the other on one word. */
static void test_operations(long rounds)
{
	static const enum fi_datatype types[] = { FI_INT32, FI_UINT32, FI_INT64, FI_UINT64 };
	struct rma r;

	open_rma(&r);
	for (uint64_t i = 0; test_rank == 0 && i < (uint64_t)rounds; i++) {
		enum fi_datatype t = types[i % 4];
		enum fi_op op = i / 4 % (FI_MSWAP + 1);
		uint64_t at = t == FI_INT32 || t == FI_UINT32 ? 4 : 8;
		uint64_t x = some(2 * i), c = some(2 * i + 1), old = 0, cur = some(3 * i), now = 0;
		uint64_t mask = at == 4 ? UINT32_MAX : UINT64_MAX;

		POST(&r, fi_atomic(r.n.ep, &cur, 1, NULL, r.n.peer[1], at, KEY, t, FI_ATOMIC_WRITE, &r));
		done(&r, FI_ATOMIC | FI_WRITE);
		if (op >= FI_CSWAP)
			POST(&r, fi_compare_atomic(r.n.ep, &x, 1, NULL, &c, NULL, &old, NULL, r.n.peer[1], at, KEY, t,
						   op, &r));
		else
			POST(&r, fi_fetch_atomic(r.n.ep, &x, 1, NULL, &old, NULL, r.n.peer[1], at, KEY, t, op, &r));
		done(&r, FI_ATOMIC | FI_READ);
		POST(&r,
		     fi_fetch_atomic(r.n.ep, NULL, 1, NULL, &now, NULL, r.n.peer[1], at, KEY, t, FI_ATOMIC_READ, &r));
		done(&r, FI_ATOMIC | FI_READ);
		CHECKF(old == (cur & mask) && now == model(t, op, cur, x, c),
		       "type %d, operation %d on %lx, %lx, %lx: was %lx, became %lx", t, op, (unsigned long)cur,
		       (unsigned long)x, (unsigned long)c, (unsigned long)old, (unsigned long)now);
	}
	close_rma(&r);
}

/* Writes of every short length, and some longer ones, at all offsets of a word, leave the bytes around
 * them alone; a read that follows finds them, and CQ data arrives behind them. */
static void test_writes(long arg)
{
	struct rma r;
	char back[LEN], want[LEN];

	(void)arg;
	open_rma(&r);
	memset(want, 0, LEN);
	for (size_t len = 1; len <= LEN - 8; len += len < 200 ? 1 : 97) {
		size_t at = LEN - len - len % 8;

		if (test_rank == 1 && len % 3 == 0) {
			struct fi_cq_tagged_entry e;

			wait_ok(&r.n, r.n.rxcq, &e);
			CHECK(e.flags & FI_REMOTE_CQ_DATA && e.data == len && e.len == len);
			CHECK(r.mem[at] == (char)len && r.mem[at + len - 1] == (char)len);
			barrier(&r.n); /* before the next overwrites it */
		}
		if (test_rank == 1)
			continue;
		memset(r.mem, (int)len, len);
		memset(want + at, (int)len, len);
		if (len % 3 == 0)
			POST(&r, fi_writedata(r.n.ep, r.mem, len, NULL, len, r.n.peer[1], at, KEY, &r));
		else if (len % 3 == 1)
			POST(&r, fi_write(r.n.ep, r.mem, len, NULL, r.n.peer[1], at, KEY, &r));
		else
			POST(&r, fi_inject_write(r.n.ep, r.mem, len, r.n.peer[1], at, KEY));
		if (len % 3 != 2)
			done(&r, FI_RMA | FI_WRITE);
		memset(r.mem, 0xee, len);
		POST(&r, fi_read(r.n.ep, back, LEN, NULL, r.n.peer[1], 0, KEY, &r));
		done(&r, FI_RMA | FI_READ);
		CHECKF(!memcmp(back, want, LEN), "after %zu bytes at %zu", len, at);
		if (len % 3 == 0)
			barrier(&r.n);
	}
	close_rma(&r);
}

/* Injected operations of an endpoint whose operations complete with FI_DELIVERY_COMPLETE
 * are counted when they are in the target's memory, by which MPICH flushes its windows. */
static void test_inject_delivered(long arg)
{
	struct fid_cntr *cntr;
	uint64_t one = 1, count = 0;
	struct rma r;

	(void)arg;
	open_rma_counted(&r, FI_DELIVERY_COMPLETE, &cntr);
	if (test_rank == 0) {
		POST(&r, fi_inject_write(r.n.ep, &one, 8, r.n.peer[1], 8, KEY));
		POST(&r, fi_inject_atomic(r.n.ep, &one, 1, r.n.peer[1], 16, KEY, FI_UINT64, FI_SUM));
		for (uint64_t end = now_ms() + 50; count < 2 && now_ms() < end;)
			count = fi_cntr_read(cntr);
		link_send(1, &count, sizeof(count));
		while (fi_cntr_read(cntr) < 2)
			progress(&r.n);
	} else {
		link_recv(0, &count, sizeof(count)); /* asleep: what comes is at best performed by a thread */
		uint64_t at[2];
		memcpy(at, r.mem + 8, sizeof(at));
		CHECKF(at[0] + at[1] >= count, "%lu counted, %lu here", (unsigned long)count,
		       (unsigned long)(at[0] + at[1]));
	}
	barrier(&r.n);
	if (test_rank == 1)
		CHECK(!memcmp(r.mem + 8, &one, 8) && !memcmp(r.mem + 16, &one, 8));
	barrier(&r.n);
	if (r.mr)
		OK(fi_close(&r.mr->fid));
	r.mr = NULL;
	OK(fi_close(&r.n.ep->fid));
	OK(fi_close(&cntr->fid));
	r.n.ep = NULL;
	node_close(&r.n);
	guard_free(r.mem, LEN);
}

/* A process that always finds completions of its own, so never reads an empty queue, serves its peer all
 * the same. Each fetch is answered within a second. */
static void test_never_empty(long rounds)
{
	enum { BYTES = 2048, AHEAD = 4, SLOW_MS = 1000 };
	static char from[BYTES];
	uint64_t one = 1, old = 0;
	struct rma r;

	open_rma(&r);
	for (long i = 0; i < rounds && test_rank == 0; i++) {
		uint64_t start = now_ms();

		POST(&r,
		     fi_fetch_atomic(r.n.ep, &one, 1, NULL, &old, NULL, r.n.peer[1], 8, KEY, FI_UINT64, FI_SUM, &r));
		done(&r, FI_ATOMIC | FI_READ);
		CHECK(old == (uint64_t)i);
		CHECKF(now_ms() - start < SLOW_MS, "%lu ms", (unsigned long)(now_ms() - start));
	}
	if (test_rank == 1) {
		volatile uint64_t *word = (volatile uint64_t *)(r.mem + 8);
		int ahead = 0;

		while (*word < (uint64_t)rounds || ahead) {
			while (ahead < AHEAD && *word < (uint64_t)rounds) {
				POST(&r, fi_write(r.n.ep, from, BYTES, NULL, r.n.peer[1], BYTES, KEY, &r));
				ahead++;
			}
			done(&r, FI_RMA | FI_WRITE);
			ahead--;
		}
	}
	close_rma(&r);
}

static const struct test tests[] = {
	{ "one_word", test_one_word, 2, 0, 100000 },
	{ "operations", test_operations, 2, 0, 4000 },
	{ "writes", test_writes, 2, 0, 0 },
	{ "inject_delivered", test_inject_delivered, 2, 0, 0 },
	{ "never_empty", test_never_empty, 2, 0, 100 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
