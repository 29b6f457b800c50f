/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Slots that versions after 1.17 appended to the tables of calls: they are there for what asks for
 * any version, since a program's inline functions call most of them unchecked, in a forked process
 * too. FI_XPU is refused.
 */
#include <sys/wait.h>

#include "common.h"

#define CAP_XPU (1ULL << 44) /* FI_XPU */
#define GET_MR_XPU_DESC (FI_GET_RAW_MR + 13)

/* Tables as the headers of 2.6 have them, whatever headers this is compiled with. */
struct table {
	size_t size;
	void *slots[32];
};
typedef int (*export_fn)(struct fid *fid, uint64_t flags, void *out);
typedef int (*ctx_fn)(struct fid *domain, void *attr, void **ctx, void *context);
typedef int (*lookup2_fn)(struct fid_av *av, fi_addr_t addr, void *buf, size_t *len, uint64_t flags, void *ctx);

enum { EP_SLOT = 7, CQ_SLOT = 7, CNTR_SLOT = 7, DOMAIN_SLOT = 11, LOOKUP2_SLOT = 10 };

/* The call in a slot of a table that has it. */
static void *slot(const void *ops, int index)
{
	const struct table *t = ops;

	CHECKF(t->size > offsetof(struct table, slots[index]) && t->size % sizeof(void *) == 0,
	       "a table of %zu bytes has no slot %d", t->size, index);
	CHECK(t->slots[index]);
	return t->slots[index];
}

static int export_xpu(struct fid *fid, const void *ops, int index)
{
	uint64_t out[4] = { 0 };

	return ((export_fn)slot(ops, index))(fid, 0, out);
}

/* Every call of a node's objects, each of which has to give want. */
static void refusals(struct node *n, int want)
{
	void *ctx = NULL;

	EXPECT_RC(export_xpu(&n->ep->fid, n->ep->ops, EP_SLOT), want);
	EXPECT_RC(export_xpu(&n->txcq->fid, n->txcq->ops, CQ_SLOT), want);
	EXPECT_RC(export_xpu(&n->txcntr->fid, n->txcntr->ops, CNTR_SLOT), want);
	EXPECT_RC(((ctx_fn)slot(n->domain->ops, DOMAIN_SLOT))(&n->domain->fid, NULL, &ctx, NULL), want);
	CHECK(!ctx);
}

static void test_xpu(long version)
{
	struct node_opts o = { .counters = true, .version = (uint32_t)version };
	struct node n;
	pid_t pid;
	int st;

	node_open(&n, &o);
	refusals(&n, -FI_ENOSYS);
	pid = fork();
	if (!pid) {
		refusals(&n, -FI_EOPNOTSUPP);
		_exit(0);
	}
	CHECK(waitpid(pid, &st, 0) == pid);
	CHECKF(WIFEXITED(st) && !WEXITSTATUS(st), "the child ended with %#x", st);
	node_close(&n);
}

/* Endpoints of the other kinds, and contexts. */
static void test_kinds(long arg)
{
	struct node_opts o = { .caps = FI_MSG };
	struct fid_ep *sep, *tx, *rx, *srx;
	struct fid_stx *stx;
	struct node n;

	(void)arg;
	node_open_domain(&n, &o);
	n.info->ep_attr->tx_ctx_cnt = n.info->ep_attr->rx_ctx_cnt = 1;
	OK(fi_scalable_ep(n.domain, n.info, &sep, NULL));
	OK(fi_tx_context(sep, 0, NULL, &tx, NULL));
	OK(fi_rx_context(sep, 0, NULL, &rx, NULL));
	OK(fi_stx_context(n.domain, NULL, &stx, NULL));
	OK(fi_srx_context(n.domain, NULL, &srx, NULL));
	EXPECT_RC(export_xpu(&sep->fid, sep->ops, EP_SLOT), -FI_ENOSYS);
	EXPECT_RC(export_xpu(&tx->fid, tx->ops, EP_SLOT), -FI_ENOSYS);
	EXPECT_RC(export_xpu(&rx->fid, rx->ops, EP_SLOT), -FI_ENOSYS);
	EXPECT_RC(export_xpu(&srx->fid, srx->ops, EP_SLOT), -FI_ENOSYS);
	EXPECT_RC(export_xpu(&stx->fid, stx->ops, EP_SLOT), -FI_ENOSYS);
	OK(fi_close(&srx->fid));
	OK(fi_close(&stx->fid));
	OK(fi_close(&rx->fid));
	OK(fi_close(&tx->fid));
	OK(fi_close(&sep->fid));
	node_close_domain(&n);
}

/* fi_av_lookup2 is fi_av_lookup unless something of an XPU is asked for. */
static void test_lookup2(long arg)
{
	char one[NODE_NAME_MAX], two[NODE_NAME_MAX];
	size_t len1 = sizeof(one), len2 = sizeof(two);
	lookup2_fn lookup2;
	fi_addr_t addr;
	struct node n;

	(void)arg;
	node_open(&n, NULL);
	addr = node_insert(&n, &n);
	lookup2 = (lookup2_fn)slot(n.av->ops, LOOKUP2_SLOT);
	OK(fi_av_lookup(n.av, addr, one, &len1));
	OK(lookup2(n.av, addr, two, &len2, 0, NULL));
	CHECK(len1 == len2 && !memcmp(one, two, len1));
	len1 = len2 = 3;
	EXPECT_RC(lookup2(n.av, addr, two, &len2, 0, NULL), fi_av_lookup(n.av, addr, one, &len1));
	CHECK(len1 == len2);
	EXPECT_RC(lookup2(n.av, addr + 1, two, &len2, 0, NULL), -FI_EINVAL);
	EXPECT_RC(lookup2(n.av, addr, two, &len2, CAP_XPU, two), -FI_ENOSYS);
	node_close(&n);
}

static void test_refused(long arg)
{
	struct fi_info *hints = node_hints(NULL), *info = NULL;
	struct node_opts o = { .caps = FI_MSG | FI_RMA };
	char mem[64], desc[64];
	struct {
		void *buf;
		size_t *len;
		uint64_t flags;
		void *ctx;
	} ask = { desc, &(size_t){ sizeof(desc) }, 0, NULL };
	struct fid_mr *mr;
	struct node n;

	(void)arg;
	hints->caps |= CAP_XPU;
	CHECK_RC(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), -FI_ENODATA);
	fi_freeinfo(hints);
	node_open(&n, &o);
	OK(fi_mr_reg(n.domain, mem, sizeof(mem), FI_REMOTE_READ, 0, 1, 0, &mr, NULL));
	EXPECT_RC(fi_control(&mr->fid, GET_MR_XPU_DESC, &ask), -FI_ENOSYS);
	OK(fi_close(&mr->fid));
	node_close(&n);
}

static const struct test tests[] = {
	{ "xpu_1_5", test_xpu, 1, 0, FI_VERSION(1, 5) },
	{ "xpu_1_17", test_xpu, 1, 0, FI_VERSION(1, 17) },
	{ "kinds", test_kinds, 1, 0, 0 },
	{ "lookup2", test_lookup2, 1, 0, 0 },
	{ "refused", test_refused, 1, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
