/* SPDX-License-Identifier: BSD-2-Clause */
/* A process may have little of what the provider starts with: an errno says so, and the process
 * goes on. Each trial is a child of its own that has called nothing yet. */
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* What a child ends with. */
enum { WORKED, REFUSED, WRONG, NOT_HERE };

/* Two endpoints of this process and a message from one to the other, as far as they go. Every
 * refusal is a negative errno; the process is as it was after it. */
static int use(void)
{
	static struct node n;
	struct node_opts o = { .one_cq = true };
	struct fi_info *hints = node_hints(&o);
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	struct fi_cq_tagged_entry e;
	char name[NODE_NAME_MAX], in[8] = "", out[8] = "through";
	size_t len = sizeof(name);
	fi_addr_t to;
	int rc, done = 0;

	rc = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &n.info);
	if (!rc)
		rc = fi_fabric(n.info->fabric_attr, &n.fabric, NULL);
	if (!rc)
		rc = fi_domain(n.fabric, n.info, &n.domain, NULL);
	if (!rc)
		rc = fi_av_open(n.domain, &av, &n.av, NULL);
	if (!rc)
		rc = fi_cq_open(n.domain, &cq, &n.txcq, NULL);
	if (!rc)
		rc = fi_endpoint(n.domain, n.info, &n.ep, NULL);
	if (!rc)
		rc = fi_ep_bind(n.ep, &n.av->fid, 0);
	if (!rc)
		rc = fi_ep_bind(n.ep, &n.txcq->fid, FI_TRANSMIT | FI_RECV);
	if (!rc)
		rc = fi_enable(n.ep);
	if (!rc)
		rc = fi_getname(&n.ep->fid, name, &len);
	if (rc) {
		printf("# refused: %d %s\n", rc, fi_strerror(-rc));
		return rc < 0 ? REFUSED : WRONG;
	}
	rc = fi_av_insert(n.av, name, 1, &to, 0, NULL);
	if (rc != 1) {
		printf("# not inserted: %d\n", rc);
		return rc <= 0 ? REFUSED : WRONG;
	}
	rc = (int)fi_trecv(n.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, 1, 0, in);
	if (!rc)
		rc = (int)fi_tsend(n.ep, out, sizeof(out), NULL, to, 1, out);
	if (rc) { /* the way to a peer may need descriptors, too */
		printf("# not sent: %d %s\n", rc, fi_strerror(-rc));
		return rc < 0 ? REFUSED : WRONG;
	}
	for (uint64_t end = now_ms() + 10000; done < 2 && now_ms() < end;)
		done += fi_cq_read(n.txcq, &e, 1) == 1;
	return done == 2 && !strcmp(in, out) ? WORKED : WRONG;
}

/* One trial: prepare(arg) in a child, then use. */
static int child(int (*prepare)(long), long arg)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		int rc = prepare(arg);

		if (!rc)
			rc = use();
		fflush(stdout);
		_exit(rc);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	return status;
}

/* It may work or be refused, and nothing else. */
static int trial(int (*prepare)(long), long arg)
{
	int status = child(prepare, arg);

	CHECKF(WIFEXITED(status) && WEXITSTATUS(status) != WRONG, "%ld: status %#x", arg, status);
	return WEXITSTATUS(status);
}

/* From the least to the most: refused at first, and works at last. */
static void from_to(int (*prepare)(long), const long *values, size_t count)
{
	int first = trial(prepare, values[0]), last = first;

	if (first == NOT_HERE)
		SKIP("this limit does not hold here");
	for (size_t i = 1; i < count; i++)
		last = trial(prepare, values[i]);
	CHECKF(first == REFUSED && last == WORKED, "%ld: %d, %ld: %d", values[0], first, values[count - 1], last);
}

/* ---- limits ---- */

static int limit(int which, long value)
{
	struct rlimit l = { (rlim_t)value, (rlim_t)value };

	return setrlimit((__rlimit_resource_t)which, &l) ? NOT_HERE : 0;
}

static int space(long mb)
{
	return limit(RLIMIT_AS, mb << 20);
}
static int data(long mb)
{
	return limit(RLIMIT_DATA, mb << 20);
}
static int files(long n)
{
	return limit(RLIMIT_NOFILE, n);
}

/* What the test prints may go to a file, too. */
static int file_size(long kb)
{
	int fd = open("/dev/null", O_WRONLY);

	if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
		return NOT_HERE;
	return limit(RLIMIT_FSIZE, kb << 10);
}

