/* SPDX-License-Identifier: BSD-2-Clause */
/* Short messages sent in a row, by a program that then stops calling: a provider may send some of
 * them together and later, but no later than it notifies their completions. */
#include <poll.h>

#include "common.h"

#define MOST 200
#define ROOM 128
#define SOON 20000 /* ms; emulated machines are slow */

static char in[MOST][ROOM];

static void open_row(struct node *n, struct node_opts o)
{
	char hello = 1, answer = 0;

	o.threading = FI_THREAD_DOMAIN;
	o.control = o.data = FI_PROGRESS_MANUAL;
	node_open(n, &o);
	node_connect(n);
	trecv(n, &answer, 1, FI_ADDR_UNSPEC, 1000, 0, &answer); /* so both know each other */
	tsend(n, &hello, 1, n->peer[!test_rank], 1000, &hello);
	for (bool sent = false, got = false; !sent || !got;) {
		struct fi_cq_tagged_entry e;

		wait_ok(n, got ? n->txcq : n->rxcq, &e);
		sent = sent || e.op_context == &hello;
		got = got || e.op_context == &answer;
	}
	barrier(n);
}

static size_t length_of(int i)
{
	return (size_t)(i * 7) % 97;
}

/* Sends message i in the way that how says: 0 is fi_tsend, else flags of fi_tsendmsg, or FI_INJECT
 * alone for fi_tinject. */
static void send_one(struct node *n, int i, uint64_t how)
{
	char out[ROOM];
	struct op o = { .form = how == FI_INJECT ? F_INJECT
				: how		 ? F_MSG
						 : F_PLAIN,
			.tagged = true,
			.buf = out,
			.len = length_of(i),
			.addr = n->peer[1],
			.tag = (uint64_t)i,
			.flags = how,
			.ctx = in[i] };

	fill(out, o.len, (uint64_t)i);
	if (o.form == F_MSG)
		op_split(&o, out, o.len, 1, false);
	post_send(n, &o);
	memset(out, 0x33, sizeof(out)); /* eager messages of this size are copied */
}

/* Rank 1 has all count messages soon, in order, and says so past the fabric. */
static void receive_row(struct node *n, int count)
{
	uint64_t end = now_ms() + SOON;

	for (int i = 0; i < count; i++)
		trecv(n, in[i], ROOM, FI_ADDR_UNSPEC, (uint64_t)i, 0, in[i]);
	barrier(n);
	for (int i = 0; i < count; i++) {
		struct fi_cq_tagged_entry e;

		CHECKF(wait_for(n, n->rxcq, &e, (int)(end - now_ms())) == 1, "message %d of %d does not come", i,
		       count);
		CHECKF(e.op_context == in[i] && e.len == length_of(i), "message %d: %zu bytes for tag %llu", i, e.len,
		       (unsigned long long)e.tag);
		verify(in[i], e.len, (uint64_t)i);
	}
	link_send(0, &count, sizeof(count));
}

/* Rank 0 waits for that without calling the provider. */
static void await(int count)
{
	struct pollfd p = { .fd = link_fd(1), .events = POLLIN };
	int got = 0;

	CHECKF(poll(&p, 1, SOON + 5000) == 1, "%d messages are not all sent while nothing calls", count);
	link_recv(1, &got, sizeof(got));
	CHECK(got == count);
}

/* Reads count completions of the transmit queue, some at a time, and nothing else. */
static void read_sent(struct node *n, int count, size_t at_a_time)
{
	struct fi_cq_tagged_entry e[8];

	while (count > 0) {
		ssize_t got = fi_cq_read(n->txcq, e, at_a_time);

		CHECKF(got > 0 || got == -FI_EAGAIN, "fi_cq_read: %zd", got);
		count -= got > 0 ? (int)got : 0;
	}
	CHECK(count == 0);
}

/* How many packets the machine's RDMA device has sent; -1: it cannot be notified. */
static long packets(void)
{
	FILE *f = popen("cat /sys/class/infiniband/*/ports/1/hw_counters/sent_pkts 2>/dev/null", "r");
	long n = -1;

	CHECK(f != NULL);
	if (!getenv("WEFT_TEST_APART") || fscanf(f, "%ld", &n) != 1)
		n = -1;
	pclose(f);
	return n;
}

static const int counts[] = { 1, 7, 8, 9, 10, 23, 24, 25, 40, 60, 200 };

/* What has read all completions need not call again. */
static void test_read(long one_cq)
{
	struct node n;

	open_row(&n, (struct node_opts){ .one_cq = one_cq });
	for (size_t k = 0; k < 3 * ARRAY_LEN(counts); k++) {
		int count = counts[k / 3];

		if (test_rank == 1) {
			receive_row(&n, count);
		} else {
			long before = packets();

			barrier(&n);
			for (int i = 0; i < count; i++)
				send_one(&n, i, 0);
			read_sent(&n, count, k % 3 == 0 ? 1 : k % 3 == 1 ? 3 : 8);
			await(count);
			if (count == MOST && before >= 0) /* acknowledgements included */
				CHECKF(packets() - before < count, "%d messages took %ld packets", count,
				       packets() - before);
		}
		barrier(&n);
	}
	node_close(&n);
}

