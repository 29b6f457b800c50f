/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Memory tokens and lists (weft/token.h) beside what libfabric has, in turn: rank 0 writes and reads the
 * memory of rank 1, which only polls.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rdma/fi_rma.h>

#include "bench.h"

enum {
	FIELD_BYTES = 64 << 20, /* of either side, at least: pieces take every other of their lengths */
	SHARE_BYTES = FIELD_BYTES / 2,
	LONGEST = 65536, /* bytes of a piece */
	MSG_PIECES = 4,
	OPENS = 200,
	POSTED = 20000,	   /* pieces of the list whose posting is timed */
	POSTED_BYTES = 8,  /* of each */
	BATCH = 1024,	   /* pieces of a system call */
	STRIDES = 1000000, /* elements of a list in strides */
	STRIDED = 1000,	   /* such lists */
};

struct field {
	struct weft_token_ops *t;
	struct region to;
	uint8_t *mem;
	size_t bytes;
	pid_t owner; /* of it on the other side, in this one's namespace */
	struct weft_remote *remote;
	struct weft_remote_info info;
};

static uint8_t *map_field(size_t bytes)
{
	uint8_t *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (mem == MAP_FAILED)
		die("mmap", -FI_ENOMEM);
	return mem;
}

/* Rank 1 makes tokens of its memory; the last is for rank 0. */
static void pack_field(struct node *n, struct field *f)
{
	struct fid_mr *mr;

	must(fi_mr_reg(n->domain, f->mem, f->bytes, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0, &mr, NULL), "fi_mr_reg");
	clear_samples();
	for (int i = 0; i < OPENS; i++) {
		uint64_t t0 = ticks();

		share_token(n, f->t, mr);
		sample((double)(ticks() - t0) * tick_ns() / 1e3);
	}
	n->shared->token[1].owner = getpid();
	atomic_store(&n->shared->answer, (uint64_t)(quantile(0.5) * 1e3));
}

/* Rank 0 opens it. */
static void find_field(struct node *n, struct field *f)
{
	clear_samples();
	for (int i = 0; i < OPENS; i++) {
		uint64_t t0 = ticks();

		if (i)
			must(fi_close(&f->remote->fid), "close");
		f->remote = open_token(n, f->t);
		sample((double)(ticks() - t0) * tick_ns() / 1e3);
	}
	report("token_bytes", (double)n->shared->token[1].size);
	report("token_pack_us", (double)atomic_load(&n->shared->answer) / 1e3);
	report("token_open_us", quantile(0.5));
	f->owner = n->shared->token[1].owner;
	must(f->t->info(f->remote, &f->info, sizeof(f->info)), "info");
	f->to = (struct region){ f->info.addr, f->info.base, f->info.key };
}

/* False: the provider has no tokens. */
static bool open_field(struct node *n, struct field *f)
{
	node_open(n, &(struct wish){ .threading = FI_THREAD_DOMAIN, .one_sided = true });
	if (fi_open_ops(&n->ep->fid, WEFT_TOKEN_OPS, 0, (void **)&f->t, NULL))
		return false;
	f->bytes = (size_t)n->opt->elements * LONGEST;
	if (f->bytes < FIELD_BYTES)
		f->bytes = FIELD_BYTES;
	f->mem = map_field(f->bytes);
	node_connect(n);
	if (n->rank == 1)
		pack_field(n, f);
	meet(n);
	if (n->rank == 0)
		find_field(n, f);
	return true;
}

static void posted(struct node *n, ssize_t ret, const char *what)
{
	if (ret)
		die(what, (int)ret);
	n->sent++;
	wait_sent(n);
}

