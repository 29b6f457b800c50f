/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists (weft/token.h) whose way is taken away while they are under way: cross-memory attach by the kernel, and
 * mappings of a GPU's memory by their owners, two of which recall from each other at once, or with the context of
 * either side. And tokens of an owner in whose place another process is. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "common.h"
#include "container.h"
#include "gpu.h"
#include "shmdir.h"
#include "tokens.h"

#define LEN ((size_t)1 << 20)
#define KEY 0x35
#define RIGHTS (FI_REMOTE_READ | FI_REMOTE_WRITE)

enum { ELEMENTS = 4096, BYTES = 64, APART = 256 };

struct side {
	struct node n;
	struct weft_token_ops *t;
	struct fid_mr *mr;
	struct weft_remote *remote;
	struct weft_list *list;
};

static void open_side(struct side *s, uint64_t caps, int mr_mode)
{
	if (!test_is_weft())
		SKIP("an extension of weft");
	memset(s, 0, sizeof(*s));
	node_open(&s->n, &(struct node_opts){ .caps = FI_MSG | FI_RMA | caps, .mr_mode = mr_mode });
	s->t = token_ops(&s->n.ep->fid);
}

/* Prepares a list of all elements of the peer's region, from memory of this process. */
static void prepare(struct side *s, void *mem)
{
	struct weft_local_piece here = { .addr = mem, .len = BYTES, .stride = BYTES, .count = ELEMENTS };
	struct weft_remote_piece there = { .len = BYTES, .stride = APART, .count = ELEMENTS };
	struct weft_remote_info info;

	s->remote = token_receive(s->t, s->n.ep, !test_rank, &info);
	there.remote = s->remote;
	there.addr = info.base;
	OK(s->t->list(s->n.ep, &here, &there, 1, 0, &s->list));
}

static void post(struct side *s, uint32_t op)
{
	ssize_t rc;

	while ((rc = s->t->post(s->list, op, NULL, 0, NULL, 0, 0, s)) == -FI_EAGAIN)
		progress(&s->n);
	CHECKF(rc == 0, "post: %zd", rc);
}

/* ---- cross-memory attach ---- */

static void *forbid(void *us)
{
	usleep(*(unsigned *)us);
	*(unsigned *)us = (unsigned)container_forbid_attach();
	return NULL;
}

/* Writes what it reads, until some lists have gone as messages. */
static void test_attach_taken_away(long us)
{
	struct side s;

	open_side(&s, 0, 0);
	if (test_rank == 1) {
		char *mem = calloc(1, LEN);

		OK(fi_mr_reg(s.n.domain, mem, LEN, RIGHTS, 0, KEY, 0, &s.mr, NULL));
		token_send(s.t, s.mr, 0);
		barrier(&s.n);
		for (size_t i = 0; i < LEN; i++)
			CHECKF(i % APART < BYTES || !mem[i], "byte %zu, between elements, is %#x", i, mem[i]);
		OK(fi_close(&s.mr->fid));
		free(mem);
	} else {
		static char mem[ELEMENTS * BYTES], want[ELEMENTS * BYTES];
		unsigned when = (unsigned)us;
		struct fi_cq_tagged_entry e;
		pthread_t thread;
		uint64_t seed = 0;

		prepare(&s, mem);
		fill(mem, sizeof(mem), seed);
		post(&s, WEFT_WRITE);
		wait_ok(&s.n, s.n.txcq, &e);
		CHECK(node_counter(&s.n, "list_ipc") == ELEMENTS);
		CHECK(pthread_create(&thread, NULL, forbid, &when) == 0);
		for (int more = 3; more; more -= node_counter(&s.n, "list_message") != 0) {
			fill(mem, sizeof(mem), ++seed);
			memcpy(want, mem, sizeof(mem));
			post(&s, WEFT_WRITE);
			wait_ok(&s.n, s.n.txcq, &e);
			memset(mem, 0, sizeof(mem));
			post(&s, WEFT_READ);
			wait_ok(&s.n, s.n.txcq, &e);
			CHECKF(!memcmp(mem, want, sizeof(mem)), "list %lu", (unsigned long)seed);
			if (when == 0) /* the thread's answer */
				SKIP("no seccomp filters here: %s", strerror(errno));
		}
		CHECK(pthread_join(thread, NULL) == 0);
		OK(fi_close(&s.list->fid));
		OK(fi_close(&s.remote->fid));
		barrier(&s.n);
	}
	node_close(&s.n);
}

