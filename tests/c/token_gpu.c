/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lists of pieces of GPU memory (weft/token.h): rank 1 owns host and GPU memory, which rank 0 reads and writes. The two
 * are processes of a host, of containers of it that share no memory, or of two hosts; or one process is both. Without
 * a GPU the driver is the stand-in of fake/libcuda.c, which ends the process for what is wrong.
 */
#include <rdma/fi_rma.h>

#include "../../include/weft/ext.h"
#include "common.h"
#include "gpu.h"
#include "tokens.h"

enum { COUNT = 64, SIZE = 512, LEN = COUNT * SIZE };
enum { HOST_HOST = 1, DEVICE_HOST = 2, HOST_DEVICE = 4, DEVICE_DEVICE = 8, ALL = 15 }; /* here, there */

struct side {
	struct node n;
	struct weft_token_ops *t;
	char *mem[2]; /* of the host, of the GPU */
	struct fid_mr *mr[2];
	char token[2][WEFT_TOKEN_MAX];
	struct weft_remote *remote[2], *again; /* again: the second token, opened twice; or NULL */
	struct weft_remote_info info[2];
};

/* Where the owner is, seen from what posts. */
enum place { SELF, HOST, CONTAINER, ELSEWHERE };

static enum place place_of_owner(void)
{
	if (test_procs == 1)
		return SELF;
	return getenv("WEFT_TEST_APART") ? CONTAINER : getenv("WEFT_TEST_NETNS") ? ELSEWHERE : HOST;
}

/* Whether an element of a kind is copied, by this process or, with GPU memory here alone, by the owner; else it goes as
 * a message. A mapping of GPU memory needs no shared memory of the host's. */
static bool copies(int kind)
{
	switch (place_of_owner()) {
	case SELF:
	case HOST:
		return true;
	case CONTAINER:
		return kind != 0;
	default:
		return false;
	}
}

static void region_as(struct side *s, int i, uint64_t key)
{
	struct iovec iov = { s->mem[i], LEN };
	struct fi_mr_attr attr = {
		.mr_iov = &iov, .iov_count = 1, .access = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE,
		.requested_key = key, .iface = i ? FI_HMEM_CUDA : FI_HMEM_SYSTEM,
	};

	OK(fi_mr_regattr(s->n.domain, &attr, 0, &s->mr[i]));
}

static void region(struct side *s, int i) { region_as(s, i, (uint64_t)i); }

static void open_side_as(struct side *s, int mr_mode)
{
	if (!test_is_weft())
		SKIP("an extension of weft");
	memset(s, 0, sizeof(*s));
	gpu_open();
	node_open(&s->n, &(struct node_opts){
		.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_HMEM, .mr_mode = FI_MR_HMEM | mr_mode,
	});
	s->t = token_ops(&s->n.ep->fid);
	s->mem[0] = calloc(1, LEN);
	s->mem[1] = gpu_alloc(LEN);
	CHECK(s->mem[0]);
	for (int i = 0; i < 2; i++) {
		region(s, i);
		if (test_rank == 1)
			token_send(s->t, s->mr[i], 0);
		else
			s->remote[i] = token_receive(s->t, s->n.ep, 1, &s->info[i]);
	}
}

static void open_side(struct side *s) { open_side_as(s, 0); }

/* Opens a process that is both: it posts from mine, whose regions are those of s, to theirs, whose
 * regions are owned. */
static void open_alone(struct side *s, struct fid_mr **owned, char **mine, char **theirs)
{
	if (!test_is_weft())
		SKIP("an extension of weft");
	memset(s, 0, sizeof(*s));
	gpu_open();
	node_open(&s->n, &(struct node_opts){ .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_HMEM, .mr_mode = FI_MR_HMEM });
	s->t = token_ops(&s->n.ep->fid);
	for (int i = 0; i < 2; i++) {
		size_t len = sizeof(s->token[i]);

		theirs[i] = s->mem[i] = i ? gpu_alloc(LEN) : calloc(1, LEN);
		region(s, i);
		owned[i] = s->mr[i];
		OK(s->t->pack(owned[i], NULL, s->token[i], &len));
		OK(s->t->open(s->n.ep, s->token[i], len, &s->remote[i]));
		OK(i ? s->t->open(s->n.ep, s->token[i], len, &s->again) : 0);
		OK(s->t->info(s->remote[i], &s->info[i], sizeof(s->info[i])));
		mine[i] = s->mem[i] = i ? gpu_alloc(LEN) : calloc(1, LEN);
		region_as(s, i, 2 + (uint64_t)i);
	}
}

