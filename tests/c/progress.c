/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Progress without the application: processes that sleep outside the library while messages come and
 * go. FI_PROGRESS_AUTO does everything; control AUTO with data MANUAL does the copies.
 */
#include "common.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define LARGE (1 << 20)
#define COUNT 8

static const struct node_opts automatic = {
	.control = FI_PROGRESS_AUTO,
	.data = FI_PROGRESS_AUTO,
	.counters = true,
	.tx_flags = FI_DELIVERY_COMPLETE,
};

static void open_level(struct node *n, uint64_t level)
{
	struct node_opts o = automatic;

	o.tx_flags = level;
	node_open(n, &o);
	CHECK(n->info->domain_attr->control_progress == FI_PROGRESS_AUTO);
	CHECK(n->info->domain_attr->data_progress == FI_PROGRESS_AUTO);
	node_connect(n);
}

static void open_auto(struct node *n)
{
	open_level(n, FI_DELIVERY_COMPLETE);
}

/* ---- sleeping in pause() until the sender signals that it has seen its completions ---- */

static void on_signal(int sig)
{
	(void)sig;
}

/* Blocks SIGUSR1, so that it is not lost before sleep_until_signal. */
static void expect_signal(sigset_t *old)
{
	struct sigaction action = { .sa_handler = on_signal };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
	CHECK(sigprocmask(SIG_BLOCK, &set, old) == 0);
}

/* pause(), without the gap between polling and sleeping. */
static void sleep_until_signal(const sigset_t *old)
{
	sigset_t wait = *old;

	sigdelset(&wait, SIGUSR1);
	CHECK(sigsuspend(&wait) == -1);
}

static void send_all(struct node *n, char *buf, size_t len)
{
	struct fi_cq_tagged_entry e;

	for (uint64_t i = 0; i < COUNT; i++) {
		fill(buf + i * len, len, i);
		tsend(n, buf + i * len, len, n->peer[1], i, buf + i * len);
	}
	for (int i = 0; i < COUNT; i++)
		wait_ok(n, n->txcq, &e);
}

/* Messages that a NIC matches are acknowledged by the NIC: their bytes may come, or be copied from where messages
 * without a receive land, when the receiver's process takes in the NIC's events. So the test waits, at first without a
 * call. */
static void await_events(struct node *n, const char *buf, size_t len)
{
	char *want = malloc(len);
	uint64_t end = now_ms() + 5000;

	CHECK(want != NULL);
	for (uint64_t i = 0; i < COUNT; i++) {
		fill(want, len, i);
		while (memcmp(buf + i * len, want, len) && now_ms() < end)
			usleep(1000);
	}
	while (fi_cntr_read(n->rxcntr) < COUNT && now_ms() < end)
		usleep(1000);
	free(want);
}

/* Everything is there, and one poll of the queue finds all of it. */
static void check_received(struct node *n, char *buf, size_t len)
{
	struct fi_cq_tagged_entry e[COUNT];
	uint64_t seen = 0;

	if (n->info->addr_format == FI_ADDR_CXI)
		await_events(n, buf, len);
	for (uint64_t i = 0; i < COUNT; i++)
		verify(buf + i * len, len, i);
	CHECK(fi_cntr_read(n->rxcntr) == COUNT);
	CHECK(fi_cntr_readerr(n->rxcntr) == 0);
	CHECK(fi_cq_read(n->rxcq, e, COUNT) == COUNT);
	for (int i = 0; i < COUNT; i++) {
		CHECK(e[i].len == len && e[i].tag < COUNT && e[i].op_context == buf + e[i].tag * len);
		seen |= 1ull << e[i].tag;
	}
	CHECK(seen == (1ull << COUNT) - 1);
}

static void post_all(struct node *n, char *buf, size_t len)
{
	for (uint64_t i = 0; i < COUNT; i++)
		trecv(n, buf + i * len, len, FI_ADDR_UNSPEC, i, 0, buf + i * len);
}

