/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_profile(3): the variables of an endpoint. Its header came with libfabric 2.0, so what a test needs of it is
 * here. */
#include "common.h"

struct profile;
struct desc {
	uint32_t id;
	int defined, datatype;
	uint64_t flags;
	size_t size;
	const char *name, *desc;
};
struct profile_ops {
	size_t size;
	void (*reset)(struct profile *p, uint64_t flags);
	ssize_t (*query_vars)(struct profile *p, struct desc *list, size_t *count);
	ssize_t (*query_events)(struct profile *p, struct desc *list, size_t *count);
	ssize_t (*read_var)(struct profile *p, uint32_t id, void *data, size_t *size);
	int (*reg_callback)(struct profile *p, uint32_t event, void *callback, void *context);
	void (*start_reads)(struct profile *p, uint64_t flags);
	void (*end_reads)(struct profile *p, uint64_t flags);
};
struct profile {
	struct fid fid;
	struct profile_ops *ops;
};

#define UNEXP_MSG_CNT 0 /* FI_VAR_UNEXP_MSG_CNT */
#define NONE 7		/* FI_VAR_OFI_MEM */
#define MESSAGES 5

static struct profile *open_profile(struct node *n)
{
	void *ops;

	OK(fi_open_ops(&n->ep->fid, "fi_profile_ops", 0, &ops, n));
	return container_of(ops, struct profile, ops);
}

static uint64_t read_u64(struct profile *p, uint32_t id)
{
	uint64_t value = ~0ull;
	size_t size = sizeof(value);

	CHECK(p->ops->read_var(p, id, &value, &size) >= 0 && size == sizeof(value));
	return value;
}

/* Waits until a variable, which is sampled, has a value. */
static void reaches(struct node *n, struct profile *p, uint32_t id, uint64_t want)
{
	uint64_t end = now_ms() + 20000;

	while (read_u64(p, id) != want && now_ms() < end)
		progress(n);
	CHECKF(read_u64(p, id) == want, "%llu, want %llu", (unsigned long long)read_u64(p, id),
	       (unsigned long long)want);
}

static void test_variables(long unused)
{
	struct desc list[256];
	size_t count = 0, all, size = 4;
	struct profile *p;
	char out[8] = "", in[8];
	uint64_t value;
	uint32_t own = 0;
	struct node n;
	fi_addr_t self;

	(void)unused;
	node_open(&n, NULL);
	self = node_insert(&n, &n);
	p = open_profile(&n);
	CHECK(p->fid.context == &n && p->ops->size == sizeof(*p->ops));
	CHECK(p->ops->query_vars(p, NULL, &count) == 0 && count > 1 && count <= ARRAY_LEN(list));
	all = count;
	count = 1;
	CHECK(p->ops->query_vars(p, list, &count) == 1 && count == all);
	CHECK(p->ops->query_vars(p, list, &count) == (ssize_t)all && count == all);
	for (size_t i = 0; i < all; i++) {
		CHECK(!list[i].defined && list[i].datatype == FI_UINT64 && list[i].size == 8 && *list[i].name &&
		      *list[i].desc);
		CHECK((list[i].id == UNEXP_MSG_CNT) == (i == 0) && (i == 0 || list[i].id >> 31));
		if (!strcmp(list[i].name, "rx_unexpected"))
			own = list[i].id;
	}
	CHECK(own);
	for (int i = 0; i < MESSAGES; i++)
		tsend(&n, out, sizeof(out), self, 3, &n);
	for (int i = 0; i < MESSAGES; i++)
		wait_ctx(&n, n.txcq, &n);
	reaches(&n, p, UNEXP_MSG_CNT, MESSAGES);
	CHECK(read_u64(p, own) == MESSAGES);
	p->ops->start_reads(p, 0);
	for (int i = 0; i < MESSAGES; i++) {
		trecv(&n, in, sizeof(in), FI_ADDR_UNSPEC, 3, 0, in);
		wait_ctx(&n, n.rxcq, in);
	}
	CHECK(read_u64(p, UNEXP_MSG_CNT) == MESSAGES); /* of the snapshot */
	p->ops->end_reads(p, 0);
	reaches(&n, p, UNEXP_MSG_CNT, 0);
	p->ops->reset(p, 0);
	EXPECT_RC(p->ops->read_var(p, NONE, &value, &(size_t){ 8 }), -FI_EINVAL);
	EXPECT_RC(p->ops->read_var(p, 1u << 31 | 100000, &value, &(size_t){ 8 }), -FI_EINVAL);
	EXPECT_RC(p->ops->read_var(p, UNEXP_MSG_CNT, &value, &size), -FI_ETOOSMALL);
	EXPECT_RC(p->ops->read_var(p, UNEXP_MSG_CNT, NULL, &size), -FI_EINVAL);
	CHECK(p->ops->query_events(p, list, &count) == 0 && count == 0);
	EXPECT_RC(p->ops->reg_callback(p, 0, NULL, NULL), -FI_EINVAL);
	OK(fi_close(&p->fid));
	node_close(&n);
}

/* Objects without variables, endpoints that are not enabled, and those that are closed. */
static void test_states(long unused)
{
	struct node_opts o = { .disabled = true };
	struct profile *p;
	uint64_t value;
	struct node n;
	void *ops;

	(void)unused;
	node_open(&n, &o);
	EXPECT_RC(fi_open_ops(&n.domain->fid, "fi_profile_ops", 0, &ops, NULL), -FI_ENOSYS);
	EXPECT_RC(fi_open_ops(&n.av->fid, "fi_profile_ops", 0, &ops, NULL), -FI_ENOSYS);
	EXPECT_RC(fi_open_ops(&n.ep->fid, "fi_profile_ops", 1, &ops, NULL), -FI_EBADFLAGS);
	p = open_profile(&n);
	EXPECT_RC(p->ops->read_var(p, UNEXP_MSG_CNT, &value, &(size_t){ 8 }), -FI_EOPBADSTATE);
	OK(fi_enable(n.ep));
	CHECK(read_u64(p, UNEXP_MSG_CNT) == 0);
	node_close(&n);
	CHECK(p->ops->read_var(p, UNEXP_MSG_CNT, &value, &(size_t){ 8 }) < 0);
	OK(fi_close(&p->fid));
}

static const struct test tests[] = {
	{ "variables", test_variables, 1, 0, 0 },
	{ "states", test_states, 1, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