static void close_side(struct side *s, bool freed)
{
	for (int i = 0; i < 2; i++) {
		if (s->remote[i])
			OK(fi_close(&s->remote[i]->fid));
		if (s->mr[i])
			OK(fi_close(&s->mr[i]->fid));
	}
	barrier(&s->n);
	node_close(&s->n);
	if (!freed)
		gpu_free(s->mem[1]);
	free(s->mem[0]);
}

/* What memory i has. */
static void get(struct side *s, int i, char *to)
{
	if (i)
		gpu_get(to, s->mem[1], LEN);
	else
		memcpy(to, s->mem[0], LEN);
}

static void put(struct side *s, int i, const char *from)
{
	if (i)
		gpu_put(s->mem[1], from, LEN);
	else
		memcpy(s->mem[0], from, LEN);
}

/* The kind of element i among those that are asked for: bit 0 device here, bit 1 device there. */
static int kind(long kinds, size_t i)
{
	int list[4], n = 0;

	for (int k = 0; k < 4; k++)
		if (kinds & 1 << k)
			list[n++] = k;
	return list[i % (size_t)n];
}

/* A list of elements of some kinds in turn. */
static struct weft_list *make(struct side *s, long kinds)
{
	struct weft_remote_piece there[COUNT];
	struct weft_local_piece here[COUNT];
	struct weft_list *list;

	for (size_t i = 0; i < COUNT; i++) {
		int k = kind(kinds, i);

		here[i] = (struct weft_local_piece){ s->mem[k & 1] + i * SIZE, SIZE, 0, 0, fi_mr_desc(s->mr[k & 1]) };
		there[i] = (struct weft_remote_piece){ s->again && k >> 1 && i & 1 ? s->again : s->remote[k >> 1],
						       s->info[k >> 1].base + i * SIZE, SIZE, 0, 0 };
	}
	OK(s->t->list(s->n.ep, here, there, COUNT, 0, &list));
	return list;
}

static void post(struct side *s, struct weft_list *list, uint32_t op)
{
	ssize_t rc;

	while ((rc = s->t->post(list, op, NULL, 0, NULL, 0, 0, s)) == -FI_EAGAIN)
		progress(&s->n);
	CHECKF(rc == 0, "post: %zd", rc);
}

/* How many elements are copied. */
static size_t copied(long kinds, long ways)
{
	size_t n = 0;

	for (size_t i = 0; i < COUNT && ways != 1; i++)
		n += copies(kind(kinds, i));
	return n;
}

/* What counters and the driver say of a list that is posted in one way or another. */
static void post_counted(struct side *s, long kinds, long ways, uint32_t op)
{
	uint64_t ipc = node_counter(&s->n, "list_ipc"), message = node_counter(&s->n, "list_message_bytes");
	int waits = gpu_is_fake() ? gpu_waits() : 0;
	struct weft_list *list = make(s, kinds);
	size_t copy = copied(kinds, ways);
	struct fi_cq_tagged_entry e;

	post(s, list, op);
	if (ways == 2 && copy != COUNT) {
		wait_err(&s->n, s->n.txcq, FI_EOPNOTSUPP);
	} else {
		wait_ok(&s->n, s->n.txcq, &e);
		ipc = node_counter(&s->n, "list_ipc") - ipc;
		message = node_counter(&s->n, "list_message_bytes") - message;
		CHECKF(ipc == copy && message == (COUNT - copy) * SIZE, "kinds %ld: %lu copied, %lu bytes as messages",
		       kinds, (unsigned long)ipc, (unsigned long)message);
	}
	if (gpu_is_fake() && copy && copy == COUNT)
		CHECKF(gpu_waits() - waits <= 1, "%d waits", gpu_waits() - waits);
	OK(fi_close(&list->fid));
}

