/* SPDX-License-Identifier: BSD-2-Clause */
/* Owners of memory, and what posts to it, that are killed while lists of pieces of it and notifications are under way
 * (weft/token.h). */
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <rdma/fi_rma.h>

#include "common.h"
#include "gpu.h"
#include "tokens.h"

#define LEN ((size_t)1 << 20)

struct survivor {
	struct node n;
	struct weft_token_ops *t;
	char *mem;
};

/* Memory of a GPU is used: the initiators', or the owners'. */
static bool on_gpu(void)
{
	return getenv("WEFT_TEST_TOKEN_GPU") != NULL;
}
static bool gpu_here(void)
{
	return on_gpu() && !strcmp(getenv("WEFT_TEST_TOKEN_GPU"), "here");
}

static void open_node(struct survivor *s)
{
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED | FI_RMA };

	if (!test_is_weft())
		SKIP("an extension of weft");
	if (on_gpu()) {
		gpu_open();
		o.caps |= FI_HMEM;
		o.mr_mode = FI_MR_HMEM;
	}
	node_open(&s->n, &o);
	s->t = token_ops(&s->n.ep->fid);
	s->mem = guard_alloc(LEN);
}

/* Lists have one element, and notifications. */
static bool notified(void)
{
	return getenv("WEFT_TEST_TOKEN_NOTES") != NULL;
}

/* What an owner that is killed writes to the survivor first. */
struct hello {
	size_t len;
	char token[WEFT_TOKEN_MAX];
};

static struct fid_mr *gpu_region(struct survivor *s, void *p, uint64_t key)
{
	struct iovec iov = { p, LEN };
	struct fi_mr_attr attr = {
		.mr_iov = &iov,
		.iov_count = 1,
		.access = FI_REMOTE_READ | FI_REMOTE_WRITE,
		.requested_key = key,
		.iface = FI_HMEM_CUDA,
	};
	struct fid_mr *mr;

	OK(fi_mr_regattr(s->n.domain, &attr, 0, &mr));
	return mr;
}

/* Owns memory until it is killed. */
static void own(void)
{
	void *gpu = NULL;
	int out = atoi(getenv("WEFT_TEST_TOKEN_FD"));
	struct hello h = { .len = sizeof(h.token) };
	struct survivor s;
	struct fid_mr *mr;

	open_node(&s);
	if (on_gpu() && !gpu_here()) {
		gpu = gpu_alloc(LEN);
		mr = gpu_region(&s, gpu, 1);
	} else {
		OK(fi_mr_reg(s.n.domain, s.mem, LEN, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0, &mr, NULL));
	}
	OK(s.t->pack(mr, NULL, h.token, &h.len));
	CHECK(write(out, &h, sizeof(h)) == sizeof(h));
	for (;;) {
		if (gpu) /* a second region, whose close recalls the mappings of the memory */
			OK(fi_close(&gpu_region(&s, gpu, 2)->fid));
		progress(&s.n);
		if (notified()) {
			struct weft_note e = { .data = s.mem, .size = WEFT_NOTE_MAX };

			CHECK(s.t->notes(s.n.ep, &e, 1) >= 0);
		}
	}
}

