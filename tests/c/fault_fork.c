/* SPDX-License-Identifier: BSD-2-Clause */
/* fork: the child's calls fail at once instead of hanging; fork and exec, system and popen work. */
#include "common.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

static struct node n;

static void open_fork(void)
{
	node_open(&n, NULL);
	node_connect(&n);
}

/* The parent's endpoint works as before. */
static void still_works(void)
{
	static char in[100000], out[100000];

	for (uint64_t i = 0; i < 10; i++) {
		size_t len = i % 2 ? sizeof(out) : 8;

		fill(out, len, i);
		trecv(&n, in, sizeof(in), FI_ADDR_UNSPEC, i, 0, in);
		tsend(&n, out, len, n.peer[0], i, out);
		wait_ctx(&n, n.rxcq, in);
		wait_ctx(&n, n.txcq, out);
		verify(in, len, i);
	}
}

/* Waits for the child; a child that hangs is killed and fails the test. */
static void child_ends(pid_t pid, int want, const char *what)
{
	uint64_t end = now_ms() + 30000;
	int st;

	while (waitpid(pid, &st, WNOHANG) == 0) {
		if (now_ms() > end) {
			kill(pid, SIGKILL);
			CHECKF(false, "%s: the child hangs", what);
		}
		usleep(1000);
	}
	CHECKF(WIFEXITED(st) && WEXITSTATUS(st) == want, "%s: the child ended with %#x", what, st);
}

/* One call in a child of its own: an error, and not "try again", is what it must give. */
#define CHILD_FAILS(expr) \
	do { \
		pid_t pid_ = fork(); \
		if (pid_ == 0) { \
			long rc_ = (long)(expr); \
			if (rc_ >= 0 || rc_ == -FI_EAGAIN) \
				fprintf(stderr, "# %s = %ld in the child\n", #expr, rc_); \
			_exit(rc_ < 0 && rc_ != -FI_EAGAIN ? 0 : 1); \
		} \
		child_ends(pid_, 0, #expr); \
	} while (0)

static void test_child_calls(long arg)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_MSG };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *ep;
	struct name name;
	char buf[64] = "";
	size_t len = sizeof(name.bytes);

	(void)arg;
	open_fork();
	node_name(&n, &name);
	CHILD_FAILS(fi_tsend(n.ep, buf, 8, NULL, n.peer[0], 1, buf));
	CHILD_FAILS(fi_inject(n.ep, buf, 8, n.peer[0]));
	CHILD_FAILS(fi_trecv(n.ep, buf, 8, NULL, FI_ADDR_UNSPEC, 1, 0, buf));
	CHILD_FAILS(fi_cq_read(n.rxcq, &e, 1));
	CHILD_FAILS(fi_cq_open(n.domain, &cq_attr, &cq, NULL));
	CHILD_FAILS(fi_av_open(n.domain, &av_attr, &av, NULL));
	CHILD_FAILS(fi_endpoint(n.domain, n.info, &ep, NULL));
	CHILD_FAILS(fi_av_insert(n.av, name.bytes, 1, NULL, 0, NULL) > 0 ? 0 : -FI_EOTHER);
	CHILD_FAILS(fi_getname(&n.ep->fid, name.bytes, &len));
	still_works();
	node_close(&n);
}

