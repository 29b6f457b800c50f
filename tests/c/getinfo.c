/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_getinfo: what is asked for is there or refused with -FI_ENODATA, never quietly left out; what
 * comes back works as a hint again and opens.
 */
#include "common.h"

static const uint32_t newest = FI_VERSION(1, 17);

static struct fi_info *ask(const struct fi_info *hints)
{
	struct fi_info *info = NULL;
	int rc = fi_getinfo(newest, NULL, NULL, 0, hints, &info);

	CHECKF(rc == 0 || rc == -FI_ENODATA, "fi_getinfo = %d (%s)", rc, fi_strerror(-rc));
	CHECK(rc == 0 || info == NULL);
	return info;
}

static struct fi_info *plain(void)
{
	struct fi_info *hints = fi_allocinfo();

	hints->fabric_attr->prov_name = strdup(test_provider());
	hints->ep_attr->type = FI_EP_RDM;
	return hints;
}

/* Asks with one 64-bit field set to value; returns the answer, which must hold all its bits. */
#define ASK_BITS(path, value) \
	do { \
		struct fi_info *h_ = plain(), *i_; \
		uint64_t v_ = (value); \
		h_->path |= v_; \
		i_ = ask(h_); \
		for (struct fi_info *p_ = i_; p_; p_ = p_->next) \
			EXPECTF((p_->path & v_) == v_, #path ": asked for %#llx, got %#llx", (unsigned long long)v_, \
				(unsigned long long)p_->path); \
		fi_freeinfo(i_); \
		fi_freeinfo(h_); \
	} while (0)

static void test_caps(long arg)
{
	static const uint64_t bits[] = {
		FI_MSG,		  FI_RMA,
		FI_TAGGED,	  FI_ATOMIC,
		FI_MULTICAST,	  FI_NAMED_RX_CTX,
		FI_DIRECTED_RECV, FI_MULTI_RECV,
		FI_SOURCE,	  FI_SOURCE_ERR | FI_SOURCE,
		FI_FENCE,	  FI_LOCAL_COMM,
		FI_REMOTE_COMM,	  FI_SHARED_AV,
		FI_TRIGGER,	  FI_RMA_EVENT,
		FI_RMA_PMEM,	  FI_HMEM,
		FI_VARIABLE_MSG,  FI_AV_USER_ID,
		FI_COLLECTIVE,	  FI_MSG | FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV,
	};
	struct fi_info *h = plain(), *info = ask(h);

	(void)arg;
	CHECK(info != NULL);
	CHECK((info->caps & (FI_MSG | FI_TAGGED)) == (FI_MSG | FI_TAGGED));
	CHECK((info->caps & (FI_SEND | FI_RECV)) == (FI_SEND | FI_RECV));
	fi_freeinfo(info);
	fi_freeinfo(h);
	for (size_t i = 0; i < ARRAY_LEN(bits); i++)
		ASK_BITS(caps, bits[i]);
	if (test_is_weft()) { /* what Open MPI's mtl asks for must be there */
		h = plain();
		h->caps = bits[ARRAY_LEN(bits) - 1];
		CHECK((info = ask(h)) != NULL);
		fi_freeinfo(info);
		fi_freeinfo(h);
	}
}

/* Modifiers restrict: an endpoint that only sends is not given FI_RECV. */
static void test_modifiers(long arg)
{
	struct fi_info *h = plain(), *info;

	(void)arg;
	h->caps = FI_MSG | FI_SEND;
	info = ask(h);
	for (struct fi_info *p = info; p; p = p->next) {
		EXPECT(p->caps & FI_SEND);
		EXPECT(!(p->caps & FI_RECV));
		EXPECT(!(p->caps & FI_TAGGED));
	}
	fi_freeinfo(info);
	fi_freeinfo(h);
}

/* Nothing is required of the application that it did not offer. */
static void test_mode(long arg)
{
	static const uint64_t modes[] = { 0, FI_CONTEXT, FI_CONTEXT | FI_CONTEXT2, ~0ull };

	(void)arg;
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		struct fi_info *h = plain(), *info;

		h->mode = modes[i];
		h->domain_attr->mode = modes[i];
		info = ask(h);
		for (struct fi_info *p = info; p; p = p->next)
			EXPECTF(!(p->mode & ~modes[i]), "mode %#llx", (unsigned long long)p->mode);
		if (test_is_weft())
			EXPECTF(info && info->mode == 0, "weft requires a mode bit");
		fi_freeinfo(info);
		fi_freeinfo(h);
	}
}