/* One owner: lists go there until it is dead, and each ends. */
static void outlive(struct survivor *s, unsigned round, int from, char *gpu, struct fid_mr *mr)
{
	struct weft_local_piece here = { .addr = s->mem, .len = 256, .stride = 256, .count = 1024 };
	struct weft_remote_piece there = { .len = 256, .stride = 1024, .count = 1024 };
	struct weft_remote_info info;
	struct weft_remote *remote;
	struct weft_list *list;
	struct hello h;
	pid_t pid = respawn("owner"), killer;
	bool dead = false, failed = false;
	unsigned posts = 0;

	CHECK(pid > 0 && recv(from, &h, sizeof(h), MSG_WAITALL) == sizeof(h));
	OK(s->t->open(s->n.ep, h.token, h.len, &remote));
	OK(s->t->info(remote, &info, sizeof(info)));
	there.remote = remote;
	there.addr = info.base + (notified() ? WEFT_NOTE_MAX : 0);
	if (notified()) {
		static const size_t lengths[] = { 8, 4096, 40000 };

		here.count = there.count = 1;
		here.len = there.len = lengths[round % 3];
	}
	if (gpu_here()) {
		here.addr = gpu;
		here.desc = fi_mr_desc(mr);
	}
	OK(s->t->list(s->n.ep, &here, &there, 1, 0, &list));
	killer = fork();
	if (killer == 0) { /* in the middle of a copy, too, which this thread makes */
		usleep(round * 7919 % 20000);
		_exit(kill(pid, SIGKILL));
	}
	while (!failed) {
		static const size_t lengths[] = { 0, 40, 2000, 50000 };
		ssize_t rc = s->t->post(list, round % 2 ? WEFT_READ : WEFT_WRITE, NULL, 0, notified() ? s->mem : NULL,
					notified() ? lengths[posts++ % 4] : 0, 0, s);
		struct fi_cq_tagged_entry e;

		dead = dead || waitpid(pid, NULL, WNOHANG) == pid;
		if (rc == -FI_EAGAIN) {
			progress(&s->n);
			continue;
		}
		if (rc == -FI_ECONNRESET || rc == -FI_EHOSTUNREACH)
			break;
		CHECKF(rc == 0, "post: %zd", rc);
		rc = wait_for(&s->n, s->n.txcq, &e, -1);
		if (rc == 1)
			continue;
		CHECKF(rc == -FI_ECONNRESET, "completion: %zd", rc);
		CHECK(s->n.err.len <= 1024 * 256 && s->n.err.data < 1024);
		failed = true;
	}
	CHECK(waitpid(killer, NULL, 0) == killer && (dead || waitpid(pid, NULL, 0) == pid));
	OK(fi_close(&list->fid));
	OK(fi_close(&remote->fid));
	if (on_gpu() && gpu_is_fake()) /* its mappings go with it, soon */
		for (int i = 0; gpu_mapped() != 0; i++) {
			CHECKF(i < 3000, "%d mappings of a dead process", gpu_mapped());
			usleep(10000);
		}
}

/* kill -9 of owners in the middle of lists (WEFT_TEST_KILLS for more). Every list ends, and the survivor goes on
 * with the next owner. */
static void test_killed(long rounds)
{
	char fd[16], *gpu = NULL;
	int pair[2];
	struct fid_mr *mr = NULL;
	struct survivor s;

	if (!strcmp(test_role(), "owner")) {
		own();
		return;
	}
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	snprintf(fd, sizeof(fd), "%d", pair[1]);
	setenv("WEFT_TEST_TOKEN_FD", fd, 1);
	if (getenv("WEFT_TEST_KILLS"))
		rounds = atol(getenv("WEFT_TEST_KILLS"));
	open_node(&s);
	if (gpu_here()) {
		gpu = gpu_alloc(LEN);
		mr = gpu_region(&s, gpu, 1);
	}
	for (long i = 0; i < rounds; i++)
		outlive(&s, (unsigned)i, pair[0], gpu, mr);
	if (gpu) {
		OK(fi_close(&mr->fid)); /* which recalls what the dead had mapped */
		gpu_free(gpu);
	}
	node_close(&s.n);
	guard_free(s.mem, LEN);
}

/* The same without cross-memory attach. */
static void test_killed_messages(long rounds)
{
	setenv("FI_WEFT_USE_CMA", "no", 1);
	test_killed(rounds);
}

/* The same with lists that both sides copy. */
static void test_killed_halves(long rounds)
{
	setenv("FI_WEFT_RMA_ASSIST_SIZE", "4096", 1);
	test_killed(rounds);
}

/* The same with memory of a GPU, in the middle of recalls, too. */
static void test_killed_gpu(long rounds)
{
	setenv("WEFT_TEST_TOKEN_GPU", "1", 1);
	test_killed(rounds);
}

/* The same with memory of a GPU on the survivor's side, which the owners map and copy from and to. */
static void test_killed_shared(long rounds)
{
	setenv("WEFT_TEST_TOKEN_GPU", "here", 1);
	test_killed(rounds);
}

