/* SPDX-License-Identifier: BSD-2-Clause */
/* Wait sets, poll sets, and what fi_control reports a wait object. */
#include "common.h"

#include <poll.h>
#include <pthread.h>

static struct node n;

static struct fid_wait *open_set(enum fi_wait_obj obj)
{
	struct fi_wait_attr attr = { .wait_obj = obj };
	struct fid_wait *set = NULL;

	NEED(fi_wait_open(n.fabric, &attr, &set) == 0, "wait sets of this kind");
	return set;
}

/* Opens an endpoint whose CQs are in one wait set. */
static struct fid_wait *open_with_set(enum fi_wait_obj obj)
{
	struct node_opts o = { .threading = FI_THREAD_SAFE, .disabled = true };
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_SET };

	node_open(&n, &o);
	attr.wait_set = open_set(obj);
	OK(fi_close(&n.ep->fid));
	OK(fi_close(&n.txcq->fid));
	OK(fi_close(&n.rxcq->fid));
	OK(fi_cq_open(n.domain, &attr, &n.txcq, NULL));
	OK(fi_cq_open(n.domain, &attr, &n.rxcq, NULL));
	OK(fi_endpoint(n.domain, n.info, &n.ep, NULL));
	OK(fi_ep_bind(n.ep, &n.av->fid, 0));
	OK(fi_ep_bind(n.ep, &n.txcq->fid, FI_TRANSMIT));
	OK(fi_ep_bind(n.ep, &n.rxcq->fid, FI_RECV));
	OK(fi_enable(n.ep));
	n.o.disabled = false;
	node_connect(&n);
	return attr.wait_set;
}

static void *send_later(void *p)
{
	static char out[8] = "later";

	usleep(30000);
	tsend(&n, out, 8, n.peer[0], 1, out);
	return p;
}

static void test_wait_set(long obj)
{
	struct fid_wait *set = open_with_set((enum fi_wait_obj)obj);
	uint64_t start = now_ms();
	char in[8], out[8] = "now";
	pthread_t t;
	int rc;

	rc = fi_wait(set, 50);
	CHECKF(rc == -FI_ETIMEDOUT, "fi_wait = %d", rc);
	CHECK(now_ms() - start >= 45);
	CHECK_RC(fi_close(&set->fid), -FI_EBUSY);
	trecv(&n, in, 8, FI_ADDR_UNSPEC, 1, 0, in);
	tsend(&n, out, 8, n.peer[0], 1, out);
	OK(fi_wait(set, 10000));
	wait_ctx(&n, n.rxcq, in);
	wait_ctx(&n, n.txcq, out);
	trecv(&n, in, 8, FI_ADDR_UNSPEC, 1, 0, in);
	CHECK(pthread_create(&t, NULL, send_later, NULL) == 0);
	OK(fi_wait(set, 10000));
	pthread_join(t, NULL);
	wait_ctx(&n, n.rxcq, in);
	node_close(&n);
	OK(fi_close(&set->fid));
}

/* Polls until this context is named. */
static void poll_names(struct fid_poll *set, void *want)
{
	uint64_t end = now_ms() + 20000;
	void *ctx[4];

	while (now_ms() < end) {
		int rc = fi_poll(set, ctx, 4);

		CHECKF(rc >= 0, "fi_poll = %d", rc);
		for (int i = 0; i < rc; i++)
			if (ctx[i] == want)
				return;
	}
	CHECKF(false, "fi_poll does not name it");
}

