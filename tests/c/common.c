/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks, and the runner: every process of a test is this program, executed anew with --child. */
#include "common.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "container.h"
#include "runner.h"

#define EXIT_SKIP 77
#define GRACE_MS 3000 /* what the other ranks get after one has failed */

int test_rank, test_procs = 1;
const char *test_name = "";
static int status_fd = -1; /* child: the reason of a skip goes here */
static int failures;	   /* child: EXPECTs that failed; written by any thread, atomically */

uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

uint64_t now_ms(void)
{
	return now_us() / 1000;
}

uint64_t rnd(uint64_t *state)
{
	/* splitmix64 (Steele, Lea, Flood 2014) */
	uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

const char *test_provider(void)
{
	const char *p = getenv("WEFT_TEST_PROV");

	return p && *p ? p : "weft";
}

bool test_is_weft(void)
{
	const char *alias = getenv("FI_WEFT_NAME");

	return strcmp(test_provider(), alias && *alias ? alias : "weft") == 0;
}

const char *host_address(void)
{
	static char text[INET_ADDRSTRLEN];
	const char *name = getenv("FI_WEFT_IFACE");
	struct ifaddrs *all;

	if (!name || !*name)
		return "127.0.0.1";
	CHECK(getifaddrs(&all) == 0);
	for (struct ifaddrs *i = all; i && !*text; i = i->ifa_next)
		if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET && strcmp(i->ifa_name, name) == 0)
			inet_ntop(AF_INET, &((struct sockaddr_in *)(void *)i->ifa_addr)->sin_addr, text, sizeof(text));
	freeifaddrs(all);
	CHECKF(*text, "%s has no IPv4 address", name);
	return text;
}

static void say(const char *head, const char *fmt, va_list ap)
{
	char line[1024];
	int n = snprintf(line, sizeof(line), "# [%d] %s", test_rank, head);

	n += vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, ap);
	if (n > (int)sizeof(line) - 2)
		n = (int)sizeof(line) - 2;
	line[n] = '\n';
	if (write(STDOUT_FILENO, line, (size_t)n + 1) < 0) /* one write: lines of ranks do not mix */
		_exit(1);
}

void note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("", fmt, ap);
	va_end(ap);
}

static bool seeded;
static uint64_t seed;

uint64_t test_seed(uint64_t otherwise)
{
	const char *set = getenv("WEFT_TEST_SEED");

	seed = set ? strtoull(set, NULL, 0) : otherwise;
	seeded = true;
	return seed;
}

void test_fail(bool fatal, const char *file, int line, const char *fmt, ...)
{
	char head[256];
	va_list ap;

	snprintf(head, sizeof(head), "%s:%d: failed: ", file, line);
	va_start(ap, fmt);
	say(head, fmt, ap);
	va_end(ap);
	if (seeded)
		note("WEFT_TEST_SEED=%lu repeats it", (unsigned long)seed);
	__atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
	if (fatal)
		_exit(1);
}

static const char *rc_text(long rc)
{
	return rc < 0 && rc > -100000 ? fi_strerror((int)-rc) : "";
}

void test_rc(bool fatal, const char *file, int line, const char *call, long got, long want)
{
	if (got != want)
		test_fail(fatal, file, line, "%s = %ld (%s), want %ld (%s)", call, got, rc_text(got), want,
			  rc_text(want));
}

void test_skip(const char *fmt, ...)
{
	char why[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why) - 1, fmt, ap);
	va_end(ap);
	strcat(why, "\n");
	if (status_fd < 0 || write(status_fd, why, strlen(why)) < 0)
		printf("# %s\n", why);
	_exit(EXIT_SKIP);
}

void test_missing(const char *file, int line, const char *feature)
{
	if (test_is_weft())
		test_fail(true, file, line, "weft does not offer %s", feature);
	SKIP("%s does not offer %s", test_provider(), feature);
}

bool way_exists(enum way way)
{
	const char *udp = getenv("FI_WEFT_UDP");

	if (way == WAY_UDP)
		return !udp || strcmp(udp, "no") != 0;
	return !getenv("WEFT_TEST_APART") && !getenv("WEFT_TEST_NETNS");
}

bool nic_computes(void)
{
	const char *model = getenv("CASSINI");

	return model && *model && !way_exists(WAY_MEMORY);
}