/* The target posts receives and sleeps; the sender waits for FI_DELIVERY_COMPLETE. */
static void test_pause(long len)
{
	char *buf = malloc((size_t)len * COUNT);
	struct node n;

	CHECK(buf != NULL);
	open_auto(&n);
	if (test_rank == 1) {
		pid_t self = getpid();
		sigset_t old;

		expect_signal(&old);
		post_all(&n, buf, (size_t)len);
		link_send(0, &self, sizeof(self));
		sleep_until_signal(&old);
		check_received(&n, buf, (size_t)len);
	} else {
		pid_t peer;

		link_recv(1, &peer, sizeof(peer));
		send_all(&n, buf, (size_t)len);
		CHECK(kill(peer, SIGUSR1) == 0);
	}
	barrier(&n);
	node_close(&n);
	free(buf);
}

/* The messages come first, and are not expected; the receives are posted between two sleeps. */
static void test_unexpected(long len)
{
	char *buf = malloc((size_t)len * COUNT), byte;
	struct node n;

	CHECK(buf != NULL);
	open_level(&n, FI_MATCH_COMPLETE);
	if (test_rank == 1) {
		link_recv(0, &byte, 1);
		post_all(&n, buf, (size_t)len);
		link_recv(0, &byte, 1);
		/* a NIC says of a match before its completion is there; a inspect would make progress */
		usleep(200000);
		check_received(&n, buf, (size_t)len);
	} else {
		for (uint64_t i = 0; i < COUNT; i++) {
			fill(buf + i * (size_t)len, (size_t)len, i);
			tsend(&n, buf + i * (size_t)len, (size_t)len, n.peer[1], i, NULL);
		}
		usleep(50000); /* the target's thread is asleep again */
		link_send(1, "p", 1);
		for (int i = 0; i < COUNT; i++)
			wait_ctx(&n, n.txcq, NULL);
		link_send(1, "c", 1);
	}
	barrier(&n);
	node_close(&n);
	free(buf);
}

/* Neither side calls the library after posting; the target reads its memory. */
static void test_both_asleep(long len)
{
	char *buf = malloc((size_t)len * COUNT), byte;
	struct node n;

	CHECK(buf != NULL);
	open_auto(&n);
	if (test_rank == 1) {
		memset(buf, 0, (size_t)len * COUNT);
		post_all(&n, buf, (size_t)len);
		link_send(0, "r", 1);
		for (uint64_t i = 0; i < COUNT; i++) {
			char *last = buf + (i + 1) * (size_t)len - 1;

			while (__atomic_load_n(last, __ATOMIC_ACQUIRE) != 'x')
				usleep(1000);
		}
		sleep(1); /* the last completion, and its acknowledgement; a inspect would make progress */
		link_send(0, "d", 1);
		CHECK(fi_cntr_read(n.rxcntr) == COUNT);
	} else {
		memset(buf, 'x', (size_t)len * COUNT);
		link_recv(1, &byte, 1);
		for (uint64_t i = 0; i < COUNT; i++)
			tsend(&n, buf + i * (size_t)len, (size_t)len, n.peer[1], i, NULL);
		link_recv(1, &byte, 1);
		CHECK(fi_cntr_read(n.txcntr) == COUNT);
	}
	barrier(&n);
	node_close(&n);
	free(buf);
}

/* An application that waits in fi_cntr_wait while the thread works for it. */
static void test_wait(long unused)
{
	char *buf = malloc((size_t)LARGE * COUNT);
	struct node n;

	(void)unused;
	CHECK(buf != NULL);
	open_auto(&n);
	if (test_rank == 1) {
		post_all(&n, buf, LARGE);
		barrier(&n);
		OK(fi_cntr_wait(n.rxcntr, COUNT, 10000));
		check_received(&n, buf, LARGE);
	} else {
		barrier(&n);
		send_all(&n, buf, LARGE);
	}
	barrier(&n);
	node_close(&n);
	free(buf);
}

/* ---- the hybrid: the caller matches, the thread copies ---- */

#define HUGE_BYTES (64 << 20)

