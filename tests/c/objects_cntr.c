/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters: values, errors, waiting with and without a limit. */
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "common.h"

#include <pthread.h>

#define EVENTS_BYTES 1 /* FI_CNTR_EVENTS_BYTES, since 2.0 */

static struct fid_cntr *open_cntr(struct node *n, enum fi_wait_obj wait)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = wait };
	struct fid_cntr *cntr = NULL;

	NEED(fi_cntr_open(n->domain, &attr, &cntr, NULL) == 0, "counters with this wait object");
	return cntr;
}

/* A value set or added may show a little later. */
static void eventually(struct fid_cntr *c, uint64_t want, uint64_t (*read)(struct fid_cntr *))
{
	uint64_t end = now_ms() + 20000;

	while (read(c) != want && now_ms() < end)
		;
	CHECKF(read(c) == want, "counter %llu, want %llu", (unsigned long long)read(c), (unsigned long long)want);
}

static uint64_t value(struct fid_cntr *c)
{
	return fi_cntr_read(c);
}
static uint64_t errors(struct fid_cntr *c)
{
	return fi_cntr_readerr(c);
}

static void test_values(long arg)
{
	struct fid_cntr *c;
	struct node n;

	(void)arg;
	node_open(&n, NULL);
	c = open_cntr(&n, FI_WAIT_UNSPEC);
	CHECK(fi_cntr_read(c) == 0 && fi_cntr_readerr(c) == 0);
	OK(fi_cntr_add(c, 5));
	eventually(c, 5, value);
	OK(fi_cntr_add(c, 1ull << 40));
	eventually(c, (1ull << 40) + 5, value);
	OK(fi_cntr_set(c, 3));
	eventually(c, 3, value);
	OK(fi_cntr_adderr(c, 2));
	eventually(c, 2, errors);
	OK(fi_cntr_seterr(c, 0));
	eventually(c, 0, errors);
	CHECK(fi_cntr_read(c) == 3);
	OK(fi_close(&c->fid));
	node_close(&n);
}

static void test_wait(long wait)
{
	struct fid_cntr *c;
	uint64_t start;
	struct node n;

	node_open(&n, NULL);
	c = open_cntr(&n, (enum fi_wait_obj)wait);
	OK(fi_cntr_add(c, 10));
	OK(fi_cntr_wait(c, 10, 0));
	OK(fi_cntr_wait(c, 3, -1)); /* reached long ago */
	start = now_ms();
	CHECK_RC(fi_cntr_wait(c, 11, 60), -FI_ETIMEDOUT);
	CHECKF(now_ms() - start >= 55 && now_ms() - start < 20000, "waited %llu ms",
	       (unsigned long long)(now_ms() - start));
	CHECK_RC(fi_cntr_wait(c, 11, 0), -FI_ETIMEDOUT);
	CHECK(fi_cntr_readerr(c) == 0);
	OK(fi_close(&c->fid));
	node_close(&n);
}

struct disturb {
	struct fid_cntr *c;
	bool error;
};

static void *disturb(void *p)
{
	struct disturb *k = p;

	usleep(30000);
	if (k->error)
		OK(fi_cntr_adderr(k->c, 1));
	else
		OK(fi_cntr_add(k->c, 1));
	return NULL;
}

/* Another thread's addition wakes the waiter; so does an error, with -FI_EAVAIL. */
static void test_wake(long error)
{
	struct node_opts o = { .threading = FI_THREAD_SAFE };
	struct disturb k = { .error = error };
	pthread_t t;
	struct node n;
	int rc;

	node_open(&n, &o);
	k.c = open_cntr(&n, FI_WAIT_UNSPEC);
	CHECK(pthread_create(&t, NULL, disturb, &k) == 0);
	rc = fi_cntr_wait(k.c, 1, 10000);
	if (error)
		CHECK_RC(rc, -FI_EAVAIL);
	else
		OK(rc);
	pthread_join(t, NULL);
	OK(fi_close(&k.c->fid));
	node_close(&n);
}

/* fi_cntr_wait makes progress by itself: nothing reads a CQ here. */
static void test_progress(long arg)
{
	struct node_opts o = { .counters = true };
	static char buf[100000];
	struct node n;

	(void)arg;
	node_open(&n, &o);
	node_connect(&n);
	for (uint64_t i = 1; i <= 200; i++) {
		size_t len = i % 2 ? 8 : sizeof(buf);

		if (test_rank == 0) {
			tsend(&n, buf, len, n.peer[1], 1, buf);
			OK(fi_cntr_wait(n.txcntr, i, 10000));
		} else {
			trecv(&n, buf, sizeof(buf), FI_ADDR_UNSPEC, 1, 0, buf);
			OK(fi_cntr_wait(n.rxcntr, i, 10000));
			CHECK(fi_cntr_read(n.rxcntr) == i);
		}
	}
	barrier(&n);
	node_close(&n);
}

/* Errors count apart: a truncation is no success. */
static void test_errors(long arg)
{
	struct node_opts o = { .counters = true };
	char in[8], out[100];
	struct node n;
	int rc;

	(void)arg;
	node_open(&n, &o);
	node_connect(&n);
	trecv(&n, in, 8, FI_ADDR_UNSPEC, 1, 0, in);
	tsend(&n, out, 100, n.peer[0], 1, out);
	wait_err(&n, n.rxcq, FI_ETRUNC);
	eventually(n.rxcntr, 1, errors);
	CHECK(fi_cntr_read(n.rxcntr) == 0);
	wait_ctx(&n, n.txcq, out);
	eventually(n.txcntr, 1, value);
	CHECK(fi_cntr_readerr(n.txcntr) == 0);
	rc = fi_cntr_wait(n.rxcntr, 1, 100); /* the error came before the wait: both will do */
	CHECKF(rc == -FI_EAVAIL || rc == -FI_ETIMEDOUT, "fi_cntr_wait = %d", rc);
	node_close(&n);
}

