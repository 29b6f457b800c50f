/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Applications change what fi_getinfo has returned before they open objects. What it would refuse as a hint is
 * refused by fi_domain, fi_endpoint and the contexts, too; each change of its own, on a copy of the answer.
 */
#include "common.h"

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;

static void start(void)
{
	struct fi_info *hints = node_hints(NULL);

	OK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	OK(fi_fabric(info->fabric_attr, &fabric, NULL));
	OK(fi_domain(fabric, info, &domain, NULL));
	fi_freeinfo(hints);
}

static void stop(void)
{
	OK(fi_close(&domain->fid));
	OK(fi_close(&fabric->fid));
	fi_freeinfo(info);
}

/* Opens an object of a changed copy of info, of which nothing may be left. */
#define OPENED(object, open, change, want) \
	do { \
		struct fi_info *c_ = fi_dupinfo(info); \
		struct object *o_ = NULL; \
		int rc_; \
		c_->change; \
		rc_ = open(object##_of, c_, &o_, NULL); \
		EXPECTF(rc_ == (want), #open " with " #change " = %d, want %d", rc_, (int)(want)); \
		EXPECT(!rc_ == !!o_); \
		if (o_) \
			OK(fi_close(&o_->fid)); \
		fi_freeinfo(c_); \
	} while (0)

#define fid_ep_of domain
#define fid_domain_of fabric

#define EP(change, want) OPENED(fid_ep, fi_endpoint, change, test_is_weft() || !(want) ? (want) : rc_ ? rc_ : (want))

static void test_endpoint(long arg)
{
	(void)arg;
	start();
	EP(mode = 0, 0);
	EP(caps = FI_MSG, 0);
	EP(tx_attr->size = 1, 0);
	EP(tx_attr->iov_limit = 1, 0);
	EP(rx_attr->size = 1, 0);
	EP(tx_attr->msg_order = FI_ORDER_SAS, 0);
	EP(tx_attr->op_flags = FI_TRANSMIT_COMPLETE, 0);
	EP(caps |= 1ull << 40, -FI_EINVAL);
	EP(caps |= FI_MULTICAST, -FI_EINVAL);
	EP(ep_attr->type = (enum fi_ep_type)99, -FI_EINVAL);
	EP(ep_attr->type = FI_EP_DGRAM, -FI_EINVAL); /* which have no FI_TAGGED */
	EP(ep_attr->protocol = 999, -FI_EINVAL);
	EP(ep_attr->protocol_version = 99, -FI_EINVAL);
	EP(ep_attr->max_msg_size = SIZE_MAX, -FI_EINVAL);
	EP(ep_attr->tx_ctx_cnt = 1000, -FI_EINVAL);
	EP(ep_attr->rx_ctx_cnt = 1000, -FI_EINVAL);
	EP(ep_attr->auth_key_size = 8, -FI_EINVAL);
	EP(tx_attr->caps = ~0ull, -FI_EINVAL);
	EP(tx_attr->op_flags = FI_COMMIT_COMPLETE, -FI_EINVAL);
	EP(tx_attr->op_flags = ~0ull, -FI_EINVAL);
	EP(tx_attr->msg_order = ~0ull, -FI_EINVAL);
	EP(tx_attr->comp_order = 1ull << 9, -FI_EINVAL);
	EP(tx_attr->inject_size = SIZE_MAX, -FI_EINVAL);
	EP(tx_attr->size = SIZE_MAX, -FI_EINVAL);
	EP(tx_attr->iov_limit = 99, -FI_EINVAL);
	EP(tx_attr->rma_iov_limit = 99, -FI_EINVAL);
	EP(rx_attr->caps = ~0ull, -FI_EINVAL);
	EP(rx_attr->op_flags = FI_INJECT, -FI_EINVAL);
	EP(rx_attr->msg_order = ~0ull, -FI_EINVAL);
	EP(rx_attr->comp_order = 1ull << 9, -FI_EINVAL);
	EP(rx_attr->size = SIZE_MAX, -FI_EINVAL);
	EP(rx_attr->iov_limit = 99, -FI_EINVAL);
	stop();
}

#define DOMAIN(change, want) OPENED(fid_domain, fi_domain, domain_attr->change, want)

static void test_domain(long arg)
{
	(void)arg;
	start();
	DOMAIN(mode = ~0ull, 0);
	if (test_is_weft()) {
		DOMAIN(mr_mode = FI_MR_LOCAL, 0);
		DOMAIN(mr_mode = 1 | 2, -FI_EINVAL); /* FI_MR_BASIC | FI_MR_SCALABLE */
		DOMAIN(mr_mode = 1 | FI_MR_LOCAL, -FI_EINVAL);
		DOMAIN(mr_mode = -1, -FI_EINVAL);
		DOMAIN(mr_key_size = 99, -FI_EINVAL);
		DOMAIN(cq_data_size = 99, -FI_EINVAL);
		DOMAIN(cq_cnt = SIZE_MAX, -FI_EINVAL);
		DOMAIN(ep_cnt = SIZE_MAX, -FI_EINVAL);
		DOMAIN(cntr_cnt = SIZE_MAX, -FI_EINVAL);
		DOMAIN(max_ep_tx_ctx = SIZE_MAX, -FI_EINVAL);
		DOMAIN(max_ep_srx_ctx = SIZE_MAX, -FI_EINVAL);
		DOMAIN(mr_iov_limit = 99, -FI_EINVAL);
		DOMAIN(max_err_data = SIZE_MAX, -FI_EINVAL);
		DOMAIN(caps = FI_MSG, -FI_EINVAL);
		DOMAIN(threading = (enum fi_threading)99, -FI_EINVAL);
		DOMAIN(data_progress = (enum fi_progress)99, -FI_EINVAL);
		DOMAIN(resource_mgmt = (enum fi_resource_mgmt)99, -FI_EINVAL);
		DOMAIN(av_type = (enum fi_av_type)99, -FI_EINVAL);
		DOMAIN(tclass = 77, -FI_EINVAL);
		DOMAIN(auth_key_size = 8, -FI_EINVAL);
	}
	stop();
}

#define PEP(change, want) OPENED(fid_pep, fi_passive_ep, change, want)
#define fid_pep_of fabric

static void test_passive(long arg)
{
	(void)arg;
	start();
	fi_freeinfo(info);
	info = fi_allocinfo();
	info->fabric_attr->prov_name = strdup(test_provider());
	info->ep_attr->type = FI_EP_MSG;
	{
		struct fi_info *hints = info;

		OK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
		fi_freeinfo(hints);
	}
	PEP(mode = 0, 0);
	PEP(caps = FI_MSG, 0);
	if (test_is_weft()) {
		PEP(caps |= FI_MULTICAST, -FI_EINVAL);
		PEP(ep_attr->type = (enum fi_ep_type)99, -FI_EINVAL);
		PEP(ep_attr->protocol = 999, -FI_EINVAL);
		PEP(ep_attr->max_msg_size = SIZE_MAX, -FI_EINVAL);
		PEP(ep_attr->rx_ctx_cnt = 2, -FI_EINVAL);
		PEP(tx_attr->size = SIZE_MAX, -FI_EINVAL);
		PEP(tx_attr->op_flags = ~0ull, -FI_EINVAL);
		PEP(rx_attr->msg_order = ~0ull, -FI_EINVAL);
	}
	stop();
}

/* A shared receive context with one attribute. */
#define SRX(field, value) \
	do { \
		struct fi_rx_attr attr_ = { .field = (value) }; \
		EXPECT_RC(fi_srx_context(domain, &attr_, &srx, NULL), -FI_EINVAL); \
	} while (0)

static void test_shared(long arg)
{
	struct fid_ep *srx = NULL;

	(void)arg;
	start();
	if (!test_is_weft())
		SKIP("other providers have other limits");
	SRX(size, SIZE_MAX);
	SRX(iov_limit, 99);
	SRX(caps, ~0ull);
	SRX(op_flags, FI_INJECT);
	SRX(msg_order, ~0ull);
	SRX(comp_order, 1ull << 9);
	CHECK(srx == NULL);
	stop();
}

static const struct test tests[] = {
	{ "endpoint", test_endpoint, 1, 0, 0 },
	{ "domain", test_domain, 1, 0, 0 },
	{ "passive", test_passive, 1, 0, 0 },
	{ "shared", test_shared, 1, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
