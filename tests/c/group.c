/* SPDX-License-Identifier: BSD-2-Clause */
#include "group.h"

void group_open(struct group *g)
{
	group_open_with(g, 0, 0);
}

void group_open_with(struct group *g, uint64_t caps, int mr_mode)
{
	group_open_as(g, &(struct node_opts){ .caps = caps, .mr_mode = mr_mode });
}

void group_open_as(struct group *g, const struct node_opts *opts)
{
	struct node_opts o = *opts;
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_info *info;

	o.caps |= FI_MSG | FI_TAGGED | FI_COLLECTIVE;
	o.disabled = true;
	info = node_info(&o);

	NEED(info != NULL, "collective operations");
	fi_freeinfo(info);
	memset(g, 0, sizeof(*g));
	node_open(&g->n, &o);
	OK(fi_eq_open(g->n.fabric, &attr, &g->eq, NULL));
	OK(fi_ep_bind(g->n.ep, &g->eq->fid, 0));
	OK(fi_enable(g->n.ep));
	g->n.o.disabled = false;
	node_connect(&g->n);
}

void group_close(struct group *g)
{
	struct fid_eq *eq = g->eq;

	node_close(&g->n);
	OK(fi_close(&eq->fid));
}

/* Every member reads the event; only the event queue is read meanwhile, with a timeout or without. */
void group_joined(struct group *g, struct fid_mc *mc, void *context)
{
	struct fi_eq_entry e;
	uint32_t event;
	ssize_t rc;

	if (test_rank % 2) {
		rc = fi_eq_sread(g->eq, &event, &e, sizeof(e), 20000, 0);
	} else {
		uint64_t end = now_ms() + 20000;

		while ((rc = fi_eq_read(g->eq, &event, &e, sizeof(e), 0)) == -FI_EAGAIN)
			CHECKF(now_ms() < end, "the join does not end");
	}
	CHECKF(rc == sizeof(e), "%zd", rc);
	CHECK(event == FI_JOIN_COMPLETE);
	CHECK(e.fid == &mc->fid);
	CHECK(e.context == context);
}

/* Begins a join of all ranks. */
static void begin_join(struct group *g)
{
	struct fi_av_set_attr attr = { .start_addr = g->n.peer[0], .end_addr = g->n.peer[test_procs - 1], .stride = 1 };

	OK(fi_av_set(g->n.av, &attr, &g->set, NULL));
	OK(fi_join_collective(g->n.ep, FI_ADDR_NOTAVAIL, g->set, 0, &g->mc, g));
	g->size = test_procs;
	g->rank = test_rank;
}

/* Polls for some time, and closes a join that has not ended, or has. */
static void withdraw(struct group *g, uint64_t ms)
{
	struct fi_eq_entry e;
	uint32_t event;
	ssize_t rc;

	for (uint64_t end = now_ms() + ms; now_ms() < end;) {
		rc = fi_eq_read(g->eq, &event, &e, sizeof(e), 0);
		CHECKF(rc == sizeof(e) || rc == -FI_EAGAIN, "%zd", rc);
	}
	group_leave(g);
	while ((rc = fi_eq_read(g->eq, &event, &e, sizeof(e), 0)) == sizeof(e))
		;
	CHECKF(rc == -FI_EAGAIN, "%zd", rc);
}

void group_withdraw(struct group *g, long rounds)
{
	struct fi_cq_tagged_entry e;

	for (long i = 0; i < rounds; i++) {
		bool apart = i % 2 == 0; /* closed before the others join again */
		int rc = -1;

		for (long k = (i + test_rank) % 3; k > 0; k--) {
			begin_join(g);
			withdraw(g, i % 4 < 2 ? 3 : 0);
		}
		if (apart)
			barrier(&g->n);
		for (int tries = 0; rc <= 0; tries++) {
			begin_join(g);
			group_joined(g, g->mc, g);
			g->addr = fi_mc_addr(g->mc);
			OK(fi_barrier(g->n.ep, g->addr, g));
			rc = wait_for(&g->n, g->n.txcq, &e, 20000);
			CHECKF(rc > 0 || (rc < 0 && !apart && tries < 10), "round %ld, try %d: %d", i, tries, rc);
			if (rc < 0)
				group_leave(g);
		}
		group_every(g, 0, g->n.peer[0], 10);
		barrier(&g->n);
		group_leave(g);
	}
}

