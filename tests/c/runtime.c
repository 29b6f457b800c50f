/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the provider's language runtime does in the process: how often its monitor may wake, and that
 * no thread of the application waits for another one's place in it.
 */
#include "common.h"
#include "xfer.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { THREADS = 20, IN_TURN = 100, SPARE = 3, MONITOR_SLACK = 10000000, MESSAGES = 128000, WINDOW = 64 };

static struct node n;
static pthread_barrier_t gate;

/* Something that enters the runtime. */
static void *call(void *wait)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *cntr;

	CHECK(fi_cntr_open(n.domain, &attr, &cntr, NULL) == 0);
	CHECK(fi_close(&cntr->fid) == 0);
	if (wait)
		pthread_barrier_wait(&gate);
	return NULL;
}

/* A number from a file of a thread, -1 if it cannot be read. */
static long of_thread(const char *tid, const char *file)
{
	char path[300];
	long v = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/%s", tid, file);
	f = fopen(path, "r");
	if (!f)
		return -1;
	if (fscanf(f, "%ld", &v) != 1)
		v = -1;
	fclose(f);
	return v;
}

/* This thread, and those it makes, have one processor, and share it with a process that spins. */
static pid_t spin_beside(void)
{
	pid_t spins;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	CHECK(sched_setaffinity(0, sizeof(one), &one) == 0);
	spins = fork();
	CHECK(spins >= 0);
	if (!spins) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			;
	}
	return spins;
}

/* The monitor's thread is the one that may wake late, and the only one; also where the thread that makes it runs
 * before the maker of that thread goes on, which a busy processor makes likely. */
static void test_monitor(long busy)
{
	char monitor[sizeof(((struct dirent *)0)->d_name)] = "";
	struct dirent *entry;
	int naps = 0, found = 0;
	pid_t spins;
	DIR *d;

	if (!test_is_weft())
		SKIP("this is about weft's runtime");
	spins = busy ? spin_beside() : 0;
	node_open(&n, NULL);
	if (spins)
		CHECK(kill(spins, SIGKILL) == 0 && waitpid(spins, NULL, 0) == spins);
	d = opendir("/proc/self/task");
	CHECK(d != NULL);
	while ((entry = readdir(d)))
		if (of_thread(entry->d_name, "timerslack_ns") == MONITOR_SLACK) {
			strcpy(monitor, entry->d_name);
			found++;
		}
	closedir(d);
	if (!found && of_thread("self", "timerslack_ns") >= 0 && geteuid() != 0)
		SKIP("the kernel shows the slack of other threads to root only");
	CHECKF(found == 1, "%d threads have the monitor's slack", found);
	for (int i = 0; i < 2000 && naps < 3; i++) {
		call(NULL);
		naps += of_thread(monitor, "syscall") == SYS_nanosleep;
	}
	CHECKF(naps == 3, "the thread with the monitor's slack does not do what the monitor does");
	node_close(&n);
}

static int saved, ends[2]; /* standard error, and the pipe in its place */

/* Keeps what is written to standard error from now on, a pipe's fill at most. */
static void keep_stderr(void)
{
	saved = dup(2);
	CHECK(saved >= 0 && pipe2(ends, O_NONBLOCK) == 0 && dup2(ends[1], 2) == 2);
}

/* What was kept. Standard error is as before. */
static char *kept_stderr(void)
{
	static char text[1 << 16];
	ssize_t len;

	CHECK(dup2(saved, 2) == 2 && close(ends[1]) == 0 && close(saved) == 0);
	len = read(ends[0], text, sizeof(text) - 1);
	close(ends[0]);
	text[len > 0 ? len : 0] = 0;
	return text;
}

/* The number of places, as the runtime itself says with GODEBUG=schedtrace. */
static int places(void)
{
	char *text, *at;
	int got = -1;

	keep_stderr();
	usleep(400000);
	at = text = kept_stderr();
	while ((at = strstr(at, "gomaxprocs=")))
		got = atoi(at += strlen("gomaxprocs="));
	CHECKF(got > 0, "the runtime does not say how many places it has: %s", text);
	return got;
}

static void start(pthread_t *t, void *wait)
{
	CHECK(pthread_create(t, NULL, call, wait) == 0);
}

/* As many places as threads that have called, and some; threads that have ended have none. */
static void test_places(long together)
{
	pthread_t t[THREADS];
	int before, got;

	if (!test_is_weft())
		SKIP("this is about weft's runtime");
	node_open(&n, NULL);
	before = places();
	CHECKF(before > SPARE, "%d places", before);
	if (together) {
		pthread_barrier_init(&gate, NULL, THREADS + 1);
		for (int i = 0; i < THREADS; i++)
			start(&t[i], &gate);
		pthread_barrier_wait(&gate);
		for (int i = 0; i < THREADS; i++)
			pthread_join(t[i], NULL);
		got = places();
		CHECKF(got >= THREADS + 1 + SPARE, "%d places for %d threads", got, THREADS + 1);
	} else {
		for (int i = 0; i < IN_TURN; i++) {
			start(t, NULL);
			pthread_join(t[0], NULL);
		}
		got = places();
		CHECKF(got <= before + 4, "%d places, and %d before %d threads that have ended", got, before, IN_TURN);
	}
	node_close(&n);
}

/* How often the collector has begun, as the runtime itself says with GODEBUG=gctrace. */
static int collections(const char *text)
{
	int got = 0;

	for (const char *at = text; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		got += strncmp(at, "gc ", 3) == 0;
	}
	return got;
}

/* Messages to another host leave nothing to the collector, on either side. */
static void test_garbage(long arg)
{
	static char out[8], in[WINDOW][8];
	char dir[] = "/dev/shm/weft-garbage.XXXXXX", command[sizeof(dir) + 20];
	int got;

	(void)arg;
	if (!test_is_weft())
		SKIP("this is about weft's runtime");
	CHECK(mkdtemp(dir) != NULL); /* of this process alone: the other one is on another host */
	setenv("FI_WEFT_SHM_DIR", dir, 1);
	node_open(&n, NULL);
	node_connect(&n);
	keep_stderr();
	for (int i = 0; i < MESSAGES / WINDOW; i++) {
		for (int k = 0; k < WINDOW; k++)
			trecv(&n, in[k], sizeof(in[k]), n.peer[!test_rank], k, 0, in[k]);
		barrier(&n);
		for (int k = 0; k < WINDOW; k++)
			tsend(&n, out, sizeof(out), n.peer[!test_rank], k, out);
		for (int k = 0; k < WINDOW; k++)
			wait_ctx(&n, n.rxcq, in[k]);
		for (int k = 0; k < WINDOW; k++)
			wait_ctx(&n, n.txcq, out);
	}
	got = collections(kept_stderr());
	CHECKF(got <= 1, "the collector began %d times in %d messages", got, MESSAGES);
	barrier(&n);
	node_close(&n);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	CHECK(system(command) == 0);
}

static const struct test tests[] = {
	{ "monitor", test_monitor, 1, 0, 0 },	     { "monitor_busy_processor", test_monitor, 1, 0, 1 },
	{ "places_together", test_places, 1, 0, 1 }, { "places_in_turn", test_places, 1, 0, 0 },
	{ "garbage", test_garbage, 2, 0, 0 },
};

int main(int argc, char **argv)
{
	if (!getenv("GODEBUG")) { /* before the library is loaded */
		setenv("GODEBUG", "schedtrace=50,gctrace=1", 1);
		if (freopen("/dev/null", "w", stderr)) /* but for places() */
			execv("/proc/self/exe", argv);
	}
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