/* Fills memory on the side that the data comes from, has rank 0 post a list, and compares on the other side unless the
 * list is refused. */
static void cell(struct side *s, long kinds, uint32_t op, bool refused,
		 void (*post_as)(struct side *, long, long, uint32_t), long ways)
{
	char *want = malloc(LEN), *got = calloc(1, LEN);

	fill(want, LEN, (unsigned)kinds * 2 + op);
	for (int i = 0; i < 2; i++)
		put(s, i, (test_rank == 0) == (op == WEFT_WRITE) ? want : got);
	barrier(&s->n);
	if (test_rank == 0)
		post_as(s, kinds, ways, op);
	barrier(&s->n);
	for (int i = 0; i < 2 && !refused && (test_rank == 1) == (op == WEFT_WRITE); i++) {
		get(s, i, got);
		for (size_t e = 0; e < COUNT; e++) {
			int k = kind(kinds, e), mine = test_rank ? k >> 1 : k & 1;

			CHECKF(mine != i || !memcmp(got + e * SIZE, want + e * SIZE, SIZE), "kinds %ld, element %zu", kinds, e);
		}
	}
	barrier(&s->n);
	free(want);
	free(got);
}

/* Every kind of element alone and some in turn, written and read. On one host all is copied; no byte goes through a
 * bounce buffer. One wait for the stream is enough, and each side maps the other's GPU memory once. */
static void test_cells(long ways)
{
	static const long kinds[] = { HOST_HOST, HOST_DEVICE, DEVICE_DEVICE, HOST_HOST | DEVICE_DEVICE,
				      HOST_HOST | HOST_DEVICE | DEVICE_DEVICE, DEVICE_HOST, ALL };
	struct side s;

	if (ways)
		setenv("FI_WEFT_TOKEN_WAYS", ways == 1 ? "message" : "ipc", 1);
	open_side(&s);
	for (size_t c = 0; c < ARRAY_LEN(kinds); c++)
		for (uint32_t op = WEFT_WRITE; op <= WEFT_READ; op++)
			cell(&s, kinds[c], op, ways == 2 && copied(kinds[c], ways) != COUNT, post_counted, ways);
	if (gpu_is_fake())
		CHECKF(gpu_imports() == (ways != 1 && copies(2)), "%d mappings were made", gpu_imports());
	close_side(&s, false);
}

/* Ways that are on where an RDMA device leads to the owner. */
enum device_ways { AUTO, BY_MESSAGE, NO_IPC, RDMA_ALONE };

/* The way of an element of a kind there, WEFT_WAYS: it is refused. */
static int way_of(int kind, enum device_ways ways)
{
	if (ways == BY_MESSAGE)
		return WEFT_WAY_MESSAGE;
	if (kind == 0 || (gpu_reaches_devices("") && (ways != AUTO || !copies(kind))))
		return WEFT_WAY_RDMA;
	if (ways == RDMA_ALONE)
		return WEFT_WAYS;
	return ways == AUTO && copies(kind) ? WEFT_WAY_IPC : WEFT_WAY_MESSAGE;
}

/* How many elements of a list go by a way. */
static uint64_t going(long kinds, long ways, int way)
{
	uint64_t n = 0;

	for (size_t i = 0; i < COUNT; i++)
		n += way_of(kind(kinds, i), (enum device_ways)ways) == way;
	return n;
}

/* Posts a list, and reads from the counters which ways its elements have taken. */
static void post_by_device(struct side *s, long kinds, long ways, uint32_t op)
{
	static const char *const counters[] = { "list_ipc", "list_rdma", "list_message" };
	struct weft_list *list = make(s, kinds);
	struct fi_cq_tagged_entry e;
	uint64_t before[3];

	for (int w = 0; w < 3; w++)
		before[w] = node_counter(&s->n, counters[w]);
	post(s, list, op);
	if (going(kinds, ways, WEFT_WAYS)) {
		size_t i = 0; /* the first that is refused */

		while (way_of(kind(kinds, i), (enum device_ways)ways) != WEFT_WAYS)
			i++;
		wait_err(&s->n, s->n.txcq,
			 gpu_reaches_devices("full") && kind(kinds, i) == 1 ? FI_ENOMEM : FI_EOPNOTSUPP);
	} else {
		wait_ok(&s->n, s->n.txcq, &e);
		for (int w = 0; w < 3; w++) {
			uint64_t n = node_counter(&s->n, counters[w]) - before[w];

			CHECKF(n == going(kinds, ways, w), "kinds %ld, ways %ld: %s %lu, want %lu", kinds, ways, counters[w],
			       (unsigned long)n, (unsigned long)going(kinds, ways, w));
		}
	}
	OK(fi_close(&list->fid));
}

