/* SPDX-License-Identifier: BSD-2-Clause */
#include "group.h"

void group_open(struct group *g)
{
	group_open_with(g, 0, 0);
}

void group_open_with(struct group *g, uint64_t caps, int mr_mode)
{
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED | FI_COLLECTIVE | caps,
			       .mr_mode = mr_mode,
			       .disabled = true };
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_info *info = node_info(&o);

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
