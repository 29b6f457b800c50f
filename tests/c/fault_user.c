/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Segments of another user. Rank 1 becomes nobody. Neither can reach the other through shared memory, and
 * a segment that nobody puts in a place where rank 0 looks for one of its own is refused.
 */
#include "common.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>

#include "shmdir.h"

#define NOBODY 65534
#define PATIENCE_MS 20000 /* long after the time-out of 300 ms */

static struct node n;

static void open_as_two(void)
{
	NEED_WAY(WAY_MEMORY, "segments of another user");
	setenv("FI_WEFT_CONNECT_TIMEOUT", "300ms", 1);
	setenv("FI_WEFT_UDP", "no", 1); /* which does not ask whose process it is */
	shmdir_make();
	if (!test_is_weft())
		SKIP("the segments are weft's");
	if (geteuid() != 0)
		SKIP("becoming another user needs root");
	fi_freeinfo(node_info(NULL)); /* loads everything: the folder may be root's */
	if (test_rank == 0)
		CHECK(chmod(getenv("FI_WEFT_SHM_DIR"), 01777) == 0);
	barrier(NULL);
	if (test_rank == 1) {
		CHECK(setgroups(0, NULL) == 0);
		CHECK(setresgid(NOBODY, NOBODY, NOBODY) == 0);
		CHECK(setresuid(NOBODY, NOBODY, NOBODY) == 0);
	}
	node_open(&n, NULL);
	node_connect(&n);
}

static void close_two(void)
{
	char in[8], out[8] = "own";

	trecv(&n, in, 8, FI_ADDR_UNSPEC, 2, 0, in); /* everything else still works */
	tsend(&n, out, 8, n.peer[test_rank], 2, out);
	wait_ctx(&n, n.txcq, out);
	wait_ctx(&n, n.rxcq, in);
	barrier(&n);
	node_close(&n);
	barrier(NULL);
	if (test_rank == 0)
		shmdir_remove();
}

/* Sends until something else than "try again" comes back. */
static void send_refused(int want)
{
	struct op o = { .tagged = true, .buf = "refused", .len = 8, .addr = n.peer[!test_rank], .ctx = &o };
	uint64_t end = now_ms() + PATIENCE_MS;
	ssize_t rc;

	while ((rc = op_send(n.ep, &o)) == -FI_EAGAIN && now_ms() < end)
		progress(&n);
	CHECKF(rc == -want, "send = %zd (%s), want %d (%s)", rc, fi_strerror((int)-rc), want,
	       fi_strerror(want));
}

static void test_apart(long arg)
{
	(void)arg;
	open_as_two();
	send_refused(FI_EHOSTUNREACH);
	close_two();
}

/* Copies nobody's segment to the name under which root would look for it. */
static void impostor(const char *path, void *arg)
{
	const char *file = strrchr(path, '/') + 1;
	char to[600], *rest = strchr(file + 5, '.');
	static char bytes[1 << 20];
	int from, fd, mode = *(int *)arg;
	ssize_t got;

	if (strncmp(file, "weft.65534.", 11))
		return;
	snprintf(to, sizeof(to), "%s/weft.0%s", getenv("FI_WEFT_SHM_DIR"), rest);
	from = open(path, O_RDONLY);
	fd = open(to, O_CREAT | O_EXCL | O_RDWR, 0600);
	CHECKF(from >= 0 && fd >= 0, "%s: %s", to, strerror(errno));
	while ((got = read(from, bytes, sizeof(bytes))) > 0)
		CHECK(write(fd, bytes, (size_t)got) == got);
	CHECK(fchmod(fd, (mode_t)mode) == 0);
	close(from);
	close(fd);
}

static void test_impostor(long mode)
{
	int m = (int)mode;

	open_as_two();
	if (test_rank == 1)
		shmdir_each(impostor, &m);
	barrier(&n);
	if (test_rank == 0)
		send_refused(FI_EACCES);
	close_two();
}

static const struct test tests[] = {
	{ "apart", test_apart, 2, 0, 0 },
	{ "impostor", test_impostor, 2, 0, 0600 },
	{ "impostor_open_to_all", test_impostor, 2, 0, 0666 },
};

int main(int argc, char **argv) { return tests_main(argc, argv, tests, ARRAY_LEN(tests)); }
