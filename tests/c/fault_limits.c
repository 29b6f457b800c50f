/* SPDX-License-Identifier: BSD-2-Clause */
/* One CPU, no cross-memory attach, and a segment folder without room. */
#include "common.h"
#include "container.h"

#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "shmdir.h"

#define MAX_LEN (5 << 20)

static struct node n;

/* Both ways, posted and unexpected, around every protocol's limits; truncated as well. */
static void exchange(int rounds)
{
	static const size_t sizes[] = { 0, 8, 100, 16384, 16385, 65536, 300001, 1 << 20, MAX_LEN };
	char *in = guard_alloc(MAX_LEN), *out = malloc(MAX_LEN);

	CHECK(out != NULL);
	for (int k = 0; k < rounds * (int)ARRAY_LEN(sizes); k++) {
		size_t len = sizes[(size_t)k % ARRAY_LEN(sizes)];
		uint64_t tag = (uint64_t)k;

		if (test_rank == k % 2) {
			fill(out, len, tag);
			tsend(&n, out, len, n.peer[!test_rank], tag, out);
			wait_ctx(&n, n.txcq, out);
		} else {
			if (k % 3 == 0)
				for (int i = 0; i < 2000; i++)
					progress(&n); /* let it come unexpected */
			trecv(&n, in, len, FI_ADDR_UNSPEC, tag, 0, in);
			wait_ctx(&n, n.rxcq, in);
			verify(in, len, tag);
		}
	}
	if (test_rank == 0) {
		tsend(&n, out, MAX_LEN, n.peer[1], 1ull << 40, out);
		wait_ctx(&n, n.txcq, out);
	} else {
		trecv(&n, in, 100000, FI_ADDR_UNSPEC, 1ull << 40, 0, in);
		wait_err(&n, n.rxcq, FI_ETRUNC);
		CHECK(n.err.olen == MAX_LEN - 100000);
	}
	guard_free(in, MAX_LEN);
	free(out);
	barrier(&n);
}

/* Both processes on the same processor. */
static void pin(void)
{
	cpu_set_t may, one;

	CHECK(sched_getaffinity(0, sizeof(may), &may) == 0);
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
		if (CPU_ISSET(i, &may))
			CPU_SET(i, &one);
	CHECK(sched_setaffinity(0, sizeof(one), &one) == 0);
}

/* A round trip costs some time slices of a reader that never sleeps, or two wake-ups: how long that
 * is depends on what else wants the processor. */
static void ping_pong(int rounds, bool sleeping)
{
	uint64_t in, out = 0, begin = now_ms();

	for (int i = 0; i < rounds * 2; i++) {
		struct fid_cq *cq = i % 2 == test_rank ? n.txcq : n.rxcq;
		struct fi_cq_tagged_entry e;
		ssize_t rc;

		if (i % 2 == test_rank)
			tsend(&n, &out, 8, n.peer[!test_rank], 5, &out);
		else
			trecv(&n, &in, 8, FI_ADDR_UNSPEC, 5, 0, &in);
		do {
			rc = sleeping ? fi_cq_sread(cq, &e, 1, NULL, 1000) : fi_cq_read(cq, &e, 1);
		} while (rc == -FI_EAGAIN);
		CHECK(rc == 1);
	}
	note("%d round trips, %s: %llu ms", rounds, sleeping ? "sleeping" : "polling",
	     (unsigned long long)(now_ms() - begin));
	barrier(&n);
}

static void test_one_cpu(long arg)
{
	struct node_opts o = { .threading = FI_THREAD_SAFE, .wait = FI_WAIT_UNSPEC };

	(void)arg;
	pin();
	node_open(&n, &o);
	node_connect(&n);
	ping_pong(100, false);
	ping_pong(1000, true);
	exchange(5);
	node_close(&n);
}

/* ---- cross-memory attach refused ---- */

static void forbid_attach(void)
{
	if (!container_forbid_attach())
		SKIP("no seccomp filters here: %s", strerror(errno));
}

static bool attach_works(void)
{
	char a = 'a', b = 0;
	struct iovec local = { &b, 1 }, remote = { &a, 1 };

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1;
}

/* arg 0: nothing may; 1: rank 0 may not; 2: rank 1 may not. */
static void test_attach_refused(long arg)
{
	if (arg == 0 || test_rank == arg - 1) {
		forbid_attach();
		CHECK(!attach_works());
	}
	node_open(&n, NULL);
	node_connect(&n);
	exchange(5);
	node_close(&n);
}

/* It worked when the endpoint was opened, and is taken away later. */
static void test_attach_taken_away(long arg)
{
	(void)arg;
	node_open(&n, NULL);
	node_connect(&n);
	exchange(1);
	forbid_attach();
	exchange(3);
	node_close(&n);
}

/* The kernel protects a process that is not dumpable: nothing else may read its memory, nor may it
 * use its own /proc/self/fd unless it is root. So a daemon that has given up its rights. */
