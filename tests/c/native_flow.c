/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints of FI_PROTO_CXI whose receiver has little room: flow control while one thread receives and others send,
 * messages into one buffer, and endpoints that are closed meanwhile; several threads that sleep for one queue. Without
 * a NIC of Slingshot, or its model (tests/clients/cxi.sh), all is skipped. */
#include <poll.h>
#include <pthread.h>
#include <rdma/fi_atomic.h>

#include "native_rma.h"

#define SENDERS 2
#define MESSAGES 300 /* of each sender */
#define LONGEST 40000

enum room { ENTRIES, BUFFERS, EVENTS, ANY };

/* The counter that says that the receiver had not enough of it. */
static const char *const reasons[] = { "matched_no_entries", "matched_no_buffers", "matched_no_events" };

/* A node whose receiver has little of something, with itself as its peer. */
static void open_small(enum room room, struct node_opts o)
{
	const char *model = getenv("CASSINI"), *match = getenv("FI_WEFT_CXI_MATCH");
	char few[256];

	if (match && strcmp(match, "hardware"))
		SKIP("software matches, which has room as long as there is memory");
	if (!model && room == ENTRIES)
		SKIP("CASSINI names no model of a NIC, of which the list entries could be few");
	snprintf(few, sizeof(few), "%s les=120", model ? model : "");
	if (room == ENTRIES)
		setenv("CASSINI", few, 1);
	if (room == BUFFERS) {
		setenv("FI_WEFT_CXI_OFLOW_BUF_SIZE", "64k", 1);
		setenv("FI_WEFT_CXI_OFLOW_BUF_COUNT", "2", 1);
	}
	if (room == EVENTS)
		setenv("FI_WEFT_CXI_DEFAULT_CQ_SIZE", "64", 1);
	open_node(o);
	n.peer[1] = node_insert(&n, &n);
}

static unsigned char outs[SENDERS][MESSAGES][LONGEST], in[LONGEST];
static size_t length;
static int posted; /* atomic */