/* fi_poll names the queues and counters that have something. */
static void test_poll_set(long arg)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_cntr_attr cntr_attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fi_poll_attr attr = { 0 };
	struct fid_poll *set = NULL;
	struct fid_cntr *cntr;
	void *ctx[4];
	char in[8], out[8] = "x";
	int cq_ctx, cntr_ctx;

	(void)arg;
	node_open(&n, NULL);
	NEED(fi_poll_open(n.domain, &attr, &set) == 0, "poll sets");
	OK(fi_close(&n.ep->fid));
	OK(fi_close(&n.rxcq->fid));
	OK(fi_cq_open(n.domain, &cq_attr, &n.rxcq, &cq_ctx));
	OK(fi_cntr_open(n.domain, &cntr_attr, &cntr, &cntr_ctx));
	OK(fi_endpoint(n.domain, n.info, &n.ep, NULL));
	OK(fi_ep_bind(n.ep, &n.av->fid, 0));
	OK(fi_ep_bind(n.ep, &n.txcq->fid, FI_TRANSMIT));
	OK(fi_ep_bind(n.ep, &n.rxcq->fid, FI_RECV));
	OK(fi_ep_bind(n.ep, &cntr->fid, FI_RECV));
	OK(fi_enable(n.ep));
	node_connect(&n);
	OK(fi_poll_add(set, &n.rxcq->fid, 0));
	OK(fi_poll_add(set, &cntr->fid, 0));
	CHECK(fi_poll(set, ctx, 4) >= 0); /* it may name one that has nothing */
	CHECK_RC(fi_close(&n.rxcq->fid), -FI_EBUSY);
	trecv(&n, in, 8, FI_ADDR_UNSPEC, 1, 0, in);
	tsend(&n, out, 8, n.peer[0], 1, out);
	poll_names(set, &cq_ctx); /* it makes progress */
	wait_ctx(&n, n.rxcq, in);
	wait_ctx(&n, n.txcq, out);
	trecv(&n, in, 8, FI_ADDR_UNSPEC, 1, 0, in);
	tsend(&n, out, 8, n.peer[0], 1, out);
	poll_names(set, &cntr_ctx);
	wait_ctx(&n, n.rxcq, in);
	wait_ctx(&n, n.txcq, out);
	while (fi_poll(set, ctx, 4) != 0)
		;
	OK(fi_cntr_add(cntr, 1)); /* whatever changes it */
	poll_names(set, &cntr_ctx);
	OK(fi_cntr_set(cntr, 100));
	poll_names(set, &cntr_ctx);
	OK(fi_poll_del(set, &cntr->fid, 0));
	OK(fi_poll_del(set, &n.rxcq->fid, 0));
	OK(fi_close(&set->fid));
	OK(fi_close(&n.ep->fid));
	OK(fi_close(&cntr->fid));
	n.ep = NULL;
	node_close(&n);
}

/* FI_GETWAIT gives what the attribute asked for. */
static void test_getwait(long obj)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_MSG, .wait_obj = (enum fi_wait_obj)obj };
	struct fid_cq *cq = NULL;
	struct pollfd fds[16];
	struct fi_wait_pollfd pollfd = { .nfds = 16, .fd = fds };
	struct fi_mutex_cond mc = { 0 };
	struct pollfd p = { .fd = -1, .events = POLLIN };

	node_open(&n, NULL);
	NEED(fi_cq_open(n.domain, &attr, &cq, NULL) == 0, "this wait object");
	if (obj == FI_WAIT_FD) {
		OK(fi_control(&cq->fid, FI_GETWAIT, &p.fd));
		CHECK(p.fd >= 0 && poll(&p, 1, 0) == 0);
	} else if (obj == FI_WAIT_POLLFD) {
		OK(fi_control(&cq->fid, FI_GETWAIT, &pollfd));
		CHECK(pollfd.nfds >= 1 && pollfd.nfds <= 16 && fds[0].fd >= 0);
		CHECK(poll(fds, pollfd.nfds, 0) >= 0);
		pollfd.nfds = 0;
		CHECK_RC(fi_control(&cq->fid, FI_GETWAIT, &pollfd), -FI_ETOOSMALL);
		CHECK(pollfd.nfds >= 1);
	} else {
		OK(fi_control(&cq->fid, FI_GETWAIT, &mc));
		CHECK(mc.mutex && mc.cond);
		CHECK(pthread_mutex_lock(mc.mutex) == 0);
		CHECK(pthread_mutex_unlock(mc.mutex) == 0);
	}
	OK(fi_close(&cq->fid));
	node_close(&n);
}

static void test_getwait_none(long arg)
{
	struct pollfd p = { .fd = -1 };

	(void)arg;
	node_open(&n, NULL);
	EXPECT(fi_control(&n.rxcq->fid, FI_GETWAIT, &p.fd) < 0);
	node_close(&n);
}

static const struct test tests[] = {
	{ "wait_set_unspec", test_wait_set, 1, 0, FI_WAIT_UNSPEC },
	{ "wait_set_fd", test_wait_set, 1, 0, FI_WAIT_FD },
	{ "wait_set_pollfd", test_wait_set, 1, 0, FI_WAIT_POLLFD },
	{ "wait_set_yield", test_wait_set, 1, 0, FI_WAIT_YIELD },
	{ "poll_set", test_poll_set, 1, 0, 0 },
	{ "getwait_fd", test_getwait, 1, 0, FI_WAIT_FD },
	{ "getwait_pollfd", test_getwait, 1, 0, FI_WAIT_POLLFD },
	{ "getwait_mutex_cond", test_getwait, 1, 0, FI_WAIT_MUTEX_COND },
	{ "getwait_none", test_getwait_none, 1, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
