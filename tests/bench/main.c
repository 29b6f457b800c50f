/* SPDX-License-Identifier: BSD-2-Clause
 *
 * weft_bench -p [NAME=VALUE ]...PROVIDER[@FOLDER]... [-c CORE,CORE] [-n HOST,...] [-s SECONDS] [-d DEPTH] [-e ELEMENTS]
 *            [-r RANKS] [-i ROUNDS] [-z BYTES,...] [-l MS,...] [TEST]...
 * weft_bench -v
 *
 * Prints one line per figure: its name, which ends with the unit, and the
 * value. A test that fails or hangs is reported on standard error, the others
 * still run, and the exit status is 1. -v prints libfabric's version. With -n
 * the ranks are on different hosts: network namespaces that "ip netns" knows.
 *
 * libfabric is to search for the provider in FOLDER, and the variables hold for its
 * ranks. Of several providers, with which the lines begin then, pingpong, rate,
 * bandwidth, sizes, streams and alltoall are measured in turn, with a line for
 * each time slice or operation. All other tests follow one another.
 *
 * -r, -i, -z and -l are of alltoall: how many ranks, how many rounds, the bytes from
 * each rank to each other (or one length for all), and by how much ranks come late.
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
	int ranks; /* 0: one more than there are requesters */
} tests[] = {
	{ "hop", test_hop, 2 },
	{ "pingpong", test_pingpong, 2 },
	{ "rate", test_rate, 2 },
	{ "bandwidth", test_bandwidth, 2 },
	{ "cq_read", test_cq_read, 2 },
	{ "enter", test_enter, 1 },
	{ "write_rate", test_write_rate, 2 },
	{ "one_sided", test_one_sided, 2 },
	{ "fetch_add", test_fetch_add, 2 },
	{ "token", test_token, 2 },
	{ "note", test_note, 2 },
	{ "gpu", test_gpu, 2 },
	{ "post_safe", test_post_safe, 0 },
	{ "post_domain", test_post_domain, 2 },
	{ "posted", test_posted, 2 },
	{ "unexpected", test_unexpected, 2 },
	{ "memory", test_memory, 1 },
	{ "one_core_manual", test_one_core_manual, 2 },
	{ "one_core_auto", test_one_core_auto, 2 },
	{ "apart", test_apart, 2 },
	{ "served", test_served, 2 },
	{ "idle", test_idle, 1 },
	{ "sizes", test_sizes, 2 },
	{ "streams", test_streams, 2 },
	{ "peers_out", test_peers_out, 2 },
	{ "peers_in", test_peers_in, 2 },
	{ "scale_own", test_scale_own, 2 },
	{ "scale_shared", test_scale_shared, 2 },
	{ "scale_readers", test_scale_readers, 2 },
	{ "shared", test_shared, 2 },
	{ "fair", test_fair, 2 },
	{ "goodput", test_goodput, 2 },
	{ "million", test_million, 2 },
	{ "alltoall", test_alltoall, 8 },
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

/* share returns memory that forked processes share. */
static void *share(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("mmap", -FI_ENOMEM);
	return p;
}

/* share_barrier makes a barrier in such memory. */
static void share_barrier(pthread_barrier_t *b, int parties)
{
	pthread_barrierattr_t attr;

	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(b, &attr, (unsigned int)parties);
}

static struct shared *make_shared(int ranks)
{
	struct shared *s = share(sizeof(*s));

	share_barrier(&s->sleepers, ranks);
	return s;
}

/* name_provider gives a process the provider that was named, PROVIDER or
 * PROVIDER@FOLDER, and FI_PROVIDER_PATH is its folder then. Variables may stand
 * before the name. */
static void name_provider(struct node *n)
{
	char *name = strdup(n->opt->providers[n->provider]), *folder;

	if (n->opt->several)
		report_for(n->opt->providers[n->provider]);
	for (char *rest = name, *word; (word = strsep(&rest, " "));) {
		name = word;
		if (rest && putenv(word))
			die(word, -FI_EINVAL);
	}
	folder = name;
	n->provider_name = strsep(&folder, "@");
	if (folder)
		setenv("FI_PROVIDER_PATH", folder, 1);
}

/* run_rank is the child. Ranks alternate between the cores, so that a message
 * always crosses from one to the other. */
static void run_rank(const struct test *t, struct node *n)
{
	const struct options *opt = n->opt;

	name_provider(n);
	if (opt->host_count)
		move_to(opt->hosts[n->rank * opt->host_count / n->ranks]);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* what ends the program ends the measuring */
	pin_to(opt->cores[n->rank % 2]);
	tick_ns();
	t->run(n);
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
			for (int i = 0; i < ranks; i++)
				if (pids[i])
					print_threads(pids[i]);
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
static int limit_of(const struct test *t, const struct options *opt)
{
	if (t->run == test_million)
		return 90;
	if (t->run == test_token && opt->elements)
		return 240; /* gigabytes, between hosts perhaps */
	if (t->run == test_alltoall)
		return 60 + (int)opt->seconds;
	if (t->run == test_gpu)
		return LIMIT + (int)(6 * opt->seconds); /* each of six figures takes that long */
	return t->run == test_shared || t->run == test_fair || t->run == test_goodput ? 60 : LIMIT;
}

/* ranks_of is how many ranks a test has. */
static int ranks_of(const struct test *t, const struct options *opt)
{
	if (t->run == test_alltoall && opt->exchange.ranks)
		return opt->exchange.ranks;
	return t->ranks ? t->ranks : requesters() + 1;
}

/* run_together runs a test of all providers of the options at the same time. */
static bool run_together(const struct test *t, const struct options *opt)
{
	int ranks = ranks_of(t, opt), count = 0;
	pthread_barrier_t *edge = share(sizeof(*edge));
	struct shared *s[MAX_PROVIDERS];
	pid_t pids[MAX_PROVIDERS * MAX_RANKS];

	share_barrier(edge, ranks * opt->provider_count);
	for (int p = 0; p < opt->provider_count; p++) {
		s[p] = make_shared(ranks);
		for (int rank = 0; rank < ranks; rank++) {
			pid_t pid = fork();
			if (pid < 0)
				die("fork", -FI_EAGAIN);
			if (!pid)
				run_rank(t, &(struct node){ .opt = opt,
							    .shared = s[p],
							    .edge = edge,
							    .provider = p,
							    .rank = rank,
							    .ranks = ranks });
			pids[count++] = pid;
		}
	}
	bool ok = reap(pids, count, limit_of(t, opt) * opt->provider_count);
	for (int p = 0; p < opt->provider_count; p++)
		munmap(s[p], sizeof(*s[p]));
	munmap(edge, sizeof(*edge));
	return ok;
}

/* sliced reports whether several providers can take turns in a test. */
static bool sliced(const struct test *t)
{
	return t->run == test_pingpong || t->run == test_rate || t->run == test_bandwidth || t->run == test_sizes ||
	       t->run == test_streams || t->run == test_alltoall;
}

static bool run_test(const struct test *t, const struct options *opt)
{
	bool ok = true;

	if (opt->several && sliced(t)) {
		ok = run_together(t, opt);
		if (!ok)
			fprintf(stderr, "weft_bench: %s failed\n", t->name);
		return ok;
	}
	for (int p = 0; p < opt->provider_count; p++) {
		struct options one = *opt;
		one.providers[0] = opt->providers[p];
		one.provider_count = one.slices = 1;
		one.slice = one.seconds;
		if (!run_together(t, &one)) {
			fprintf(stderr, "weft_bench: %s over %s failed\n", t->name, one.providers[0]);
			ok = false;
		}
	}
	return ok;
}

static void usage(void)
{
	fprintf(stderr, "usage: weft_bench -p [NAME=VALUE ]...PROVIDER[@FOLDER]... [-c CORE,CORE] [-n HOST,...] [-s "
			"SECONDS] [-d DEPTH]\n"
			"       [-e ELEMENTS] [-r RANKS] [-i ROUNDS] [-z BYTES,...] [-l MS,...] [TEST]...\ntests:");
	for (int i = 0; i < TESTS; i++)
		fprintf(stderr, " %s", tests[i].name);
	fprintf(stderr, "\n");
	exit(2);
}

/* numbers reads a list of whole numbers and returns how many there are, at most most. */
static int numbers(char *list, uint32_t *into, int most)
{
	int count = 0;

	for (char *word, *end; (word = strsep(&list, ",")); count++) {
		unsigned long v = strtoul(word, &end, 10);

		if (count == most || end == word || *end || v > 1u << 30)
			usage();
		into[count] = (uint32_t)v;
	}
	return count;
}

static struct options parse(int argc, char **argv)
{
	struct options opt = { .cores = { 0, 1 }, .seconds = 0.1, .depth = 100000 };
	int c;

	while ((c = getopt(argc, argv, "p:c:n:s:d:e:r:i:z:l:v")) != -1) {
		switch (c) {
		case 'v':
			puts(fi_tostr("", FI_TYPE_VERSION));
			exit(0);
		case 'p':
			if (opt.provider_count == MAX_PROVIDERS)
				usage();
			opt.providers[opt.provider_count++] = optarg;
			break;
		case 'c':
			if (sscanf(optarg, "%d,%d", &opt.cores[0], &opt.cores[1]) != 2)
				usage();
			break;
		case 'n':
			for (char *host; (host = strsep(&optarg, ","));) {
				if (opt.host_count == MAX_HOSTS)
					usage();
				opt.hosts[opt.host_count++] = host;
			}
			break;
		case 's':
			opt.seconds = atof(optarg);
			break;
		case 'd':
			opt.depth = atoi(optarg);
			break;
		case 'e':
			opt.elements = atoi(optarg);
			if (opt.elements < 0 || opt.elements % 4 || opt.elements > 1 << 20)
				usage();
			break;
		case 'r':
			opt.exchange.ranks = atoi(optarg);
			if (opt.exchange.ranks < 2 || opt.exchange.ranks > MAX_RANKS)
				usage();
			break;
		case 'i':
			opt.exchange.rounds = atoi(optarg);
			break;
		case 'z':
			opt.exchange.lengths = numbers(optarg, opt.exchange.length, MAX_RANKS * MAX_RANKS);
			break;
		case 'l':
			numbers(optarg, opt.exchange.late, MAX_RANKS);
			break;
		default:
			usage();
		}
	}
	if (!opt.provider_count || opt.seconds <= 0 || opt.depth < 100)
		usage();
	opt.several = opt.provider_count > 1;
	opt.slice = SLICE_MS * 1e-3;
	opt.slices = (int)(opt.seconds / opt.slice) + 1;
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
