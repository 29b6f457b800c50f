/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory tokens and lists (weft/token.h): rank 1 owns memory, of which rank 0 knows what is in the token. */
#include <sys/wait.h>

#include <rdma/fi_rma.h>

#include "../../include/weft/ext.h"
#include "common.h"
#include "gpu.h"
#include "tokens.h"

#define LEN ((size_t)1 << 20)
#define KEY 0x31
#define RIGHTS (FI_REMOTE_READ | FI_REMOTE_WRITE)

struct side {
	struct node n;
	struct weft_token_ops *t;
	struct fid_mr *mr;
	char *mem;
	char token[WEFT_TOKEN_MAX];
	size_t len; /* of the token */
	struct weft_remote *remote;
	struct weft_remote_info info;
};

static void pack(struct side *s)
{
	OK(fi_mr_reg(s->n.domain, s->mem, LEN, RIGHTS, 0, KEY, 0, &s->mr, NULL));
	CHECK(token_ops(&s->mr->fid) == s->t);
	s->len = sizeof(s->token);
	OK(s->t->pack(s->mr, &(struct weft_token_attr){ .agent = "owner" }, s->token, &s->len));
	CHECK(s->len <= WEFT_TOKEN_MAX);
}

/* No addresses are exchanged but in the token. */
static void open_sides_with(struct side *s, struct node_opts o)
{
	memset(s, 0, sizeof(*s));
	o.caps = FI_MSG | FI_TAGGED | FI_RMA;
	node_open(&s->n, &o);
	s->t = token_ops(&s->n.ep->fid);
	s->mem = guard_alloc(LEN);
	if (test_rank == 1) {
		pack(s);
		link_send(0, &s->len, sizeof(s->len));
		link_send(0, s->token, s->len);
		return;
	}
	link_recv(1, &s->len, sizeof(s->len));
	CHECK(s->len <= sizeof(s->token));
	link_recv(1, s->token, s->len);
	OK(s->t->open(s->n.ep, s->token, s->len, &s->remote));
	OK(s->t->info(s->remote, &s->info, sizeof(s->info)));
}

static void open_sides(struct side *s)
{
	open_sides_with(s, (struct node_opts){ .mr_mode = 0 });
}

static void close_sides(struct side *s)
{
	barrier(&s->n);
	if (s->remote)
		OK(fi_close(&s->remote->fid));
	if (s->mr)
		OK(fi_close(&s->mr->fid));
	node_close(&s->n);
	guard_free(s->mem, LEN);
}

/* Posts until there is room. */
static void post_list(struct side *s, struct weft_list *list, uint32_t op, const void *picks, size_t count)
{
	ssize_t rc;

	while ((rc = s->t->post(list, op, picks, count, NULL, 0, 0, s)) == -FI_EAGAIN)
		progress(&s->n);
	CHECKF(rc == 0, "post: %zd", rc);
}

static void done(struct side *s, uint64_t flags)
{
	struct fi_cq_tagged_entry e;

	wait_ok(&s->n, s->n.txcq, &e);
	CHECK(e.op_context == s && (e.flags & flags) == flags);
}

static void move(struct side *s, struct weft_list *list, uint32_t op, const void *picks, size_t count)
{
	post_list(s, list, op, picks, count);
	done(s, FI_RMA | (op & WEFT_READ ? FI_READ : FI_WRITE));
}