static void test_mr_mode(long arg)
{
	static const int modes[] = { 0, FI_MR_PROV_KEY, FI_MR_VIRT_ADDR | FI_MR_PROV_KEY,
				     FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR,
				     FI_MR_ENDPOINT | FI_MR_HMEM };

	(void)arg;
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		struct fi_info *h = plain(), *info;

		h->domain_attr->mr_mode = modes[i];
		h->caps = FI_MSG | FI_TAGGED;
		info = ask(h);
		for (struct fi_info *p = info; p; p = p->next)
			EXPECTF(!(p->domain_attr->mr_mode & ~modes[i]), "mr_mode %#x of %#x", p->domain_attr->mr_mode,
				modes[i]);
		if (test_is_weft())
			EXPECTF(info != NULL, "weft requires mr_mode bits");
		fi_freeinfo(info);
		fi_freeinfo(h);
	}
}

/* FI_MR_BASIC and FI_MR_SCALABLE stand alone (fi_domain(3)), and there are no others before API 1.5: without a choice
 * FI_MR_BASIC, which programs of that time expect. */
static void test_mr_mode_refused(long arg)
{
	static const struct {
		uint32_t version;
		int mode, rc;
	} modes[] = {
		{ FI_VERSION(1, 17), FI_MR_BASIC, 0 },
		{ FI_VERSION(1, 17), FI_MR_SCALABLE, 0 },
		{ FI_VERSION(1, 17), FI_MR_BASIC | FI_MR_SCALABLE, -FI_ENODATA },
		{ FI_VERSION(1, 17), FI_MR_BASIC | FI_MR_LOCAL, -FI_ENODATA },
		{ FI_VERSION(1, 17), FI_MR_SCALABLE | FI_MR_PROV_KEY, -FI_ENODATA },
		{ FI_VERSION(1, 17), -1, -FI_ENODATA },
		{ FI_VERSION(1, 0), FI_MR_UNSPEC, 0 },
		{ FI_VERSION(1, 4), FI_MR_UNSPEC, 0 },
		{ FI_VERSION(1, 4), FI_MR_BASIC, 0 },
		{ FI_VERSION(1, 4), FI_MR_BASIC | FI_MR_SCALABLE, -FI_ENODATA },
		{ FI_VERSION(1, 4), FI_MR_VIRT_ADDR, -FI_ENODATA },
	};

	(void)arg;
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		struct fi_info *h = plain(), *info = NULL;

		h->mode = FI_LOCAL_MR;
		h->domain_attr->mr_mode = modes[i].mode;
		if (test_is_weft() || modes[i].rc)
			EXPECT_RC(fi_getinfo(modes[i].version, NULL, NULL, 0, h, &info), modes[i].rc);
		if (info)
			EXPECT(info->domain_attr->mr_mode == (modes[i].mode ? modes[i].mode : FI_MR_BASIC));
		fi_freeinfo(info);
		fi_freeinfo(h);
	}
}

/* Applications write the capabilities of the endpoint into both contexts: each has those that apply to it. */
static void test_context_caps(long arg)
{
	const uint64_t tx = FI_SEND | FI_READ | FI_WRITE, rx = FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE;
	struct fi_info *h = plain(), *info;

	(void)arg;
	h->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_SOURCE | FI_DIRECTED_RECV | tx | rx;
	h->tx_attr->caps = h->rx_attr->caps = h->caps;
	info = ask(h);
	if (test_is_weft())
		CHECK(info != NULL);
	for (struct fi_info *p = info; p; p = p->next)
		EXPECT((p->tx_attr->caps & tx) == tx && (p->rx_attr->caps & rx) == rx);
	if (test_is_weft())
		EXPECT(!(info->tx_attr->caps & rx) && !(info->rx_attr->caps & tx));
	fi_freeinfo(info);
	fi_freeinfo(h);
}

