/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: blocking reads with every wait object, signals, errors in between. */
#include "common.h"

#include <pthread.h>

static struct node n;

static void open_waiting(enum fi_wait_obj wait)
{
	struct node_opts o = { .wait = wait, .threading = FI_THREAD_SAFE };
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = wait };
	struct fid_cq *cq = NULL;
	int rc;

	node_open_domain(&n, &o);
	rc = fi_cq_open(n.domain, &attr, &cq, NULL);
	NEED(rc == 0, "this wait object");
	OK(fi_close(&cq->fid));
	node_close_domain(&n);
	node_open(&n, &o);
	node_connect(&n);
}

static void *send_later(void *p)
{
	static char out[8] = "later";

	usleep(30000);
	tsend(&n, out, 8, n.peer[0], 1, out);
	return p;
}

/* Times out, returns what is there, and wakes when another thread sends. */
static void test_sread(long wait)
{
	struct fi_cq_tagged_entry e;
	char in[8], out[8] = "now";
	uint64_t start;
	pthread_t t;

	open_waiting((enum fi_wait_obj)wait);
	start = now_ms();
	CHECK_RC(fi_cq_sread(n.rxcq, &e, 1, NULL, 50), -FI_EAGAIN);
	CHECKF(now_ms() - start >= 45 && now_ms() - start < 20000, "waited %llu ms",
	       (unsigned long long)(now_ms() - start));
	trecv(&n, in, 8, FI_ADDR_UNSPEC, 1, 0, in);
	tsend(&n, out, 8, n.peer[0], 1, out);
	CHECK_RC(fi_cq_sread(n.rxcq, &e, 1, NULL, -1), 1);
	CHECK(e.op_context == in);
	CHECK_RC(fi_cq_sread(n.txcq, &e, 1, NULL, -1), 1);
	trecv(&n, in, 8, FI_ADDR_UNSPEC, 1, 0, in);
	CHECK(pthread_create(&t, NULL, send_later, NULL) == 0);
	CHECK_RC(fi_cq_sread(n.rxcq, &e, 1, NULL, 10000), 1);
	CHECK(e.op_context == in && memcmp(in, "later", 5) == 0);
	pthread_join(t, NULL);
	wait_ok(&n, n.txcq, &e);
	node_close(&n);
}

static void *recv_later(void *in)
{
	usleep(30000);
	trecv(&n, in, 8, FI_ADDR_UNSPEC, 1, 0, in);
	return in;
}

/* A receive that another thread posts for an unexpected message ends a wait without a limit at once. */
static void test_sread_unexpected(long wait)
{
	struct fi_cq_tagged_entry e;
	char in[8], out[8] = "here";
	pthread_t t;

	open_waiting((enum fi_wait_obj)wait);
	for (int i = 0; i < 4; i++) {
		uint64_t start;

		tsend(&n, out, 8, n.peer[0], 1, out);
		wait_ok(&n, n.txcq, &e);
		CHECK_RC(fi_cq_sread(n.rxcq, &e, 1, NULL, 20), -FI_EAGAIN);
		start = now_ms();
		CHECK(pthread_create(&t, NULL, recv_later, in) == 0);
		CHECK_RC(fi_cq_sread(n.rxcq, &e, 1, NULL, -1), 1);
		CHECK(e.op_context == in && memcmp(in, "here", 4) == 0);
		CHECKF(now_ms() - start < 400, "waited %llu ms", (unsigned long long)(now_ms() - start));
		pthread_join(t, NULL);
	}
	node_close(&n);
}

static void *signal_later(void *p)
{
	usleep(30000);
	OK(fi_cq_signal(n.rxcq));
	return p;
}

/* A signal ends a wait without a limit, and does not stay behind as a completion. */
static void test_signal(long wait)
{
	struct fi_cq_tagged_entry e;
	pthread_t t;

	open_waiting((enum fi_wait_obj)wait);
	for (int i = 0; i < 5; i++) {
		CHECK(pthread_create(&t, NULL, signal_later, NULL) == 0);
		CHECK_RC(fi_cq_sread(n.rxcq, &e, 1, NULL, -1), -FI_EAGAIN);
		pthread_join(t, NULL);
	}
	CHECK_RC(fi_cq_read(n.rxcq, &e, 1), -FI_EAGAIN);
	node_close(&n);
}

static void test_wait_none(long arg)
{
	struct fi_cq_tagged_entry e;

	(void)arg;
	open_waiting(FI_WAIT_NONE);
	EXPECT(fi_cq_sread(n.rxcq, &e, 1, NULL, 10) < 0);
	EXPECT(fi_cq_signal(n.rxcq) < 0);
	node_close(&n);
}

