/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Authorisation keys: which are taken, what is reached, whose memory is open. Between two hosts
 * (WEFT_TEST_NETNS) the same holds, but a peer with another key does not answer there.
 */
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "common.h"

#define KEY_MAX 4096 /* docs/fi_weft.7 */

static const uint32_t api = FI_VERSION(1, 17);

/* What getinfo says to a domain's or an endpoint's key: the answer, NULL for -FI_ENODATA. */
static struct fi_info *ask(bool ep, const void *key, size_t size)
{
	struct fi_info *hints = node_hints(NULL), *info = NULL;
	uint8_t *copy = NULL;
	int rc;

	if (key) {
		copy = malloc(size);
		memcpy(copy, key, size);
	}
	if (ep) {
		hints->ep_attr->auth_key = copy;
		hints->ep_attr->auth_key_size = size;
	} else {
		hints->domain_attr->auth_key = copy;
		hints->domain_attr->auth_key_size = size;
	}
	rc = fi_getinfo(api, NULL, NULL, 0, hints, &info);
	CHECKF(rc == 0 || rc == -FI_ENODATA, "fi_getinfo = %d", rc);
	fi_freeinfo(hints);
	return info;
}

static void test_getinfo(long arg)
{
	static const size_t sizes[] = { 1, 16, 65, KEY_MAX };
	static uint8_t key[KEY_MAX + 1];
	struct fi_info *info;

	(void)arg;
	fill(key, sizeof(key), 1);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		info = ask(false, key, sizes[i]);
		NEED(info != NULL, "authorisation keys");
		for (struct fi_info *p = info; p; p = p->next)
			CHECK(p->domain_attr->auth_key_size == sizes[i] &&
			      !memcmp(p->domain_attr->auth_key, key, sizes[i]));
		fi_freeinfo(info);
		info = ask(true, key, sizes[i]);
		CHECK(info != NULL);
		for (struct fi_info *p = info; p; p = p->next)
			CHECK(p->ep_attr->auth_key_size == sizes[i] && !memcmp(p->ep_attr->auth_key, key, sizes[i]));
		fi_freeinfo(info);
	}
	for (int ep = 0; ep < 2; ep++) {
		EXPECT(!ask(ep, key, KEY_MAX + 1));
		EXPECT(!ask(ep, NULL, 8));
		EXPECT(!ask(ep, NULL, SIZE_MAX)); /* FI_AV_AUTH_KEY of libfabric 2.x */
	}
}

/* Objects that are opened with sizes that getinfo would have refused. */
static void test_open(long arg)
{
	struct fi_mr_attr attr = { .iov_count = 1, .access = FI_REMOTE_WRITE, .requested_key = 5 };
	struct node_opts o = { .caps = FI_MSG | FI_RMA };
	static uint8_t key[KEY_MAX + 1];
	struct iovec iov = { key, sizeof(key) };
	struct fid_domain *domain;
	struct fid_ep *ep;
	struct fid_mr *mr;
	struct node n;

	(void)arg;
	node_open(&n, &o);
	n.info->domain_attr->auth_key = key;
	n.info->domain_attr->auth_key_size = sizeof(key);
	EXPECT_RC(fi_domain(n.fabric, n.info, &domain, NULL), -FI_EINVAL);
	n.info->domain_attr->auth_key = NULL;
	n.info->domain_attr->auth_key_size = 3;
	EXPECT_RC(fi_domain(n.fabric, n.info, &domain, NULL), -FI_EINVAL);
	n.info->domain_attr->auth_key_size = 0;
	n.info->ep_attr->auth_key = key;
	n.info->ep_attr->auth_key_size = sizeof(key);
	EXPECT_RC(fi_endpoint(n.domain, n.info, &ep, NULL), -FI_EINVAL);
	n.info->ep_attr->auth_key = NULL;
	EXPECT_RC(fi_endpoint(n.domain, n.info, &ep, NULL), -FI_EINVAL);
	n.info->ep_attr->auth_key_size = 0;
	attr.mr_iov = &iov;
	attr.auth_key = key;
	attr.auth_key_size = sizeof(key);
	EXPECT_RC(fi_mr_regattr(n.domain, &attr, 0, &mr), -FI_EINVAL);
	attr.auth_key = NULL;
	attr.auth_key_size = 8;
	EXPECT_RC(fi_mr_regattr(n.domain, &attr, 0, &mr), -FI_EINVAL);
	attr.auth_key = key;
	OK(fi_mr_regattr(n.domain, &attr, 0, &mr));
	OK(fi_close(&mr->fid));
	node_close(&n);
}

/* The keys of two ranks, and whether they reach each other. */
static const struct pair {
	const char *domain[2], *ep[2];
	bool reach;
} pairs[] = {
	{ { "one", "one" }, { NULL, NULL }, true },
	{ { NULL, NULL }, { "one", "one" }, true },
	{ { "one", NULL }, { NULL, "one" }, true },
	{ { "two", "one" }, { "one", NULL }, true }, /* the endpoint's counts */
	{ { "one", "two" }, { NULL, NULL }, false },
	{ { "one", NULL }, { NULL, NULL }, false },
	{ { NULL, "one" }, { NULL, NULL }, false },
	{ { "one", "one" }, { NULL, "two" }, false },
	{ { "one", "one1" }, { NULL, NULL }, false },
};

static void open_pair(struct node *n, const struct pair *p, uint64_t caps)
{
	struct node_opts o = { .caps = caps, .auth = p->domain[test_rank], .ep_auth = p->ep[test_rank] };

	if (!test_is_weft())
		SKIP("keys are of weft's form");
	NEED_WAY(WAY_UDP, "authorisation keys");    /* devices have none */
	setenv("FI_WEFT_CONNECT_TIMEOUT", "2s", 1); /* between hosts nothing answers */
	node_open(n, &o);
	node_connect(n);
}