static void test_names(long arg)
{
	struct weft_remote *remote = NULL;
	char token[WEFT_TOKEN_MAX], text[WEFT_TOKEN_TEXT_MAX], small[8];
	size_t len = sizeof(token), room = sizeof(text);
	struct side s;
	void *none = &s;

	(void)arg;
	memset(&s, 0, sizeof(s));
	node_open(&s.n, &(struct node_opts){ .caps = FI_MSG | FI_RMA });
	s.t = token_ops(&s.n.ep->fid);
	s.mem = guard_alloc(LEN);
	pack(&s);
	EXPECT_RC(fi_open_ops(&s.n.ep->fid, WEFT_TOKEN_OPS, 1, &none, NULL), -FI_EBADFLAGS);
	EXPECT_RC(fi_open_ops(&s.n.av->fid, WEFT_TOKEN_OPS, 0, &none, NULL), -FI_ENOSYS);
	EXPECT_RC(fi_open_ops(&s.mr->fid, WEFT_STATS_OPS, 0, &none, NULL), -FI_ENOSYS);
	EXPECT_RC(fi_open_ops(&s.mr->fid, "no such operations", 0, &none, NULL), -FI_ENOSYS);
	EXPECT(none == &s);
	EXPECT_RC(s.t->pack(NULL, NULL, token, &len), -FI_EINVAL);
	EXPECT_RC(s.t->pack(s.mr, NULL, token, NULL), -FI_EINVAL);
	len = sizeof(small);
	EXPECT_RC(s.t->pack(s.mr, NULL, small, &len), -FI_ETOOSMALL);
	CHECK(len > sizeof(small) && len <= WEFT_TOKEN_MAX);
	OK(s.t->pack(s.mr, &(struct weft_token_attr){ .ep = s.n.ep }, token, &len));
	OK(s.t->text(token, len, text, &room));
	CHECK(room == strlen(text) + 1 && !strncmp(text, "weft1:", 6));
	OK(s.t->open(s.n.ep, text, room - 1, &remote)); /* its own, by the text */
	OK(s.t->info(remote, &s.info, sizeof(s.info)));
	CHECK(s.info.length == LEN && s.info.rights == RIGHTS && s.info.memory == WEFT_MEMORY_HOST);
	CHECK(!s.info.why[s.info.way][0] && s.info.why[WEFT_WAY_RDMA][0]);
	EXPECT_RC(s.t->open(s.n.ep, text, room - 2, &remote), -FI_EINVAL);
	EXPECT_RC(s.t->open(s.n.ep, NULL, 9, &remote), -FI_EINVAL);
	EXPECT_RC(s.t->open(s.n.ep, token, len, NULL), -FI_EINVAL);
	EXPECT_RC(s.t->info(NULL, &s.info, sizeof(s.info)), -FI_EINVAL);
	EXPECT_RC(fi_close(&s.n.ep->fid), -FI_EBUSY);
	OK(fi_close(&remote->fid));
	OK(fi_close(&s.mr->fid));
	node_close(&s.n);
	guard_free(s.mem, LEN);
}

/* Every bit flipped and every length cut is refused, and nothing of it reaches the owner. */
static void test_changed(long arg)
{
	struct weft_remote *none = NULL;
	struct side s;

	(void)arg;
	open_sides(&s);
	if (test_rank == 0) {
		for (size_t i = 0; i < s.len * 8; i++) {
			s.token[i / 8] ^= (char)(1 << i % 8);
			CHECK_RC(s.t->open(s.n.ep, s.token, s.len, &none), -FI_EINVAL);
			s.token[i / 8] ^= (char)(1 << i % 8);
		}
		for (size_t i = 0; i < s.len; i++)
			CHECK_RC(s.t->open(s.n.ep, s.token, i, &none), -FI_EINVAL);
		CHECK(!none);
	}
	close_sides(&s);
}

#define PIECES 300

/* Pieces of all lengths, apart on both sides, and then strides. */
static struct weft_list *make_list(struct side *s, struct weft_local_piece *local, struct weft_remote_piece *remote)
{
	struct weft_list *list;

	for (size_t i = 0, at = 0; i < PIECES; i++) {
		size_t len = i * 37 % 1500;

		local[i] = (struct weft_local_piece){ .addr = s->mem + at, .len = len };
		remote[i] = (struct weft_remote_piece){ s->remote, s->info.base + at + 5, len, 0, 0 };
		at += len + i % 3 * 17;
	}
	local[PIECES] = (struct weft_local_piece){ s->mem + LEN / 2, 100, 100, 1000, NULL };
	remote[PIECES] = (struct weft_remote_piece){ s->remote, s->info.base + LEN / 2, 100, 300, 1000 };
	OK(s->t->list(s->n.ep, local, remote, PIECES + 1, 0, &list));
	return list;
}

