/* SPDX-License-Identifier: BSD-2-Clause
 *
 * One-sided operations from rank 0 on the memory of rank 1, which only polls.
 */
#include <stdio.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "bench.h"

struct region open_region(struct node *n)
{
	struct fid_mr *mr;

	node_open(n, &(struct wish){.threading = FI_THREAD_DOMAIN, .one_sided = true});
	node_connect(n);
	if (n->rank == 1) {
		int ret = fi_mr_reg(n->domain, n->rx, BUFFER_BYTES, FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
				    1, 0, &mr, NULL);
		if (ret)
			die("fi_mr_reg", ret);
		atomic_store(&n->shared->region.key, fi_mr_key(mr));
		atomic_store(&n->shared->region.addr,
			     n->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)n->rx : 0);
	}
	meet(n);
	return (struct region){n->peer[1], atomic_load(&n->shared->region.addr),
			       atomic_load(&n->shared->region.key)};
}

enum operation { WRITE, READ, INJECT };

static void start(struct node *n, const struct region *to, enum operation op, size_t bytes)
{
	ssize_t ret;

	for (;;) {
		if (op == WRITE)
			ret = fi_write(n->ep, n->tx, bytes, NULL, to->peer, to->addr, to->key,
				       next_context(n));
		else if (op == READ)
			ret = fi_read(n->ep, n->tx, bytes, NULL, to->peer, to->addr, to->key,
				      next_context(n));
		else
			ret = fi_inject_write(n->ep, n->tx, bytes, to->peer, to->addr, to->key);
		if (ret != -FI_EAGAIN)
			break;
		poll_cq(n);
	}
	if (ret)
		die("one-sided operation", (int)ret);
	n->sent += op != INJECT;
}

/* windows does count windows of operations. Operations that do not complete are
 * followed by a message, which rank 1 answers. */
static void windows(struct node *n, const struct region *to, enum operation op, size_t bytes, int count)
{
	for (int w = 0; w < count; w++) {
		if (n->rank == 0)
			for (int i = 0; i < WINDOW; i++)
				start(n, to, op, bytes);
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
static double stream(struct node *n, const struct region *to, enum operation op, size_t bytes, int batch)
{
	meet(n);
	windows(n, to, op, bytes, 1);
	clear_samples();
	struct deadline end = deadline_in(n->opt->seconds);
	while (agree(n, passed(end) ? 0 : batch)) {
		uint64_t t0 = ticks();
		windows(n, to, op, bytes, batch);
		sample((double)(ticks() - t0) * tick_ns() / batch / WINDOW);
	}
	return quantile(0.5);
}

void test_write_rate(struct node *n)
{
	struct region to = open_region(n);

	post_recv(n, 0, 1);
	double ns = stream(n, &to, INJECT, 8, 20);
	if (n->rank == 0)
		report("write_8_mps", 1e3 / ns);
}

void test_one_sided(struct node *n)
{
	static const size_t sizes[] = {65536, 1048576};
	struct region to = open_region(n);

	for (int i = 0; i < 4; i++) {
		double ns = stream(n, &to, i & 1 ? READ : WRITE, sizes[i / 2], 1);
		char name[32];
		snprintf(name, sizeof(name), "%s_%zu_mbps", i & 1 ? "read" : "write", sizes[i / 2]);
		if (n->rank == 0)
			report(name, (double)sizes[i / 2] / ns * 1e3);
	}
}

void fetch_adds(struct node *n, const struct region *to, int count)
{
	uint64_t one = 1, before;
	ssize_t ret;

	for (int i = 0; i < count; i++) {
		while ((ret = fi_fetch_atomic(n->ep, &one, 1, NULL, &before, NULL, to->peer, to->addr,
					      to->key, FI_UINT64, FI_SUM, next_context(n))) == -FI_EAGAIN)
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