static void test_child_getinfo(long arg)
{
	struct fi_info *info = NULL, *hints;

	(void)arg;
	open_fork();
	hints = node_hints(NULL);
	/* weft has nothing to offer there; with no other provider asked for that is an error. */
	CHILD_FAILS(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
	still_works();
	node_close(&n);
}

/* A child that closes what it inherited, and one that just exits, leave the parent alone. */
static void test_child_closes(long arg)
{
	pid_t pid;

	(void)arg;
	open_fork();
	pid = fork();
	if (pid == 0) {
		fi_close(&n.ep->fid);
		fi_close(&n.rxcq->fid);
		fi_close(&n.txcq->fid);
		fi_close(&n.av->fid);
		fi_close(&n.domain->fid);
		fi_close(&n.fabric->fid);
		_exit(0);
	}
	child_ends(pid, 0, "closing in the child");
	still_works();
	pid = fork();
	if (pid == 0)
		exit(0); /* with destructors and atexit */
	child_ends(pid, 0, "exit in the child");
	still_works();
	node_close(&n);
}

static void test_exec(long arg)
{
	char line[64] = "";
	pid_t pid;
	FILE *f;

	(void)arg;
	open_fork();
	for (int i = 0; i < 20; i++) {
		pid = fork();
		if (pid == 0) {
			execl("/bin/true", "true", (char *)NULL);
			_exit(1);
		}
		child_ends(pid, 0, "fork and exec");
		pid = vfork();
		if (pid == 0) {
			execl("/bin/true", "true", (char *)NULL);
			_exit(1);
		}
		child_ends(pid, 0, "vfork and exec");
	}
	CHECK(system("exit 3") == 3 << 8);
	f = popen("echo hello", "r");
	CHECK(f && fgets(line, sizeof(line), f) && strcmp(line, "hello\n") == 0);
	CHECK(pclose(f) == 0);
	still_works();
	node_close(&n);
}

/* A child that executes this program opens the provider anew while the parent uses it. */
static void test_exec_uses(long arg)
{
	pid_t pid;

	(void)arg;
	open_fork();
	if (test_role()[0]) {
		still_works();
		node_close(&n);
		return;
	}
	pid = respawn("child");
	still_works();
	child_ends(pid, 0, "fork, exec and use");
	still_works();
	node_close(&n);
}

/* fork in the middle of traffic between two processes: neither side loses anything. */
static void test_during_traffic(long arg)
{
	static char in[80000], out[80000];

	(void)arg;
	open_fork();
	for (uint64_t i = 0; i < 400; i++) {
		size_t len = i % 3 ? 16 : sizeof(out);
		pid_t pid = 0;

		trecv(&n, in, sizeof(in), FI_ADDR_UNSPEC, i, 0, in);
		fill(out, len, i);
		tsend(&n, out, len, n.peer[!test_rank], i, out);
		if (i % 20 == 0 && test_rank == 0) {
			pid = fork();
			if (pid == 0)
				_exit(0);
		}
		wait_ctx(&n, n.rxcq, in);
		wait_ctx(&n, n.txcq, out);
		verify(in, len, i);
		if (pid)
			child_ends(pid, 0, "fork");
	}
	barrier(&n);
	node_close(&n);
}

static void *first_use(void *hints)
{
	struct fi_info *info = NULL;

	fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info);
	return info;
}

/* A fork while another thread's first call loads the provider: the child's own call gets an error, and it exits. */
static void test_during_load(long arg)
{
	struct fi_info *hints = node_hints(NULL), *other = fi_allocinfo();

	(void)arg;
	other->fabric_attr->prov_name = strdup("tcp");
	for (useconds_t delay = 0; delay < 150000; delay += 5000) {
		pid_t process = fork();

		if (process == 0) {
			pthread_t thread;
			pid_t child;

			first_use(other); /* libfabric is initialised, weft not loaded */
			CHECK(pthread_create(&thread, NULL, first_use, hints) == 0);
			usleep(delay);
			child = fork();
			if (child == 0) {
				first_use(hints);
				_exit(0);
			}
			child_ends(child, 0, "fork while the provider is loaded");
			CHECK(pthread_join(thread, (void **)&other) == 0 && other);
			_exit(0);
		}
		child_ends(process, 0, "the process that loads the provider");
	}
}

static const struct test tests[] = {
	{ "child_calls", test_child_calls, 1, 120, 0 }, { "child_getinfo", test_child_getinfo, 1, 0, 0 },
	{ "child_closes", test_child_closes, 1, 0, 0 }, { "exec", test_exec, 1, 0, 0 },
	{ "exec_uses", test_exec_uses, 1, 0, 0 },	{ "during_traffic", test_during_traffic, 2, 0, 0 },
	{ "during_load", test_during_load, 1, 120, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