/* Rank 0 has read the elements of picks and element 9, and nothing else, into memory that was zero. */
static void verify_picked(struct side *s, const struct weft_local_piece *local, const uint32_t *picks, size_t count)
{
	char *want = malloc(LEN), *here = calloc(1, LEN);

	CHECK(want && here);
	fill(want, LEN, 1);
	for (size_t i = 0; i <= count; i++) {
		uint32_t n = i < count ? picks[i] : 9;
		size_t at = n < PIECES ? (size_t)((char *)local[n].addr - s->mem) : LEN / 2 + (n - PIECES) * 100;

		memcpy(here + at, want + at, n < PIECES ? local[n].len : 100);
	}
	CHECK(!memcmp(s->mem, here, LEN));
	free(want);
	free(here);
}

/* Lists of one element, of lengths that take every form of a write: there at the end of the memory, and back. */
static void alone(struct side *s)
{
	for (size_t len = 1; len <= LEN / 16; len *= 4) {
		struct weft_local_piece here = { .addr = s->mem, .len = len };
		struct weft_remote_piece there = { .remote = s->remote, .addr = s->info.base + LEN - len, .len = len };
		struct weft_list *list;

		OK(s->t->list(s->n.ep, &here, &there, 1, 0, &list));
		fill(s->mem, len, len);
		move(s, list, WEFT_WRITE, NULL, 0);
		memset(s->mem, 0, len);
		move(s, list, WEFT_READ, NULL, 0);
		verify(s->mem, len, len);
		OK(fi_close(&list->fid));
	}
}

/* Rank 0 writes, and rank 1 sees what it has. */
static void test_lists(long arg)
{
	struct weft_remote_piece remote[PIECES + 1];
	struct weft_local_piece local[PIECES + 1];
	struct side s;

	(void)arg;
	open_sides(&s);
	if (test_rank == 0) {
		struct weft_list *list = make_list(&s, local, remote);
		uint32_t picks[] = { PIECES + 999, 7, PIECES };
		uint64_t bits[(PIECES + 1000 + 63) / 64] = { 1 << 9 };

		CHECK(!strcmp(s.info.agent, "owner"));
		fill(s.mem, LEN, 1);
		move(&s, list, WEFT_WRITE, NULL, 0);
		memset(s.mem, 0, LEN);
		move(&s, list, WEFT_READ, picks, ARRAY_LEN(picks));
		move(&s, list, WEFT_READ | WEFT_PICK_BITS, bits, PIECES + 1000);
		verify_picked(&s, local, picks, ARRAY_LEN(picks));
		OK(fi_close(&list->fid));
		alone(&s);
		barrier(&s.n);
	} else {
		char *want = malloc(LEN);

		barrier(&s.n);
		fill(want, LEN, 1);
		for (size_t i = 0, at = 0; i < PIECES; i++) {
			size_t len = i * 37 % 1500;

			CHECKF(!memcmp(s.mem + at + 5, want + at, len), "piece %zu", i);
			at += len + i % 3 * 17;
		}
		for (size_t i = 0; i < 1000; i++)
			CHECKF(!memcmp(s.mem + LEN / 2 + i * 300, want + LEN / 2 + i * 100, 100), "stride %zu", i);
		free(want);
	}
	close_sides(&s);
}

