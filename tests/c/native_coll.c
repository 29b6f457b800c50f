/* SPDX-License-Identifier: BSD-2-Clause */
/* Collective operations of endpoints of FI_PROTO_CXI, by messages of weft's own over the same NIC. Without a NIC of
 * Slingshot, or its model, all is skipped. */
#include "group.h"

/* Options of a member. */
static struct node_opts member_opts(void)
{
	return (struct node_opts){ .addr_format = FI_ADDR_CXI };
}

static void open_member(struct group *g, const struct node_opts *o)
{
	node_need(o);
	group_open_as(g, o);
	CHECK(g->n.info->addr_format == FI_ADDR_CXI && g->n.info->ep_attr->protocol == FI_PROTO_CXI);
	CHECK(g->n.info->caps & FI_COLLECTIVE);
}

static void close_member(struct group *g)
{
	barrier(&g->n);
	group_leave(g);
	group_close(g);
}

/* Every operation, short and long, in the group of every stride-th rank. */
static void test_every(long stride)
{
	static const size_t counts[] = { 1, 1000, 40000 };
	struct node_opts o = member_opts();
	struct group g;

	open_member(&g, &o);
	group_join(&g, 0, stride);
	for (size_t i = 0; g.rank < g.size && i < ARRAY_LEN(counts); i++)
		group_every(&g, i % g.size, g.n.peer[i % g.size * stride], counts[i]);
	close_member(&g);
}

/* The same of members that differ in threads and progress, and sleep. */
static void test_modes(long arg)
{
	static const enum fi_threading threading[] = { FI_THREAD_DOMAIN, FI_THREAD_COMPLETION, FI_THREAD_SAFE,
						       FI_THREAD_ENDPOINT };
	struct node_opts o = member_opts();
	struct group g;

	(void)arg;
	o.threading = threading[test_rank % ARRAY_LEN(threading)];
	o.data = test_rank % 2 ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
	o.wait = test_rank % 3 ? FI_WAIT_NONE : FI_WAIT_UNSPEC;
	open_member(&g, &o);
	group_join(&g, 0, 1);
	for (int i = 0; i < 20; i++)
		group_every(&g, i % g.size, g.n.peer[i % g.size], i);
	close_member(&g);
}

/* Messages that the NIC matches go beside, and neither waits for the other. */
static void test_beside(long rounds)
{
	struct node_opts o = member_opts();
	size_t to = (test_rank + 1) % test_procs, from = (test_rank + test_procs - 1) % test_procs;
	char out[100], in[sizeof(out)];
	struct fi_cq_tagged_entry e;
	uint64_t one = 1, all;
	struct group g;

	open_member(&g, &o);
	group_join(&g, 0, 1);
	for (long i = 0; i < rounds; i++) {
		int sent = 0, summed = 0;

		memset(out, (int)i, sizeof(out));
		all = 0;
		OK(fi_trecv(g.n.ep, in, sizeof(in), NULL, g.n.peer[from], i, 0, in));
		OK(fi_allreduce(g.n.ep, &one, 1, NULL, &all, NULL, g.addr, FI_UINT64, FI_SUM, 0, &all));
		OK(fi_tsend(g.n.ep, out, sizeof(out), NULL, g.n.peer[to], i, out));
		while (!sent || !summed) {
			wait_ok(&g.n, g.n.txcq, &e);
			sent += e.op_context == out;
			summed += e.op_context == &all;
		}
		CHECK(sent == 1 && summed == 1 && all == g.size);
		wait_ok(&g.n, g.n.rxcq, &e);
		CHECK(e.op_context == in && e.len == sizeof(in) && in[0] == (char)i && in[99] == (char)i);
	}
	close_member(&g);
}

/* An endpoint without the capability has none of the calls. */
static void refuses(struct node *n, struct fid_av_set *set)
{
	uint64_t in = 1, out = 0;
	struct fid_mc *group;

	EXPECT_RC(fi_join_collective(n->ep, FI_ADDR_NOTAVAIL, set, 0, &group, NULL), -FI_ENOSYS);
	EXPECT_RC(fi_barrier(n->ep, 0, NULL), -FI_ENOSYS);
	EXPECT_RC(fi_allreduce(n->ep, &in, 1, NULL, &out, NULL, 0, FI_UINT64, FI_SUM, 0, NULL), -FI_ENOSYS);
}

/* The last rank's endpoint has no messages of weft's own, as one of libfabric's provider has not: joins of the others
 * end with an error, within a time, and those of groups without it do not. */
static void test_silent(long limit)
{
	struct node_opts o = member_opts();
	bool silent = test_rank == test_procs - 1;
	struct fi_av_set_attr attr;
	struct fid_av_set *set;
	struct fi_eq_err_entry err = { 0 };
	struct group g = { 0 };
	struct fid_mc *mc;
	uint32_t event;
	char entry[64];
	ssize_t rc;

	node_need(&o);
	if (silent) {
		node_open(&g.n, &o);
		CHECK(!(g.n.info->caps & FI_COLLECTIVE));
		node_connect(&g.n);
	} else {
		open_member(&g, &o);
	}
	attr = (struct fi_av_set_attr){ .start_addr = g.n.peer[0], .end_addr = g.n.peer[test_procs - 1], .stride = 1 };
	OK(fi_av_set(g.n.av, &attr, &set, NULL));
	if (silent) {
		refuses(&g.n, set);
	} else {
		uint64_t began = now_ms();

		OK(fi_join_collective(g.n.ep, FI_ADDR_NOTAVAIL, set, 0, &mc, &g));
		rc = fi_eq_sread(g.eq, &event, entry, sizeof(entry), 20000, 0);
		CHECKF(rc == -FI_EAVAIL, "%zd", rc);
		CHECK(fi_eq_readerr(g.eq, &err, 0) == sizeof(err));
		CHECKF(err.err == FI_EHOSTUNREACH && err.context == &g && err.fid == &mc->fid, "%d", err.err);
		CHECKF(now_ms() - began < (uint64_t)limit, "after %lu ms", (unsigned long)(now_ms() - began));
		OK(fi_close(&mc->fid));
		if (test_procs > 2) {
			struct fid_av_set *whole = set;

			OK(fi_av_set_remove(whole, g.n.peer[test_procs - 1]));
			OK(fi_join_collective(g.n.ep, FI_ADDR_NOTAVAIL, whole, 0, &g.mc, &g));
			group_joined(&g, g.mc, &g);
			g.addr = fi_mc_addr(g.mc), g.size = test_procs - 1, g.rank = test_rank;
			group_every(&g, 0, g.n.peer[0], 10);
			OK(fi_close(&g.mc->fid));
		}
	}
	barrier(&g.n);
	OK(fi_close(&set->fid));
	if (silent)
		node_close(&g.n);
	else
		group_close(&g);
}

static const struct test tests[] = {
	{ "every_1", test_every, 1, 60, 1 },	  { "every_2", test_every, 2, 60, 1 },
	{ "every_4", test_every, 4, 120, 1 },	  { "every_second", test_every, 4, 120, 2 },
	{ "modes", test_modes, 4, 120, 0 },	  { "beside", test_beside, 2, 60, 300 },
	{ "silent_2", test_silent, 2, 60, 5000 }, { "silent_4", test_silent, 4, 60, 5000 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