static void test_not_dumpable(long arg)
{
	(void)arg;
	fi_freeinfo(node_info(NULL)); /* loads everything: the folder may be root's */
	if (geteuid() == 0) {
		CHECK(setgroups(0, NULL) == 0);
		CHECK(setresgid(65534, 65534, 65534) == 0);
		CHECK(setresuid(65534, 65534, 65534) == 0);
	}
	CHECK(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0);
	node_open(&n, NULL);
	node_connect(&n);
	exchange(3);
	node_close(&n);
}

/* ---- a segment folder without room ---- */

/* A tmpfs of this size in a mount namespace of our own. */
static void small_tmpfs(const char *size)
{
	char opts[64], dir[] = "/tmp/weft_small_XXXXXX";

	if (geteuid() != 0)
		SKIP("mounting needs root");
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		SKIP("no mount namespaces here: %s", strerror(errno));
	CHECK(mkdtemp(dir) != NULL);
	snprintf(opts, sizeof(opts), "size=%s", size);
	CHECK(mount("tmpfs", dir, "tmpfs", 0, opts) == 0);
	setenv("FI_WEFT_SHM_DIR", dir, 1);
}

/* Opens an endpoint as far as it goes; 0 or the first error. */
static int try_open(struct node *base, struct fid_ep **ep)
{
	int rc = fi_endpoint(base->domain, base->info, ep, NULL);

	if (rc)
		return rc;
	OK(fi_ep_bind(*ep, &base->av->fid, 0));
	OK(fi_ep_bind(*ep, &base->txcq->fid, FI_TRANSMIT));
	OK(fi_ep_bind(*ep, &base->rxcq->fid, FI_RECV));
	rc = fi_enable(*ep);
	if (rc)
		OK(fi_close(&(*ep)->fid));
	return rc;
}

static void check_no_room(int rc)
{
	CHECKF(rc == -FI_ENOSPC || rc == -FI_ENOMEM, "opening without room: %d (%s)", rc, fi_strerror(-rc));
}

static void test_no_room(long arg)
{
	struct node_opts o = { .disabled = true };
	struct fid_ep *ep;

	(void)arg;
	if (!test_is_weft())
		SKIP("FI_WEFT_SHM_DIR is weft's");
	small_tmpfs("32k");
	node_open(&n, &o);
	for (int i = 0; i < 5; i++)
		check_no_room(try_open(&n, &ep));
	node_close(&n);
}

/* Endpoints until the folder is full; those that are open work on, and a closed one makes room. */
static void test_fills_up(long arg)
{
	static struct fid_ep *eps[4096];
	struct node_opts o = { .disabled = true };
	char in[8], out[8] = "room";
	int count = 0, rc;

	(void)arg;
	if (!test_is_weft())
		SKIP("FI_WEFT_SHM_DIR is weft's");
	small_tmpfs("64m");
	o.disabled = false;
	node_open(&n, &o);
	node_connect(&n);
	for (; count < (int)ARRAY_LEN(eps); count++) {
		rc = try_open(&n, &eps[count]);
		if (rc)
			break;
	}
	note("%d endpoints in 64 MiB", count);
	CHECKF(count < (int)ARRAY_LEN(eps), "no end of room");
	check_no_room(rc);
	for (int i = 0; i < 100; i++) {
		trecv(&n, in, 8, FI_ADDR_UNSPEC, 1, 0, in);
		tsend(&n, out, 8, n.peer[0], 1, out);
		wait_ctx(&n, n.rxcq, in);
		wait_ctx(&n, n.txcq, out);
	}
	CHECK(count > 0);
	OK(fi_close(&eps[--count]->fid));
	rc = try_open(&n, &eps[count]);
	CHECKF(rc == 0, "no room after a close: %d", rc);
	for (int i = 0; i <= count; i++)
		OK(fi_close(&eps[i]->fid));
	node_close(&n);
}

/* A folder that is not there: an error at once. */
static void test_no_folder(long arg)
{
	struct node_opts o = { .disabled = true };
	struct fid_ep *ep;

	(void)arg;
	if (!test_is_weft())
		SKIP("FI_WEFT_SHM_DIR is weft's");
	setenv("FI_WEFT_SHM_DIR", "/no/such/folder", 1);
	node_open(&n, &o);
	EXPECT_RC(try_open(&n, &ep), -FI_ENOENT);
	node_close(&n);
}

static const struct test tests[] = {
	{ "one_cpu", test_one_cpu, 2, 60, 0 },
	{ "attach_refused", test_attach_refused, 2, 60, 0 },
	{ "attach_refused_sender", test_attach_refused, 2, 60, 1 },
	{ "attach_refused_receiver", test_attach_refused, 2, 60, 2 },
	{ "attach_taken_away", test_attach_taken_away, 2, 60, 0 },
	{ "not_dumpable", test_not_dumpable, 2, 0, 0 },
	{ "no_room", test_no_room, 1, 0, 0 },
	{ "fills_up", test_fills_up, 1, 60, 0 },
	{ "no_folder", test_no_folder, 1, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
