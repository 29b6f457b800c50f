/* SPDX-License-Identifier: BSD-2-Clause */
#include "container.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool wanted(const char *word)
{
	const char *at = getenv("WEFT_TEST_CONTAINERS");
	size_t n = strlen(word);

	for (; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (!strncmp(at, word, n) && (at[n] == ',' || !at[n]))
			return true;
	}
	return false;
}

bool container_forbid_attach(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(code[0]), code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &prog) == 0;
}

/* The step that failed ends the child. */
static void need(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "# container: %s: %s\n", what, strerror(errno));
	_exit(1);
}

/* The loopback interface of a new network namespace is down. */
static void loopback_up(void)
{
	struct ifreq r = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	need(fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &r) == 0, "lo up");
	close(fd);
}

static void own_files(void)
{
	need(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "private mounts");
	need(mount("none", "/dev/shm", "tmpfs", 0, "size=64m") == 0, "/dev/shm");
	if (!wanted("blind"))
		need(mount("proc", "/proc", "proc", 0, NULL) == 0, "/proc");
}

/* Eight ports are all that the kernel chooses from, so that containers choose the same. */
static void few_ports(void)
{
	static const char range[] = "40000 40007";
	int fd = open("/proc/sys/net/ipv4/ip_local_port_range", O_WRONLY | O_CLOEXEC);

	need(fd >= 0 && write(fd, range, sizeof(range) - 1) == sizeof(range) - 1, "range of ports");
	close(fd);
}

static void become(uid_t user)
{
	need(setgroups(0, NULL) == 0 && setresgid(user, user, user) == 0 && setresuid(user, user, user) == 0, "user");
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

static void write_file(pid_t pid, const char *name, const char *text)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		kill(pid, SIGKILL);
	close(fd);
}

pid_t container_fork(int rank)
{
	unsigned long flags = CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWIPC;
	bool user = wanted("user"), root = user && rank % 2;
	int ready[2];
	char map[32], b = 0;
	pid_t pid;

	if (!wanted("pid") && !wanted("blind") && !user) {
		pid = fork();
		if (!pid && wanted("noattach"))
			need(container_forbid_attach(), "seccomp");
		return pid;
	}
	if (pipe2(ready, O_CLOEXEC))
		return -1;
	pid = (pid_t)syscall(SYS_clone, (root ? flags | CLONE_NEWUSER : flags) | SIGCHLD, 0, 0, 0, 0);
	if (pid > 0 && root) {
		snprintf(map, sizeof(map), "0 %d 1\n", CONTAINER_USER);
		write_file(pid, "uid_map", map);
		write_file(pid, "gid_map", map);
	}
	if (pid) {
		close(ready[0]);
		close(ready[1]);
		return pid;
	}
	close(ready[1]);
	need(read(ready[0], &b, 1) == 0, "user namespace");
	if (root)
		become(0);
	own_files();
	loopback_up();
	if (wanted("ports"))
		few_ports();
	if (user && !root)
		become(CONTAINER_USER);
	if (wanted("noattach"))
		need(container_forbid_attach(), "seccomp");
	return 0;
}