/* The first list to the owner goes by the device: the token has its key, and nothing is asked for one. */
static void first_list(struct side *s)
{
	struct weft_list *list = make(s, HOST_HOST);
	struct fi_cq_tagged_entry e;

	post(s, list, WEFT_WRITE);
	wait_ok(&s->n, s->n.txcq, &e);
	CHECKF(node_counter(&s->n, "list_rdma") == COUNT && !node_counter(&s->n, "rma_keys_asked"),
	       "%lu of %d elements went by the device, %lu questions", (unsigned long)node_counter(&s->n, "list_rdma"),
	       COUNT, (unsigned long)node_counter(&s->n, "rma_keys_asked"));
	OK(fi_close(&list->fid));
	OK(s->t->info(s->remote[0], &s->info[0], sizeof(s->info[0])));
	CHECKF(s->info[0].way == WEFT_WAY_RDMA, "way %u", s->info[0].way);
}

/* The owner closes its region, and registers the same memory as others, with the same key, again and again: devices
 * give out their keys anew. The last of them stays. */
static void give_others(struct side *s)
{
	memset(s->mem[0], 'k', LEN);
	for (int i = 0; i < 300; i++) {
		char token[WEFT_TOKEN_MAX];
		size_t len = sizeof(token);

		OK(fi_close(&s->mr[0]->fid));
		region(s, 0);
		OK(s->t->pack(s->mr[0], NULL, token, &len)); /* registers it with the device */
	}
}

/* A list to a region that is closed ends with what reads and writes there do, by the device alone, too, although the
 * memory is another region's, which stays as it is. One with empty elements ends well. */
static void closed_region(struct side *s, long ways)
{
	struct weft_local_piece here = { s->mem[0], 0, 1, 2, fi_mr_desc(s->mr[0]) };
	struct weft_remote_piece there = { s->remote[0], s->info[0].base, 0, 1, 2 };
	struct fi_cq_tagged_entry e;
	struct weft_list *list;

	if (test_rank == 1) {
		barrier(&s->n);
		give_others(s);
		barrier(&s->n);
		barrier(&s->n);
		for (size_t i = 0; i < LEN; i++)
			CHECKF(s->mem[0][i] == 'k', "byte %zu of another region is %d", i, s->mem[0][i]);
		return;
	}
	OK(s->t->list(s->n.ep, &here, &there, 1, 0, &list));
	post(s, list, WEFT_WRITE);
	wait_ok(&s->n, s->n.txcq, &e);
	OK(fi_close(&list->fid));
	list = make(s, HOST_HOST);
	barrier(&s->n);
	barrier(&s->n);
	memset(s->mem[0], 'x', LEN);
	for (int i = 0; i < 3; i++) {
		post(s, list, ways % 2 ? WEFT_READ : WEFT_WRITE);
		wait_err(&s->n, s->n.txcq, FI_ENOKEY);
	}
	for (size_t i = 0; i < LEN; i++)
		CHECKF(s->mem[0][i] == 'x', "byte %zu was read from another region: %d", i, s->mem[0][i]);
	OK(fi_close(&list->fid));
	barrier(&s->n);
}

/* The cells where an RDMA device leads to the owner: memory of processes goes by it, in the same list with memory of
 * GPUs, which goes by mappings, by the device if that takes it, or as messages. */
