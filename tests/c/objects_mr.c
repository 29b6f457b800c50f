/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory regions: the three ways to register, keys, descriptors in messages, closing in use. */
#include "common.h"

#define LEN 65536

static char *mem;

static void open_mr(struct node *n)
{
	node_open(n, NULL);
	node_connect(n);
	mem = guard_alloc(LEN);
}

static void close_mr(struct node *n)
{
	node_close(n);
	guard_free(mem, LEN);
}

/* A message out of and into registered memory, with its descriptors. */
static void exchange(struct node *n, void *desc_out, void *desc_in, uint64_t seed)
{
	char *out = mem, *in = mem + LEN / 2;

	fill(out, LEN / 2, seed);
	memset(in, 0, LEN / 2);
	OK(fi_trecv(n->ep, in, LEN / 2, desc_in, FI_ADDR_UNSPEC, 1, 0, in));
	while (fi_tsend(n->ep, out, LEN / 2, desc_out, n->peer[0], 1, out) == -FI_EAGAIN)
		progress(n);
	wait_ctx(n, n->rxcq, in);
	wait_ctx(n, n->txcq, out);
	verify(in, LEN / 2, seed);
}

static void test_reg(long arg)
{
	struct iovec iov[2] = { { 0 } };
	struct fi_mr_attr attr = { 0 };
	struct fid_mr *a, *b, *c;
	struct node n;
	int ctx;

	(void)arg;
	open_mr(&n);
	OK(fi_mr_reg(n.domain, mem, LEN / 2, FI_SEND | FI_RECV, 0, 0, 0, &a, &ctx));
	CHECK(a->fid.fclass == FI_CLASS_MR && a->fid.context == &ctx);
	iov[0].iov_base = mem + LEN / 2;
	iov[0].iov_len = LEN / 4;
	iov[1].iov_base = mem + LEN / 4 * 3;
	iov[1].iov_len = LEN / 4;
	OK(fi_mr_regv(n.domain, iov, n.info->domain_attr->mr_iov_limit > 1 ? 2 : 1, FI_SEND | FI_RECV, 0, 1, 0, &b,
		      NULL));
	attr.mr_iov = iov;
	attr.iov_count = 1;
	attr.access = FI_SEND | FI_RECV;
	attr.requested_key = 2;
	attr.context = &attr;
	OK(fi_mr_regattr(n.domain, &attr, 0, &c));
	CHECK(c->fid.context == &attr);
	exchange(&n, fi_mr_desc(a), fi_mr_desc(b), 1);
	exchange(&n, fi_mr_desc(a), fi_mr_desc(c), 2);
	exchange(&n, NULL, NULL, 3); /* no FI_MR_LOCAL: descriptors are optional */
	OK(fi_close(&a->fid));
	OK(fi_close(&b->fid));
	OK(fi_close(&c->fid));
	close_mr(&n);
}

/* Keys: the user's where the provider leaves the choice, unique in any case. */
static void test_keys(long prov_key)
{
	enum { COUNT = 100 };
	uint64_t access = FI_REMOTE_READ | FI_REMOTE_WRITE;
	struct fi_info *hints = node_hints(NULL), *info = NULL;
	struct fid_mr *mr[COUNT], *extra = NULL;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	uint64_t key[COUNT];
	int rc;

	hints->caps |= FI_RMA;
	hints->domain_attr->mr_mode = prov_key ? FI_MR_PROV_KEY : 0;
	rc = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info);
	if (rc == -FI_ENODATA) { /* no RMA: keys are of no use to a peer but still exist */
		hints->caps &= ~(uint64_t)FI_RMA;
		rc = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info);
	}
	fi_freeinfo(hints);
	if (rc == -FI_ENODATA && !test_is_weft())
		SKIP("%s wants other mr_mode bits", test_provider());
	OK(rc);
	prov_key = (info->domain_attr->mr_mode & FI_MR_PROV_KEY) != 0;
	OK(fi_fabric(info->fabric_attr, &fabric, NULL));
	OK(fi_domain(fabric, info, &domain, NULL));
	mem = guard_alloc(LEN);
	for (uint64_t i = 0; i < COUNT; i++) {
		OK(fi_mr_reg(domain, mem + i * 64, 64, access, 0, 1000 + i * 3, 0, &mr[i], NULL));
		key[i] = fi_mr_key(mr[i]);
		CHECK(key[i] != FI_KEY_NOTAVAIL);
		if (!prov_key)
			CHECK(key[i] == 1000 + i * 3);
		for (uint64_t j = 0; j < i; j++)
			CHECK(key[j] != key[i]);
	}
	if (!prov_key) {
		CHECK_RC(fi_mr_reg(domain, mem, 64, access, 0, key[7], 0, &extra, NULL), -FI_ENOKEY);
		OK(fi_close(&mr[7]->fid)); /* free again */
		OK(fi_mr_reg(domain, mem, 64, access, 0, key[7], 0, &mr[7], NULL));
	}
	CHECK_RC(fi_close(&domain->fid), -FI_EBUSY);
	for (int i = 0; i < COUNT; i++)
		OK(fi_close(&mr[i]->fid));
	OK(fi_close(&domain->fid));
	OK(fi_close(&fabric->fid));
	fi_freeinfo(info);
	guard_free(mem, LEN);
}

/* Closing a region under a receive or a send: refused or done, but no harm either way. */
static void test_close_in_flight(long arg)
{
	struct fid_mr *mr;
	struct node n;
	int rc;

	(void)arg;
	open_mr(&n);
	OK(fi_mr_reg(n.domain, mem, LEN, FI_SEND | FI_RECV, 0, 0, 0, &mr, NULL));
	OK(fi_trecv(n.ep, mem, LEN / 2, fi_mr_desc(mr), FI_ADDR_UNSPEC, 1, 0, mem));
	rc = fi_close(&mr->fid);
	CHECKF(rc == 0 || rc == -FI_EBUSY, "fi_close of a region in use = %d", rc);
	fill(mem + LEN / 2, LEN / 2, 9);
	while (fi_tsend(n.ep, mem + LEN / 2, LEN / 2, NULL, n.peer[0], 1, mem + 1) == -FI_EAGAIN)
		progress(&n);
	wait_ctx(&n, n.rxcq, mem);
	verify(mem, LEN / 2, 9);
	wait_ctx(&n, n.txcq, mem + 1);
	if (rc)
		OK(fi_close(&mr->fid));
	close_mr(&n);
}

/* Registered memory may be unmapped and used for something else once its region is closed. */
static void test_many(long arg)
{
	struct node n;

	(void)arg;
	open_mr(&n);
	for (uint64_t i = 0; i < 5000; i++) {
		struct fid_mr *mr;

		OK(fi_mr_reg(n.domain, mem, LEN, FI_SEND | FI_RECV, 0, i, 0, &mr, NULL));
		OK(fi_close(&mr->fid));
	}
	exchange(&n, NULL, NULL, 4);
	close_mr(&n);
}

static const struct test tests[] = {
	{ "reg", test_reg, 1, 0, 0 },
	{ "user_keys", test_keys, 1, 0, false },
	{ "provider_keys", test_keys, 1, 0, true },
	{ "close_in_flight", test_close_in_flight, 1, 0, 0 },
	{ "many", test_many, 1, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