/* Threads are counted for each user, and not for root. The user has none yet. */
static int threads(long n)
{
	if (geteuid() != 0 || setgroups(0, NULL) || setresgid(54321, 54321, 54321) || setresuid(54321, 54321, 54321))
		return NOT_HERE;
	return limit(RLIMIT_NPROC, n);
}

static void test_space(long arg)
{
	static const long mb[] = { 64,	 100,  200,  300,  400,	 500,  600,  700,  800,	 850,  900,  950,
				   1000, 1200, 1300, 1400, 1500, 1600, 1700, 1800, 1900, 2000, 2500, 8000 };

	(void)arg;
	from_to(space, mb, ARRAY_LEN(mb));
}

static void test_data(long arg)
{
	static const long mb[] = { 8,	16,  32,  48,  64,  80,	 96,  112, 128, 144,
				   160, 176, 192, 208, 224, 256, 288, 320, 400, 1000 };

	(void)arg;
	from_to(data, mb, ARRAY_LEN(mb));
}

static void test_files(long arg)
{
	static const long n[] = { 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 24, 32, 64 };

	(void)arg;
	from_to(files, n, ARRAY_LEN(n));
}

static void test_file_size(long arg)
{
	static const long kb[] = { 0, 4, 64, 512, 1 << 20 };

	(void)arg;
	from_to(file_size, kb, ARRAY_LEN(kb));
}

static void test_threads(long arg)
{
	static const long n[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 200 };

	(void)arg;
	from_to(threads, n, ARRAY_LEN(n));
}

/* ---- calls of the kernel ---- */

static int refuse_with; /* an errno */

static int refuse(long nr)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)refuse_with),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { ARRAY_LEN(code), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		return NOT_HERE;
	return 0;
}

static const struct {
	const char *name;
	long nr;
} calls[] = {
#define CALL(name) \
	{ \
#name, SYS_##name \
	}
	CALL(clone3),
	CALL(eventfd2),
	CALL(epoll_create1),
	CALL(epoll_ctl),
	CALL(epoll_pwait),
	CALL(sigaltstack),
	CALL(setsockopt),
	CALL(getsockopt),
	CALL(socket),
	CALL(bind),
	CALL(getsockname),
	CALL(sendto),
	CALL(recvfrom),
	CALL(sendmsg),
	CALL(recvmsg),
	CALL(memfd_create),
	CALL(pidfd_open),
	CALL(pipe2),
	CALL(prlimit64),
	CALL(sched_getaffinity),
	CALL(sched_setaffinity),
	CALL(madvise),
	CALL(mincore),
	CALL(membarrier),
	CALL(prctl),
	CALL(timer_create),
	CALL(fallocate),
	CALL(ftruncate),
	CALL(linkat),
	CALL(getrandom),
	CALL(mlock),
	CALL(uname),
	CALL(process_vm_readv),
	CALL(kill),
	CALL(tgkill),
	CALL(set_robust_list),
	CALL(statfs),
	CALL(fstatfs),
	CALL(getdents64),
	CALL(inotify_init1),
	CALL(io_uring_setup),
	CALL(userfaultfd),
	CALL(bpf),
	CALL(nanosleep),
	CALL(getcpu),
	CALL(fcntl),
	CALL(readlinkat),
	CALL(newfstatat),
	CALL(statx),
	CALL(openat),
	CALL(rt_sigaction),
	CALL(flock),
	CALL(fchmod),
#undef CALL
};

static void test_calls(long errnum)
{
	int worked = 0;

	refuse_with = (int)errnum;
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		int status = child(refuse, calls[i].nr);

		if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_HERE)
			SKIP("no filters of system calls here");
		EXPECTF(WIFEXITED(status) && WEXITSTATUS(status) != WRONG, "%s refused with %s: status %#x",
			calls[i].name, strerror(refuse_with), status);
		worked += WIFEXITED(status) && WEXITSTATUS(status) == WORKED;
	}
	note("works without each of %d of %d calls", worked, (int)ARRAY_LEN(calls));
	CHECK(worked > 10);
}

static const struct test tests[] = {
	{ "space", test_space, 0, 120, 0 },
	{ "data", test_data, 0, 120, 0 },
	{ "files", test_files, 0, 120, 0 },
	{ "file_size", test_file_size, 0, 120, 0 },
	{ "threads", test_threads, 0, 120, 0 },
	{ "calls_not_permitted", test_calls, 0, 240, EPERM },
	{ "calls_not_there", test_calls, 0, 240, ENOSYS },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