/* Sizes of ordered data ask for the order, where there is data to put in order. */
static void test_order_sizes(long arg)
{
	static const uint64_t caps[] = { FI_RMA, FI_ATOMIC, FI_MSG | FI_RMA };
	struct fi_info *h = plain(), *info;

	(void)arg;
	h->ep_attr->max_order_waw_size = 8;
	for (size_t i = 0; i < ARRAY_LEN(caps); i++) {
		h->caps = caps[i];
		info = ask(h);
		if (test_is_weft())
			CHECK(info != NULL);
		for (struct fi_info *p = info; p; p = p->next)
			EXPECTF(p->ep_attr->max_order_waw_size >= 8 && p->tx_attr->msg_order & FI_ORDER_WAW,
				"size %zu, order %#llx", p->ep_attr->max_order_waw_size,
				(unsigned long long)p->tx_attr->msg_order);
		fi_freeinfo(info);
	}
	h->caps = FI_MSG;
	info = ask(h);
	if (test_is_weft())
		EXPECTF(info && !info->tx_attr->msg_order, "sizes of what is not there are refused");
	fi_freeinfo(info);
	fi_freeinfo(h);
}

static void test_addr_format(long arg)
{
	static const struct {
		uint32_t format;
		bool weft;
	} formats[] = { { FI_FORMAT_UNSPEC, true }, { FI_SOCKADDR, true }, { FI_SOCKADDR_IN, true },
			{ FI_SOCKADDR_IN6, true },  { FI_ADDR_STR, true }, { FI_SOCKADDR_IB, false },
			{ FI_ADDR_PSMX2, false } };

	(void)arg;
	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		struct fi_info *h = plain(), *info;
		uint32_t want = formats[i].format;

		h->addr_format = want;
		info = ask(h);
		if (test_is_weft() && want != FI_SOCKADDR_IN6) /* there may be no IPv6 here */
			EXPECTF(!info == !formats[i].weft, "format %u", want);
		for (struct fi_info *p = info; p; p = p->next)
			EXPECTF(want == FI_FORMAT_UNSPEC || p->addr_format == want ||
					(want == FI_SOCKADDR && p->addr_format <= FI_SOCKADDR_IN6),
				"asked for format %u, got %u", want, p->addr_format);
		fi_freeinfo(info);
		fi_freeinfo(h);
	}
}