static void test_bad_lists(long arg)
{
	struct weft_local_piece here = { .len = 8 };
	struct weft_remote_piece there = { .len = 8 };
	struct weft_list *list = NULL;
	uint32_t pick = 1;
	struct side s;

	(void)arg;
	open_sides(&s);
	if (test_rank == 1) {
		close_sides(&s);
		return;
	}
	here.addr = s.mem;
	EXPECT_RC(s.t->list(s.n.ep, &here, &there, 1, 0, &list), -FI_EINVAL); /* no remote */
	there.remote = s.remote;
	there.addr = s.info.base + LEN - 7;
	EXPECT_RC(s.t->list(s.n.ep, &here, &there, 1, 0, &list), -FI_EACCES);
	there.addr = s.info.base;
	EXPECT_RC(s.t->list(s.n.ep, &here, &there, 1, 1, &list), -FI_EBADFLAGS);
	EXPECT_RC(s.t->list(s.n.ep, &here, &there, 0, 0, &list), -FI_EINVAL);
	EXPECT_RC(s.t->list(s.n.ep, NULL, &there, 1, 0, &list), -FI_EINVAL);
	there.len = 9;
	EXPECT_RC(s.t->list(s.n.ep, &here, &there, 1, 0, &list), -FI_EINVAL);
	there.len = 8;
	here.count = 2;
	EXPECT_RC(s.t->list(s.n.ep, &here, &there, 1, 0, &list), -FI_EINVAL);
	here.count = 0;
	here.addr = NULL;
	EXPECT_RC(s.t->list(s.n.ep, &here, &there, 1, 0, &list), -FI_EINVAL);
	here.addr = s.mem;
	CHECK(!list);
	OK(s.t->list(s.n.ep, &here, &there, 1, 0, &list));
	EXPECT_RC(s.t->post(list, WEFT_WRITE, &pick, 1, NULL, 0, 0, NULL), -FI_EINVAL);
	EXPECT_RC(s.t->post(list, WEFT_WRITE, &pick, 0, NULL, 0, 0, NULL), -FI_EINVAL);
	EXPECT_RC(s.t->post(list, 1u << 7, NULL, 0, NULL, 0, 0, NULL), -FI_EINVAL);
	EXPECT_RC(s.t->post(list, WEFT_WRITE, NULL, 0, NULL, 0, FI_INJECT, NULL), -FI_EBADFLAGS);
	EXPECT_RC(s.t->post(NULL, WEFT_WRITE, NULL, 0, NULL, 0, 0, NULL), -FI_EINVAL);
	EXPECT_RC(fi_close(&s.remote->fid), -FI_EBUSY);
	OK(fi_close(&list->fid));
	close_sides(&s);
}

/* The owner closes its region and gives another one its key: the token is of the first. */
static void test_replayed(long arg)
{
	struct weft_local_piece here = { .len = 64, .stride = 64, .count = 100 };
	struct weft_remote_piece there = { .len = 64, .stride = 128, .count = 100 };
	struct side s;

	(void)arg;
	open_sides(&s);
	if (test_rank == 1) {
		fill(s.mem, LEN, 9);
		OK(fi_close(&s.mr->fid));
		OK(fi_mr_reg(s.n.domain, s.mem, LEN, RIGHTS, 0, KEY, 0, &s.mr, NULL));
		barrier(&s.n);
		barrier(&s.n);
		verify(s.mem, LEN, 9);
	} else {
		struct weft_list *list, *one;

		here.addr = s.mem;
		there.remote = s.remote;
		there.addr = s.info.base;
		barrier(&s.n);
		OK(s.t->list(s.n.ep, &here, &there, 1, 0, &list));
		here.count = there.count = 1;
		OK(s.t->list(s.n.ep, &here, &there, 1, 0, &one));
		for (int i = 0; i < 4; i++) {
			post_list(&s, i < 2 ? list : one, i % 2 ? WEFT_READ : WEFT_WRITE, NULL, 0);
			wait_err(&s.n, s.n.txcq, FI_ENOKEY);
			CHECK(s.n.err.op_context == &s && s.n.err.data == 0 && s.n.err.len == 0);
		}
		OK(fi_close(&list->fid));
		OK(fi_close(&one->fid));
		barrier(&s.n);
	}
	close_sides(&s);
}

/* Which way is taken where some are turned off. */
static void test_ways(long message)
{
	struct weft_local_piece here = { .len = 64, .count = 50 };
	struct weft_remote_piece there = { .len = 64, .stride = 100, .count = 50 };
	struct side s;

	setenv("FI_WEFT_TOKEN_WAYS", message ? "message" : "auto", 1);
	open_sides(&s);
	if (test_rank == 0) {
		struct weft_list *list;

		here.addr = s.mem;
		there.remote = s.remote;
		there.addr = s.info.base;
		OK(s.t->list(s.n.ep, &here, &there, 1, 0, &list));
		move(&s, list, WEFT_WRITE, NULL, 0);
		OK(s.t->info(s.remote, &s.info, sizeof(s.info)));
		CHECK(!message ||
		      (s.info.way == WEFT_WAY_MESSAGE && strstr(s.info.why[WEFT_WAY_IPC], "FI_WEFT_TOKEN_WAYS")));
		CHECK(node_counter(&s.n, s.info.way == WEFT_WAY_IPC ? "list_ipc" : "list_message") == 50);
		CHECK(node_counter(&s.n, "list_ipc_bytes") + node_counter(&s.n, "list_message_bytes") == 50 * 64);
		OK(fi_close(&list->fid));
	}
	close_sides(&s);
}

