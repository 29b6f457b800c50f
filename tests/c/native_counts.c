/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints of FI_PROTO_CXI: counters of bytes, and counters for which several threads wait. Without a NIC of
 * Slingshot, or its model (tests/clients/cxi.sh), all is skipped. */
#include <pthread.h>
#include <rdma/fi_atomic.h>

#include "native_rma.h"

#define EVENTS_BYTES 1 /* FI_CNTR_EVENTS_BYTES, which the headers of 1.17 lack */

enum { SENT, RECEIVED, WRITTEN, READ, REMOTE, KINDS };

static const uint64_t bits[KINDS] = { FI_SEND, FI_RECV, FI_WRITE, FI_READ, FI_REMOTE_WRITE };

/* Counters of all kinds at an endpoint with itself as its peer. */
static void open_counted(struct fid_cntr **cntr, unsigned events, uint64_t tx_bind)
{
	struct fi_cntr_attr attr = { .events = (enum fi_cntr_events)events };
	struct node_opts o = opts;

	o.caps |= FI_RMA_EVENT;
	o.disabled = true;
	o.tx_bind = tx_bind;
	open_node(o);
	for (int k = 0; k < KINDS; k++) {
		OK(fi_cntr_open(n.domain, &attr, &cntr[k], NULL));
		OK(fi_ep_bind(n.ep, &cntr[k]->fid, bits[k]));
	}
	OK(fi_enable(n.ep));
	n.peer[1] = node_insert(&n, &n);
}

static void close_counted(struct fid_cntr **cntr)
{
	OK(fi_close(&n.ep->fid));
	n.ep = NULL;
	for (int k = 0; k < KINDS; k++)
		OK(fi_close(&cntr[k]->fid));
	node_close(&n);
}

/* Waits until a counter has a value. */
static void reaches(struct fid_cntr *cntr, uint64_t want)
{
	uint64_t got = 0;

	for (uint64_t end = now_ms() + 20000; now_ms() < end && (got = fi_cntr_read(cntr)) != want;)
		progress(&n);
	CHECKF(got == want, "%llu, not %llu", (unsigned long long)got, (unsigned long long)want);
}

/* Messages of every length, writes, reads and atomic operations by keys of both kinds are counted in bytes, a failure
 * as one. */
static void test_bytes(long arg)
{
	static const size_t lens[] = { 0, 8, 192, 2048, 5000, 300000 };
	static const uint64_t one = 1;
	struct fid_cntr *cntr[KINDS];
	uint64_t sum = 0, old;
	struct fid_mr *mr;

	(void)arg;
	open_counted(cntr, EVENTS_BYTES, 0);
	for (size_t k = 0; k < ARRAY_LEN(lens); k++, sum += lens[k - 1]) {
		trecv(&n, back, lens[k], FI_ADDR_UNSPEC, k, 0, back);
		tsend(&n, local, lens[k], n.peer[1], k, local);
		wait_ctx(&n, n.rxcq, back);
		wait_ctx(&n, n.txcq, local);
	}
	reaches(cntr[SENT], sum);
	reaches(cntr[RECEIVED], sum);
	for (size_t key = 0; key < ARRAY_LEN(keys); key++) {
		mr = expose(memory, sizeof(memory), ALL, keys[key]);
		for (size_t k = 0; k < ARRAY_LEN(lens); k++) {
			do_write(lens[k] > 192 ? WRITE : k % 2 ? INJECT : DELIVERED, lens[k], 0, keys[key]);
			do_read(0, lens[k], 0, keys[key]);
		}
		OK(fi_atomic(n.ep, &one, 1, NULL, n.peer[1], 0, keys[key], FI_UINT64, FI_SUM, back));
		wait_ctx(&n, n.txcq, back);
		OK(fi_fetch_atomic(n.ep, &one, 1, NULL, &old, NULL, n.peer[1], 0, keys[key], FI_UINT64, FI_SUM, back));
		wait_ctx(&n, n.txcq, back);
		reaches(cntr[WRITTEN], (key + 1) * (sum + 8));
		reaches(cntr[READ], (key + 1) * (sum + 8));
		reaches(cntr[REMOTE], (key + 1) * (sum + 16)); /* atomics are writes at the target */
		OK(fi_close(&mr->fid));
		refused(true, 8, 0, keys[key]);
		CHECK(fi_cntr_readerr(cntr[READ]) == key + 1);
	}
	close_counted(cntr);
}

static struct fid_cntr *waited;

static void *waiter(void *threshold)
{
	CHECK_RC(fi_cntr_wait(waited, (uint64_t)(uintptr_t)threshold, 60000), 0);
	return NULL;
}