void test_no_way(enum way way, const char *what)
{
	SKIP("%s: %s", what,
	     way == WAY_UDP ? "over UDP alone, which this run has not (FI_WEFT_UDP=no)"
			    : "through shared memory alone, which the processes of this run have not");
}

static char **child_argv; /* how this process was executed */

const char *test_role(void)
{
	const char *role = getenv("WEFT_TEST_ROLE");

	return role ? role : "";
}

pid_t respawn(const char *role)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setenv("WEFT_TEST_ROLE", role, 1);
	execv("/proc/self/exe", child_argv);
	_exit(126);
}

/* Gives every second rank a /dev/shm of its own if WEFT_TEST_APART is set, as a container has; every
 * rank with "all". */
static void leave_memory(void)
{
	const char *apart = getenv("WEFT_TEST_APART");

	if (!apart || *test_role() || (test_rank % 2 == 0 && strcmp(apart, "all") != 0))
		return; /* what a rank has executed anew is in its place already */
	CHECKF(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
		       mount("none", "/dev/shm", "tmpfs", 0, NULL) == 0,
	       "/dev/shm: %s", strerror(errno));
}

/* Puts this rank on a host: WEFT_TEST_NETNS names network namespaces, of which ranks take turns. */
static void enter_host(void)
{
	const char *names = getenv("WEFT_TEST_NETNS");
	char path[128];
	int fd, hosts = 1;

	if (!names)
		return;
	for (const char *c = names; *c; c++)
		hosts += *c == ',';
	for (int skip = test_rank % hosts; skip > 0; skip--)
		names += strcspn(names, ",") + 1;
	snprintf(path, sizeof(path), "/var/run/netns/%.*s", (int)strcspn(names, ","), names);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECKF(fd >= 0 && setns(fd, CLONE_NEWNET) == 0, "%s: %s", path, strerror(errno));
	close(fd);
}

static int child_main(const struct test *t, char **argv)
{
	child_argv = argv;
	test_rank = atoi(argv[3]);
	test_procs = t->procs > 0 ? t->procs : 1;
	test_name = t->name;
	status_fd = atoi(argv[4]);
	for (int r = 0; r < test_procs; r++)
		link_set(r, atoi(argv[5 + r]));
	enter_host();
	leave_memory();
	setenv("FI_PROVIDER", test_provider(), 0);
	t->run(t->arg);
	fflush(stdout);
	_exit(__atomic_load_n(&failures, __ATOMIC_RELAXED) ? 1 : 0);
}

static pid_t spawn(const struct test *t, int rank, int procs, const int *links, int status)
{
	char nums[2 + NODE_PEERS][16];
	char *argv[6 + NODE_PEERS + 1] = { "/proc/self/exe", "--child", (char *)t->name };
	pid_t pid = container_fork(rank);

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setenv("IPATH_NO_BACKTRACE", "1", 0); /* libpsm: no handlers, no files after a crash */
	setpgid(0, 0);
	snprintf(nums[0], sizeof(nums[0]), "%d", rank);
	snprintf(nums[1], sizeof(nums[1]), "%d", status);
	argv[3] = nums[0];
	argv[4] = nums[1];
	for (int r = 0; r < procs; r++) {
		snprintf(nums[2 + r], sizeof(nums[0]), "%d", links[r]);
		argv[5 + r] = nums[2 + r];
		if (links[r] >= 0)
			fcntl(links[r], F_SETFD, 0);
	}
	fcntl(status, F_SETFD, 0);
	execv(argv[0], argv);
	_exit(126);
}

/* Describes how a rank ended, when not well. */
static bool rank_ended(const struct test *t, int rank, int st, bool killed)
{
	if (WIFSIGNALED(st) && !killed)
		printf("# [%d] %s: killed by signal %d (%s)\n", rank, t->name, WTERMSIG(st), strsignal(WTERMSIG(st)));
	return WIFEXITED(st) && WEXITSTATUS(st) == 0;
}

static bool is_skip(int st)
{
	return WIFEXITED(st) && WEXITSTATUS(st) == EXIT_SKIP;
}

