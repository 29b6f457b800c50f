/* SPDX-License-Identifier: BSD-2-Clause
 *
 * weft_bench -p PROVIDER [-c CORE,CORE] [-n HOST,HOST] [-s SECONDS] [-d DEPTH] [TEST]...
 * weft_bench -v
 *
 * Prints one line per figure: its name, which ends with the unit, and the
 * value. A test that fails or hangs is reported on standard error, the others
 * still run, and the exit status is 1. -v prints libfabric's version. With -n
 * the ranks are on different hosts: network namespaces that "ip netns" knows.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "pin.h"

enum { LIMIT = 20 }; /* seconds a test may take, unless it says otherwise */

static const struct test {
	const char *name;
	test_fn *run;
	int ranks; /* 0: one more than there are posters */
} tests[] = {
	{"hop", test_hop, 2},
	{"pingpong", test_pingpong, 2},
	{"rate", test_rate, 2},
	{"bandwidth", test_bandwidth, 2},
	{"cq_read", test_cq_read, 2},
	{"enter", test_enter, 1},
	{"write_rate", test_write_rate, 2},
	{"one_sided", test_one_sided, 2},
	{"fetch_add", test_fetch_add, 2},
	{"post_safe", test_post_safe, 0},
	{"post_domain", test_post_domain, 2},
	{"posted", test_posted, 2},
	{"unexpected", test_unexpected, 2},
	{"memory", test_memory, 1},
	{"one_core_manual", test_one_core_manual, 2},
	{"one_core_auto", test_one_core_auto, 2},
	{"apart", test_apart, 2},
	{"served", test_served, 2},
	{"idle", test_idle, 1},
	{"sizes", test_sizes, 2},
	{"streams", test_streams, 2},
	{"peers_out", test_peers_out, 2},
	{"peers_in", test_peers_in, 2},
	{"scale_own", test_scale_own, 2},
	{"scale_shared", test_scale_shared, 2},
	{"scale_readers", test_scale_readers, 2},
	{"shared", test_shared, 2},
	{"fair", test_fair, 2},
	{"goodput", test_goodput, 2},
	{"million", test_million, 2},
};

enum { TESTS = sizeof(tests) / sizeof(*tests) };

void pin_to(int core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(core, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("pinning", -FI_EINVAL);
}

/* move_to has the process live in a network namespace. */
static void move_to(const char *host)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "/run/netns/%s", host);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		die(path, -errno);
	close(fd);
}

static struct shared *make_shared(int ranks)
{
	pthread_barrierattr_t attr;
	struct shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (s == MAP_FAILED)
		die("mmap", -FI_ENOMEM);
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&s->sleepers, &attr, (unsigned int)ranks);
	return s;
}

/* run_rank is the child. Ranks alternate between the cores, so that a message
 * always crosses from one to the other. */
static void run_rank(const struct test *t, const struct options *opt, struct shared *s, int ranks,
		     int rank)
{
	struct node n = {.opt = opt, .shared = s, .rank = rank, .ranks = ranks};

	if (opt->hosts[rank % 2])
		move_to(opt->hosts[rank % 2]);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* who ends the program ends the measuring */
	pin_to(opt->cores[rank % 2]);
	tick_ns();
	t->run(&n);
	_exit(0); /* the kernel cleans up; closing is not what is measured */
}

/* reap waits for the ranks; when one fails or time is up it kills the rest. */
static bool reap(pid_t *pids, int ranks, int limit)
{
	bool ok = true;
	time_t end = time(NULL) + limit;

	for (int left = ranks; left;) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG);
		if (pid > 0) {
			left--;
			for (int i = 0; i < ranks; i++)
				if (pids[i] == pid)
					pids[i] = 0;
			if (status == 0)
				continue;
			ok = false;
		} else if (time(NULL) < end) {
			usleep(2000);
			continue;
		} else {
			fprintf(stderr, "weft_bench: time is up\n");
			ok = false;
			end += LIMIT;
		}
		for (int i = 0; i < ranks; i++)
			if (pids[i])
				kill(pids[i], SIGKILL);
	}
	return ok;
}

/* limit_of is how many seconds a test may take: those between hosts have slow
 * links, and one waits for a million messages. */
static int limit_of(const struct test *t)
{
	if (t->run == test_million)
		return 90;
	return t->run == test_shared || t->run == test_fair || t->run == test_goodput ? 60 : LIMIT;
}

static bool run_test(const struct test *t, const struct options *opt)
{
	int ranks = t->ranks ? t->ranks : posters() + 1;
	struct shared *s = make_shared(ranks);
	pid_t pids[MAX_RANKS];

	for (int rank = 0; rank < ranks; rank++) {
		pids[rank] = fork();
		if (pids[rank] < 0)
			die("fork", -FI_EAGAIN);
		if (!pids[rank])
			run_rank(t, opt, s, ranks, rank);
	}
	bool ok = reap(pids, ranks, limit_of(t));
	if (!ok)
		fprintf(stderr, "weft_bench: %s over %s failed\n", t->name, opt->provider);
	munmap(s, sizeof(*s));
	return ok;
}

static void usage(void)
{
	fprintf(stderr, "usage: weft_bench -p PROVIDER [-c CORE,CORE] [-n HOST,HOST] [-s SECONDS] [-d DEPTH] [TEST]...\ntests:");
	for (int i = 0; i < TESTS; i++)
		fprintf(stderr, " %s", tests[i].name);
	fprintf(stderr, "\n");
	exit(2);
}

static struct options parse(int argc, char **argv)
{
	struct options opt = {.cores = {0, 1}, .seconds = 0.1, .depth = 100000};
	int c;

	while ((c = getopt(argc, argv, "p:c:n:s:d:v")) != -1) {
		switch (c) {
		case 'v':
			puts(fi_tostr("", FI_TYPE_VERSION));
			exit(0);
		case 'p':
			opt.provider = optarg;
			break;
		case 'c':
			if (sscanf(optarg, "%d,%d", &opt.cores[0], &opt.cores[1]) != 2)
				usage();
			break;
		case 'n':
			opt.hosts[0] = strsep(&optarg, ",");
			opt.hosts[1] = optarg;
			if (!opt.hosts[1])
				usage();
			break;
		case 's':
			opt.seconds = atof(optarg);
			break;
		case 'd':
			opt.depth = atoi(optarg);
			break;
		default:
			usage();
		}
	}
	if (!opt.provider || opt.seconds <= 0 || opt.depth < 100)
		usage();
	return opt;
}

static bool wanted(const char *name, char **names)
{
	for (; *names; names++)
		if (!strcmp(*names, name))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	struct options opt = parse(argc, argv);
	bool all = !argv[optind], ok = true;
	int ran = 0;

	for (int i = 0; i < TESTS; i++) {
		if (!all && !wanted(tests[i].name, argv + optind))
			continue;
		ran++;
		ok &= run_test(&tests[i], &opt);
	}
	if (!ran)
		usage();
	return !ok;
}
