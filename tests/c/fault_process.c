/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What belongs to the process and not to the provider, though the provider brings a language runtime:
 * signals, their handlers and stacks, limits, threads, and the end of the process.
 */
#include "common.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

static struct node n;

static void traffic(int rounds)
{
	static char in[200000], out[200000];

	for (int i = 0; i < rounds; i++) {
		size_t len = i % 10 ? 16 : sizeof(out);

		trecv(&n, in, sizeof(in), FI_ADDR_UNSPEC, 1, 0, in);
		tsend(&n, out, len, n.peer[0], 1, out);
		wait_ctx(&n, n.rxcq, in);
		wait_ctx(&n, n.txcq, out);
	}
}

static void open_node(void)
{
	node_open(&n, NULL);
	node_connect(&n);
	traffic(20);
}

/* A call into the runtime. */
static void cycle(void)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *cntr;

	OK(fi_cntr_open(n.domain, &attr, &cntr, NULL));
	OK(fi_close(&cntr->fid));
}

/* The signals that a program can block and catch. */
static bool is_free(int sig)
{
	return sig != SIGKILL && sig != SIGSTOP && (sig < 32 || sig >= SIGRTMIN);
}

/* ---- signals ---- */

/* The mask of a thread of this process, from its status. */
static unsigned long long mask_of(const char *tid)
{
	char path[300], line[200];
	unsigned long long mask = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%s/status", tid);
	f = fopen(path, "r");
	CHECK(f != NULL);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "SigBlk: %llx", &mask) == 1)
			break;
	fclose(f);
	return mask;
}

/* All threads but this one block every signal. */
static void check_masks(void)
{
	struct dirent *entry;
	char self[16];
	DIR *d = opendir("/proc/self/task");

	CHECK(d != NULL);
	snprintf(self, sizeof(self), "%d", gettid());
	while ((entry = readdir(d))) {
		unsigned long long mask;

		if (entry->d_name[0] == '.' || !strcmp(entry->d_name, self))
			continue;
		mask = mask_of(entry->d_name);
		for (int sig = 1; sig <= SIGRTMAX; sig++)
			EXPECTF(!is_free(sig) || mask >> (sig - 1) & 1, "thread %s lets signal %d in: mask %llx",
				entry->d_name, sig, mask);
	}
	closedir(d);
}

/* Each signal that the program blocks, before or after the provider is loaded, and waits for. */
static void test_blocked(long late)
{
	struct timespec limit = { .tv_sec = 5 };
	sigset_t all, got;

	if (!late)
		open_node();
	sigfillset(&all);
	CHECK(pthread_sigmask(SIG_BLOCK, &all, NULL) == 0);
	if (late)
		open_node();
	for (int round = 0; round < 5; round++)
		for (int sig = 1; sig <= SIGRTMAX; sig++) {
			sigset_t one;

			if (!is_free(sig) || sig == SIGCONT)
				continue;
			sigemptyset(&one);
			sigaddset(&one, sig);
			CHECK(kill(getpid(), sig) == 0);
			traffic(2);
			CHECKF(sigtimedwait(&one, NULL, &limit) == sig, "signal %d did not come", sig);
		}
	CHECK(pthread_sigmask(SIG_SETMASK, NULL, &got) == 0);
	for (int sig = 1; sig <= SIGRTMAX; sig++)
		EXPECTF(!is_free(sig) || sigismember(&got, sig), "signal %d is no longer blocked", sig);
	if (test_is_weft())
		check_masks();
	node_close(&n);
}

/* ---- handlers ---- */

static volatile sig_atomic_t calls;
static volatile uintptr_t room_at;

/* A handler with much on its stack. */
static void deep(int sig)
{
	volatile char room[1 << 20];

	(void)sig;
	for (size_t i = 0; i < sizeof(room); i += 64)
		room[i] = (char)i;
	room_at = (uintptr_t)room;
	calls++;
}

/* No alternate stack, and the handler runs on the thread's own. */
static void check_stack(int sig)
{
	uintptr_t here = (uintptr_t)&here;
	stack_t ss;

	CHECK(sigaltstack(NULL, &ss) == 0);
	CHECKF(ss.ss_flags & SS_DISABLE, "the thread has an alternate stack of %zu bytes", ss.ss_size);
	room_at = 0;
	raise(sig);
	CHECKF(here - room_at < 2 << 20, "the handler ran on another stack, at %#lx and not below %#lx", (long)room_at,
	       (long)here);
}

static void *other_thread(void *unused)
{
	cycle();
	check_stack(SIGUSR1);
	check_stack(SIGUSR2);
	return unused;
}

