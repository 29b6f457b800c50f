/* SPDX-License-Identifier: BSD-2-Clause
 *
 * One-sided operations from rank 0 on the memory of rank 1, which only polls.
 */
#include <stdio.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "bench.h"

enum { REGION_BYTES = WINDOW * 65536 }; /* of rank 1, and as much of rank 0 */

struct region open_region(struct node *n)
{
	struct fid_mr *mr;

	node_open(n, &(struct wish){ .threading = FI_THREAD_DOMAIN, .one_sided = true });
	node_connect(n);
	roomy_buffers(n, REGION_BYTES);
	if (n->rank == 1) {
		int ret =
			fi_mr_reg(n->domain, n->rx, REGION_BYTES, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0, &mr, NULL);
		if (ret)
			die("fi_mr_reg", ret);
		atomic_store(&n->shared->region.key, fi_mr_key(mr));
		atomic_store(&n->shared->region.addr,
			     n->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)n->rx : 0);
	}
	meet(n);
	return (struct region){ n->peer[1], atomic_load(&n->shared->region.addr), atomic_load(&n->shared->region.key) };
}

enum operation { WRITE, READ, INJECT };

/* start posts an operation on the bytes at an offset of both sides. */
static void start(struct node *n, const struct region *to, enum operation op, size_t bytes, size_t at)
{
	uint64_t addr = to->addr + at;
	void *local = n->tx + at;
	ssize_t ret;

	for (;;) {
		if (op == WRITE)
			ret = fi_write(n->ep, local, bytes, NULL, to->peer, addr, to->key, next_context(n));
		else if (op == READ)
			ret = fi_read(n->ep, local, bytes, NULL, to->peer, addr, to->key, next_context(n));
		else
			ret = fi_inject_write(n->ep, local, bytes, to->peer, addr, to->key);
		if (ret != -FI_EAGAIN)
			break;
		poll_cq(n);
	}
	if (ret)
		die("one-sided operation", (int)ret);
	n->sent += op != INJECT;
}

/* A stream of operations, each so many bytes behind the one before. */
struct flow {
	enum operation op;
	size_t bytes, step;
};

/* windows does count windows of operations. Operations that do not complete are
 * followed by a message, which rank 1 answers. */
static void windows(struct node *n, const struct region *to, const struct flow *f, int count)
{
	enum operation op = f->op;

	for (int w = 0; w < count; w++) {
		if (n->rank == 0)
			for (size_t i = 0; i < WINDOW; i++)
				start(n, to, op, f->bytes, i * f->step % REGION_BYTES);
		if (n->rank == 0 && op != INJECT)
			wait_sent(n);
		if (op != INJECT)
			continue;
		if (n->rank == 0)
			send_to(n, 1, 0, 1);
		wait_received(n, 1);
		post_recv(n, 0, 1);
		if (n->rank == 1)
			send_to(n, 0, 0, 1);
		wait_sent(n);
	}
}

/* stream returns the median time of an operation in nanoseconds. */
static double stream(struct node *n, const struct region *to, const struct flow *f, int batch)
{
	meet(n);
	windows(n, to, f, 1);
	clear_samples();
	struct deadline end = deadline_in(n->opt->seconds);
	while (agree(n, passed(end) ? 0 : batch)) {
		uint64_t t0 = ticks();
		windows(n, to, f, batch);
		sample((double)(ticks() - t0) * tick_ns() / batch / WINDOW);
	}
	return quantile(0.5);
}

void test_write_rate(struct node *n)
{
	struct region to = open_region(n);

	post_recv(n, 0, 1);
	double ns = stream(n, &to, &(struct flow){ INJECT, 8, 0 }, 20);
	if (n->rank == 0)
		report("write_8_mps", 1e3 / ns);
}

void test_one_sided(struct node *n)
{
	static const struct {
		const char *name;
		struct flow flow;
	} figures[] = {
		{ "write_65536_mbps", { WRITE, 65536, 0 } },
		{ "read_65536_mbps", { READ, 65536, 0 } },
		{ "write_65536_apart_mbps", { WRITE, 65536, 65536 } },
		{ "read_65536_apart_mbps", { READ, 65536, 65536 } },
		{ "write_1048576_mbps", { WRITE, 1048576, 0 } },
		{ "read_1048576_mbps", { READ, 1048576, 0 } },
	};
	struct region to = open_region(n);

	for (size_t i = 0; i < sizeof(figures) / sizeof(*figures); i++) {
		double ns = stream(n, &to, &figures[i].flow, 1);
		if (n->rank == 0)
			report(figures[i].name, (double)figures[i].flow.bytes / ns * 1e3);
	}
}

void fetch_adds(struct node *n, const struct region *to, int count)
{
	uint64_t one = 1, before;
	ssize_t ret;

	for (int i = 0; i < count; i++) {
		while ((ret = fi_fetch_atomic(n->ep, &one, 1, NULL, &before, NULL, to->peer, to->addr, to->key,
					      FI_UINT64, FI_SUM, next_context(n))) == -FI_EAGAIN)
			poll_cq(n);
		if (ret)
			die("fi_fetch_atomic", (int)ret);
		n->sent++;
		wait_sent(n);
	}
}

void test_fetch_add(struct node *n)
{
	struct region to = open_region(n);

	if (n->rank == 0)
		fetch_adds(n, &to, FETCHES);
	clear_samples();
	struct deadline end = deadline_in(n->opt->seconds);
	while (agree(n, passed(end) ? 0 : FETCHES)) {
		uint64_t t0 = ticks();
		if (n->rank == 0)
			fetch_adds(n, &to, FETCHES);
		sample((double)(ticks() - t0) * tick_ns() / FETCHES / 1e3);
	}
	if (n->rank == 0)
		report("fetch_add_us", quantile(0.5));
}