/* A number that is a limit: the largest offered may be asked for, one more may not. */
#define ASK_LIMIT(path, type) \
	do { \
		struct fi_info *h_ = plain(), *i_ = ask(h_); \
		type max_; \
		CHECK(i_ != NULL); \
		max_ = i_->path; \
		fi_freeinfo(i_); \
		h_->path = max_; \
		i_ = ask(h_); \
		EXPECTF(i_ != NULL, #path " %llu is offered and refused", (unsigned long long)max_); \
		if (i_) \
			EXPECT(i_->path >= max_); \
		fi_freeinfo(i_); \
		h_->path = (type)-1; \
		i_ = ask(h_); \
		if (max_ != (type)-1) \
			EXPECTF(i_ == NULL || i_->path == (type)-1, #path " of %llu is quietly cut", \
				(unsigned long long)(type)-1); \
		fi_freeinfo(i_); \
		fi_freeinfo(h_); \
	} while (0)

static void test_limits(long arg)
{
	(void)arg;
	ASK_LIMIT(tx_attr->inject_size, size_t);
	ASK_LIMIT(tx_attr->size, size_t);
	ASK_LIMIT(tx_attr->iov_limit, size_t);
	ASK_LIMIT(rx_attr->size, size_t);
	ASK_LIMIT(rx_attr->iov_limit, size_t);
	ASK_LIMIT(ep_attr->max_msg_size, size_t);
	ASK_LIMIT(domain_attr->cq_data_size, size_t);
}

static void test_order(long arg)
{
	static const uint64_t orders[] = { FI_ORDER_NONE, FI_ORDER_SAS, FI_ORDER_SAS | FI_ORDER_SAW, FI_ORDER_RMA_WAW,
					   FI_ORDER_ATOMIC_RAR };

	(void)arg;
	for (size_t i = 0; i < ARRAY_LEN(orders); i++) {
		ASK_BITS(tx_attr->msg_order, orders[i]);
		ASK_BITS(rx_attr->msg_order, orders[i]);
	}
	ASK_BITS(tx_attr->comp_order, FI_ORDER_STRICT);
	ASK_BITS(rx_attr->comp_order, FI_ORDER_STRICT);
	ASK_BITS(rx_attr->comp_order, FI_ORDER_STRICT | FI_ORDER_DATA);
}

static void test_op_flags(long arg)
{
	(void)arg;
	ASK_BITS(tx_attr->op_flags, FI_COMPLETION);
	ASK_BITS(tx_attr->op_flags, FI_INJECT);
	ASK_BITS(tx_attr->op_flags, FI_INJECT_COMPLETE);
	ASK_BITS(tx_attr->op_flags, FI_TRANSMIT_COMPLETE);
	ASK_BITS(tx_attr->op_flags, FI_DELIVERY_COMPLETE);
	ASK_BITS(tx_attr->op_flags, FI_MATCH_COMPLETE);
	ASK_BITS(tx_attr->op_flags, FI_COMMIT_COMPLETE);
	ASK_BITS(rx_attr->op_flags, FI_COMPLETION);
	ASK_BITS(rx_attr->op_flags, FI_MULTI_RECV);
}

/* An enum in the domain's attributes: kept, or the stronger that it implies, or refused. */
#define ASK_ENUM(field, value, stronger, required) \
	do { \
		struct fi_info *h_ = plain(), *i_; \
		h_->domain_attr->field = (value); \
		i_ = ask(h_); \
		for (struct fi_info *p_ = i_; p_; p_ = p_->next) \
			EXPECTF(p_->domain_attr->field == (value) || p_->domain_attr->field == (stronger), \
				#field ": asked for " #value ", got %d", (int)p_->domain_attr->field); \
		if (test_is_weft() && (required)) \
			EXPECTF(i_ != NULL, "weft lacks " #value); \
		fi_freeinfo(i_); \
		fi_freeinfo(h_); \
	} while (0)

static void test_domain_enums(long arg)
{
	(void)arg;
	ASK_ENUM(threading, FI_THREAD_SAFE, FI_THREAD_SAFE, true);
	ASK_ENUM(threading, FI_THREAD_FID, FI_THREAD_SAFE, true);
	ASK_ENUM(threading, FI_THREAD_COMPLETION, FI_THREAD_SAFE, true);
	ASK_ENUM(threading, FI_THREAD_DOMAIN, FI_THREAD_SAFE, true);
	ASK_ENUM(threading, FI_THREAD_ENDPOINT, FI_THREAD_SAFE, true);
	ASK_ENUM(control_progress, FI_PROGRESS_MANUAL, FI_PROGRESS_AUTO, true);
	ASK_ENUM(control_progress, FI_PROGRESS_AUTO, FI_PROGRESS_AUTO, false);
	ASK_ENUM(data_progress, FI_PROGRESS_MANUAL, FI_PROGRESS_AUTO, true);
	ASK_ENUM(data_progress, FI_PROGRESS_AUTO, FI_PROGRESS_AUTO, false);
	ASK_ENUM(resource_mgmt, FI_RM_ENABLED, FI_RM_ENABLED, true);
	ASK_ENUM(av_type, FI_AV_TABLE, FI_AV_TABLE, true);
	ASK_ENUM(av_type, FI_AV_MAP, FI_AV_MAP, true);
}

static void test_ep_types(long arg)
{
	static const enum fi_ep_type types[] = { FI_EP_RDM, FI_EP_DGRAM, FI_EP_MSG };

	(void)arg;
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		struct fi_info *h = plain(), *info;

		h->ep_attr->type = types[i];
		info = ask(h);
		for (struct fi_info *p = info; p; p = p->next)
			EXPECT(p->ep_attr->type == types[i]);
		if (test_is_weft())
			EXPECT(info);
		fi_freeinfo(info);
		fi_freeinfo(h);
	}
}

static const struct test tests[] = {
	{ "caps", test_caps, 1, 0, 0 },
	{ "modifiers", test_modifiers, 1, 0, 0 },
	{ "mode", test_mode, 1, 0, 0 },
	{ "mr_mode", test_mr_mode, 1, 0, 0 },
	{ "mr_mode_refused", test_mr_mode_refused, 1, 0, 0 },
	{ "context_caps", test_context_caps, 1, 0, 0 },
	{ "order_sizes", test_order_sizes, 1, 0, 0 },
	{ "addr_format", test_addr_format, 1, 0, 0 },
	{ "limits", test_limits, 1, 0, 0 },
	{ "order", test_order, 1, 0, 0 },
	{ "op_flags", test_op_flags, 1, 0, 0 },
	{ "domain_enums", test_domain_enums, 1, 0, 0 },
	{ "ep_types", test_ep_types, 1, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