/* Handlers of all signals, with and without SA_ONSTACK: the provider changes no action and no stack. */
static void test_handlers(long late)
{
	struct sigaction before[65];
	pthread_t thread;

	if (late)
		open_node();
	for (int sig = 1; sig <= SIGRTMAX; sig++) {
		struct sigaction sa = { .sa_handler = deep, .sa_flags = sig % 2 ? SA_RESTART : SA_ONSTACK };

		if (is_free(sig)) {
			sigaddset(&sa.sa_mask, SIGHUP);
			CHECK(sigaction(sig, &sa, NULL) == 0);
			CHECK(sigaction(sig, NULL, &before[sig]) == 0);
		}
	}
	if (!late)
		open_node();
	for (int round = 0; round < 3; round++) {
		for (int sig = 1; sig <= SIGRTMAX; sig++) {
			struct sigaction now;

			if (!is_free(sig))
				continue;
			CHECK(sigaction(sig, NULL, &now) == 0);
			CHECKF(now.sa_handler == before[sig].sa_handler && now.sa_flags == before[sig].sa_flags &&
				       sigismember(&now.sa_mask, SIGHUP) && !sigismember(&now.sa_mask, SIGINT),
			       "signal %d: flags %#x, want %#x", sig, now.sa_flags, before[sig].sa_flags);
		}
		check_stack(SIGUSR1);
		check_stack(SIGUSR2);
		CHECK(pthread_create(&thread, NULL, other_thread, NULL) == 0);
		CHECK(pthread_join(thread, NULL) == 0);
		traffic(100);
	}
	node_close(&n);
}

static void sample(int sig)
{
	volatile char room[150000];

	for (size_t i = 0; i < sizeof(room); i += 64)
		room[i] = (char)sig;
	calls++;
}

/* A profiler's timer at 1 kHz, whose handler needs some stack, while objects come and go. */
static void test_profiler(long sig)
{
	struct itimerval timer = { { 0, 1000 }, { 0, 1000 } };
	struct sigaction sa = { .sa_handler = sample, .sa_flags = SA_RESTART };
	uint64_t end = now_ms() + 1500;

	open_node();
	CHECK(sigaction((int)sig, &sa, NULL) == 0);
	CHECK(setitimer(sig == SIGPROF ? ITIMER_PROF : ITIMER_VIRTUAL, &timer, NULL) == 0);
	while (now_ms() < end) {
		traffic(50);
		cycle();
	}
	timer = (struct itimerval){ 0 };
	CHECK(setitimer(sig == SIGPROF ? ITIMER_PROF : ITIMER_VIRTUAL, &timer, NULL) == 0);
	note("%d samples", calls);
	node_close(&n);
}

/* ---- limits ---- */

/* The soft limit of descriptors is what it was, for children too. */
static void test_nofile(long soft)
{
	struct rlimit want, got;
	int child = -1;
	FILE *f;

	CHECK(getrlimit(RLIMIT_NOFILE, &want) == 0);
	if ((rlim_t)soft > want.rlim_max)
		SKIP("the hard limit is %lu", (unsigned long)want.rlim_max);
	want.rlim_cur = soft ? (rlim_t)soft : want.rlim_max;
	CHECK(setrlimit(RLIMIT_NOFILE, &want) == 0);
	open_node();
	CHECK(getrlimit(RLIMIT_NOFILE, &got) == 0);
	CHECKF(got.rlim_cur == want.rlim_cur && got.rlim_max == want.rlim_max,
	       "limit of descriptors %lu/%lu, want %lu/%lu", (unsigned long)got.rlim_cur, (unsigned long)got.rlim_max,
	       (unsigned long)want.rlim_cur, (unsigned long)want.rlim_max);
	f = popen("ulimit -Sn", "r");
	CHECK(f && fscanf(f, "%d", &child) == 1);
	pclose(f);
	CHECKF((rlim_t)child == want.rlim_cur, "a child has %d descriptors", child);
	node_close(&n);
}

static pthread_barrier_t gate;
static volatile int refused, opened;

static void *none(void *arg)
{
	return arg;
}

/* Opens what a domain has. Every call may be refused, with the errno that pthread_create gave. */
static void *open_more(void *unused)
{
	pthread_barrier_wait(&gate);
	pthread_barrier_wait(&gate);
	for (int i = 0; i < 20; i++) {
		struct fid_domain *domain;
		int rc = fi_domain(n.fabric, n.info, &domain, NULL);

		if (rc == -FI_EAGAIN) {
			__sync_fetch_and_add(&refused, 1);
			continue;
		}
		OK(rc);
		__sync_fetch_and_add(&opened, 1);
		OK(fi_close(&domain->fid));
	}
	return unused;
}

