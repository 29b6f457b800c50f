/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocking reads end when the calling thread gets a Unix signal (fi_cq(3), fi_eq(3): -FI_EAGAIN), and lose nothing. */
#include "common.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

enum { ROUNDS = 5 };

static struct {
	pthread_t reader;
	atomic_int over;
} state;

static void ignore(int number)
{
	(void)number;
}

/* Sends the reader signals until it has returned: one may come before it sleeps. */
static void *interrupt(void *p)
{
	while (!atomic_load(&state.over)) {
		usleep(20000);
		pthread_kill(state.reader, SIGUSR1);
	}
	return p;
}

static pthread_t interrupt_me(int flags)
{
	struct sigaction act = { .sa_handler = ignore, .sa_flags = flags };
	pthread_t t;

	CHECK(sigaction(SIGUSR1, &act, NULL) == 0);
	state.reader = pthread_self();
	atomic_store(&state.over, 0);
	CHECK(pthread_create(&t, NULL, interrupt, NULL) == 0);
	return t;
}

static void join(pthread_t t)
{
	atomic_store(&state.over, 1);
	pthread_join(t, NULL);
}

static void test_cq(long wait)
{
	struct node_opts o = { .wait = (enum fi_wait_obj)wait, .threading = FI_THREAD_SAFE };
	char in[8], out[8] = "intact";
	struct fi_cq_tagged_entry e;
	struct node n;

	node_open(&n, &o);
	node_connect(&n);
	for (int i = 0; i < ROUNDS; i++) {
		pthread_t t = interrupt_me(i % 2 ? SA_RESTART : 0);

		CHECK_RC(fi_cq_sread(n.rxcq, &e, 1, NULL, i % 2 ? -1 : 60000), -FI_EAGAIN);
		join(t);
		trecv(&n, in, 8, FI_ADDR_UNSPEC, 1, 0, in);
		tsend(&n, out, 8, n.peer[0], 1, out);
		CHECK_RC(fi_cq_sread(n.rxcq, &e, 1, NULL, 60000), 1);
		CHECK(e.op_context == in && memcmp(in, "intact", 6) == 0);
		wait_ok(&n, n.txcq, &e);
	}
	node_close(&n);
}

static void test_eq(long wait)
{
	struct fi_eq_attr attr = { .wait_obj = (enum fi_wait_obj)wait, .flags = FI_WRITE };
	struct fi_eq_entry entry = { .data = 1 };
	struct fid_eq *eq;
	struct node n;
	uint32_t event;

	node_open(&n, NULL);
	OK(fi_eq_open(n.fabric, &attr, &eq, NULL));
	for (int i = 0; i < ROUNDS; i++) {
		pthread_t t = interrupt_me(i % 2 ? SA_RESTART : 0);

		CHECK_RC(fi_eq_sread(eq, &event, &entry, sizeof(entry), i % 2 ? -1 : 60000, 0), -FI_EAGAIN);
		join(t);
		CHECK_RC(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0), sizeof(entry));
		CHECK_RC(fi_eq_sread(eq, &event, &entry, sizeof(entry), 60000, 0), sizeof(entry));
		CHECK(event == FI_NOTIFY);
	}
	OK(fi_close(&eq->fid));
	node_close(&n);
}

static const struct test tests[] = {
	{ "cq_unspec", test_cq, 1, 60, FI_WAIT_UNSPEC },
	{ "cq_fd", test_cq, 1, 60, FI_WAIT_FD },
	{ "cq_mutex_cond", test_cq, 1, 60, FI_WAIT_MUTEX_COND },
	{ "eq_unspec", test_eq, 1, 60, FI_WAIT_UNSPEC },
	{ "eq_fd", test_eq, 1, 60, FI_WAIT_FD },
	{ "eq_mutex_cond", test_eq, 1, 60, FI_WAIT_MUTEX_COND },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