/* A list with memory of a GPU and of the process, here and there. */
static void test_devices(long arg)
{
	enum { COUNT = 64, SIZE = 512 };
	struct weft_remote_piece there[COUNT];
	struct weft_local_piece here[COUNT];
	struct fid_mr *mr[2] = { NULL };
	char *mem[2], *copy = malloc(COUNT * SIZE);
	struct weft_token_ops *t;
	struct node n;

	(void)arg;
	if (!test_is_weft())
		SKIP("an extension of weft");
	gpu_open();
	node_open(&n, &(struct node_opts){ .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_HMEM, .mr_mode = FI_MR_HMEM });
	t = token_ops(&n.ep->fid);
	mem[0] = calloc(COUNT, SIZE);
	mem[1] = gpu_alloc(COUNT * SIZE);
	CHECK(copy && mem[0] && mem[1]);
	for (int i = 0; i < 2; i++) {
		struct iovec iov = { mem[i], COUNT * SIZE };
		struct fi_mr_attr attr = {
			.mr_iov = &iov,
			.iov_count = 1,
			.access = FI_READ | FI_WRITE | RIGHTS,
			.requested_key = (uint64_t)i,
			.iface = i ? FI_HMEM_CUDA : FI_HMEM_SYSTEM,
		};

		OK(fi_mr_regattr(n.domain, &attr, 0, &mr[i]));
		if (test_rank == 1)
			token_send(t, mr[i], 0);
	}
	if (test_rank == 0) {
		struct weft_remote *remote[2];
		struct weft_remote_info info[2];
		struct weft_list *list;
		struct fi_cq_tagged_entry e;

		for (int i = 0; i < 2; i++) {
			remote[i] = token_receive(t, n.ep, 1, &info[i]);
			CHECK(info[i].memory == (i ? WEFT_MEMORY_CUDA : WEFT_MEMORY_HOST));
		}
		if (info[0].way == WEFT_WAY_IPC) /* on one host */
			CHECKF(info[1].way == WEFT_WAY_IPC, "%s", info[1].why[WEFT_WAY_IPC]);
		fill(copy, COUNT * SIZE, 3);
		memcpy(mem[0], copy, COUNT * SIZE);
		gpu_put(mem[1], copy, COUNT * SIZE);
		for (size_t i = 0; i < COUNT; i++) {
			here[i] = (struct weft_local_piece){ mem[i % 2] + i * SIZE, SIZE, 0, 0, fi_mr_desc(mr[i % 2]) };
			there[i] = (struct weft_remote_piece){ remote[i / 2 % 2], info[i / 2 % 2].base + i * SIZE, SIZE,
							       0, 0 };
		}
		OK(t->list(n.ep, here, there, COUNT, 0, &list));
		for (ssize_t rc; (rc = t->post(list, WEFT_WRITE, NULL, 0, NULL, 0, 0, &n)) != 0; progress(&n))
			CHECKF(rc == -FI_EAGAIN, "post: %zd", rc);
		wait_ok(&n, n.txcq, &e);
		here[0].desc = fi_mr_desc(mr[1]); /* which is not of that memory */
		EXPECT_RC(t->list(n.ep, here, there, 1, 0, &(struct weft_list *){ NULL }), -FI_EINVAL);
		OK(fi_close(&list->fid));
		for (int i = 0; i < 2; i++)
			OK(fi_close(&remote[i]->fid));
		barrier(&n);
	} else {
		char *want = malloc(COUNT * SIZE);

		barrier(&n);
		fill(want, COUNT * SIZE, 3);
		gpu_get(copy, mem[1], COUNT * SIZE);
		for (size_t i = 0; i < COUNT; i++)
			CHECKF(!memcmp((i / 2 % 2 ? copy : mem[0]) + i * SIZE, want + i * SIZE, SIZE), "element %zu",
			       i);
		free(want);
	}
	barrier(&n);
	for (int i = 0; i < 2; i++)
		OK(fi_close(&mr[i]->fid));
	node_close(&n);
	gpu_free(mem[1]);
	free(mem[0]);
	free(copy);
}