/* Successes before an error are read first; the error stands in the way until it is read. */
static void test_error_order(long arg)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry e[4];
	char in[3][8], out[100];
	ssize_t rc;

	(void)arg;
	open_waiting(FI_WAIT_NONE);
	CHECK_RC(fi_cq_readerr(n.rxcq, &err, 0), -FI_EAGAIN);
	for (uint64_t i = 0; i < 3; i++)
		trecv(&n, in[i], 8, FI_ADDR_UNSPEC, i, 0, in[i]);
	for (uint64_t i = 0; i < 3; i++) {
		tsend(&n, out, i == 1 ? 100 : 8, n.peer[0], i, out);
		wait_ctx(&n, n.txcq, out);
	}
	for (int i = 0; i < 1000; i++)
		progress(&n);
	while ((rc = fi_cq_read(n.rxcq, e, 4)) == -FI_EAGAIN)
		;
	CHECKF(rc == 1, "read %zd", rc); /* only what is before the error */
	CHECK(e[0].op_context == in[0]);
	for (int i = 0; i < 3; i++)
		CHECK_RC(fi_cq_read(n.rxcq, e, 4), -FI_EAVAIL);
	CHECK_RC(fi_cq_read(n.rxcq, NULL, 0), -FI_EAVAIL);
	CHECK_RC(fi_cq_readerr(n.rxcq, &err, 0), 1);
	CHECK(err.err == FI_ETRUNC && err.op_context == in[1] && err.olen == 92);
	CHECK(fi_cq_strerror(n.rxcq, err.prov_errno, err.err_data, (char *)out, 100) != NULL);
	CHECK_RC(fi_cq_readerr(n.rxcq, &err, 0), -FI_EAGAIN);
	CHECK_RC(fi_cq_read(n.rxcq, NULL, 0), -FI_EAGAIN); /* takes nothing */
	wait_ctx(&n, n.rxcq, in[2]);
	node_close(&n);
}

/* A blocking read meets an error, too. */
static void test_sread_error(long arg)
{
	struct fi_cq_tagged_entry e;
	char in[8], out[100];

	(void)arg;
	open_waiting(FI_WAIT_UNSPEC);
	trecv(&n, in, 8, FI_ADDR_UNSPEC, 1, 0, in);
	tsend(&n, out, 100, n.peer[0], 1, out);
	CHECK_RC(fi_cq_sread(n.rxcq, &e, 1, NULL, 10000), -FI_EAVAIL);
	wait_err(&n, n.rxcq, FI_ETRUNC);
	node_close(&n);
}

static void test_threshold(long arg)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_CONTEXT,
				   .wait_obj = FI_WAIT_UNSPEC,
				   .wait_cond = FI_CQ_COND_THRESHOLD };
	struct node_opts o = { .disabled = true };
	struct fi_cq_entry e[8];
	struct fid_cq *cq = NULL;
	char in[8], out[8] = "x";
	size_t got = 0;
	int rc;

	(void)arg;
	node_open(&n, &o);
	rc = fi_cq_open(n.domain, &attr, &cq, NULL);
	NEED(rc == 0, "FI_CQ_COND_THRESHOLD");
	OK(fi_close(&n.ep->fid));
	OK(fi_close(&n.rxcq->fid));
	n.rxcq = cq;
	OK(fi_endpoint(n.domain, n.info, &n.ep, NULL));
	OK(fi_ep_bind(n.ep, &n.av->fid, 0));
	OK(fi_ep_bind(n.ep, &n.txcq->fid, FI_TRANSMIT));
	OK(fi_ep_bind(n.ep, &cq->fid, FI_RECV));
	OK(fi_enable(n.ep));
	n.o.disabled = false;
	node_connect(&n);
	for (int i = 0; i < 4; i++) {
		trecv(&n, in, 8, FI_ADDR_UNSPEC, 1, 0, in);
		tsend(&n, out, 8, n.peer[0], 1, out);
	}
	while (got < 4) { /* the condition is a hint: fewer may be read at once */
		ssize_t r = fi_cq_sread(cq, e, 8, (void *)4, 5000);

		CHECKF(r > 0, "sread = %zd", r);
		got += (size_t)r;
	}
	CHECK(got == 4);
	node_close(&n);
}

static void test_bad_attr(long arg)
{
	struct fi_cq_attr attr = { .format = (enum fi_cq_format)99 };
	struct fid_cq *cq = NULL;

	(void)arg;
	node_open(&n, NULL);
	EXPECT(fi_cq_open(n.domain, &attr, &cq, NULL) < 0);
	attr.format = FI_CQ_FORMAT_MSG;
	attr.wait_obj = (enum fi_wait_obj)99;
	EXPECT(fi_cq_open(n.domain, &attr, &cq, NULL) < 0);
	attr.wait_obj = FI_WAIT_SET; /* without a set */
	EXPECT(fi_cq_open(n.domain, &attr, &cq, NULL) < 0);
	node_close(&n);
}

static const struct test tests[] = {
	{ "sread_unspec", test_sread, 1, 0, FI_WAIT_UNSPEC },
	{ "sread_fd", test_sread, 1, 0, FI_WAIT_FD },
	{ "sread_pollfd", test_sread, 1, 0, FI_WAIT_POLLFD },
	{ "sread_mutex_cond", test_sread, 1, 0, FI_WAIT_MUTEX_COND },
	{ "sread_yield", test_sread, 1, 0, FI_WAIT_YIELD },
	{ "sread_unexpected_fd", test_sread_unexpected, 1, 0, FI_WAIT_FD },
	{ "sread_unexpected_mutex_cond", test_sread_unexpected, 1, 0, FI_WAIT_MUTEX_COND },
	{ "signal_unspec", test_signal, 1, 0, FI_WAIT_UNSPEC },
	{ "signal_fd", test_signal, 1, 0, FI_WAIT_FD },
	{ "wait_none", test_wait_none, 1, 0, 0 },
	{ "error_order", test_error_order, 1, 0, 0 },
	{ "sread_error", test_sread_error, 1, 0, 0 },
	{ "threshold", test_threshold, 1, 0, 0 },
	{ "bad_attr", test_bad_attr, 1, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