/* Writes from memory of a GPU to the survivor's, and reads into it, until it is killed. */
static void share(void)
{
	struct weft_remote_info info;
	struct weft_remote *remote;
	struct weft_list *list;
	struct survivor s;
	struct hello h;

	setenv("WEFT_TEST_TOKEN_GPU", "here", 1);
	CHECK(recv(atoi(getenv("WEFT_TEST_TOKEN_FD")), &h, sizeof(h), MSG_WAITALL) == sizeof(h));
	open_node(&s);
	OK(s.t->open(s.n.ep, h.token, h.len, &remote));
	OK(s.t->info(remote, &info, sizeof(info)));
	struct weft_remote_piece there = {
		.remote = remote, .addr = info.base, .len = 256, .stride = 512, .count = 2000
	};
	struct weft_local_piece here = { .addr = gpu_alloc(LEN), .len = 256, .stride = 512, .count = 2000 };

	here.desc = fi_mr_desc(gpu_region(&s, here.addr, 1));
	OK(s.t->list(s.n.ep, &here, &there, 1, 0, &list));
	for (unsigned i = 0;; i++) {
		struct fi_cq_tagged_entry e;
		ssize_t rc;

		while ((rc = s.t->post(list, i & 1 ? WEFT_READ : WEFT_WRITE, NULL, 0, NULL, 0, 0, NULL)) == -FI_EAGAIN)
			progress(&s.n);
		CHECKF(rc == 0, "post: %zd", rc);
		wait_ok(&s.n, s.n.txcq, &e);
		if (i == 1) {
			CHECK(node_counter(&s.n, "list_ipc") == 4000);
			CHECK(write(atoi(getenv("WEFT_TEST_TOKEN_FD")), &i, 1) == 1);
		}
	}
}

/* kill -9 of processes that have this one copy from and to memory of their GPU: it goes on, and keeps no mapping. */
static void test_killed_sharers(long rounds)
{
	struct hello h = { .len = sizeof(h.token) };
	char fd[16], up;
	int pair[2];
	struct survivor s;
	struct fid_mr *mr;

	if (!strcmp(test_role(), "sharer")) {
		share();
		return;
	}
	setenv("WEFT_TEST_TOKEN_GPU", "here", 1);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	snprintf(fd, sizeof(fd), "%d", pair[1]);
	setenv("WEFT_TEST_TOKEN_FD", fd, 1);
	if (getenv("WEFT_TEST_KILLS"))
		rounds = atol(getenv("WEFT_TEST_KILLS"));
	open_node(&s);
	OK(fi_mr_reg(s.n.domain, s.mem, LEN, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0, &mr, NULL));
	OK(s.t->pack(mr, NULL, h.token, &h.len));
	for (long i = 0; i < rounds; i++) {
		pid_t pid = respawn("sharer");

		CHECK(pid > 0 && write(pair[0], &h, sizeof(h)) == sizeof(h));
		CHECK(recv(pair[0], &up, 1, 0) == 1);
		usleep((unsigned)i * 7919 % 20000);
		CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
		for (int n = 0; gpu_is_fake() && gpu_mapped() != 0; n++) {
			CHECKF(n < 3000, "%d mappings of a dead process", gpu_mapped());
			usleep(10000);
		}
	}
	OK(fi_close(&mr->fid));
	node_close(&s.n);
	guard_free(s.mem, LEN);
}

/* killed with notifications behind lists of one element. */
static void test_killed_notes(long rounds)
{
	setenv("WEFT_TEST_TOKEN_NOTES", "1", 1);
	test_killed(rounds);
}

enum { SLOT = 8192, SLOTS = LEN / SLOT };

/* Writes to the survivor's memory, and notifies it, until it is killed: post i leaves its number at a slot, and in
 * its notification. */