/* ---- recalls ---- */

/* Each writes to the other's memory, closes the region of its own while the other does, and frees. */
static void exchange(struct side *s, long round)
{
	static char mem[ELEMENTS * BYTES];
	void *gpu = gpu_alloc(LEN);
	struct iovec iov = { gpu, LEN };
	struct fi_mr_attr attr = { .mr_iov = &iov, .iov_count = 1, .access = RIGHTS, .iface = FI_HMEM_CUDA };
	struct fi_cq_tagged_entry e;
	uint64_t began;
	int rc = 1;

	attr.requested_key = KEY;
	OK(fi_mr_regattr(s->n.domain, &attr, 0, &s->mr));
	if (test_rank == 1)
		token_send(s->t, s->mr, 0);
	prepare(s, mem);
	if (test_rank == 0)
		token_send(s->t, s->mr, 1);
	post(s, WEFT_WRITE);
	wait_ok(&s->n, s->n.txcq, &e);
	if (gpu_is_fake())
		CHECKF(gpu_mapped() == 1, "%d mappings", gpu_mapped());
	barrier(&s->n);
	post(s, (uint32_t)(round & 1));
	usleep((unsigned)(round * 977 % 500));
	began = now_ms();
	OK(fi_close(&s->mr->fid));
	CHECKF(now_ms() - began < 5000, "a close took %lu ms", (unsigned long)(now_ms() - began));
	gpu_free(gpu);
	for (;;) {
		rc = wait_for(&s->n, s->n.txcq, &e, -1);
		if (rc != 1)
			break;
		post(s, WEFT_WRITE);
	}
	CHECKF(s->n.err.err == FI_EACCES || s->n.err.err == FI_ENOKEY, "%s", fi_strerror(s->n.err.err));
	if (gpu_is_fake())
		CHECKF(gpu_mapped() == 0, "%d mappings of what is freed", gpu_mapped());
	OK(fi_close(&s->list->fid));
	OK(fi_close(&s->remote->fid));
	barrier(&s->n);
}

static void test_recall_both(long rounds)
{
	struct side s;

	gpu_open();
	open_side(&s, FI_HMEM, FI_MR_HMEM);
	for (long i = 0; i < rounds; i++)
		exchange(&s, i);
	node_close(&s.n);
}

/* ---- contexts ---- */

/* Registers GPU memory of rank 1 and hands it to rank 0, which prepares a list. */
static void *offer(struct side *s, void *mem)
{
	struct iovec iov = { .iov_len = LEN };
	struct fi_mr_attr attr = { .mr_iov = &iov, .iov_count = 1, .access = RIGHTS, .iface = FI_HMEM_CUDA };

	if (test_rank == 0) {
		prepare(s, mem);
		return NULL;
	}
	iov.iov_base = gpu_alloc(LEN);
	OK(fi_mr_regattr(s->n.domain, &attr, 0, &s->mr));
	token_send(s->t, s->mr, 0);
	return iov.iov_base;
}

/* Reads what it writes. */
static void written_and_read(struct side *s, char *mem, uint64_t seed)
{
	struct fi_cq_tagged_entry e;

	fill(mem, ELEMENTS * BYTES, seed);
	post(s, WEFT_WRITE);
	wait_ok(&s->n, s->n.txcq, &e);
	memset(mem, 0, ELEMENTS * BYTES);
	post(s, WEFT_READ);
	wait_ok(&s->n, s->n.txcq, &e);
	verify(mem, ELEMENTS * BYTES, seed);
}

static void there_and_back(struct side *s, char *mem, uint64_t seed)
{
	written_and_read(s, mem, seed);
	CHECKF(gpu_mapped() == 1, "%d mappings", gpu_mapped());
}

/* The CUDA context of a rank is destroyed when rank 0 has mapped memory of rank 1: in rank 0 the mapping is gone, and
 * the next list maps the memory anew; in rank 1 the memory is gone, and lists fail until there is other memory. */