/* Waits for all ranks; after the first that did not end well the others get a short grace. */
static int reap(const struct test *t, pid_t *pid, int procs)
{
	uint64_t limit = (t->seconds ? t->seconds : 120) * 1000ull; /* only what hangs takes so long */
	const char *slow = getenv("WEFT_TEST_SLOW");
	uint64_t end = now_ms() + limit * (slow ? strtoul(slow, NULL, 10) : 1);
	int left = procs, result = 0;
	bool killed = false;

	while (left) {
		for (int r = 0; r < procs; r++) {
			int st;

			if (pid[r] <= 0 || waitpid(pid[r], &st, WNOHANG) != pid[r])
				continue;
			kill(-pid[r], SIGKILL); /* what it may have left behind in its group */
			pid[r] = 0;
			left--;
			if (rank_ended(t, r, st, killed))
				continue;
			if (result == 0 || (!killed && !is_skip(st)))
				result = is_skip(st) ? EXIT_SKIP : 1;
			if (now_ms() + GRACE_MS < end)
				end = now_ms() + (result == EXIT_SKIP ? 0 : GRACE_MS);
		}
		if (left && now_ms() >= end) {
			for (int r = 0; r < procs; r++)
				if (pid[r] > 0)
					kill(-pid[r], SIGKILL);
			if (result == 0) {
				printf("# %s: no end after %llu ms\n", t->name, (unsigned long long)limit);
			}
			result = result ? result : 1;
			killed = true;
			end = UINT64_MAX;
		}
		usleep(500);
	}
	return result;
}

/* Runs one test; why gets the reason of a skip. Returns 0, 1 or EXIT_SKIP. */
static int run_test(const struct test *t, char *why, size_t size)
{
	int procs = t->procs > 0 ? t->procs : 1;
	int links[NODE_PEERS][NODE_PEERS], status[2], result;
	pid_t pid[NODE_PEERS] = { 0 };
	ssize_t n;

	memset(links, -1, sizeof(links));
	if (procs > NODE_PEERS || pipe2(status, O_CLOEXEC | O_NONBLOCK))
		return 1;
	for (int r = 1; r < procs; r++) {
		int sv[2];

		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv))
			return 1;
		links[0][r] = sv[0];
		links[r][0] = sv[1];
	}
	fflush(stdout);
	for (int r = 0; r < procs; r++)
		pid[r] = spawn(t, r, procs, links[r], status[1]);
	for (int r = 1; r < procs; r++) {
		close(links[0][r]);
		close(links[r][0]);
	}
	result = reap(t, pid, procs);
	n = read(status[0], why, size - 1);
	why[n > 0 ? n : 0] = 0;
	why[strcspn(why, "\n")] = 0; /* every rank may have given the reason */
	close(status[0]);
	close(status[1]);
	return result;
}

static void run_listed(const char *program, const struct test *t, int number, int counts[3])
{
	char key[128], why[256] = "";
	const char *dev;
	uint64_t start = now_ms();
	int result;

	snprintf(key, sizeof(key), "%s.%s", program, t->name);
	dev = deviation_reason(key);
	if (dev) {
		printf("ok %d - %s # SKIP %s: %s\n", number, t->name, test_provider(), dev);
		counts[2]++;
		return;
	}
	result = run_test(t, why, sizeof(why));
	if (result == EXIT_SKIP) {
		printf("ok %d - %s # SKIP %s\n", number, t->name, why);
		counts[2]++;
	} else {
		printf("%s %d - %s (%llu ms)\n", result ? "not ok" : "ok", number, t->name,
		       (unsigned long long)(now_ms() - start));
		counts[result ? 1 : 0]++;
	}
	fflush(stdout);
}

int tests_main(int argc, char **argv, const struct test *tests, size_t count)
{
	const char *program = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
	int counts[3] = { 0 };

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 5 && strcmp(argv[1], "--child") == 0) {
		for (size_t i = 0; i < count; i++)
			if (strcmp(tests[i].name, argv[2]) == 0)
				return child_main(&tests[i], argv);
		return 126;
	}
	for (size_t i = 0; i < count; i++) {
		if (argc > 1 && strcmp(argv[1], "-l") == 0)
			printf("%s\n", tests[i].name);
		else if (argc < 2 || strstr(tests[i].name, argv[1]))
			run_listed(program, &tests[i], counts[0] + counts[1] + counts[2] + 1, counts);
	}
	if (argc > 1 && strcmp(argv[1], "-l") == 0)
		return 0;
	printf("%d passed, %d failed, %d skipped\n", counts[0], counts[1], counts[2]);
	return counts[1] ? 1 : 0;
}