static void no_eagain(struct node *n, ssize_t rc, bool *again)
{
	CHECKF(rc == 0 || rc == -FI_EAGAIN, "post: %zd", rc);
	*again = rc != 0;
	progress(n);
}

/* Counters of bytes: rank 0 sends, writes, reads and adds at rank 1, which counts too. */
static void test_bytes(long arg)
{
	static const size_t lens[] = { 0, 8, 96, 5000, 300000 };
	static const uint64_t bits[] = { FI_SEND, FI_RECV, FI_WRITE, FI_READ, FI_REMOTE_WRITE, FI_REMOTE_READ };
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RMA_EVENT, .disabled = true };
	struct fi_cntr_attr attr = { .events = EVENTS_BYTES };
	struct fid_cntr *cntr[ARRAY_LEN(bits)];
	static char mem[300000], buf[300000];
	uint64_t one = 1, old, sum = 0, want[ARRAY_LEN(bits)] = { 0 };
	struct fid_mr *mr = NULL;
	struct fi_info *info = node_info(NULL);
	struct node n;
	bool again;

	(void)arg;
	if (info && info->ep_attr->protocol == FI_PROTO_CXI)
		SKIP("regions of FI_PROTO_CXI belong to an endpoint: native_counts has such counters");
	fi_freeinfo(info);
	node_open(&n, &o);
	for (size_t i = 0; i < ARRAY_LEN(bits); i++) {
		NEED(fi_cntr_open(n.domain, &attr, &cntr[i], NULL) == 0, "counters of bytes");
		OK(fi_ep_bind(n.ep, &cntr[i]->fid, bits[i]));
	}
	OK(fi_enable(n.ep));
	n.o.disabled = false;
	if (test_rank)
		OK(fi_mr_reg(n.domain, mem, sizeof(mem), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0, &mr, NULL));
	node_connect(&n);
	for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
		sum += lens[i];
		if (test_rank) {
			trecv(&n, mem, lens[i], n.peer[0], i, 0, mem);
			wait_ctx(&n, n.rxcq, mem);
			continue;
		}
		tsend(&n, buf, lens[i], n.peer[1], i, buf);
		wait_ctx(&n, n.txcq, buf);
	}
	barrier(&n);
	for (size_t i = 0; !test_rank && i < ARRAY_LEN(lens); i++) {
		do
			no_eagain(&n, fi_write(n.ep, buf, lens[i], NULL, n.peer[1], 0, 1, buf), &again);
		while (again);
		wait_ctx(&n, n.txcq, buf);
		do
			no_eagain(&n, fi_read(n.ep, buf, lens[i], NULL, n.peer[1], 0, 1, buf), &again);
		while (again);
		wait_ctx(&n, n.txcq, buf);
	}
	for (int i = 0; !test_rank && i < 20; i++) { /* the first ones go by Go, the others by C */
		do
			no_eagain(&n, fi_atomic(n.ep, &one, 1, NULL, n.peer[1], 0, 1, FI_UINT64, FI_SUM, buf), &again);
		while (again);
		wait_ctx(&n, n.txcq, buf);
		do
			no_eagain(&n,
				  fi_fetch_atomic(n.ep, &one, 1, NULL, &old, NULL, n.peer[1], 0, 1, FI_UINT64, FI_SUM,
						  buf),
				  &again);
		while (again);
		wait_ctx(&n, n.txcq, buf);
	}
	if (!test_rank) {
		want[0] = sum;
		want[2] = sum + 20 * 8;
		want[3] = sum + 20 * 8;
	} else {
		want[1] = sum;
		want[4] = sum + 40 * 8; /* atomics are writes at the target */
		want[5] = sum;
	}
	for (size_t i = 0; i < ARRAY_LEN(bits); i++)
		eventually(cntr[i], want[i], value);
	barrier(&n);
	if (!test_rank) { /* an error is one */
		do
			no_eagain(&n, fi_read(n.ep, buf, 8, NULL, n.peer[1], 0, 99, buf), &again);
		while (again);
		wait_err(&n, n.txcq, FI_ENOKEY);
		eventually(cntr[3], 1, errors);
		CHECK(fi_cntr_read(cntr[3]) == want[3]);
	}
	barrier(&n);
	if (mr)
		OK(fi_close(&mr->fid));
	OK(fi_close(&n.ep->fid));
	n.ep = NULL;
	for (size_t i = 0; i < ARRAY_LEN(bits); i++)
		OK(fi_close(&cntr[i]->fid));
	node_close(&n);
}

static const struct test tests[] = {
	{ "bytes", test_bytes, 2, 60, 0 },
	{ "values", test_values, 1, 0, 0 },
	{ "wait_unspec", test_wait, 1, 0, FI_WAIT_UNSPEC },
	{ "wait_fd", test_wait, 1, 0, FI_WAIT_FD },
	{ "wait_mutex_cond", test_wait, 1, 0, FI_WAIT_MUTEX_COND },
	{ "wait_yield", test_wait, 1, 0, FI_WAIT_YIELD },
	{ "wake_by_value", test_wake, 1, 0, false },
	{ "wake_by_error", test_wake, 1, 0, true },
	{ "progress", test_progress, 2, 0, 0 },
	{ "errors", test_errors, 1, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
