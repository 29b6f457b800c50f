/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collective operations between processes: every operation with data checks, groups that are subsets,
 * several operations outstanding, long data, a member that is killed, and what the calls refuse.
 */
#include <signal.h>
#include <sys/wait.h>

#include "group.h"

#define LONG_COUNT 300000

/* Every operation in the group of every stride-th rank, short and long. */
static void test_every(long stride)
{
	struct group g;
	static const size_t counts[] = { 1, 5, 1000, LONG_COUNT };

	group_open(&g);
	group_join(&g, 0, stride);
	for (size_t i = 0; g.rank < g.size && i < ARRAY_LEN(counts); i++) {
		size_t root = i % g.size;

		OK(fi_barrier2(g.n.ep, g.addr, FI_COMPLETION, &g));
		group_done(&g, &g);
		group_every(&g, root, g.n.peer[root * stride], counts[i]);
	}
	barrier(&g.n);
	group_leave(&g);
	group_close(&g);
}

/* Many operations outstanding; they complete in any order. */
static void test_outstanding(long count)
{
	struct group g;
	uint64_t *in = calloc(count, 8), *out = calloc(count, 8);
	bool *over = calloc(count, 1);

	group_open(&g);
	group_join(&g, 0, 1);
	for (long i = 0, completed = 0; completed < count;) {
		struct fi_cq_tagged_entry e;
		int rc;

		for (; i < count; i++) {
			in[i] = group_given(g.rank, i);
			rc = fi_allreduce(g.n.ep, in + i, 1, NULL, out + i, NULL, g.addr, FI_UINT64, FI_SUM, 0,
					  out + i);
			if (rc == -FI_EAGAIN)
				break;
			CHECK_RC(rc, 0);
		}
		rc = wait_for(&g.n, g.n.txcq, &e, 20000);
		CHECKF(rc == 1, "%d after %ld", rc, completed);
		CHECK(!over[(uint64_t *)e.op_context - out]);
		over[(uint64_t *)e.op_context - out] = true;
		completed++;
	}
	for (long i = 0; i < count; i++)
		CHECK(out[i] == group_sum(g.size, i));
	barrier(&g.n);
	group_leave(&g);
	group_close(&g);
	free(in);
	free(out);
	free(over);
}

/* The last rank dies in the middle; the others' operations end with an error. */
static void test_killed(long count)
{
	struct group g;
	uint64_t *in = calloc(count, 8), *out = calloc(count, 8);
	struct fi_cq_tagged_entry e;
	int rc, errors = 0;

	if (test_rank == test_procs - 1 && !*test_role()) {
		int status;

		CHECK(waitpid(respawn("victim"), &status, 0) > 0);
		CHECK(WIFSIGNALED(status));
		free(in);
		free(out);
		return;
	}
	group_open(&g);
	group_join(&g, 0, 1);
	OK(fi_barrier(g.n.ep, g.addr, &g));
	group_done(&g, &g);
	barrier(&g.n);
	if (test_rank == test_procs - 1)
		kill(getpid(), SIGKILL);
	for (int i = 0; i < 3; i++) {
		OK(fi_allreduce(g.n.ep, in, count, NULL, out, NULL, g.addr, FI_UINT64, FI_SUM, 0, &g));
		rc = wait_for(&g.n, g.n.txcq, &e, 20000);
		CHECKF(rc != 0, "operation %d does not end", i);
		if (rc < 0)
			errors++;
	}
	CHECKF(errors == 3, "%d of 3 operations failed", errors);
	group_leave(&g);
	group_close(&g);
	free(in);
	free(out);
}

/* Joins that are closed before they end. */
static void test_withdraw(long rounds)
{
	struct group g;

	group_open(&g);
	group_withdraw(&g, rounds);
	barrier(&g.n);
	group_close(&g);
}

/* A group from groups, and what the calls refuse. */
static void test_calls(long arg)
{
	struct group g, sub;
	struct fi_collective_attr attr = { .op = FI_SUM, .datatype = FI_DOUBLE };
	struct fid_mc *mc;
	uint64_t in = 1, out = 0;

	(void)arg;
	group_open(&g);
	OK(fi_query_collective(g.n.domain, FI_ALLREDUCE, &attr, 0));
	CHECK(attr.datatype_attr.size == 8 && attr.datatype_attr.count > 1 << 20);
	CHECK(attr.max_members >= 1 << 16);
	OK(fi_query_collective(g.n.domain, FI_ALLREDUCE, &attr, FI_SCATTER));
	attr.op = FI_BOR;
	CHECK_RC(fi_query_collective(g.n.domain, FI_REDUCE, &attr, 0), -FI_EOPNOTSUPP);
	attr = (struct fi_collective_attr){ .op = FI_NOOP, .datatype = FI_VOID };
	OK(fi_query_collective(g.n.domain, FI_BARRIER, &attr, 0));
	CHECK_RC(fi_query_collective(g.n.domain, FI_BROADCAST, &attr, 0), -FI_EOPNOTSUPP);
	attr.mode = 1;
	CHECK_RC(fi_query_collective(g.n.domain, FI_BARRIER, &attr, 0), -FI_EINVAL);
	CHECK_RC(fi_query_collective(g.n.domain, FI_BARRIER, NULL, 0), -FI_EINVAL);

	group_join(&g, 0, 1);
	CHECK_RC(fi_close(&g.n.ep->fid), -FI_EBUSY);
	CHECK_RC(fi_join_collective(g.n.ep, g.addr, NULL, 0, &mc, NULL), -FI_EINVAL);
	CHECK_RC(fi_join(g.n.ep, NULL, 0, &mc, NULL), -FI_ENOSYS);
	CHECK_RC(fi_allreduce(g.n.ep, &in, 1, NULL, &out, NULL, g.addr, FI_VOID, FI_SUM, 0, NULL), -FI_EOPNOTSUPP);
	CHECK_RC(fi_allreduce(g.n.ep, &in, 1, NULL, &out, NULL, g.n.peer[0], FI_UINT64, FI_SUM, 0, NULL), -FI_EINVAL);

	sub = g;
	OK(fi_join_collective(g.n.ep, g.addr, g.set, 0, &sub.mc, &sub));
	group_joined(&g, sub.mc, &sub);
	sub.addr = fi_mc_addr(sub.mc);
	CHECK(sub.addr != g.addr);
	for (int i = 0; i < 2; i++) { /* in one group, then in the other */
		OK(fi_allreduce(g.n.ep, &in, 1, NULL, &out, NULL, i ? sub.addr : g.addr, FI_UINT64, FI_SUM, 0, &out));
		group_done(&g, &out);
		CHECK(out == (uint64_t)test_procs);
	}
	barrier(&g.n);
	OK(fi_close(&sub.mc->fid));
	group_leave(&g);
	group_close(&g);
}

static const struct test tests[] = {
	{ "every_1", test_every, 1, 60, 1 },
	{ "every_2", test_every, 2, 60, 1 },
	{ "every_5", test_every, 5, 120, 1 },
	{ "subset", test_every, 4, 60, 2 },
	{ "outstanding", test_outstanding, 3, 60, 3000 },
	{ "killed", test_killed, 4, 60, 10 },
	{ "killed_long", test_killed, 4, 60, 100000 },
	{ "withdraw_2", test_withdraw, 2, 60, 12 },
	{ "withdraw_3", test_withdraw, 3, 60, 12 },
	{ "calls", test_calls, 2, 60, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