static void test_hybrid(long unused)
{
	struct node_opts o = { .control = FI_PROGRESS_AUTO,
			       .data = FI_PROGRESS_MANUAL,
			       .tx_flags = FI_DELIVERY_COMPLETE };
	char *buf = malloc(HUGE_BYTES), byte;
	struct node n;

	(void)unused;
	CHECK(buf != NULL);
	node_open(&n, &o);
	CHECK(n.info->domain_attr->control_progress == FI_PROGRESS_AUTO);
	CHECK(n.info->domain_attr->data_progress == FI_PROGRESS_MANUAL);
	node_connect(&n);
	if (test_rank == 1) {
		struct fi_cq_tagged_entry e;

		trecv(&n, buf, HUGE_BYTES, FI_ADDR_UNSPEC, 7, 0, buf);
		link_send(0, "r", 1);
		link_recv(0, &byte, 1);	      /* it is a rendezvous */
		for (int i = 0; i < 3; i++) { /* the thread may be done before the last inspect */
			ssize_t rc = fi_cq_read(n.rxcq, NULL, 0);

			CHECKF(rc == -FI_EAGAIN || (i > 0 && rc == 0), "inspect %d: %zd", i, rc);
		}
		link_recv(0, &byte, 1); /* it is received, as the sender's completion says */
		verify(buf, HUGE_BYTES, 7);
		CHECK(fi_cq_read(n.rxcq, &e, 1) == 1);
		CHECK(e.len == HUGE_BYTES && e.op_context == buf);
	} else {
		fill(buf, HUGE_BYTES, 7);
		link_recv(1, &byte, 1);
		tsend(&n, buf, HUGE_BYTES, n.peer[1], 7, buf);
		link_send(1, "a", 1);
		wait_ctx(&n, n.txcq, buf);
		link_send(1, "d", 1);
	}
	barrier(&n);
	node_close(&n);
	free(buf);
}

/* ---- the threads ---- */

/* The number of threads of this process whose name begins with name. */
static int threads_named(const char *name)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *d;
	int count = 0;

	CHECK(dir != NULL);
	while ((d = readdir(dir))) {
		char path[300], comm[32] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", d->d_name);
		f = fopen(path, "r");
		if (f && fgets(comm, sizeof(comm), f))
			count += strncmp(comm, name, strlen(name)) == 0;
		if (f)
			fclose(f);
	}
	closedir(dir);
	return count;
}

/* Waits: a thread that has ended may be seen for a while, on a machine that is busy. */
static void expect_threads(int want)
{
	int got = threads_named("weft-progress");

	for (int i = 0; i < 2000 && got != want; i++) {
		usleep(10000);
		got = threads_named("weft-progress");
	}
	CHECKF(got == want, "%d progress threads, want %d", got, want);
}

static void test_lifetime(long unused)
{
	struct node_opts manual = { .control = FI_PROGRESS_MANUAL, .data = FI_PROGRESS_MANUAL };
	struct node_opts late = automatic;
	struct node n, m;

	(void)unused;
	NEED(test_is_weft(), "threads of a name that is known");
	node_open(&n, &manual);
	expect_threads(0);
	node_close(&n);
	late.disabled = true;
	node_open(&n, &late);
	expect_threads(0); /* not before the first need */
	OK(fi_enable(n.ep));
	expect_threads(1);
	node_open_on(&m, &n, &automatic);
	expect_threads(1); /* one for each domain */
	node_close(&m);
	expect_threads(1);
	node_close(&n);
	expect_threads(0);
}