static void test_by_device(long ways)
{
	static const char *const names[] = { "auto", "message", "rdma,message", "rdma" };
	struct side s;

	if (!device_is_demanded())
		SKIP("no RDMA device is demanded");
	setenv("FI_WEFT_TOKEN_WAYS", names[ways], 1);
	open_side_as(&s, FI_MR_ALLOCATED);
	if (test_rank == 0 && ways != BY_MESSAGE)
		first_list(&s);
	barrier(&s.n);
	for (long kinds = 1; kinds <= ALL; kinds++)
		for (uint32_t op = WEFT_WRITE; op <= WEFT_READ; op++)
			cell(&s, kinds, op, going(kinds, ways, WEFT_WAYS) != 0, post_by_device, ways);
	closed_region(&s, ways);
	close_side(&s, false);
}

/* The process is the owner, too: all is copied, and nothing is mapped. */
static void test_self(long ways)
{
	char *want = malloc(LEN), *got = malloc(LEN), *mine[2], *theirs[2];
	struct fid_mr *owned[2];
	struct side s;

	CHECK(!ways || setenv("FI_WEFT_TOKEN_WAYS", ways == 1 ? "message" : "ipc", 1) == 0);
	open_alone(&s, owned, mine, theirs);
	for (int k = 0; k < 4; k++) {
		for (uint32_t op = WEFT_WRITE; op <= WEFT_READ; op++) {
			int out = op == WEFT_WRITE, to = out ? k >> 1 : k & 1;

			fill(want, LEN, (uint64_t)k * 2 + op);
			s.mem[k & 1] = mine[k & 1];
			put(&s, k & 1, want);
			s.mem[k >> 1] = theirs[k >> 1];
			put(&s, k >> 1, want);
			memset(got, 0, LEN);
			s.mem[to] = out ? theirs[to] : mine[to];
			put(&s, to, got);
			s.mem[0] = mine[0];
			s.mem[1] = mine[1];
			post_counted(&s, 1L << k, ways, op);
			s.mem[to] = out ? theirs[to] : mine[to];
			get(&s, to, got);
			CHECKF(!memcmp(got, want, LEN), "kind %d, op %u", k, op);
		}
	}
	CHECKF(!gpu_is_fake() || gpu_imports() == 0, "%d mappings were made", gpu_imports());
	s.mem[0] = theirs[0];
	s.mem[1] = theirs[1];
	OK(fi_close(&s.again->fid));
	OK(fi_close(&owned[0]->fid));
	OK(fi_close(&owned[1]->fid));
	close_side(&s, false);
	gpu_free(mine[1]);
	free(mine[0]);
	free(want);
	free(got);
}

/* The owner frees memory while its region is open, and another takes its place: the list ends with an error, and
 * that memory is neither read nor written. */
static void test_stale(long op)
{
	char *want = malloc(LEN), *got = malloc(LEN);
	struct side s;

	if (place_of_owner() != HOST)
		SKIP("between processes of one host");
	if (!gpu_is_fake())
		SKIP("a real driver chooses the addresses");
	open_side(&s);
	fill(want, LEN, 1);
	if (test_rank == 1) {
		gpu_free(s.mem[1]);
		s.mem[1] = gpu_alloc(LEN);
		put(&s, 1, want);
	}
	barrier(&s.n);
	if (test_rank == 0) {
		struct weft_list *list = make(&s, DEVICE_DEVICE);

		memset(got, 7, LEN);
		put(&s, 1, got);
		for (int i = 0; i < 2; i++) {
			post(&s, list, (uint32_t)op);
			wait_err(&s.n, s.n.txcq, FI_EIO);
		}
		CHECK(gpu_imports() == 0);
		OK(fi_close(&list->fid));
		memset(want, 7, LEN);
	}
	barrier(&s.n);
	get(&s, 1, got);
	CHECK(!memcmp(got, want, LEN));
	close_side(&s, false);
	free(want);
	free(got);
}