static void *sender(void *which)
{
	unsigned char(*own)[LONGEST] = which;
	uint64_t tag = (uint64_t)(own - outs[0]) / MESSAGES;
	struct fi_cq_tagged_entry e;

	for (uint64_t k = 0; k < MESSAGES; k++) {
		ssize_t rc;

		while ((rc = fi_tsend(n.ep, own[k], length, NULL, n.peer[1], tag, own)) == -FI_EAGAIN) {
			rc = fi_cq_read(n.txcq, &e, 0); /* progress alone */
			CHECK(rc == 0 || rc == -FI_EAGAIN);
			sched_yield();
		}
		CHECK_RC(rc, 0);
		__atomic_add_fetch(&posted, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Lets senders and the NIC work until nothing more is posted, taking in no events. */
static void let_post(void)
{
	for (int last = -1, now; (now = __atomic_load_n(&posted, __ATOMIC_RELAXED)) != last; last = now)
		usleep(50000);
}

/* Threads send until the receiver has no room, which it says, and another receives all in order then. */
static void test_threads(long arg)
{
	enum room room = (enum room)(arg % 4);
	struct fi_cq_tagged_entry e;
	pthread_t threads[SENDERS];
	uint64_t end = now_ms() + 20000;

	length = (size_t)(arg / 4);
	open_small(room, opts);
	for (uint64_t k = 0; k < SENDERS * MESSAGES; k++)
		fill(outs[k / MESSAGES][k % MESSAGES], length, 1000 * (k / MESSAGES) + k % MESSAGES);
	for (int k = 0; k < SENDERS; k++)
		OK(-pthread_create(&threads[k], NULL, sender, outs[k]));
	let_post();
	while (node_counter(&n, reasons[room]) == 0) {
		CHECKF(now_ms() < end, "there was room for all");
		CHECK(fi_cq_read(n.rxcq, &e, 1) == -FI_EAGAIN);
	}
	for (uint64_t k = 0; k < SENDERS * MESSAGES; k++) {
		uint64_t tag = k % SENDERS;

		trecv(&n, in, length, FI_ADDR_UNSPEC, tag, 0, in);
		while (fi_cq_read(n.rxcq, &e, 1) == -FI_EAGAIN)
			sched_yield();
		CHECK(e.op_context == in && e.tag == tag && e.len == length);
		verify(in, length, 1000 * tag + k / SENDERS);
	}
	for (int k = 0; k < SENDERS; k++)
		OK(-pthread_join(threads[k], NULL));
	for (int k = 0; k < SENDERS * MESSAGES; k++)
		wait_ok(&n, n.txcq, &e);
	wait_none(&n, n.rxcq, 2);
	CHECK(node_counter(&n, "matched_dropped") > 0);
	node_close(&n);
}

enum { SHORT = 400, ALONE = 100, TOGETHER = SHORT + ALONE };

static unsigned char many[TOGETHER], bytes[TOGETHER];

/* Posts short messages, and reads no events for so long. */
static void send_short(unsigned pause_ms)
{
	struct op o = { .form = F_PLAIN, .len = 1, .ctx = bytes, .addr = n.peer[1] };

	for (int k = 0; k < SHORT; k++) {
		o.buf = bytes + k;
		post_send(&n, &o);
	}
	usleep(1000 * pause_ms);
}

/* The buffer of many has all in order, and takes those that come later behind them, which fill it. */
static void filled(void)
{
	struct op o = { .form = F_PLAIN, .len = 1, .ctx = bytes, .addr = n.peer[1] };
	struct fi_cq_tagged_entry e;

	for (size_t k = 0; k < TOGETHER; k++) {
		if (k >= SHORT) {
			o.buf = bytes + k;
			post_send(&n, &o);
		}
		wait_ok(&n, n.rxcq, &e);
		CHECK(e.op_context == many && e.len == 1 && e.buf == many + k && e.flags & FI_RECV);
	}
	if (!(e.flags & FI_MULTI_RECV)) {
		wait_ok(&n, n.rxcq, &e);
		CHECK(e.op_context == many && e.flags & FI_MULTI_RECV);
	}
	CHECK(!memcmp(many, bytes, TOGETHER));
	for (size_t k = 0; k < TOGETHER; k++)
		wait_ctx(&n, n.txcq, bytes);
}

static void post_many(void)
{
	struct iovec iov = { many, TOGETHER };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = many };
	ssize_t rc;

	memset(many, 0, TOGETHER);
	while ((rc = fi_recvmsg(n.ep, &m, FI_MULTI_RECV)) == -FI_EAGAIN)
		progress(&n);
	CHECK_RC(rc, 0);
}

static bool stopped(void)
{
	return node_counter(&n, "matched_no_events") > 0;
}

/* Messages into a buffer of many that is there, until the NIC has had no room for their events. */
static void test_multi(long arg)
{
	struct node_opts with = opts;
	size_t min = 1;

	(void)arg;
	with.caps |= FI_MULTI_RECV;
	open_small(EVENTS, with);
	OK(fi_setopt(&n.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof(min)));
	fill(bytes, TOGETHER, 7);
	for (unsigned ms = 20; !stopped(); ms *= 2) { /* the model needs time */
		CHECKF(ms < 5000, "there was room for all events");
		post_many();
		send_short(ms);
		for (int k = 0; k < 100; k++)
			progress(&n);
		filled();
	}
	node_close(&n);
}

/* Unexpected messages that fill buffers to the byte, and one of 1 byte before them, are received behind each other. */
static void test_filled(long arg)
{
	enum { FULL = 18432, COUNT = 24 };
	static unsigned char data[COUNT][FULL];
	struct fi_cq_tagged_entry e;
	unsigned char first = 77;

	(void)arg;
	open_small(BUFFERS, opts);
	tsend(&n, &first, 1, n.peer[1], 0, &first);
	for (uint64_t k = 0; k < COUNT; k++) {
		fill(data[k], FULL, k);
		tsend(&n, data[k], FULL, n.peer[1], 1, data[k]);
	}
	for (int k = 0; k < 200; k++)
		progress(&n);
	for (uint64_t k = 0; k < COUNT; k++) {
		trecv(&n, in, FULL, FI_ADDR_UNSPEC, 1, 0, in);
		wait_ctx(&n, n.rxcq, in);
		verify(in, FULL, k);
	}
	trecv(&n, in, 1, FI_ADDR_UNSPEC, 0, 0, in);
	wait_ctx(&n, n.rxcq, in);
	CHECK(in[0] == 77);
	for (int k = 0; k <= COUNT; k++)
		wait_ok(&n, n.txcq, &e);
	CHECK(node_counter(&n, "matched_no_buffers") > 0);
	node_close(&n);
}

/* An endpoint is closed while receives, of which there are more than list entries, find none, or with messages under
 * way in flow control, again and again; another one works at once. */
static void test_early_close(long sends)
{
	struct op o = { .tagged = true, .len = 64, .buf = local, .ctx = local };

	open_small(ENTRIES, opts);
	for (int round = 0; round < 6; round++) {
		ssize_t rc = 0;

		o.addr = sends ? n.peer[1] : FI_ADDR_UNSPEC;
		for (int k = 0; k < 400 && rc == 0; k++)
			rc = (sends ? op_send : op_recv)(n.ep, &o);
		CHECK(rc == 0 || rc == -FI_EAGAIN);
		for (int k = 0; k < 100 * (round % 3); k++)
			progress(&n);
		node_close(&n);
		open_node(opts);
		n.peer[1] = node_insert(&n, &n);
		trecv(&n, in, 64, FI_ADDR_UNSPEC, 5, 0, in);
		tsend(&n, local, 64, n.peer[1], 5, local);
		wait_ctx(&n, n.rxcq, in);
		wait_ctx(&n, n.txcq, local);
	}
	node_close(&n);
}

/* A region and its endpoint are closed with writes, reads and atomic operations under way, whose ends nothing reads. */
static void test_left(long key)
{
	static const uint64_t one = 1;
	static uint64_t old;

	open_small(ANY, opts);
	for (int round = 0; round < 6; round++) {
		struct fid_mr *mr = expose(memory, sizeof(memory), ALL, (uint64_t)key);

		for (int k = 0; k < 50; k++) {
			(void)fi_write(n.ep, local, 8, NULL, n.peer[1], 0, (uint64_t)key, local);
			(void)fi_read(n.ep, back, 5000, NULL, n.peer[1], 0, (uint64_t)key, back);
			(void)fi_atomic(n.ep, &one, 1, NULL, n.peer[1], 8, (uint64_t)key, FI_UINT64, FI_SUM, local);
			(void)fi_fetch_atomic(n.ep, &one, 1, NULL, &old, NULL, n.peer[1], 8, (uint64_t)key, FI_UINT64,
					      FI_SUM, local);
			(void)fi_tsend(n.ep, local, k % 2 ? 64 : LARGE, NULL, n.peer[1], 1, local);
		}
		for (int k = 0; k < 20 * round; k++)
			progress(&n);
		OK(fi_close(&mr->fid));
		node_close(&n);
		open_node(opts);
		n.peer[1] = node_insert(&n, &n);
	}
	node_close(&n);
}

static pthread_mutex_t one_reads = PTHREAD_MUTEX_INITIALIZER;
static int awake, reads;

/* Sleeps once until the queue's descriptor is ready, or takes a completion, asleep until there is one. */
static void *asleep(void *takes)
{
	struct pollfd p = { .events = POLLIN };
	struct fid *fids[1] = { &n.rxcq->fid };
	struct fi_cq_tagged_entry e;
	ssize_t rc;

	OK(fi_control(&n.rxcq->fid, FI_GETWAIT, &p.fd));
	if (!takes) {
		OK(fi_trywait(n.fabric, fids, 1));
		__atomic_add_fetch(&awake, 1, __ATOMIC_SEQ_CST);
		CHECKF(poll(&p, 1, 20000) == 1, "a thread was not woken");
		return NULL;
	}
	__atomic_add_fetch(&awake, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_lock(&one_reads);
	while ((rc = fi_cq_read(n.rxcq, &e, 1)) == -FI_EAGAIN)
		if (fi_trywait(n.fabric, fids, 1) == 0)
			CHECKF(poll(&p, 1, 20000) == 1, "nothing came");
	CHECK(rc == 1 && e.len == 256);
	reads++;
	pthread_mutex_unlock(&one_reads);
	return NULL;
}

/* Threads sleep for one queue: one message wakes all of them (0), or each takes one of several, whose receives are
 * there before (1) or come behind (2). */
static void test_asleep(long how)
{
	enum { ASLEEP = 6 };
	static unsigned char got[ASLEEP][256];
	struct node_opts o = opts;
	pthread_t threads[ASLEEP];
	int messages = how ? ASLEEP : 1;

	o.wait = FI_WAIT_FD;
	open_small(ANY, o);
	for (int k = 0; k < ASLEEP; k++)
		OK(-pthread_create(&threads[k], NULL, asleep, how ? &n : NULL));
	while (__atomic_load_n(&awake, __ATOMIC_SEQ_CST) < ASLEEP)
		usleep(1000);
	usleep(20000); /* asleep all */
	for (int turn = 0; turn < 2; turn++)
		for (int k = 0; k < messages; k++) {
			if ((turn == 0) == (how < 2))
				OK(fi_trecv(n.ep, got[k], 256, NULL, FI_ADDR_UNSPEC, 1, 0, got[k]));
			else
				OK(fi_tsend(n.ep, local, 256, NULL, n.peer[1], 1, local));
		}
	for (int k = 0; k < ASLEEP; k++)
		OK(-pthread_join(threads[k], NULL));
	for (int k = 0; k < messages; k++)
		wait_ctx(&n, n.txcq, local);
	if (how)
		CHECK(reads == ASLEEP);
	else
		wait_ctx(&n, n.rxcq, got[0]);
	wait_none(&n, n.rxcq, 1);
	node_close(&n);
}

static const struct test tests[] = {
	{ "threads_entries", test_threads, 1, 0, 4 * 64 + ENTRIES },
	{ "threads_entries_rendezvous", test_threads, 1, 0, 4 * LONGEST + ENTRIES },
	{ "threads_buffers", test_threads, 1, 0, 4 * 1000 + BUFFERS },
	{ "threads_buffers_rendezvous", test_threads, 1, 0, 4 * LONGEST + BUFFERS },
	{ "threads_events", test_threads, 1, 0, 4 * 64 + EVENTS },
	{ "multi_expected", test_multi, 1, 0, 0 },
	{ "filled", test_filled, 1, 0, 0 },
	{ "early_close_receives", test_early_close, 1, 0, false },
	{ "early_close_sends", test_early_close, 1, 0, true },
	{ "left_optimised", test_left, 1, 0, 57 },
	{ "left_standard", test_left, 1, 0, 5000 },
	{ "asleep_all", test_asleep, 1, 0, 0 },
	{ "asleep_each_expected", test_asleep, 1, 0, 1 },
	{ "asleep_each_unexpected", test_asleep, 1, 0, 2 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