static void pester(void)
{
	static const size_t moved[] = { 8, 4000, SLOT }, lengths[] = { 8, 40, 8, 3000, 8, 30000 };
	struct weft_remote_info info;
	struct weft_remote *remote;
	struct weft_list *list;
	struct survivor s;
	struct hello h;

	CHECK(recv(atoi(getenv("WEFT_TEST_TOKEN_FD")), &h, sizeof(h), MSG_WAITALL) == sizeof(h));
	open_node(&s);
	OK(s.t->open(s.n.ep, h.token, h.len, &remote));
	OK(s.t->info(remote, &info, sizeof(info)));
	for (uint64_t i = 0;; i++) {
		size_t slot = i % SLOTS * SLOT;
		struct weft_local_piece here = { .addr = s.mem + slot, .len = moved[i % 3] };
		struct weft_remote_piece there = { .remote = remote, .addr = info.base + slot, .len = moved[i % 3] };
		struct fi_cq_tagged_entry e;
		static char bytes[30000];
		ssize_t rc;

		memcpy(s.mem + slot, &i, sizeof(i));
		memcpy(bytes, &i, sizeof(i));
		OK(s.t->list(s.n.ep, &here, &there, 1, 0, &list));
		do {
			progress(&s.n);
			rc = i % 5 ? s.t->post(list, WEFT_WRITE, NULL, 0, bytes, lengths[i % 6], 0, NULL)
				   : s.t->notify(s.n.ep, info.addr, 0, bytes, lengths[i % 6], 0, NULL);
		} while (rc == -FI_EAGAIN);
		CHECKF(rc == 0, "post: %zd", rc);
		if (i % 7 == 0) /* the others are under way together */
			for (uint64_t n = 0; n < (i ? 7 : 1); n++)
				wait_ok(&s.n, s.n.txcq, &e);
		if (i % 7 == 0)
			OK(fi_close(&list->fid));
	}
}

/* Takes what one requester has sent by the time that it dies. */
static void outlast(struct survivor *s, unsigned round, char *note)
{
	uint64_t next = 0, number, there;
	pid_t pid = respawn("requester"), killer = 0;
	bool dead = false;

	CHECK(pid > 0);
	for (int quiet = 0; quiet < 200;) {
		struct weft_note e = { .data = note, .size = WEFT_NOTE_MAX };
		ssize_t rc = s->t->notes(s->n.ep, &e, 1);

		CHECKF(rc >= 0, "notes: %zd", rc);
		if (rc == 0) {
			progress(&s->n);
			quiet += dead;
			dead = dead || waitpid(pid, NULL, WNOHANG) == pid;
			continue;
		}
		quiet = 0;
		if (next == 0 && (killer = fork()) == 0) {
			usleep(round * 7919 % 20000);
			_exit(kill(pid, SIGKILL));
		}
		memcpy(&number, note, sizeof(number));
		CHECKF(number == next, "notification %lu, want %lu", (unsigned long)number, (unsigned long)next);
		next++;
		memcpy(&there, s->mem + number % SLOTS * SLOT, sizeof(there));
		CHECKF(e.op == WEFT_ALONE || there >= number, "notification %lu came before its data",
		       (unsigned long)number);
	}
	CHECK(killer && waitpid(killer, NULL, 0) == killer);
}

/* kill -9 of what writes and notifies: what comes before is whole and in order, and the owner goes on with the next. */
static void test_killed_requesters(long rounds)
{
	char fd[16], *note = malloc(WEFT_NOTE_MAX);
	struct hello h = { .len = sizeof(h.token) };
	struct survivor s;
	struct fid_mr *mr;
	int pair[2];

	if (!strcmp(test_role(), "requester")) {
		pester();
		return;
	}
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	snprintf(fd, sizeof(fd), "%d", pair[1]);
	setenv("WEFT_TEST_TOKEN_FD", fd, 1);
	if (getenv("WEFT_TEST_KILLS"))
		rounds = atol(getenv("WEFT_TEST_KILLS"));
	open_node(&s);
	OK(fi_mr_reg(s.n.domain, s.mem, LEN, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0, &mr, NULL));
	OK(s.t->pack(mr, NULL, h.token, &h.len));
	for (long i = 0; i < rounds; i++) {
		CHECK(write(pair[0], &h, sizeof(h)) == sizeof(h));
		outlast(&s, (unsigned)i, note);
	}
	OK(fi_close(&mr->fid));
	node_close(&s.n);
	guard_free(s.mem, LEN);
	free(note);
}

static const struct test tests[] = {
	{ "killed", test_killed, 1, 0, 8 },
	{ "killed_messages", test_killed_messages, 1, 0, 8 },
	{ "killed_halves", test_killed_halves, 1, 0, 8 },
	{ "killed_gpu", test_killed_gpu, 1, 0, 8 },
	{ "killed_shared", test_killed_shared, 1, 0, 6 },
	{ "killed_sharers", test_killed_sharers, 1, 0, 6 },
	{ "killed_notes", test_killed_notes, 1, 0, 5 },
	{ "killed_requesters", test_killed_requesters, 1, 0, 5 },
};

int main(int argc, char **argv)
{
	gpu_main(argv);
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
