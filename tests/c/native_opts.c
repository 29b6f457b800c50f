/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of endpoints of FI_PROTO_CXI. Without a NIC of Slingshot, or its model, all is skipped. */
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

static const struct test tests[] = {
	{ "options", test_options, 1, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