void group_join(struct group *g, size_t start, size_t stride)
{
	struct fi_av_set_attr attr = {
		.start_addr = g->n.peer[start],
		.end_addr = g->n.peer[test_procs - 1],
		.stride = stride,
	};
	fi_addr_t addr;

	g->size = (test_procs - 1 - start) / stride + 1;
	g->rank = g->size;
	if ((size_t)test_rank < start || (test_rank - start) % stride)
		return;
	g->rank = (test_rank - start) / stride;
	OK(fi_av_set(g->n.av, &attr, &g->set, NULL));
	OK(fi_av_set_addr(g->set, &addr));
	OK(fi_join_collective(g->n.ep, addr, g->set, 0, &g->mc, g));
	group_joined(g, g->mc, g);
	g->addr = fi_mc_addr(g->mc);
}

void group_leave(struct group *g)
{
	if (g->rank == g->size)
		return;
	OK(fi_close(&g->mc->fid));
	OK(fi_close(&g->set->fid));
}

void group_done(struct group *g, void *context)
{
	struct fi_cq_tagged_entry e;

	wait_ok(&g->n, g->n.txcq, &e);
	CHECK(e.op_context == context);
	CHECK(e.flags & FI_COLLECTIVE);
}

uint64_t group_given(size_t rank, size_t i)
{
	return rank * 1000003 + i * 7 + 1;
}

uint64_t group_sum(size_t size, size_t i)
{
	uint64_t s = 0;

	for (size_t r = 0; r < size; r++)
		s += group_given(r, i);
	return s;
}

static void reductions(struct group *g, fi_addr_t root, size_t root_rank, size_t count)
{
	size_t n = g->size * count;
	uint64_t *in = guard_alloc(n * 8), *out = guard_alloc(n * 8);

	for (size_t i = 0; i < n; i++)
		in[i] = group_given(g->rank, i);
	OK(fi_allreduce(g->n.ep, in, count, NULL, out, NULL, g->addr, FI_UINT64, FI_SUM, 0, in));
	group_done(g, in);
	for (size_t i = 0; i < count; i++)
		CHECK(out[i] == group_sum(g->size, i));
	memset(out, 0, n * 8);
	OK(fi_reduce(g->n.ep, in, count, NULL, g->rank == root_rank ? out : NULL, NULL, g->addr, root, FI_UINT64,
		     FI_SUM, 0, in));
	group_done(g, in);
	for (size_t i = 0; i < count; i++)
		CHECK(out[i] == (g->rank == root_rank ? group_sum(g->size, i) : 0));
	OK(fi_reduce_scatter(g->n.ep, in, count, NULL, out, NULL, g->addr, FI_UINT64, FI_SUM, 0, in));
	group_done(g, in);
	for (size_t i = 0; i < count; i++)
		CHECK(out[i] == group_sum(g->size, g->rank * count + i));
	guard_free(in, n * 8);
	guard_free(out, n * 8);
}

static void movements(struct group *g, fi_addr_t root, size_t root_rank, size_t count)
{
	size_t n = g->size * count;
	uint64_t *in = guard_alloc(n * 8), *out = guard_alloc(n * 8);
	bool is_root = g->rank == root_rank;

	for (size_t i = 0; i < n; i++)
		in[i] = group_given(g->rank, i);
	OK(fi_alltoall(g->n.ep, in, count, NULL, out, NULL, g->addr, FI_UINT64, 0, in));
	group_done(g, in);
	for (size_t i = 0; i < n; i++)
		CHECK(out[i] == group_given(i / count, g->rank * count + i % count));
	OK(fi_allgather(g->n.ep, in, count, NULL, out, NULL, g->addr, FI_UINT64, 0, in));
	group_done(g, in);
	for (size_t i = 0; i < n; i++)
		CHECK(out[i] == group_given(i / count, i % count));
	OK(fi_gather(g->n.ep, in, count, NULL, is_root ? out : NULL, NULL, g->addr, root, FI_UINT64, 0, in));
	group_done(g, in);
	for (size_t i = 0; is_root && i < n; i++)
		CHECK(out[i] == group_given(i / count, i % count));
	memset(out, 0, n * 8);
	OK(fi_scatter(g->n.ep, is_root ? in : NULL, count, NULL, out, NULL, g->addr, root, FI_UINT64, 0, in));
	group_done(g, in);
	for (size_t i = 0; i < count; i++)
		CHECK(out[i] == group_given(root_rank, g->rank * count + i));
	OK(fi_broadcast(g->n.ep, is_root ? in : out, count, NULL, g->addr, root, FI_UINT64, 0, in));
	group_done(g, in);
	for (size_t i = 0; i < count; i++)
		CHECK((is_root ? in : out)[i] == group_given(root_rank, i));
	guard_free(in, n * 8);
	guard_free(out, n * 8);
}

void group_every(struct group *g, size_t root_rank, fi_addr_t root, size_t count)
{
	OK(fi_barrier(g->n.ep, g->addr, g));
	group_done(g, g);
	reductions(g, root, root_rank, count);
	movements(g, root, root_rank, count);
}
