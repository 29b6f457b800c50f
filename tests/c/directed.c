/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Capabilities of API 2.0: FI_TAGGED_DIRECTED_RECV, FI_EXACT_DIRECTED_RECV, FI_TAGGED_MULTI_RECV. A
 * libfabric before 2.0 does not take that API from a program; then the application writes them into
 * the capabilities of its endpoints, and fi_getinfo refuses them.
 */
#include "common.h"

#define CAP_TAGGED_DIRECTED (1ULL << 45)
#define CAP_TAGGED_MULTI (1ULL << 46)
#define CAP_EXACT_DIRECTED (1ULL << 48)

static void test_getinfo(long unused)
{
	static const uint64_t caps[] = { CAP_TAGGED_DIRECTED, CAP_EXACT_DIRECTED, CAP_TAGGED_MULTI };
	const uint64_t all = CAP_TAGGED_DIRECTED | CAP_EXACT_DIRECTED | CAP_TAGGED_MULTI;
	struct fi_info *hints, *info;

	(void)unused;
	for (size_t i = 0; i < ARRAY_LEN(caps); i++) {
		hints = node_hints(NULL);
		hints->caps |= caps[i];
		EXPECT_RC(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), -FI_ENODATA);
		if (FI_VERSION_GE(fi_version(), FI_VERSION(2, 0))) {
			OK(fi_getinfo(FI_VERSION(2, 0), NULL, NULL, 0, hints, &info));
			EXPECT((info->caps & all) == caps[i] && (info->rx_attr->caps & all) == caps[i]);
			EXPECT(!((info->tx_attr->caps | info->domain_attr->caps) & all));
			fi_freeinfo(info);
		}
		fi_freeinfo(hints);
	}
}

/* One endpoint that sends to itself: whether receives of each kind may name no source, and whether a
 * receive from an address that nothing sends from takes a message. */
static void sources(uint64_t caps, bool exact, bool exact_tagged, bool directed, bool directed_tagged)
{
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED, .ep_caps = FI_MSG | FI_TAGGED | caps };
	char in[8], out[8] = "abcdefg";
	fi_addr_t own, other;
	struct node n, far;

	node_open(&n, &o);
	node_open_on(&far, &n, &o);
	own = node_insert(&n, &n);
	other = node_insert(&n, &far);
	EXPECT_RC(fi_recv(n.ep, in, 8, NULL, FI_ADDR_UNSPEC, NULL), exact ? -FI_EINVAL : 0);
	EXPECT_RC(fi_trecv(n.ep, in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, NULL), exact_tagged ? -FI_EINVAL : 0);
	if (!exact)
		OK(fi_cancel(&n.ep->fid, NULL));
	if (!exact)
		wait_err(&n, n.rxcq, FI_ECANCELED);
	if (!exact_tagged)
		OK(fi_cancel(&n.ep->fid, NULL));
	if (!exact_tagged)
		wait_err(&n, n.rxcq, FI_ECANCELED);
	for (int tagged = 0; tagged < 2; tagged++) {
		bool counts = tagged ? directed_tagged : directed;
		struct op recv = { .tagged = tagged, .buf = in, .len = 8, .addr = other, .tag = 5, .ctx = in };
		struct op send = { .tagged = tagged, .buf = out, .len = 8, .addr = own, .tag = 5, .ctx = out };

		post_recv(&n, &recv);
		recv.addr = own;
		recv.ctx = &recv;
		post_recv(&n, &recv);
		post_send(&n, &send);
		wait_ctx(&n, n.rxcq, counts ? (void *)&recv : in);
		wait_ctx(&n, n.txcq, out);
		OK(fi_cancel(&n.ep->fid, counts ? in : (void *)&recv));
		wait_err(&n, n.rxcq, FI_ECANCELED);
	}
	node_close(&far);
	node_close(&n);
}

static void test_sources(long unused)
{
	(void)unused;
	sources(0, false, false, false, false);
	sources(FI_DIRECTED_RECV, false, false, true, true);
	sources(CAP_TAGGED_DIRECTED, false, false, false, true);
	sources(CAP_EXACT_DIRECTED, true, true, true, true);
	sources(FI_DIRECTED_RECV | CAP_EXACT_DIRECTED, true, true, true, true);
	sources(CAP_TAGGED_DIRECTED | CAP_EXACT_DIRECTED, false, true, false, true);
}

/* One tagged buffer for several messages, of which those of its tags go into it, one after the other. */
static void test_multi(long len)
{
	struct node_opts o = { .ep_caps = FI_MSG | FI_TAGGED | CAP_TAGGED_MULTI };
	size_t size = (size_t)len * 4, least = (size_t)len, at = 0;
	char *in = guard_alloc(size), *other = guard_alloc(size), *out = guard_alloc((size_t)len);
	struct op recv = { .form = F_MSG,
			   .tagged = true,
			   .addr = FI_ADDR_UNSPEC,
			   .tag = 0x10,
			   .ignore = 0xf,
			   .flags = FI_MULTI_RECV,
			   .ctx = in };
	struct fi_cq_tagged_entry e;
	struct node n;
	fi_addr_t own;

	node_open(&n, &o);
	own = node_insert(&n, &n);
	OK(fi_setopt(&n.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof(least)));
	op_split(&recv, in, size, 1, false);
	post_recv(&n, &recv);
	op_split(&recv, other, size, 1, false);
	recv.tag = 0x20;
	recv.ctx = other;
	post_recv(&n, &recv);
	for (uint64_t i = 0; i < 4; i++) {
		fill(out, (size_t)len, i);
		tsend(&n, out, (size_t)len, own, 0x10 + i, out);
		wait_ok(&n, n.rxcq, &e);
		CHECK(e.op_context == in && e.tag == 0x10 + i && e.len == (size_t)len && e.flags & FI_TAGGED);
		CHECK((char *)e.buf >= in + at && (char *)e.buf + len <= in + size);
		CHECKF(!(e.flags & FI_MULTI_RECV) == (i < 3), "message %d: flags %#llx", (int)i,
		       (unsigned long long)e.flags);
		verify(e.buf, e.len, i);
		at += (size_t)len;
		wait_ctx(&n, n.txcq, out);
	}
	OK(fi_cancel(&n.ep->fid, other));
	wait_err(&n, n.rxcq, FI_ECANCELED);
	node_close(&n);
	guard_free(in, size);
	guard_free(other, size);
	guard_free(out, (size_t)len);
}

static void test_multi_refused(long unused)
{
	struct op recv = { .form = F_MSG, .tagged = true, .addr = FI_ADDR_UNSPEC, .flags = FI_MULTI_RECV };
	char in[4096];
	struct node n;

	(void)unused;
	node_open(&n, NULL);
	op_split(&recv, in, sizeof(in), 1, false);
	EXPECT_RC(op_recv(n.ep, &recv), -FI_EINVAL);
	node_close(&n);
}

static const struct test tests[] = {
	{ "getinfo", test_getinfo, 1, 0, 0 },
	{ "sources", test_sources, 1, 0, 0 },
	{ "multi_short", test_multi, 1, 0, 100 },
	{ "multi_long", test_multi, 1, 0, 200000 },
	{ "multi_refused", test_multi_refused, 1, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