/* FI_MORE on the last one, too: the read sends them all the same. */
static void test_more(long arg)
{
	struct node n;

	(void)arg;
	open_row(&n, (struct node_opts){ 0 });
	for (size_t k = 0; k < ARRAY_LEN(counts); k++) {
		if (test_rank == 1) {
			receive_row(&n, counts[k]);
		} else {
			barrier(&n);
			for (int i = 0; i < counts[k]; i++)
				send_one(&n, i, FI_MORE | FI_COMPLETION);
			read_sent(&n, counts[k], 8);
			await(counts[k]);
		}
		barrier(&n);
	}
	node_close(&n);
}

/* Sleeps on the receive queue's descriptor until a message comes. */
static void sleep_for_message(struct node *n)
{
	struct fi_cq_tagged_entry e;
	struct fid *fid = &n->rxcq->fid;
	struct pollfd p = { .events = POLLIN };
	uint64_t end = now_ms() + SOON;
	ssize_t got;

	OK(fi_control(fid, FI_GETWAIT, &p.fd));
	do {
		int rc = fi_trywait(n->fabric, &fid, 1);

		CHECKF(rc == 0 || rc == -FI_EAGAIN, "fi_trywait: %d", rc);
		if (!rc)
			CHECKF(poll(&p, 1, SOON) == 1 && now_ms() < end, "no answer to messages before a sleep");
		got = fi_cq_read(n->rxcq, &e, 1);
	} while (got == -FI_EAGAIN);
	CHECKF(got == 1, "fi_cq_read: %zd", got);
}

/* Nothing waits for what goes to sleep on its other queue without having read any completion. */
static void test_sleep(long arg)
{
	struct node n;

	(void)arg;
	open_row(&n, (struct node_opts){ .wait = FI_WAIT_FD });
	for (size_t k = 0; k < ARRAY_LEN(counts) - 1; k++) {
		int count = counts[k];
		char answer = 1;

		if (test_rank == 1) {
			receive_row(&n, count);
			tsend(&n, &answer, 1, n.peer[0], 1000, &answer);
			wait_ctx(&n, n.txcq, &answer);
		} else {
			trecv(&n, &answer, 1, FI_ADDR_UNSPEC, 1000, 0, &answer);
			barrier(&n);
			for (int i = 0; i < count; i++)
				send_one(&n, i, 0);
			sleep_for_message(&n);
			read_sent(&n, count, 8);
			await(count);
		}
		barrier(&n);
	}
	node_close(&n);
}

/* Nothing reads anything of injected messages, nor need it of a counter that it does not read. */
static void test_unread(long how)
{
	struct node n;

	open_row(&n, (struct node_opts){ .counters = how == 0 });
	for (int round = 0; round < 5; round++) {
		const int count = 30; /* as many as a queue holds without progress */

		if (test_rank == 1) {
			receive_row(&n, count);
		} else {
			barrier(&n);
			for (int i = 0; i < count; i++)
				send_one(&n, i, (uint64_t)how);
			await(count);
			if (!how)
				read_sent(&n, count, 8);
		}
		barrier(&n);
	}
	node_close(&n);
}

/* Short messages, some kept, others not, and long ones between them, keep their order. */
static void test_mixed(long arg)
{
	static char big_out[40000], big_in[40000];
	static const uint64_t hows[] = { 0, 0, FI_MORE | FI_COMPLETION, FI_INJECT, FI_COMPLETION };
	struct node n;

	(void)arg;
	open_row(&n, (struct node_opts){ .one_cq = true });
	for (int round = 0; round < 30; round++) {
		size_t len = (size_t)round * 1300;

		if (test_rank == 1) {
			trecv(&n, big_in, sizeof(big_in), FI_ADDR_UNSPEC, 999, 0, big_in);
			for (int i = 0; i < MOST; i++)
				trecv(&n, in[i], ROOM, FI_ADDR_UNSPEC, (uint64_t)i, 0, in[i]);
			for (int i = 0; i < MOST + 1; i++) {
				struct fi_cq_tagged_entry e;

				wait_ok(&n, n.rxcq, &e);
				verify(e.op_context, e.tag == 999 ? len : length_of((int)e.tag), e.tag);
			}
		} else {
			uint64_t state = (uint64_t)round;
			int want = 1;

			fill(big_out, len, 999);
			for (int i = 0; i < MOST; i++) {
				uint64_t how = hows[rnd(&state) % ARRAY_LEN(hows)];

				want += how != FI_INJECT;
				send_one(&n, i, how);
				if (i == MOST / 2)
					tsend(&n, big_out, len, n.peer[1], 999, big_out);
			}
			read_sent(&n, want, 8);
		}
		barrier(&n);
	}
	node_close(&n);
}

static const struct test tests[] = {
	{ "read_queues", test_read, 2, 0, false },
	{ "read_one_queue", test_read, 2, 0, true },
	{ "more", test_more, 2, 0, 0 },
	{ "sleep", test_sleep, 2, 0, 0 },
	{ "injected", test_unread, 2, 0, FI_INJECT },
	{ "counted", test_unread, 2, 0, 0 },
	{ "mixed", test_mixed, 2, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
