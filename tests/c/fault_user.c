/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Segments and tokens of another user. Rank 1 becomes nothing. Neither can reach the other through shared memory, and
 * a segment that nothing puts in a place where rank 0 searches for one of its own is refused. A process with a token
 * of the
 * other's memory reaches it by messages alone, where UDP leads there.
 */
#include "common.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>

#include "gpu.h"
#include "shmdir.h"
#include "tokens.h"

#define NOBODY 65534
#define PATIENCE_MS 20000 /* long after the time-out of 300 ms */

static struct node n;

static void open_as_two_with(const struct node_opts *o, const char *udp)
{
	NEED_WAY(WAY_MEMORY, "segments of another user");
	setenv("FI_WEFT_CONNECT_TIMEOUT", "300ms", 1);
	setenv("FI_WEFT_UDP", udp, 1); /* which does not ask whose process it is */
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
	node_open(&n, o);
	node_connect(&n);
}

static void open_as_two(void)
{
	open_as_two_with(NULL, "no");
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
	CHECKF(rc == -want, "send = %zd (%s), want %d (%s)", rc, fi_strerror((int)-rc), want, fi_strerror(want));
}

static void test_apart(long arg)
{
	(void)arg;
	open_as_two();
	send_refused(FI_EHOSTUNREACH);
	close_two();
}

/* ---- tokens ---- */

enum { ELEMENTS = 64, BYTES = 512, LEN = ELEMENTS * BYTES };

/* Posts a list to a region of the other user's. Returns 0, or the error with which it is refused or ends. */
static int post_to(struct weft_token_ops *t, struct weft_remote *remote, uint64_t base, char *mem, uint32_t op,
		   size_t count)
{
	struct weft_local_piece here = { .addr = mem, .len = BYTES, .count = count };
	struct weft_remote_piece there = { .remote = remote, .addr = base, .len = BYTES, .count = count };
	uint64_t end = now_ms() + PATIENCE_MS;
	struct fi_cq_tagged_entry e;
	struct weft_list *list;
	ssize_t rc;

	OK(t->list(n.ep, &here, &there, 1, 0, &list));
	while ((rc = t->post(list, op, NULL, 0, NULL, 0, 0, &n)) == -FI_EAGAIN && now_ms() < end)
		progress(&n);
	if (rc == 0)
		rc = wait_for(&n, n.txcq, &e, -1);
	OK(fi_close(&list->fid));
	return rc == 1 ? 0 : (int)-rc;
}

/* Writes and reads memory of the other user's, whose token this rank has; i: of the GPU. */
static void use_token(struct weft_token_ops *t, int i, bool reached)
{
	struct weft_remote_info info;
	struct weft_remote *remote = token_receive(t, n.ep, !test_rank, &info);
	static char mem[LEN];

	for (size_t count = ELEMENTS; count; count = count == 1 ? 0 : 1) {
		memset(mem, 2 + i, LEN);
		for (uint32_t op = WEFT_WRITE; op <= WEFT_READ; op++) {
			int rc = post_to(t, remote, info.base, mem, op, count);

			CHECKF(reached ? !rc : rc == FI_EHOSTUNREACH || rc == FI_EACCES, "memory %d, op %u of %zu: %s",
			       i, op, count, rc ? fi_strerror(rc) : "done");
		}
		for (size_t k = 0; k < LEN; k++)
			CHECKF(mem[k] == 2 + i, "memory %d: byte %zu is %d", i, k, mem[k]);
	}
	OK(fi_close(&remote->fid));
}

/* An owner of host and GPU memory, and another user that has the tokens. */
static void test_token(long arg)
{
	bool reached = arg & 2, owner = test_rank == (arg & 1);
	struct weft_token_ops *t;
	struct fid_mr *mr[2];
	static char got[LEN];
	char *mem[2] = { NULL };

	gpu_open();
	open_as_two_with(&(struct node_opts){ .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_HMEM, .mr_mode = FI_MR_HMEM },
			 reached ? "yes" : "no");
	t = token_ops(&n.ep->fid);
	memset(got, 1, LEN);
	for (int i = 0; i < 2; i++) {
		struct iovec iov = { .iov_len = LEN };
		struct fi_mr_attr attr = {
			.mr_iov = &iov,
			.iov_count = 1,
			.access = FI_REMOTE_READ | FI_REMOTE_WRITE,
			.requested_key = (uint64_t)i,
			.iface = i ? FI_HMEM_CUDA : FI_HMEM_SYSTEM,
		};

		if (!owner) {
			use_token(t, i, reached);
			continue;
		}
		iov.iov_base = mem[i] = i ? gpu_alloc(LEN) : malloc(LEN);
		if (i)
			gpu_put(mem[1], got, LEN);
		else
			memset(mem[0], 1, LEN);
		OK(fi_mr_regattr(n.domain, &attr, 0, &mr[i]));
		token_send(t, mr[i], !test_rank);
	}
	if (!owner) {
		CHECKF(node_counter(&n, "list_ipc") == 0, "%lu elements were copied",
		       (unsigned long)node_counter(&n, "list_ipc"));
		CHECKF(!gpu_is_fake() || gpu_imports() == 0, "%d mappings were made", gpu_imports());
	}
	barrier(reached ? &n : NULL);
	for (int i = 0; owner && i < 2; i++) {
		if (i)
			gpu_get(got, mem[1], LEN);
		else
			memcpy(got, mem[0], LEN);
		for (size_t k = 0; k < LEN; k++)
			CHECKF(got[k] == (reached ? 2 + i : 1), "memory %d: byte %zu is %d", i, k, got[k]);
		OK(fi_close(&mr[i]->fid));
	}
	close_two();
}

/* ---- segments ---- */

/* Copies no one's segment to the name under which root would search for it. */
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
	{ "token_of_root", test_token, 2, 60, 0 },
	{ "token_of_none", test_token, 2, 60, 1 },
	{ "token_of_root_udp", test_token, 2, 60, 2 },
	{ "token_of_none_udp", test_token, 2, 60, 3 },
	{ "impostor", test_impostor, 2, 0, 0600 },
	{ "impostor_open_to_all", test_impostor, 2, 0, 0666 },
};

int main(int argc, char **argv)
{
	gpu_main(argv);
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