static uint64_t cpu_us(void)
{
	struct rusage u;

	CHECK(getrusage(RUSAGE_SELF, &u) == 0);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* An idle process with a connected endpoint uses less than a thousandth of a core. A port to other
 * hosts would use two more: its timer loop polls ten times a second for peers that ask whether it lives. */
static void test_idle(long ms)
{
	struct node_opts o = automatic;
	struct node n;
	uint64_t before, used = 0;

	o.caps = FI_MSG | FI_TAGGED | FI_LOCAL_COMM;
	node_open(&n, &o);
	node_connect(&n);
	usleep(200000);
	for (int tries = 0; tries < 5; tries++) { /* each wake-up costs more where others use the caches */
		before = cpu_us();
		usleep((useconds_t)ms * 1000);
		used = cpu_us() - before;
		note("%lu us of processor time in %ld ms", (unsigned long)used, ms);
		if (used < (uint64_t)ms)
			break;
	}
	EXPECT(used < (uint64_t)ms || !test_is_weft());
	barrier(&n);
	node_close(&n);
}

/* A child without exec, a child with exec, and an exit without closing anything. */
static void test_fork(long unused)
{
	char *buf = malloc((size_t)LARGE * COUNT);
	int status;
	struct node n;

	(void)unused;
	CHECK(buf != NULL);
	open_auto(&n);
	for (int exec = 0; exec < 2; exec++) {
		pid_t child = fork();

		CHECK(child >= 0);
		if (child == 0) {
			if (exec)
				execl("/bin/true", "true", (char *)NULL);
			exit(0); /* with all of the library's own handlers */
		}
		CHECK(waitpid(child, &status, 0) == child);
		CHECKF(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child ended with %#x", status);
	}
	if (test_rank == 1) {
		char byte;

		post_all(&n, buf, LARGE);
		link_send(0, "r", 1);
		link_recv(0, &byte, 1);
		check_received(&n, buf, LARGE);
	} else {
		char byte;

		link_recv(1, &byte, 1);
		send_all(&n, buf, LARGE);
		link_send(1, "d", 1);
	}
	barrier(&n); /* and end: nothing is closed */
}

/* A process that executes another program, without closing anything, is gone for its peers, though its
 * id and start time stay. */
static void test_exec(long auto_)
{
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV };
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry e;
	uint64_t end = now_ms() + 20000;
	char buf[8], byte;
	struct node n;
	ssize_t rc;

	NEED(test_is_weft(), "peers that are found gone");
	if (auto_)
		o.control = o.data = FI_PROGRESS_AUTO;
	node_open(&n, &o);
	if (n.info->addr_format == FI_ADDR_CXI)
		SKIP("a NIC that matches does not say that a peer is gone");
	node_connect(&n);
	if (test_rank == 1) {
		tsend(&n, buf, 8, n.peer[0], 1, buf);
		wait_ctx(&n, n.txcq, buf);
		link_recv(0, &byte, 1);
		CHECK(dup2(link_fd(0), 0) == 0);
		execl("/bin/dd", "dd", "bs=1", "count=1", "of=/dev/null", "status=none", (char *)NULL);
		CHECK(!"execl failed");
	}
	trecv(&n, buf, 8, n.peer[1], 1, 0, buf);
	wait_ctx(&n, n.rxcq, buf);
	trecv(&n, buf, 8, n.peer[1], 2, 0, buf);
	link_send(1, "x", 1);
	while ((rc = fi_cq_read(n.rxcq, &e, 1)) == -FI_EAGAIN && now_ms() < end)
		usleep(1000);
	CHECKF(rc == -FI_EAVAIL, "a receive from what executed another program: %zd", rc);
	CHECK(fi_cq_readerr(n.rxcq, &err, 0) == 1);
	CHECKF(err.err == FI_ECONNRESET && err.op_context == buf, "error %d", err.err);
	link_send(1, "e", 1); /* it still runs */
	node_close(&n);
}

static const struct test tests[] = {
	{ "pause_large", test_pause, 2, 0, LARGE },
	{ "pause_small", test_pause, 2, 0, 8 },
	{ "pause_eager", test_pause, 2, 0, 6000 },
	{ "unexpected_large", test_unexpected, 2, 0, LARGE },
	{ "unexpected_small", test_unexpected, 2, 0, 8 },
	{ "both_asleep_large", test_both_asleep, 2, 0, LARGE },
	{ "both_asleep_small", test_both_asleep, 2, 0, 64 },
	{ "wait", test_wait, 2, 0, 0 },
	{ "hybrid", test_hybrid, 2, 0, 0 },
	{ "lifetime", test_lifetime, 1, 0, 0 },
	{ "idle", test_idle, 2, 0, 3000 },
	{ "fork", test_fork, 2, 0, 0 },
	{ "exec_manual", test_exec, 2, 0, 0 },
	{ "exec_auto", test_exec, 2, 0, 1 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