/* Threads wait for one counter of an endpoint that nothing else progresses; each returns when it has its value. */
static void test_waiters(long selective)
{
	enum { WAITERS = 6 };
	struct fid_cntr *cntr[KINDS];
	pthread_t threads[WAITERS];
	struct fid_mr *mr;

	open_counted(cntr, FI_CNTR_EVENTS_COMP, selective ? FI_SELECTIVE_COMPLETION : 0);
	mr = expose(memory, sizeof(memory), ALL, 5);
	waited = cntr[WRITTEN];
	CHECK_RC(fi_cntr_wait(waited, 1, 20), -FI_ETIMEDOUT);
	for (uintptr_t k = 0; k < WAITERS; k++)
		OK(-pthread_create(&threads[k], NULL, waiter, (void *)(2 * k + 1)));
	for (int k = 0; k < 2 * WAITERS; k++) {
		usleep(2000);
		OK(fi_write(n.ep, local, 4096, NULL, n.peer[1], 0, 5, local));
	}
	for (int k = 0; k < WAITERS; k++)
		OK(-pthread_join(threads[k], NULL));
	reaches(waited, 2 * WAITERS);
	for (int k = 0; k < 2 * WAITERS && !selective; k++)
		wait_ctx(&n, n.txcq, local);
	wait_none(&n, n.txcq, 5);
	OK(fi_close(&mr->fid));
	close_counted(cntr);
}

/* A wait ends with an error when an operation fails, also if the value was to be had by others. */
static void test_failure(long arg)
{
	struct fid_cntr *cntr[KINDS];
	struct fid_mr *mr;

	(void)arg;
	open_counted(cntr, FI_CNTR_EVENTS_COMP, 0);
	mr = expose(memory, sizeof(memory), ALL, 5);
	do_write(WRITE, 8, 0, 5);
	OK(fi_write(n.ep, local, 8, NULL, n.peer[1], 0, 6, back));
	CHECK_RC(fi_cntr_wait(cntr[WRITTEN], 2, 60000), -FI_EAVAIL);
	CHECK(fi_cntr_read(cntr[WRITTEN]) == 1 && fi_cntr_readerr(cntr[WRITTEN]) == 1);
	wait_err(&n, n.txcq, FI_EIO);
	OK(fi_cntr_seterr(cntr[WRITTEN], 0));
	do_write(WRITE, 8, 0, 5);
	CHECK_RC(fi_cntr_wait(cntr[WRITTEN], 2, 60000), 0);
	CHECK(fi_cntr_read(cntr[READ]) == 0 && fi_cntr_readerr(cntr[READ]) == 0);
	OK(fi_close(&mr->fid));
	close_counted(cntr);
}

/* An injected write or sum, until there is room. */
static void inject_at(int what, uint64_t key)
{
	uint64_t one = 1;
	ssize_t rc;

	while ((rc = what % 2 ? fi_inject_atomic(n.ep, &one, 1, n.peer[1], 8, key, FI_UINT64, FI_SUM)
			      : fi_inject_write(n.ep, &one, sizeof(one), n.peer[1], 0, key)) == -FI_EAGAIN)
		progress(&n);
	CHECK_RC(rc, 0);
}

/* More injected operations than there is room for requests are each performed once and counted, what is fenced comes
 * behind them, and those that fail are reported without a context. */
static void test_injected(long bytes)
{
	enum { COUNT = 6000 };
	struct fid_cntr *cntr[KINDS], *writes;
	struct fid_mr *mr;

	opts.caps |= FI_FENCE;
	open_counted(cntr, bytes ? EVENTS_BYTES : FI_CNTR_EVENTS_COMP, 0);
	writes = cntr[WRITTEN];
	for (int k = 0; k < 2; k++) {
		uint64_t key = k ? 150 : 15, done = (uint64_t)(k + 1) * (COUNT + 1), sum;

		memset(memory, 0, 16);
		mr = expose(memory, sizeof(memory), ALL, key);
		for (int what = 0; what < COUNT; what++)
			inject_at(what, key);
		do_write(FENCED, 8, 16, key);
		memcpy(&sum, memory + 8, sizeof(sum));
		CHECK(memory[0] == 1 && sum == COUNT / 2);
		CHECK(fi_cntr_read(writes) == (bytes ? 8 * done : done) && fi_cntr_readerr(writes) == (uint64_t)k * 2);
		OK(fi_close(&mr->fid));
		for (int what = 0; what < 2; what++) {
			inject_at(what, key);
			wait_err(&n, n.txcq, FI_EIO);
			CHECK(!n.err.op_context);
			CHECK(n.err.flags == ((what ? FI_ATOMIC : FI_RMA) | FI_WRITE));
		}
		CHECK(fi_cntr_readerr(writes) == (uint64_t)(k + 1) * 2);
	}
	close_counted(cntr);
}

static const struct test tests[] = {
	{ "bytes", test_bytes, 1, 0, 0 },
	{ "waiters", test_waiters, 1, 0, false },
	{ "waiters_selective", test_waiters, 1, 0, true },
	{ "failure", test_failure, 1, 0, 0 },
	{ "injected", test_injected, 1, 0, 0 },
	{ "injected_bytes", test_injected, 1, 0, 1 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
