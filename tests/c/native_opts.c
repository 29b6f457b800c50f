/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of endpoints of FI_PROTO_CXI, and that they have no collective operations. Without a NIC of Slingshot, or its
 * model, all is skipped. */
#include <rdma/fi_collective.h>

#include "common.h"

/* Options are judged before the endpoint is enabled as they are afterwards. */
static void test_options(long arg)
{
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED | FI_MULTI_RECV,
			       .addr_format = FI_ADDR_CXI,
			       .disabled = true };
	struct node n;
	size_t many = 1 << 24, most = many - 1, size = sizeof(many);
	const int shared_memory = 11; /* FI_OPT_SHARED_MEMORY_PERMITTED, of 2.x */
	bool no = false, yes = true;
	struct fid *ep;

	(void)arg;
	node_need(&o);
	node_open(&n, &o);
	ep = &n.ep->fid;
	for (int enabled = 0; enabled < 2; enabled++) {
		if (enabled)
			OK(fi_enable(n.ep));
		EXPECT_RC(fi_setopt(ep, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &many, sizeof(many)), -FI_EINVAL);
		OK(fi_setopt(ep, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &most, sizeof(most)));
		many = 0;
		OK(fi_getopt(ep, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &many, &size));
		CHECK(many++ == most);
		EXPECT_RC(fi_getopt(ep, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &size, &size), -FI_ENOPROTOOPT);
		OK(fi_setopt(ep, FI_OPT_ENDPOINT, shared_memory, &no, sizeof(no)));
	}
	EXPECT_RC(fi_setopt(ep, FI_OPT_ENDPOINT, shared_memory, &yes, sizeof(yes)), -FI_EOPBADSTATE);
	EXPECT_RC(fi_getopt(ep, FI_OPT_ENDPOINT, shared_memory, &yes, &size), -FI_ENOPROTOOPT);
	node_close(&n);
}

/* There are no collective operations: none is offered or known, no group is joined, and operations
 * are those of an endpoint without the capability. */
static void test_collectives(long arg)
{
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED, .addr_format = FI_ADDR_CXI };
	struct fi_info *info = node_info(&o);
	struct fi_av_set_attr all = { .start_addr = FI_ADDR_NOTAVAIL, .end_addr = FI_ADDR_NOTAVAIL };
	struct fi_collective_attr what = { .op = FI_SUM, .datatype = FI_UINT64 };
	uint64_t in = 1, out = 0;
	struct fid_av_set *set;
	struct fid_mc *group;
	struct node n;

	(void)arg;
	if (!info)
		SKIP("no device here matches messages");
	CHECK(!(info->caps & FI_COLLECTIVE));
	fi_freeinfo(info);
	node_open(&n, &o);
	EXPECT_RC(fi_query_collective(n.domain, FI_BARRIER, &what, 0), -FI_EOPNOTSUPP);
	EXPECT_RC(fi_query_collective(n.domain, FI_ALLREDUCE, &what, 0), -FI_EOPNOTSUPP);
	OK(fi_av_set(n.av, &all, &set, NULL));
	EXPECT_RC(fi_join_collective(n.ep, FI_ADDR_NOTAVAIL, set, 0, &group, NULL), -FI_EOPNOTSUPP);
	EXPECT_RC(fi_barrier(n.ep, 0, NULL), -FI_ENOSYS);
	EXPECT_RC(fi_allreduce(n.ep, &in, 1, NULL, &out, NULL, 0, FI_UINT64, FI_SUM, 0, NULL), -FI_ENOSYS);
	EXPECT_RC(fi_broadcast(n.ep, &in, 1, NULL, 0, 0, FI_UINT64, 0, NULL), -FI_ENOSYS);
	OK(fi_close(&set->fid));
	node_close(&n);
}

static const struct test tests[] = {
	{ "options", test_options, 1, 0, 0 },
	{ "collectives", test_collectives, 1, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
