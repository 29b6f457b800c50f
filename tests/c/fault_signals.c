/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An application with signal handlers of its own, set before or after the provider was loaded: they
 * are called, nothing else calls them, and blocked signals stay blocked.
 */
#include "common.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static struct node n;
static volatile sig_atomic_t seen[65];
static sigjmp_buf back;
static void *volatile fault_at;
static volatile bool stopped;
static uintptr_t stack_low, stack_high; /* of the main thread */
static volatile sig_atomic_t elsewhere; /* handlers that ran on another stack */

static void count(int sig)
{
	seen[sig]++;
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	(void)context;
	seen[sig]++;
	fault_at = info->si_addr;
	siglongjmp(back, 1);
}

static const int plain[] = { SIGURG, SIGPIPE, SIGCHLD,	 SIGUSR1,  SIGUSR2, SIGHUP, SIGTERM,
			     SIGINT, SIGPROF, SIGVTALRM, SIGWINCH, SIGIO,   SIGQUIT };
static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL };

static void install(void)
{
	struct sigaction sa = { .sa_handler = count, .sa_flags = SA_RESTART };

	for (size_t i = 0; i < ARRAY_LEN(plain); i++)
		CHECK(sigaction(plain[i], &sa, NULL) == 0);
	sa.sa_flags = SA_SIGINFO | SA_NODEFER;
	sa.sa_sigaction = on_fault;
	for (size_t i = 0; i < ARRAY_LEN(faults); i++)
		CHECK(sigaction(faults[i], &sa, NULL) == 0);
}

static void traffic(int rounds)
{
	static char in[80000], out[80000];

	for (int i = 0; i < rounds; i++) {
		size_t len = i % 10 ? 16 : sizeof(out);

		trecv(&n, in, sizeof(in), FI_ADDR_UNSPEC, 1, 0, in);
		tsend(&n, out, len, n.peer[0], 1, out);
		wait_ctx(&n, n.rxcq, in);
		wait_ctx(&n, n.txcq, out);
	}
}

/* Every plain signal reaches its handler as often as it was sent, also under traffic. */
static void check_plain(void)
{
	memset((void *)seen, 0, sizeof(seen));
	traffic(3000);
	for (size_t i = 0; i < ARRAY_LEN(plain); i++)
		CHECKF(seen[plain[i]] == 0, "%d stray signals %d (%s)", seen[plain[i]], plain[i], strsignal(plain[i]));
	for (int round = 1; round <= 20; round++)
		for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
			CHECK(raise(plain[i]) == 0);
			CHECKF(seen[plain[i]] == round, "signal %d: %d calls of %d", plain[i], seen[plain[i]], round);
			traffic(5);
		}
}

/* A real fault in the application's code comes to the application's handler, which goes on. */
static void check_faults(void)
{
	char *none = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(none != MAP_FAILED);
	for (int i = 0; i < 20; i++) {
		int before = seen[SIGSEGV];

		if (sigsetjmp(back, 1) == 0) {
			*(volatile char *)(none + i) = 1;
			CHECKF(false, "no fault");
		}
		CHECK(seen[SIGSEGV] == before + 1);
		CHECKF(fault_at == none + i, "fault at %p, want %p", fault_at, (void *)(none + i));
		traffic(5);
	}
	for (volatile size_t i = 0; i < ARRAY_LEN(faults); i++)
		if (sigsetjmp(back, 1) == 0) {
			raise(faults[i]);
			CHECKF(false, "signal %d was not delivered", faults[i]);
		}
	munmap(none, 4096);
}

static void test_before(long arg)
{
	(void)arg;
	install();
	node_open(&n, NULL);
	node_connect(&n);
	check_plain();
	check_faults();
	node_close(&n);
	memset((void *)seen, 0, sizeof(seen));
	raise(SIGURG);
	CHECK(seen[SIGURG] == 1);
}

static void test_after(long arg)
{
	(void)arg;
	node_open(&n, NULL);
	node_connect(&n);
	install();
	check_plain();
	check_faults();
	node_close(&n);
}

/* Signals at any instant, also while the thread is in the provider, with a handler that knows nothing
 * of alternate stacks and needs one of ordinary size. */
static void on_alarm(int sig)
{
	volatile char room[60000];

	for (size_t i = 0; i < sizeof(room); i += 64)
		room[i] = (char)i;
	seen[sig]++;
	elsewhere += (uintptr_t)room < stack_low || (uintptr_t)room > stack_high;
}

static void *alarm_thread(void *main_thread)
{
	while (!stopped) {
		pthread_kill(*(pthread_t *)main_thread, SIGUSR1);
		usleep(20);
	}
	return NULL;
}

static void test_any_instant(long arg)
{
	struct sigaction sa = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	pthread_t self = pthread_self(), thread;
	uint64_t end = now_ms() + 1000;

	stack_high = (uintptr_t)&sa;
	stack_low = stack_high - (4 << 20);
	if (arg == 0)
		CHECK(sigaction(SIGUSR1, &sa, NULL) == 0);
	node_open(&n, NULL);
	node_connect(&n);
	CHECK(sigaction(SIGUSR1, &sa, NULL) == 0);
	CHECK(pthread_create(&thread, NULL, alarm_thread, &self) == 0);
	while (now_ms() < end || seen[SIGUSR1] <= 100)
		traffic(50);
	stopped = true;
	CHECK(pthread_join(thread, NULL) == 0);
	note("%d signals, %d of them on a stack of the provider's", seen[SIGUSR1], elsewhere);
	node_close(&n);
}