/* Elements that go as messages, far more than are under way at a time, while rank 0 sleeps. A counter counts the
 * post once. */
static void test_slept(long progress_model)
{
	struct node_opts o = { .wait = FI_WAIT_UNSPEC, .data = (enum fi_progress)progress_model, .counters = true };
	struct weft_local_piece here = { .len = 8, .count = 5000 };
	struct weft_remote_piece there = { .len = 8, .stride = 16, .count = 5000 };
	struct side s;

	setenv("FI_WEFT_TOKEN_WAYS", "message", 1);
	open_sides_with(&s, o);
	if (test_rank == 0) {
		struct fi_cq_tagged_entry e;
		struct weft_list *list;
		ssize_t rc;

		OK(fi_ep_bind(s.n.ep, &s.n.txcntr->fid, FI_WRITE));
		here.addr = s.mem;
		fill(s.mem, LEN, 4);
		there.remote = s.remote;
		there.addr = s.info.base;
		OK(s.t->list(s.n.ep, &here, &there, 1, 0, &list));
		for (uint64_t i = 1; i <= 3; i++) {
			post_list(&s, list, WEFT_WRITE, NULL, 0);
			while ((rc = fi_cq_sread(s.n.txcq, &e, 1, NULL, 1000)) == -FI_EAGAIN)
				;
			CHECKF(rc == 1 && e.op_context == &s, "sread: %zd", rc);
			while (fi_cntr_read(s.n.txcntr) < i) /* another thread counts, after the completion */
				progress(&s.n);
			CHECKF(fi_cntr_read(s.n.txcntr) == i, "counted %lu", (unsigned long)fi_cntr_read(s.n.txcntr));
		}
		OK(fi_close(&list->fid));
		barrier(&s.n);
	} else {
		char want[8 * 5000];

		barrier(&s.n);
		fill(want, sizeof(want), 4);
		for (size_t i = 0; i < 5000; i++)
			CHECKF(!memcmp(s.mem + i * 16, want + i * 8, 8), "element %zu", i);
	}
	close_sides(&s);
}

/* After a fork the child is refused. */
static void test_forked(long arg)
{
	struct weft_local_piece here = { .len = 8 };
	struct weft_remote_piece there = { .len = 8 };
	struct weft_list *list;
	struct side s;

	(void)arg;
	open_sides(&s);
	if (test_rank == 0) {
		int status;
		pid_t pid;

		here.addr = s.mem;
		there.remote = s.remote;
		there.addr = s.info.base;
		OK(s.t->list(s.n.ep, &here, &there, 1, 0, &list));
		pid = fork();
		if (pid == 0)
			_exit(s.t->post(list, WEFT_WRITE, NULL, 0, NULL, 0, 0, NULL) != -FI_EOPNOTSUPP ||
			      s.t->info(s.remote, &s.info, sizeof(s.info)) != -FI_EOPNOTSUPP ||
			      fi_close(&list->fid) != -FI_EOPNOTSUPP);
		CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
		CHECKF(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %d", status);
		move(&s, list, WEFT_WRITE, NULL, 0);
		OK(fi_close(&list->fid));
	}
	close_sides(&s);
}

static const struct test tests[] = {
	{ "names", test_names, 1, 0, 0 },
	{ "changed", test_changed, 2, 0, 0 },
	{ "lists", test_lists, 2, 0, 0 },
	{ "bad_lists", test_bad_lists, 2, 0, 0 },
	{ "replayed", test_replayed, 2, 0, 0 },
	{ "ways", test_ways, 2, 0, 0 },
	{ "ways_message", test_ways, 2, 0, 1 },
	{ "devices", test_devices, 2, 0, 0 },
	{ "slept", test_slept, 2, 0, FI_PROGRESS_MANUAL },
	{ "slept_auto", test_slept, 2, 0, FI_PROGRESS_AUTO },
	{ "forked", test_forked, 2, 0, 0 },
};

int main(int argc, char **argv)
{
	gpu_main(argv);
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
