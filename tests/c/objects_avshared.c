/* SPDX-License-Identifier: BSD-2-Clause */
/* Named address vectors that processes share, and asynchronous insertion. */
#include "common.h"

/* Opens the named AV; NULL when the provider has none. */
static struct fid_av *open_named(struct node *n, const char *name, uint64_t flags)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .name = name, .count = 64, .flags = flags };
	struct fid_av *av = NULL;
	int rc = fi_av_open(n->domain, &attr, &av, NULL);

	NEED(rc == 0, "named address vectors");
	return av;
}

/* Rank 0 inserts everybody; rank 1 opens the AV to read and sends by the same index. */
static void test_shared(long arg)
{
	char av_name[64] = "";
	struct name names[NODE_PEERS];
	struct node_opts o = { .disabled = true };
	struct fid_av *own, *shared;
	uint64_t in = 0, out = 42;
	struct node n;

	(void)arg;
	NEED_WAY(WAY_MEMORY, "address vectors that processes share");
	node_open(&n, NULL);
	own = n.av;
	node_names(&n, names);
	if (test_rank == 0)
		snprintf(av_name, sizeof(av_name), "weft_test_av_%d", (int)getpid());
	if (test_rank == 0) {
		shared = open_named(&n, av_name, 0);
		for (int r = 0; r < test_procs; r++) {
			fi_addr_t addr;

			CHECK_RC(fi_av_insert(shared, names[r].bytes, 1, &addr, 0, NULL), 1);
			CHECK(addr == (fi_addr_t)r);
		}
		link_send(1, av_name, sizeof(av_name));
		trecv(&n, &in, 8, FI_ADDR_UNSPEC, 1, 0, &in);
		wait_ctx(&n, n.rxcq, &in);
		CHECK(in == 42);
		barrier(&n);
		OK(fi_close(&shared->fid));
	} else {
		struct node second = { .o = o };
		char buf[NODE_NAME_MAX];
		size_t len = sizeof(buf);

		link_recv(0, av_name, sizeof(av_name));
		shared = open_named(&n, av_name, FI_READ);
		OK(fi_av_lookup(shared, 0, buf, &len));
		CHECK(len == names[0].len && memcmp(buf, names[0].bytes, len) == 0);
		EXPECT(fi_av_insert(shared, names[1].bytes, 1, NULL, 0, NULL) <= 0);
		node_open_on(&second, &n, &o); /* an endpoint on the shared AV */
		OK(fi_close(&second.ep->fid));
		OK(fi_endpoint(n.domain, n.info, &second.ep, NULL));
		OK(fi_ep_bind(second.ep, &shared->fid, 0));
		OK(fi_ep_bind(second.ep, &second.txcq->fid, FI_TRANSMIT));
		OK(fi_ep_bind(second.ep, &second.rxcq->fid, FI_RECV));
		OK(fi_enable(second.ep));
		tsend(&second, &out, 8, 0, 1, &out);
		wait_ctx(&second, second.txcq, &out);
		barrier(&n);
		node_close(&second);
		OK(fi_close(&shared->fid));
	}
	CHECK(own == n.av);
	node_close(&n);
}

/* Read-only access needs a name, and an AV of that name. */
static void test_absent(long arg)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .flags = FI_READ };
	struct fid_av *av = NULL;
	struct node n;

	(void)arg;
	node_open_domain(&n, NULL);
	EXPECT(fi_av_open(n.domain, &attr, &av, NULL) < 0);
	attr.name = "weft_test_no_such_av";
	EXPECT(fi_av_open(n.domain, &attr, &av, NULL) < 0);
	node_close_domain(&n);
}

/* FI_EVENT: insertion says how many through the EQ; a provider may have only synchronous AVs. */
static void test_event(long arg)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .flags = FI_EVENT };
	struct fi_eq_attr eq_attr = { .size = 16, .wait_obj = FI_WAIT_UNSPEC };
	struct fi_eq_entry entry;
	struct name name;
	struct fid_av *av;
	struct fid_eq *eq;
	uint32_t event;
	fi_addr_t addr = 5;
	struct node n;
	int ctx, rc;

	(void)arg;
	node_open(&n, NULL);
	node_name(&n, &name);
	rc = fi_av_open(n.domain, &attr, &av, &n);
	if (rc) {
		EXPECTF(rc == -FI_ENOSYS || rc == -FI_EOPNOTSUPP || rc == -FI_EINVAL || rc == -FI_EBADFLAGS,
			"fi_av_open with FI_EVENT = %d", rc);
		node_close(&n);
		return;
	}
	EXPECT_RC(fi_av_insert(av, name.bytes, 1, &addr, 0, &ctx), -FI_ENOEQ);
	OK(fi_eq_open(n.fabric, &eq_attr, &eq, NULL));
	OK(fi_av_bind(av, &eq->fid, 0));
	OK(fi_av_insert(av, name.bytes, 1, &addr, 0, &ctx));
	CHECK_RC(fi_eq_sread(eq, &event, &entry, sizeof(entry), 5000, 0), sizeof(entry));
	CHECK(event == FI_AV_COMPLETE);
	CHECK(entry.fid == &av->fid && entry.context == &ctx && entry.data == 1);
	CHECK(addr == 0);
	OK(fi_av_insert(av, NULL, 0, NULL, 0, &n)); /* of no addresses, too */
	CHECK_RC(fi_eq_sread(eq, &event, &entry, sizeof(entry), 5000, 0), sizeof(entry));
	CHECK(event == FI_AV_COMPLETE && entry.context == &n && entry.data == 0);
	EXPECT_RC(fi_av_insert(av, NULL, 0, NULL, 1ULL << 40, NULL), -FI_EBADFLAGS);
	EXPECT(fi_av_remove(av, NULL, 0, 1ULL << 40) < 0);
	OK(fi_av_remove(av, NULL, 0, 0));
	OK(fi_close(&av->fid));
	OK(fi_close(&eq->fid));
	node_close(&n);
}

static const struct test tests[] = {
	{ "shared", test_shared, 2, 0, 0 },
	{ "absent", test_absent, 1, 0, 0 },
	{ "event", test_event, 1, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