/* The default stays the default: an unhandled signal ends the process by that signal. */
static void test_default(long arg)
{
	static const int deadly[] = { SIGSEGV, SIGTERM, SIGINT, SIGPIPE, SIGABRT, SIGUSR1, SIGHUP };

	if (test_role()[0]) {
		int sig = atoi(test_role());

		node_open(&n, NULL);
		node_connect(&n);
		traffic(10);
		if (sig == SIGSEGV)
			*(volatile char *)arg = 1;
		raise(sig);
		_exit(0);
	}
	for (size_t i = 0; i < ARRAY_LEN(deadly); i++) {
		char role[16];
		pid_t pid;
		int st;

		snprintf(role, sizeof(role), "%d", deadly[i]);
		pid = respawn(role);
		CHECK(waitpid(pid, &st, 0) == pid);
		EXPECTF(WIFSIGNALED(st) && WTERMSIG(st) == deadly[i], "signal %d: the process ended with %#x",
			deadly[i], st);
	}
}

/* SIGPIPE ignored stays ignored; a mask set by the application stays set. */
static void test_masks(long arg)
{
	sigset_t want, got;

	(void)arg;
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&want);
	sigaddset(&want, SIGUSR1);
	sigaddset(&want, SIGURG);
	CHECK(pthread_sigmask(SIG_BLOCK, &want, NULL) == 0);
	node_open(&n, NULL);
	node_connect(&n);
	traffic(1000);
	raise(SIGPIPE);
	signal(SIGUSR1, count);
	kill(getpid(), SIGUSR1); /* no thread of anybody's may take it */
	usleep(20000);
	traffic(100);
	if (test_is_weft())
		CHECK(seen[SIGUSR1] == 0);
	CHECK(pthread_sigmask(SIG_SETMASK, NULL, &got) == 0);
	CHECK(sigismember(&got, SIGUSR1) && sigismember(&got, SIGURG));
	CHECK(!sigismember(&got, SIGTERM));
	CHECK(pthread_sigmask(SIG_UNBLOCK, &want, NULL) == 0);
	CHECK(seen[SIGUSR1] == 1);
	node_close(&n);
}

/* The application's sleeps are as exact as it wants them, whatever loads the library. */
static void test_slack(long arg)
{
	(void)arg;
	CHECK(prctl(PR_SET_TIMERSLACK, 20000ul) == 0);
	node_open(&n, NULL);
	node_connect(&n);
	traffic(100);
	CHECKF(prctl(PR_GET_TIMERSLACK) == 20000, "slack of the timers %d ns, want 20000", prctl(PR_GET_TIMERSLACK));
	node_close(&n);
}

/* Signals that the application blocks after loading, in all its threads, and waits for: no thread of
 * the provider's takes them. */
static void test_wait_for(long arg)
{
	static const int taken[] = { SIGUSR1, SIGTERM, SIGINT, SIGHUP, SIGALRM };
	struct timespec limit = { .tv_sec = 5 };
	sigset_t set;

	(void)arg;
	node_open(&n, NULL);
	node_connect(&n);
	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(taken); i++)
		sigaddset(&set, taken[i]);
	CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
	for (int round = 0; round < 50; round++)
		for (size_t i = 0; i < ARRAY_LEN(taken); i++) {
			CHECK(kill(getpid(), taken[i]) == 0);
			traffic(10);
			CHECK(sigtimedwait(&set, NULL, &limit) == taken[i]);
		}
	node_close(&n);
}

/* Handlers on an alternate stack, with SA_ONSTACK. */
static void test_altstack(long arg)
{
	static char stack[65536];
	stack_t ss = { .ss_sp = stack, .ss_size = sizeof(stack) }, got;
	struct sigaction sa = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };

	(void)arg;
	CHECK(sigaltstack(&ss, NULL) == 0);
	for (size_t i = 0; i < ARRAY_LEN(faults); i++)
		CHECK(sigaction(faults[i], &sa, NULL) == 0);
	node_open(&n, NULL);
	node_connect(&n);
	traffic(1000);
	CHECK(sigaltstack(NULL, &got) == 0);
	CHECKF(got.ss_sp == stack && !(got.ss_flags & SS_DISABLE), "the alternate stack is gone");
	check_faults();
	node_close(&n);
}

static const struct test tests[] = {
	{ "handlers_before", test_before, 1, 0, 0 },   { "handlers_after", test_after, 1, 0, 0 },
	{ "any_instant", test_any_instant, 1, 0, 0 },  { "any_instant_after", test_any_instant, 1, 0, 1 },
	{ "default_actions", test_default, 1, 60, 0 }, { "masks", test_masks, 1, 0, 0 },
	{ "timer_slack", test_slack, 1, 0, 0 },	       { "wait_for", test_wait_for, 1, 0, 0 },
	{ "alternate_stack", test_altstack, 1, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
