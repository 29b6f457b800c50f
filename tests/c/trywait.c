/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sleeping without losing a wake-up: fi_trywait, then poll(2) on the CQ's descriptor, against a peer
 * that waits a random time before it sends. A poll that runs into its limit although a completion
 * is there is a lost wake-up.
 */
#include "common.h"

#include <poll.h>
#include <pthread.h>

#define ROUNDS 10000
#define LIMIT_MS 20000

struct sleeper {
	struct node *n;
	struct fid_cq *cq;
	struct pollfd p;
	uint64_t slept, again;
};

static void sleeper_open(struct sleeper *s, struct node *n, struct fid_cq *cq)
{
	memset(s, 0, sizeof(*s));
	s->n = n;
	s->cq = cq;
	s->p.events = POLLIN;
	OK(fi_control(&cq->fid, FI_GETWAIT, &s->p.fd));
}

/* One completion, sleeping until it is there. */
static void sleep_for(struct sleeper *s, void *ctx)
{
	struct fid *fids[1] = { &s->cq->fid };
	struct fi_cq_tagged_entry e;
	ssize_t rc;

	while ((rc = fi_cq_read(s->cq, &e, 1)) == -FI_EAGAIN) {
		int ready;

		rc = fi_trywait(s->n->fabric, fids, 1);
		if (rc == -FI_EAGAIN) {
			s->again++;
			continue;
		}
		OK(rc);
		s->slept++;
		ready = poll(&s->p, 1, LIMIT_MS);
		if (ready == 0) {
			rc = fi_cq_read(s->cq, &e, 1);
			CHECKF(rc == -FI_EAGAIN, "a wake-up was lost (read = %zd)", rc);
			CHECKF(false, "nothing came in %d ms", LIMIT_MS);
		}
	}
	CHECKF(rc == 1, "fi_cq_read = %zd", rc);
	CHECK(e.op_context == ctx);
}

/* Spins for a random time around what going to sleep takes. */
static void dawdle(uint64_t *seed)
{
	uint64_t r = rnd(seed), end = now_us() + (r & 1 ? r >> 8 & 63 : r >> 8 & 511);

	if ((r & 0x3f00) == 0)
		usleep(2000);
	while (now_us() < end)
		;
}

/* Ping-pong; both sides sleep for each message. */
static void test_pair(long len)
{
	struct node_opts o = { .wait = FI_WAIT_FD };
	uint64_t seed = (uint64_t)test_rank + 7;
	char *in = malloc((size_t)len), *out = malloc((size_t)len);
	struct fi_cq_tagged_entry e;
	struct sleeper s;
	struct node n;
	int rounds = len > 8192 ? ROUNDS / 5 : ROUNDS;
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD };
	struct fid_cq *cq = NULL;
	int rc;

	CHECK(in && out);
	node_open_domain(&n, NULL);
	rc = fi_cq_open(n.domain, &attr, &cq, NULL);
	NEED(rc == 0, "FI_WAIT_FD");
	OK(fi_close(&cq->fid));
	node_close_domain(&n);
	o.one_cq = len > 8192; /* rendezvous: the sender sleeps for its completion as well */
	node_open(&n, &o);
	node_connect(&n);
	sleeper_open(&s, &n, n.rxcq);
	for (int i = 0; i < rounds; i++) {
		if (test_rank == i % 2) {
			dawdle(&seed);
			tsend(&n, out, (size_t)len, n.peer[!test_rank], 1, out);
			if (o.one_cq)
				sleep_for(&s, out);
			else
				wait_ok(&n, n.txcq, &e);
		} else {
			trecv(&n, in, (size_t)len, FI_ADDR_UNSPEC, 1, 0, in);
			sleep_for(&s, in);
		}
	}
	note("slept %llu times, notified not to %llu times", (unsigned long long)s.slept, (unsigned long long)s.again);
	CHECK(s.slept > 0);
	CHECKF(s.slept < 20ull * (uint64_t)rounds, "poll returned %llu times for %d messages",
	       (unsigned long long)s.slept, rounds);
	barrier(&n);
	node_close(&n);
	free(in);
	free(out);
}

/* The sender is a thread of the same process. */
static struct node self;

static void *send_rounds(void *p)
{
	uint64_t seed = 3;
	static char out[8];
	int fd = (int)(long)p;

	for (int i = 0; i < ROUNDS; i++) {
		char go;
		ssize_t got = read(fd, &go, 1);

		CHECK(got == 1);
		dawdle(&seed);
		struct op o = {
			.form = F_INJECT, .tagged = true, .buf = out, .len = 8, .addr = self.peer[0], .tag = 1
		};
		post_send(&self, &o);
	}
	return NULL;
}

static void test_thread(long arg)
{
	struct node_opts o = { .wait = FI_WAIT_FD, .threading = FI_THREAD_SAFE };
	struct sleeper s;
	pthread_t t;
	char in[8];
	int fd[2];

	(void)arg;
	if (!test_is_weft() && strcmp(test_provider(), "shm") == 0)
		NEED(false, "FI_WAIT_FD");
	node_open(&self, &o);
	node_connect(&self);
	sleeper_open(&s, &self, self.rxcq);
	CHECK(pipe(fd) == 0);
	CHECK(pthread_create(&t, NULL, send_rounds, (void *)(long)fd[0]) == 0);
	for (int i = 0; i < ROUNDS; i++) {
		trecv(&self, in, 8, FI_ADDR_UNSPEC, 1, 0, in);
		CHECK(write(fd[1], "g", 1) == 1);
		sleep_for(&s, in);
	}
	pthread_join(t, NULL);
	node_close(&self);
}

/* fi_cq_sread of a process that nothing else wakes: the same with libfabric's own wait. */
static void test_sread(long wait)
{
	struct node_opts o = { .wait = (enum fi_wait_obj)wait };
	uint64_t seed = (uint64_t)test_rank + 9;
	struct fi_cq_tagged_entry e;
	char in[8], out[8];
	struct node n;

	node_open(&n, &o);
	node_connect(&n);
	for (int i = 0; i < ROUNDS / 2; i++) {
		if (test_rank == i % 2) {
			dawdle(&seed);
			tsend(&n, out, 8, n.peer[!test_rank], 1, out);
			wait_ctx(&n, n.txcq, out);
		} else {
			ssize_t rc;

			trecv(&n, in, 8, FI_ADDR_UNSPEC, 1, 0, in);
			rc = fi_cq_sread(n.rxcq, &e, 1, NULL, LIMIT_MS);
			CHECKF(rc == 1, "round %d: fi_cq_sread = %zd", i, rc);
			CHECK(e.op_context == in);
		}
	}
	barrier(&n);
	node_close(&n);
}

static const struct test tests[] = {
	{ "pair_small", test_pair, 2, 120, 8 },
	{ "pair_large", test_pair, 2, 120, 100000 },
	{ "thread", test_thread, 1, 120, 0 },
	{ "sread_unspec", test_sread, 2, 120, FI_WAIT_UNSPEC },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
