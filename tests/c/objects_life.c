/* SPDX-License-Identifier: BSD-2-Clause */
/* Every object opens and closes; closing one that another still uses gives -FI_EBUSY. */
#include "common.h"

static void test_fabric_domain(long arg)
{
	struct fid_domain *second;
	struct fid_fabric *again;
	struct node n;
	int ctx;

	(void)arg;
	node_open_domain(&n, NULL);
	CHECK(n.fabric->fid.fclass == FI_CLASS_FABRIC);
	CHECK(n.domain->fid.fclass == FI_CLASS_DOMAIN);
	CHECK_RC(fi_close(&n.fabric->fid), -FI_EBUSY);
	OK(fi_domain(n.fabric, n.info, &second, &ctx));
	CHECK(second->fid.context == &ctx);
	OK(fi_fabric(n.info->fabric_attr, &again, &ctx));
	CHECK(again->fid.context == &ctx);
	OK(fi_close(&again->fid));
	OK(fi_close(&second->fid));
	node_close_domain(&n);
}

/* Opens an object on the domain, sees that the domain is busy, closes it. */
#define DOMAIN_CHILD(n, open, ptr, class) \
	do { \
		OK(open); \
		CHECK((ptr)->fid.fclass == (class)); \
		CHECK((ptr)->fid.context == &ctx); \
		CHECK_RC(fi_close(&(n).domain->fid), -FI_EBUSY); \
		OK(fi_close(&(ptr)->fid)); \
	} while (0)

static void test_domain_busy(long arg)
{
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_MSG };
	struct fi_cntr_attr cntr_attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_cntr *cntr;
	struct fid_ep *ep;
	struct fid_mr *mr;
	char buf[4096];
	struct node n;
	int ctx;

	(void)arg;
	node_open_domain(&n, NULL);
	DOMAIN_CHILD(n, fi_av_open(n.domain, &av_attr, &av, &ctx), av, FI_CLASS_AV);
	DOMAIN_CHILD(n, fi_cq_open(n.domain, &cq_attr, &cq, &ctx), cq, FI_CLASS_CQ);
	DOMAIN_CHILD(n, fi_cntr_open(n.domain, &cntr_attr, &cntr, &ctx), cntr, FI_CLASS_CNTR);
	DOMAIN_CHILD(n, fi_endpoint(n.domain, n.info, &ep, &ctx), ep, FI_CLASS_EP);
	DOMAIN_CHILD(n, fi_mr_reg(n.domain, buf, sizeof(buf), FI_SEND | FI_RECV, 0, 0, 0, &mr, &ctx), mr, FI_CLASS_MR);
	node_close_domain(&n);
}

/* What an endpoint is bound to stays until the endpoint is gone, enabled or not. */
static void test_bound_busy(long disabled)
{
	struct node_opts o = { .counters = true, .disabled = disabled };
	struct node n;

	node_open(&n, &o);
	CHECK_RC(fi_close(&n.av->fid), -FI_EBUSY);
	CHECK_RC(fi_close(&n.txcq->fid), -FI_EBUSY);
	CHECK_RC(fi_close(&n.rxcq->fid), -FI_EBUSY);
	CHECK_RC(fi_close(&n.txcntr->fid), -FI_EBUSY);
	CHECK_RC(fi_close(&n.rxcntr->fid), -FI_EBUSY);
	CHECK_RC(fi_close(&n.domain->fid), -FI_EBUSY);
	CHECK_RC(fi_close(&n.fabric->fid), -FI_EBUSY);
	node_close(&n);
}

/* A refused close changed nothing: messages still pass. */
static void test_busy_still_works(long arg)
{
	char in[8], out[8] = "alive";
	struct node n;

	(void)arg;
	node_open(&n, NULL);
	node_connect(&n);
	CHECK_RC(fi_close(&n.rxcq->fid), -FI_EBUSY);
	CHECK_RC(fi_close(&n.av->fid), -FI_EBUSY);
	trecv(&n, in, 8, FI_ADDR_UNSPEC, 1, 0, in);
	tsend(&n, out, 8, n.peer[0], 1, out);
	wait_ctx(&n, n.rxcq, in);
	wait_ctx(&n, n.txcq, out);
	CHECK(memcmp(in, out, 8) == 0);
	node_close(&n);
}

static void test_eq_busy(long arg)
{
	struct fi_eq_attr attr = { .size = 16 };
	struct fid_eq *eq;
	struct fid_ep *ep;
	struct node n;
	int ctx;

	(void)arg;
	node_open_domain(&n, NULL);
	OK(fi_eq_open(n.fabric, &attr, &eq, &ctx));
	CHECK(eq->fid.fclass == FI_CLASS_EQ && eq->fid.context == &ctx);
	OK(fi_endpoint(n.domain, n.info, &ep, NULL));
	OK(fi_ep_bind(ep, &eq->fid, 0));
	EXPECT_RC(fi_close(&eq->fid), -FI_EBUSY);
	OK(fi_close(&ep->fid));
	if (fi_domain_bind(n.domain, &eq->fid, 0) == 0) /* a provider may have no use for it */
		EXPECT_RC(fi_close(&eq->fid), -FI_EBUSY);
	OK(fi_close(&n.domain->fid));
	OK(fi_close(&eq->fid));
	OK(fi_close(&n.fabric->fid));
	fi_freeinfo(n.info);
}

/* Two endpoints share CQ and AV; the last one that goes frees them. */
static void test_shared(long arg)
{
	struct fid_ep *second;
	struct node n;

	(void)arg;
	node_open(&n, NULL);
	OK(fi_endpoint(n.domain, n.info, &second, NULL));
	OK(fi_ep_bind(second, &n.av->fid, 0));
	OK(fi_ep_bind(second, &n.txcq->fid, FI_TRANSMIT));
	OK(fi_ep_bind(second, &n.rxcq->fid, FI_RECV));
	OK(fi_enable(second));
	OK(fi_close(&n.ep->fid));
	CHECK_RC(fi_close(&n.av->fid), -FI_EBUSY);
	CHECK_RC(fi_close(&n.txcq->fid), -FI_EBUSY);
	CHECK_RC(fi_close(&n.rxcq->fid), -FI_EBUSY);
	n.ep = second;
	node_close(&n);
}

/* Open and close in many orders and numbers leaves a usable library. */
static void test_many(long count)
{
	struct node base, *n = calloc((size_t)count, sizeof(*n));

	CHECK(n != NULL);
	node_open(&base, NULL);
	for (int round = 0; round < 3; round++) {
		for (long i = 0; i < count; i++)
			node_open_on(&n[i], &base, NULL);
		for (long i = 0; i < count; i += 2)
			node_close(&n[i]);
		for (long i = 1; i < count; i += 2)
			node_close(&n[i]);
	}
	node_close(&base);
	free(n);
}

static const struct test tests[] = {
	{ "fabric_domain", test_fabric_domain, 1, 0, 0 },
	{ "domain_busy", test_domain_busy, 1, 0, 0 },
	{ "bound_busy", test_bound_busy, 1, 0, false },
	{ "bound_busy_disabled", test_bound_busy, 1, 0, true },
	{ "busy_still_works", test_busy_still_works, 1, 0, 0 },
	{ "eq_busy", test_eq_busy, 1, 0, 0 },
	{ "shared", test_shared, 1, 0, 0 },
	{ "many_endpoints", test_many, 1, 0, 50 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