static void test_context(long side)
{
	static char mem[ELEMENTS * BYTES];
	struct side s;
	void *gpu;

	gpu_open();
	if (!gpu_is_fake())
		SKIP("the stand-in driver alone says what happens");
	open_side(&s, FI_HMEM, FI_MR_HMEM);
	gpu = offer(&s, mem);
	if (test_rank == 0)
		there_and_back(&s, mem, 1);
	barrier(&s.n);
	if (test_rank == side)
		gpu_destroy();
	barrier(&s.n);
	for (uint32_t i = 0; test_rank == 0 && i < (side ? 4 : 1); i++) {
		fill(mem, sizeof(mem), 2);
		post(&s, i & 1);
		wait_err(&s.n, s.n.txcq, FI_EIO);
		verify(mem, sizeof(mem), 2);
	}
	if (test_rank == 0 && side == 0)
		there_and_back(&s, mem, 3);
	barrier(&s.n);
	if (side == 1 && test_rank == 0) {
		OK(fi_close(&s.list->fid));
		OK(fi_close(&s.remote->fid));
		offer(&s, mem);
		there_and_back(&s, mem, 4);
	} else if (side == 1) {
		OK(fi_close(&s.mr->fid));
		gpu_open();
		gpu = offer(&s, NULL);
	}
	barrier(&s.n);
	if (test_rank == 0) {
		barrier(&s.n);
		CHECKF(gpu_imports() == 2 && gpu_mapped() == 0, "%d mappings of %d", gpu_mapped(), gpu_imports());
		OK(fi_close(&s.list->fid));
		OK(fi_close(&s.remote->fid));
	} else {
		OK(fi_close(&s.mr->fid));
		gpu_free(gpu); /* the driver accuses if there is a mapping */
		barrier(&s.n);
	}
	node_close(&s.n);
}

/* ---- another owner ---- */

/* What an owner hands out. */
struct hello {
	size_t len;
	char token[WEFT_TOKEN_MAX];
};

/* Owns memory at a port that others have had, until a byte on its socket has it check that memory. */
static void own(void)
{
	int fd = atoi(getenv("WEFT_TEST_FD"));
	struct hello h = { .len = sizeof(h.token) };
	char *mem = calloc(1, LEN), go;
	struct fid_mr *mr;
	struct node n;

	node_open(&n, &(struct node_opts){
			      .caps = FI_MSG | FI_RMA,
			      .mr_mode = FI_MR_ALLOCATED,
			      .service = getenv("WEFT_TEST_PORT"),
		      });
	OK(fi_mr_reg(n.domain, mem, LEN, RIGHTS, 0, KEY, 0, &mr, NULL));
	OK(token_ops(&n.ep->fid)->pack(mr, NULL, h.token, &h.len));
	CHECK(write(fd, &h, sizeof(h)) == sizeof(h));
	while (recv(fd, &go, 1, MSG_DONTWAIT) != 1)
		progress(&n);
	for (size_t i = 0; i < LEN; i++)
		CHECKF(!mem[i], "byte %zu is %#x", i, mem[i]);
	_exit(0);
}

/* Posts a list to the region of a token. Returns the error that it ends with, 0: none. */
static int ends(struct side *s, const struct hello *h, char *mem, uint32_t op)
{
	struct weft_local_piece here = { .addr = mem, .len = BYTES, .stride = BYTES, .count = ELEMENTS };
	struct weft_remote_piece there = { .len = BYTES, .stride = APART, .count = ELEMENTS };
	struct weft_remote_info info;
	struct fi_cq_tagged_entry e;
	ssize_t rc;

	OK(s->t->open(s->n.ep, h->token, h->len, &there.remote));
	OK(s->t->info(there.remote, &info, sizeof(info)));
	there.addr = info.base;
	OK(s->t->list(s->n.ep, &here, &there, 1, 0, &s->list));
	while ((rc = s->t->post(s->list, op, NULL, 0, "note", 4, 0, s)) == -FI_EAGAIN)
		progress(&s->n);
	if (rc == 0)
		rc = wait_for(&s->n, s->n.txcq, &e, -1);
	OK(fi_close(&s->list->fid));
	OK(fi_close(&there.remote->fid));
	return rc == 1 ? 0 : (int)-rc;
}