static void test_pair(long which)
{
	const struct pair *p = &pairs[which];
	char out[100], in[100] = "";
	struct node n;
	ssize_t rc;

	open_pair(&n, p, FI_MSG | FI_TAGGED);
	fill(out, sizeof(out), which);
	if (!p->reach) {
		bool hosts = getenv("WEFT_TEST_NETNS");
		uint64_t start = now_ms();

		while ((rc = fi_send(n.ep, out, sizeof(out), NULL, n.peer[!test_rank], &n)) == -FI_EAGAIN)
			CHECK(now_ms() - start < 20000);
		EXPECT_RC(rc, hosts ? -FI_EHOSTUNREACH : -FI_EACCES);
		wait_none(&n, n.rxcq, 50);
		wait_none(&n, n.txcq, 0);
	} else if (test_rank == 0) {
		tsend(&n, out, sizeof(out), n.peer[1], 7, &n);
		wait_ctx(&n, n.txcq, &n);
		trecv(&n, in, sizeof(in), n.peer[1], 8, 0, &n);
		wait_ctx(&n, n.rxcq, &n);
		verify(in, sizeof(in), which);
	} else {
		trecv(&n, in, sizeof(in), n.peer[0], 7, 0, &n);
		wait_ctx(&n, n.rxcq, &n);
		tsend(&n, in, sizeof(in), n.peer[0], 8, &n);
		wait_ctx(&n, n.txcq, &n);
	}
	barrier(&n);
	node_close(&n);
}

#define LEN 80000

/* Rank 1's regions: with its domain's key, its endpoint's, and a third. */
static const char *const region_keys[] = { NULL, "one", "two" };

/* One access of rank 0 to the region with a key; err 0: it succeeds. */
static void access_region(struct node *n, uint64_t key, size_t len, int kind, int err)
{
	static char buf[LEN];
	uint64_t one = 1, old;
	ssize_t rc;

	do {
		switch (kind) {
		case 0:
			rc = fi_write(n->ep, buf, len, NULL, n->peer[1], 0, key, n);
			break;
		case 1:
			rc = fi_read(n->ep, buf, len, NULL, n->peer[1], 0, key, n);
			break;
		default:
			rc = fi_fetch_atomic(n->ep, &one, 1, NULL, &old, NULL, n->peer[1], 0, key, FI_UINT64, FI_SUM,
					     n);
		}
		if (rc == -FI_EAGAIN)
			progress(n);
	} while (rc == -FI_EAGAIN);
	CHECKF(rc == 0, "post: %zd", rc);
	if (err)
		wait_err(n, n->txcq, err);
	else
		wait_ctx(n, n->txcq, n);
}

/* domain says whether the endpoint's key is the domain's, too. */
static void test_regions(long domain)
{
	struct pair p = { { "one", "one" }, { NULL, NULL }, true };
	static const size_t lens[] = { 8, 3000, LEN };
	struct fid_mr *mr[ARRAY_LEN(region_keys)];
	static char mem[ARRAY_LEN(region_keys)][LEN];
	struct node n;

	if (!domain)
		p = (struct pair){ { "three", "three" }, { "one", "one" }, true };
	open_pair(&n, &p, FI_MSG | FI_RMA | FI_ATOMIC);
	for (size_t i = 0; test_rank == 1 && i < ARRAY_LEN(region_keys); i++) {
		struct iovec iov = { mem[i], LEN };
		struct fi_mr_attr attr = {
			.mr_iov = &iov, .iov_count = 1, .requested_key = i, .access = FI_REMOTE_READ | FI_REMOTE_WRITE
		};

		memset(mem[i], 0x11, LEN);
		if (region_keys[i]) {
			attr.auth_key = (uint8_t *)region_keys[i];
			attr.auth_key_size = strlen(region_keys[i]);
		}
		OK(fi_mr_regattr(n.domain, &attr, 0, &mr[i]));
	}
	barrier(&n);
	for (size_t i = 0; test_rank == 0 && i < ARRAY_LEN(region_keys); i++)
		for (int kind = 0; kind < 3; kind++)
			for (size_t l = 0; l < ARRAY_LEN(lens); l++)
				access_region(&n, i, lens[l], kind, i == 1 || (i == 0 && domain) ? 0 : FI_EACCES);
	barrier(&n);
	for (size_t i = 0; test_rank == 1 && i < ARRAY_LEN(region_keys); i++) {
		if (i == 2 || (i == 0 && !domain))
			for (size_t at = 0; at < LEN; at++)
				CHECK(mem[i][at] == 0x11);
		else
			CHECK(mem[i][LEN - 1] == 0);
		OK(fi_close(&mr[i]->fid));
	}
	barrier(&n);
	node_close(&n);
}

static const struct test tests[] = {
	{ "getinfo", test_getinfo, 1, 0, 0 },
	{ "open", test_open, 1, 0, 0 },
	{ "same_domain", test_pair, 2, 0, 0 },
	{ "same_ep", test_pair, 2, 0, 1 },
	{ "domain_and_ep", test_pair, 2, 0, 2 },
	{ "ep_before_domain", test_pair, 2, 0, 3 },
	{ "different", test_pair, 2, 0, 4 },
	{ "only_sender", test_pair, 2, 0, 5 },
	{ "only_receiver", test_pair, 2, 0, 6 },
	{ "different_ep", test_pair, 2, 0, 7 },
	{ "longer", test_pair, 2, 0, 8 },
	{ "regions", test_regions, 2, 0, 1 },
	{ "regions_ep_key", test_regions, 2, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
