/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists (weft/token.h) whose way is taken away while they are under way: cross-memory attach by the kernel, and
 * mappings of a GPU's memory by their owners, two of which recall from each other at once. */
#include <errno.h>
#include <pthread.h>

#include "common.h"
#include "container.h"
#include "gpu.h"
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

static const struct test tests[] = {
	{ "attach_taken_away", test_attach_taken_away, 2, 60, 3000 },
	{ "attach_taken_away_soon", test_attach_taken_away, 2, 60, 300 },
	{ "recall_both", test_recall_both, 2, 60, 30 },
};

int main(int argc, char **argv)
{
	gpu_main(argv);
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