/* Reads what an owner has, whose predecessor at its address may be gone first. */
static void reach(struct side *s, const struct hello *h, char *mem)
{
	int rc = FI_ECONNRESET;

	for (uint64_t end = now_ms() + 10000; rc && now_ms() < end;) {
		rc = ends(s, h, mem, WEFT_READ);
		CHECKF(!rc || rc == FI_ECONNRESET, "%s", fi_strerror(rc));
	}
	CHECK(rc == 0 && !mem[0]);
}

/* Owners are killed, and others take their address and their key: tokens of the dead reach nothing, by an RDMA device,
 * too, where processes share no memory (WEFT_TEST_APART). */
static void test_replaced(long rounds)
{
	static char mem[ELEMENTS * BYTES], want[ELEMENTS * BYTES];
	char fd[16], port[16], go = 0;
	struct hello old, new;
	int pair[2], rc, status;
	struct side s;

	if (!strcmp(test_role(), "owner")) {
		own();
		return;
	}
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	snprintf(fd, sizeof(fd), "%d", pair[1]);
	snprintf(port, sizeof(port), "%d", 20000 + getpid() % 10000);
	setenv("WEFT_TEST_FD", fd, 1);
	setenv("WEFT_TEST_PORT", port, 1);
	open_side(&s, 0, FI_MR_ALLOCATED);
	if (getenv("WEFT_TEST_APART"))
		shmdir_make(); /* of the owners */
	for (long i = 0; i < rounds; i++) {
		pid_t pid = respawn("owner");

		CHECK(pid > 0 && recv(pair[0], &old, sizeof(old), MSG_WAITALL) == sizeof(old));
		if (i & 1) /* it was connected to, or not */
			reach(&s, &old, mem);
		CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
		pid = respawn("owner");
		CHECK(pid > 0 && recv(pair[0], &new, sizeof(new), MSG_WAITALL) == sizeof(new));
		fill(mem, sizeof(mem), 7);
		memcpy(want, mem, sizeof(mem));
		for (uint32_t op = 0; op < 2; op++) {
			rc = ends(&s, &old, mem, op);
			CHECKF(rc == FI_ECONNRESET || rc == FI_EHOSTUNREACH || rc == FI_EACCES || rc == FI_ENOKEY,
			       "round %ld, op %u: %s", i, op, fi_strerror(rc));
			CHECK(!memcmp(mem, want, sizeof(mem)));
		}
		reach(&s, &new, mem);
		CHECK(write(pair[0], &go, 1) == 1);
		CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	}
	if (getenv("WEFT_TEST_APART")) {
		CHECK(!device_is_demanded() || node_counter(&s.n, "list_rdma"));
		shmdir_remove();
	}
	node_close(&s.n);
}

/* Devices without access to each other: the memory of a peer's cannot be mapped, so its elements go as messages,
 * through the host. */
static void test_no_peer_access(long unused)
{
	static char mem[ELEMENTS * BYTES];
	struct side s;
	void *gpu;

	(void)unused;
	gpu_open();
	if (!gpu_is_fake())
		SKIP("the stand-in driver alone says what happens");
	open_side(&s, FI_HMEM, FI_MR_HMEM);
	gpu = offer(&s, mem);
	if (test_rank == 0) {
		gpu_no_peer_access();
		for (uint64_t seed = 1; seed < 4; seed++)
			written_and_read(&s, mem, seed);
		uint64_t sent = node_counter(&s.n, "list_message");

		CHECKF(sent == 6 * ELEMENTS && !gpu_imports(), "%lu messages, %d mappings", (unsigned long)sent,
		       gpu_imports());
		OK(fi_close(&s.list->fid));
		OK(fi_close(&s.remote->fid));
	}
	barrier(&s.n);
	if (test_rank == 1) {
		OK(fi_close(&s.mr->fid));
		gpu_free(gpu);
	}
	node_close(&s.n);
}

static const struct test tests[] = {
	{ "attach_taken_away", test_attach_taken_away, 2, 60, 3000 },
	{ "attach_taken_away_soon", test_attach_taken_away, 2, 60, 300 },
	{ "recall_both", test_recall_both, 2, 60, 30 },
	{ "context_here", test_context, 2, 60, 0 },
	{ "context_there", test_context, 2, 60, 1 },
	{ "no_peer_access", test_no_peer_access, 2, 60, 0 },
	{ "replaced", test_replaced, 1, 120, 3 },
};

int main(int argc, char **argv)
{
	gpu_main(argv);
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