/* The owner closes its region, and frees, while lists go there: each ends, and the driver accuses nothing. */
static void test_closed(long rounds)
{
	struct side s;

	if (place_of_owner() != HOST)
		SKIP("between processes of one host");
	open_side(&s);
	for (long i = 0; i < rounds; i++) {
		if (test_rank == 1) {
			size_t len = sizeof(s.token[1]);

			barrier(&s.n);
			usleep((unsigned)(i * 977 % 3000));
			OK(fi_close(&s.mr[1]->fid));
			gpu_free(s.mem[1]);
			barrier(&s.n);
			s.mem[1] = gpu_alloc(LEN);
			region(&s, 1);
			OK(s.t->pack(s.mr[1], NULL, s.token[1], &len));
			link_send(0, &len, sizeof(len));
			link_send(0, s.token[1], len);
		} else {
			struct weft_list *list = make(&s, HOST_DEVICE | DEVICE_DEVICE);
			struct fi_cq_tagged_entry e;
			bool failed = false;
			size_t len;

			barrier(&s.n);
			while (!failed) {
				post(&s, list, (uint32_t)(i & 1));
				failed = wait_for(&s.n, s.n.txcq, &e, -1) != 1;
			}
			CHECKF(s.n.err.err == FI_EACCES || s.n.err.err == FI_ENOKEY, "%s", fi_strerror(s.n.err.err));
			OK(fi_close(&list->fid));
			OK(fi_close(&s.remote[1]->fid));
			barrier(&s.n);
			link_recv(1, &len, sizeof(len));
			link_recv(1, s.token[1], len);
			OK(s.t->open(s.n.ep, s.token[1], len, &s.remote[1]));
			OK(s.t->info(s.remote[1], &s.info[1], sizeof(s.info[1])));
		}
	}
	barrier(&s.n);
	close_side(&s, false);
}

enum { OWNER = 1, MESSAGES = 2 };

/* The GPU of the initiator, or of the owner, is reset: lists with its memory end with an error, also by messages, which
 * the owner copies itself; lists in host memory go on. */
static void test_reset(long how)
{
	const int who = how & OWNER;
	struct fi_cq_tagged_entry e;
	struct side s;

	if (place_of_owner() != HOST)
		SKIP("between processes of one host");
	if (!gpu_is_fake())
		SKIP("a real GPU is not reset");
	if (how & MESSAGES)
		setenv("FI_WEFT_TOKEN_WAYS", "message", 1);
	open_side(&s);
	struct weft_list *list = test_rank ? NULL : make(&s, HOST_DEVICE), *host = test_rank ? NULL : make(&s, HOST_HOST);

	if (list) {
		post(&s, list, WEFT_WRITE);
		wait_ok(&s.n, s.n.txcq, &e);
	}
	barrier(&s.n);
	if (test_rank == who)
		gpu_reset();
	barrier(&s.n);
	for (uint32_t op = WEFT_WRITE; list && op <= (who ? WEFT_READ : WEFT_WRITE); op++) {
		post(&s, list, op);
		wait_err(&s.n, s.n.txcq, FI_EIO);
		post(&s, host, op);
		wait_ok(&s.n, s.n.txcq, &e);
	}
	if (list) {
		OK(fi_close(&list->fid));
		OK(fi_close(&host->fid));
	}
	barrier(&s.n);
	close_side(&s, test_rank == who);
}

static const struct test tests[] = {
	{ "cells", test_cells, 2, 60, 0 },
	{ "cells_message", test_cells, 2, 60, 1 },
	{ "cells_ipc", test_cells, 2, 60, 2 },
	{ "by_device", test_by_device, 2, 180, AUTO },
	{ "by_device_message", test_by_device, 2, 180, BY_MESSAGE },
	{ "by_device_no_ipc", test_by_device, 2, 180, NO_IPC },
	{ "by_device_alone", test_by_device, 2, 180, RDMA_ALONE },
	{ "self", test_self, 1, 60, 0 },
	{ "self_message", test_self, 1, 60, 1 },
	{ "self_ipc", test_self, 1, 60, 2 },
	{ "stale_write", test_stale, 2, 60, WEFT_WRITE },
	{ "stale_read", test_stale, 2, 60, WEFT_READ },
	{ "closed", test_closed, 2, 60, 15 },
	{ "reset", test_reset, 2, 60, 0 },
	{ "reset_owner", test_reset, 2, 60, OWNER },
	{ "reset_owner_message", test_reset, 2, 60, OWNER | MESSAGES },
};

int main(int argc, char **argv)
{
	gpu_main(argv);
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