/* No more threads from here on: what is open goes on, and what would need a thread is refused. */
static void test_no_threads(long automatic)
{
	enum { THREADS = 3 };
	struct rlimit one = { 1, 1 };
	pthread_t t[THREADS], other;
	struct node_opts o = { 0 };

	fi_freeinfo(node_info(NULL)); /* loads everything: the library may be in a folder of root's */
	if (geteuid() == 0)	      /* which the limit does not bind */
		CHECK(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
	if (automatic)
		o.control = o.data = FI_PROGRESS_AUTO;
	node_open(&n, &o);
	node_connect(&n);
	traffic(20);
	pthread_barrier_init(&gate, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&t[i], NULL, open_more, NULL) == 0);
	pthread_barrier_wait(&gate);
	CHECK(setrlimit(RLIMIT_NPROC, &one) == 0);
	CHECK(pthread_create(&other, NULL, none, NULL) == EAGAIN);
	pthread_barrier_wait(&gate);
	traffic(500);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(t[i], NULL) == 0);
	traffic(500);
	note("%d domains opened, %d refused", opened, refused);
	CHECK(opened + refused == THREADS * 20);
	node_close(&n);
}

/* ---- the end ---- */

static void leave(int sig)
{
	(void)sig;
	exit(7);
}

/* exit() from a signal handler at any instant, and from another thread, while messages are under way. */
static void *leave_soon(void *delay)
{
	usleep((useconds_t)(long)delay);
	exit(7);
}

/* Has a signal come once, in so many microseconds. */
static void signal_in(int sig, long delay)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = sig };
	struct itimerspec when = { .it_value.tv_nsec = delay * 1000 };
	timer_t timer;

	signal(sig, leave);
	CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
	CHECK(timer_settime(timer, 0, &when, NULL) == 0);
}

/* What calls exit(), and what the thread of the program does meanwhile. BY_FAULT: a handler of SIGSEGV, as libraries
 * install for their users, which interrupts calls that open and close. They run in Go, on a stack of Go's, from
 * where no second call into Go is possible: it would be another SIGSEGV, which is blocked in the handler and ends
 * the process. */
enum { BY_HANDLER, BY_THREAD, BY_FAULT };

static void leave_meanwhile(long by, long delay)
{
	static struct node other;
	pthread_t thread;

	node_open(&n, NULL);
	node_connect(&n);
	if (by == BY_THREAD)
		CHECK(pthread_create(&thread, NULL, leave_soon, (void *)delay) == 0);
	else
		signal_in(by == BY_FAULT ? SIGSEGV : SIGALRM, delay);
	while (by != BY_FAULT)
		traffic(1);
	for (;;) {
		node_open(&other, NULL);
		node_close(&other);
	}
}

static void test_exit(long by)
{
	int rounds = by == BY_FAULT ? 6 : 40; /* what the interrupted call has locked is waited for */

	if (test_role()[0])
		leave_meanwhile(by, 500 + 997 * atol(test_role()) % 20000);
	for (int i = 0; i < rounds; i++) {
		char role[16];
		uint64_t begin = now_ms();
		pid_t pid;
		int st;

		snprintf(role, sizeof(role), "%d", i + 1);
		pid = respawn(role);
		CHECK(waitpid(pid, &st, 0) == pid);
		CHECKF(WIFEXITED(st) && WEXITSTATUS(st) == 7, "round %d: the process ended with %#x", i, st);
		CHECKF(now_ms() - begin < 20000, "round %d: the end took %llu ms", i,
		       (unsigned long long)(now_ms() - begin));
	}
}

static const struct test tests[] = {
	{ "blocked_after", test_blocked, 1, 0, 0 },
	{ "blocked_before", test_blocked, 1, 0, 1 },
	{ "handlers_before", test_handlers, 1, 0, 0 },
	{ "handlers_after", test_handlers, 1, 0, 1 },
	{ "profiler", test_profiler, 1, 0, SIGPROF },
	{ "profiler_virtual", test_profiler, 1, 0, SIGVTALRM },
	{ "descriptors", test_nofile, 1, 0, 256 },
	{ "descriptors_all", test_nofile, 1, 0, 0 },
	{ "no_threads", test_no_threads, 1, 60, 0 },
	{ "no_threads_auto", test_no_threads, 1, 60, 1 },
	{ "exit_in_handler", test_exit, 1, 120, BY_HANDLER },
	{ "exit_in_thread", test_exit, 1, 120, BY_THREAD },
	{ "exit_in_fault", test_exit, 1, 120, BY_FAULT },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