/* Calls until there is room, and waits for the end. */
#define RUN(n, call) \
	do { \
		ssize_t ret_; \
		while ((ret_ = (call)) == -FI_EAGAIN) \
			poll_cq(n); \
		posted(n, ret_, #call); \
	} while (0)

static void write_list(struct node *n, struct field *f, struct weft_list *list)
{
	RUN(n, f->t->post(list, WEFT_WRITE, NULL, 0, NULL, 0, 0, next_context(n)));
}

static void write_whole(struct node *n, struct field *f, size_t bytes)
{
	RUN(n, fi_write(n->ep, f->mem, bytes, NULL, f->to.peer, f->to.addr, f->to.key, next_context(n)));
}

/* Where piece i of count lies, on both sides: not in their order, so that none are at regular distances. With a number
 * of elements that is given there is no gap between them. */
static size_t place(const struct node *n, size_t i, size_t bytes, size_t count)
{
	return (n->opt->elements ? 1 : 2) * bytes * (i * 7919 % count);
}

/* How many pieces of a length a list has. */
static size_t pieces(const struct node *n, size_t bytes)
{
	return n->opt->elements ? (size_t)n->opt->elements : SHARE_BYTES / bytes;
}

/* The same pieces as of the list, four with a call. */
static void write_messages(struct node *n, struct field *f, size_t bytes, size_t count)
{
	for (size_t i = 0; i < count; i += MSG_PIECES) {
		struct iovec here[MSG_PIECES];
		struct fi_rma_iov there[MSG_PIECES];
		struct fi_msg_rma msg = {
			.msg_iov = here,
			.iov_count = MSG_PIECES,
			.addr = f->to.peer,
			.rma_iov = there,
			.rma_iov_count = MSG_PIECES,
			.context = next_context(n),
		};
		ssize_t ret;

		for (size_t k = 0; k < MSG_PIECES; k++) {
			size_t at = place(n, i + k, bytes, count);

			here[k] = (struct iovec){ f->mem + at, bytes };
			there[k] = (struct fi_rma_iov){ f->to.addr + at, bytes, f->to.key };
		}
		while ((ret = fi_writemsg(n->ep, &msg, FI_COMPLETION)) == -FI_EAGAIN)
			poll_cq(n);
		if (ret)
			die("fi_writemsg", (int)ret);
		n->sent++;
	}
	wait_sent(n);
}

/* Every element by itself, as caches that are scattered are given. */
static struct weft_list *prepare(struct node *n, struct field *f, size_t bytes, size_t count, double *ns)
{
	struct weft_local_piece *here = calloc(count, sizeof(*here));
	struct weft_remote_piece *there = calloc(count, sizeof(*there));
	struct weft_list *list;

	if (!here || !there)
		die("calloc", -FI_ENOMEM);
	for (size_t i = 0; i < count; i++) {
		size_t at = place(n, i, bytes, count);

		here[i] = (struct weft_local_piece){ .addr = f->mem + at, .len = bytes };
		there[i] = (struct weft_remote_piece){ .remote = f->remote, .addr = f->to.addr + at, .len = bytes };
	}
	uint64_t t0 = ticks();
	must(f->t->list(n->ep, here, there, count, 0, &list), "list");
	*ns = (double)(ticks() - t0) * tick_ns() / (double)count;
	free(here);
	free(there);
	return list;
}

/* One size: the list, one operation of its length, and a loop of calls, in turn. */
static void compare(struct node *n, struct field *f, size_t bytes, bool prepared)
{
	const size_t count = pieces(n, bytes);
	enum { KINDS = 3, MOST = 64 };
	static const char *const names[KINDS] = { "list", "list_whole", "list_msg" };
	double took[KINDS][MOST], ns;
	struct weft_list *list = prepare(n, f, bytes, count, &ns);
	int rounds = 0;

	for (struct deadline end = deadline_in(n->opt->seconds); rounds < MOST && (rounds < 3 || !passed(end));
	     rounds++) {
		for (int k = 0; k < KINDS; k++) {
			uint64_t t0 = ticks();

			if (k == 0)
				write_list(n, f, list);
			else if (k == 1)
				write_whole(n, f, bytes * count);
			else
				write_messages(n, f, bytes, count);
			took[k][rounds] = (double)(ticks() - t0) * tick_ns();
		}
	}
	if (prepared)
		report("list_prepare_ns", ns);
	for (int k = 0; k < KINDS; k++) {
		char name[64];

		clear_samples();
		for (int i = 0; i < rounds; i++)
			sample((double)(bytes * count) / took[k][i] * 1e3);
		snprintf(name, sizeof(name), "%s_%zu_mbps", names[k], bytes);
		report(name, quantile(0.5));
	}
	must(fi_close(&list->fid), "close list");
}

/* One operation as long as an element, without a list. */
static ssize_t single(struct node *n, struct field *f, size_t bytes, uint32_t op)
{
	if (op == WEFT_READ)
		return fi_read(n->ep, f->mem, bytes, NULL, f->to.peer, f->to.addr, f->to.key, next_context(n));
	return fi_write(n->ep, f->mem, bytes, NULL, f->to.peer, f->to.addr, f->to.key, next_context(n));
}

/* A list of one element beside fi_write or fi_read, windows in turn. */
static void alone(struct node *n, struct field *f, size_t bytes, uint32_t op)
{
	static const char *const names[2][2] = { { "alone_list", "alone_write" }, { "alone_list_read", "alone_read" } };
	enum { KINDS = 2, MOST = 4096 };
	static double took[KINDS][MOST];
	struct weft_local_piece here = { .addr = f->mem, .len = bytes };
	struct weft_remote_piece there = { .remote = f->remote, .addr = f->to.addr, .len = bytes };
	struct weft_list *list;
	int rounds = 0;

	must(f->t->list(n->ep, &here, &there, 1, 0, &list), "list");
	for (struct deadline end = deadline_in(n->opt->seconds); rounds < MOST && !passed(end); rounds++) {
		for (int k = 0; k < KINDS; k++) {
			uint64_t t0 = ticks();

			for (int i = 0; i < WINDOW; i++) {
				ssize_t ret;

				for (;;) {
					ret = k ? single(n, f, bytes, op)
						: f->t->post(list, op, NULL, 0, NULL, 0, 0, next_context(n));
					if (ret != -FI_EAGAIN)
						break;
					poll_cq(n);
				}
				if (ret)
					die("write", (int)ret);
				n->sent++;
			}
			wait_sent(n);
			took[k][rounds] = (double)(ticks() - t0) * tick_ns();
		}
	}
	for (int k = 0; k < KINDS; k++) {
		char name[64];

		clear_samples();
		for (int i = 0; i < rounds; i++)
			sample(took[k][i] / WINDOW);
		snprintf(name, sizeof(name), "%s_%zu_ns", names[op == WEFT_READ][k], bytes);
		report(name, quantile(0.5));
	}
	must(fi_close(&list->fid), "close list");
}

/* The kernel's part of a list: its copies alone. */
static void copy_by_kernel(struct node *n, struct field *f)
{
	for (size_t i = 0; i < POSTED; i += BATCH) {
		struct iovec here[BATCH], there[BATCH];
		size_t count = POSTED - i < BATCH ? POSTED - i : BATCH;

		for (size_t k = 0; k < count; k++) {
			size_t at = place(n, i + k, POSTED_BYTES, POSTED);

			here[k] = (struct iovec){ f->mem + at, POSTED_BYTES };
			there[k] = (struct iovec){ (void *)(uintptr_t)(f->to.addr + at), POSTED_BYTES };
		}
		if (process_vm_writev(f->owner, here, count, there, count, 0) != (ssize_t)count * POSTED_BYTES)
			die("process_vm_writev", -FI_EIO);
	}
}

/* A prepared list of short pieces: how long each takes, what of that is not the kernel's copies, and what passes for
 * each before the first byte is in the owner's memory. Only memory of this host can be copied by the kernel. */
static void posting(struct node *n, struct field *f)
{
	enum { MOST = 200 };
	static double each[MOST], kernel[MOST], first[MOST];
	double ns;
	struct weft_list *list = prepare(n, f, POSTED_BYTES, POSTED, &ns);
	int rounds = 0;

	for (struct deadline end = deadline_in(n->opt->seconds); rounds < MOST && (rounds < 3 || !passed(end));
	     rounds++) {
		uint8_t mark = (uint8_t)(f->mem[0] + 1);
		uint64_t t0, t1, seen;

		f->mem[0] = mark;
		atomic_store(&n->shared->answer, 0);
		atomic_store(&n->shared->turn, mark + 1ull); /* rank 1 searches for it */
		while (atomic_load(&n->shared->hop) != mark + 1ull)
			poll_cq(n);
		t0 = ticks();
		write_list(n, f, list);
		t1 = ticks();
		while (!(seen = atomic_load(&n->shared->answer)))
			poll_cq(n);
		each[rounds] = (double)(t1 - t0) * tick_ns() / POSTED;
		first[rounds] = (double)(int64_t)(seen - t0) * tick_ns() / POSTED;
		if (!n->opt->host_count) {
			t0 = ticks();
			copy_by_kernel(n, f);
			kernel[rounds] = (double)(ticks() - t0) * tick_ns() / POSTED;
		}
	}
	const struct {
		const char *name;
		const double *ns;
	} figures[] = { { "list_each_ns", each }, { "list_first_ns", first }, { "list_kernel_ns", kernel } };
	double medians[3];

	for (int k = 0; k < (n->opt->host_count ? 2 : 3); k++) {
		clear_samples();
		for (int i = 0; i < rounds; i++)
			sample(figures[k].ns[i]);
		report(figures[k].name, medians[k] = quantile(0.5));
	}
	if (!n->opt->host_count)
		report("list_post_ns", medians[0] - medians[2]);
	must(fi_close(&list->fid), "close list");
}

/* What a list in strides takes of this process's memory. */
static void strides(struct node *n, struct field *f)
{
	struct weft_local_piece here = { .addr = f->mem, .len = 8, .stride = 64, .count = STRIDES };
	struct weft_remote_piece there = {
		.remote = f->remote, .addr = f->to.addr, .len = 8, .stride = 64, .count = STRIDES
	};
	static struct weft_list *lists[STRIDED];
	double before;

	must(f->t->list(n->ep, &here, &there, 1, 0, &lists[0]), "list");
	before = resident();
	for (int i = 1; i < STRIDED; i++)
		must(f->t->list(n->ep, &here, &there, 1, 0, &lists[i]), "list");
	report("list_strides_kib", (resident() - before) / (STRIDED - 1));
	for (int i = 0; i < STRIDED; i++)
		must(fi_close(&lists[i]->fid), "close list");
}

/* Rank 1 only polls, and says when the byte that rank 0 asks for is there. */
static void own_field(struct node *n, struct field *f)
{
	volatile uint8_t *first = f->mem;
	uint64_t asked = 0, turn;

	while (!atomic_load(&n->shared->stop)) {
		poll_cq(n);
		turn = atomic_load(&n->shared->turn);
		if (turn == asked)
			continue;
		atomic_store(&n->shared->hop, turn); /* ready */
		while (*first != (uint8_t)(turn - 1) && !atomic_load(&n->shared->stop))
			poll_cq(n);
		atomic_store(&n->shared->answer, ticks());
		asked = turn;
	}
}

void test_token(struct node *n)
{
	static const size_t sizes[] = { 8, 4096, 65536, 1 << 20 };
	struct field f = { 0 };

	if (!open_field(n, &f))
		return;
	if (n->rank == 0) {
		strides(n, &f); /* at first: memory that others give back would count */
		write_whole(n, &f, SHARE_BYTES);
		compare(n, &f, 4096, true);
		compare(n, &f, 16384, false);
		compare(n, &f, LONGEST, false);
		for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			alone(n, &f, sizes[i], WEFT_WRITE);
			alone(n, &f, sizes[i], WEFT_READ);
		}
		posting(n, &f);
		must(fi_close(&f.remote->fid), "close remote");
		atomic_store(&n->shared->stop, 1);
	} else {
		own_field(n, &f);
	}
	meet(n);
}
