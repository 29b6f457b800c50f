/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a caller may get wrong. Where a man page names the errno it is asked for; elsewhere any error
 * will do, as long as it is an error at once: no crash, no hang, no completion.
 */
#include "common.h"

static struct node n;
static char buf[1 << 20];

static void open_bad(void)
{
	node_open(&n, NULL);
	node_connect(&n);
}

static void close_bad(void)
{
	char in[8], out[8] = "fine";

	wait_none(&n, n.txcq, 5);
	wait_none(&n, n.rxcq, 5);
	trecv(&n, in, 8, FI_ADDR_UNSPEC, 0x600d, 0, in); /* everything still works */
	tsend(&n, out, 8, n.peer[0], 0x600d, out);
	wait_ctx(&n, n.rxcq, in);
	wait_ctx(&n, n.txcq, out);
	node_close(&n);
}

#define REFUSED(call) \
	do { \
		long rc_ = (call); \
		EXPECTF(rc_ < 0 && rc_ != -FI_EAGAIN, #call " = %ld", rc_); \
	} while (0)

/* Addresses that no insertion returned. */
static void test_addresses(long arg)
{
	static const fi_addr_t bad[] = { 1, 1000000, 1ull << 40, FI_ADDR_UNSPEC, ~1ull, 1ull << 63 };

	(void)arg;
	open_bad();
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		EXPECT_RC(fi_tsend(n.ep, buf, 8, NULL, bad[i], 1, &n), -FI_EINVAL);
		EXPECT_RC(fi_send(n.ep, buf, 8, NULL, bad[i], &n), -FI_EINVAL);
		EXPECT_RC(fi_inject(n.ep, buf, 8, bad[i]), -FI_EINVAL);
		EXPECT_RC(fi_tinject(n.ep, buf, 8, bad[i], 1), -FI_EINVAL);
		EXPECT_RC(fi_tsenddata(n.ep, buf, 100000, NULL, 1, bad[i], 1, &n), -FI_EINVAL);
	}
	close_bad();
}

static void test_removed_address(long arg)
{
	fi_addr_t gone = n.peer[0];

	(void)arg;
	open_bad();
	gone = n.peer[0];
	OK(fi_av_remove(n.av, &gone, 1, 0));
	EXPECT_RC(fi_tsend(n.ep, buf, 8, NULL, gone, 1, &n), -FI_EINVAL);
	n.peer[0] = node_insert(&n, &n);
	close_bad();
}

static void test_inject_size(long arg)
{
	size_t limit;

	(void)arg;
	open_bad();
	limit = n.info->tx_attr->inject_size;
	CHECK(limit < sizeof(buf));
	REFUSED(fi_inject(n.ep, buf, limit + 1, n.peer[0]));
	REFUSED(fi_tinject(n.ep, buf, limit + 1, n.peer[0], 1));
	REFUSED(fi_injectdata(n.ep, buf, limit + 1, 1, n.peer[0]));
	REFUSED(fi_tinjectdata(n.ep, buf, limit + 1, 1, n.peer[0], 1));
	REFUSED(fi_tinject(n.ep, buf, sizeof(buf), n.peer[0], 1));
	close_bad();
}

static void test_iov(long arg)
{
	struct iovec iov[300];
	struct fi_msg m = { .msg_iov = iov };
	struct fi_msg_tagged t = { .msg_iov = iov };
	size_t tx, rx;

	(void)arg;
	open_bad();
	tx = n.info->tx_attr->iov_limit + 1;
	rx = n.info->rx_attr->iov_limit + 1;
	for (size_t i = 0; i < ARRAY_LEN(iov); i++) {
		iov[i].iov_base = buf + i * 8;
		iov[i].iov_len = 8;
	}
	CHECK(tx <= ARRAY_LEN(iov) && rx <= ARRAY_LEN(iov));
	m.addr = t.addr = n.peer[0];
	EXPECT_RC(fi_sendv(n.ep, iov, NULL, tx, n.peer[0], &n), -FI_EINVAL);
	EXPECT_RC(fi_tsendv(n.ep, iov, NULL, tx, n.peer[0], 1, &n), -FI_EINVAL);
	EXPECT_RC(fi_tsendv(n.ep, iov, NULL, 300, n.peer[0], 1, &n), -FI_EINVAL);
	EXPECT_RC(fi_recvv(n.ep, iov, NULL, rx, FI_ADDR_UNSPEC, &n), -FI_EINVAL);
	EXPECT_RC(fi_trecvv(n.ep, iov, NULL, rx, FI_ADDR_UNSPEC, 1, 0, &n), -FI_EINVAL);
	m.iov_count = t.iov_count = tx;
	EXPECT_RC(fi_sendmsg(n.ep, &m, 0), -FI_EINVAL);
	EXPECT_RC(fi_tsendmsg(n.ep, &t, 0), -FI_EINVAL);
	m.iov_count = t.iov_count = rx;
	EXPECT_RC(fi_recvmsg(n.ep, &m, 0), -FI_EINVAL);
	EXPECT_RC(fi_trecvmsg(n.ep, &t, 0), -FI_EINVAL);
	close_bad();
}

/* Flags that make no sense for the call. */
static void test_flags(long arg)
{
	struct iovec iov = { buf, 8 };
	struct fi_msg m = { .msg_iov = &iov, .iov_count = 1 };
	struct fi_msg_tagged t = { .msg_iov = &iov, .iov_count = 1 };
	struct fi_context2 ctx;
	ssize_t rc;

	(void)arg;
	open_bad();
	m.addr = t.addr = n.peer[0];
	REFUSED(fi_sendmsg(n.ep, &m, FI_MULTICAST));
	REFUSED(fi_sendmsg(n.ep, &m, 1ull << 57));
	REFUSED(fi_tsendmsg(n.ep, &t, FI_PEEK));
	REFUSED(fi_tsendmsg(n.ep, &t, 1ull << 57));
	m.addr = t.addr = FI_ADDR_UNSPEC;
	REFUSED(fi_recvmsg(n.ep, &m, FI_INJECT));
	REFUSED(fi_recvmsg(n.ep, &m, 1ull << 57));
	REFUSED(fi_trecvmsg(n.ep, &t, FI_REMOTE_CQ_DATA | FI_INJECT));
	REFUSED(fi_trecvmsg(n.ep, &t, FI_DISCARD)); /* neither a peek nor a claim */
	t.context = &ctx;
	rc = fi_trecvmsg(n.ep, &t, FI_CLAIM); /* nothing was claimed: an error later, in some providers now */
	if (rc == 0 || test_is_weft()) {
		OK(rc);
		wait_err(&n, n.rxcq, FI_ENOMSG);
	}
	REFUSED(fi_tsendmsg(n.ep, &t, FI_INJECT | FI_MULTI_RECV));
	iov.iov_len = sizeof(buf);
	t.addr = n.peer[0];
	REFUSED(fi_tsendmsg(n.ep, &t, FI_INJECT)); /* beyond inject_size */
	close_bad();
}

/* No structure where one must be. */
static void test_null_structures(long arg)
{
	(void)arg;
	open_bad();
	REFUSED(fi_sendmsg(n.ep, NULL, 0));
	REFUSED(fi_tsendmsg(n.ep, NULL, 0));
	REFUSED(fi_recvmsg(n.ep, NULL, 0));
	REFUSED(fi_trecvmsg(n.ep, NULL, 0));
	REFUSED(fi_ep_bind(n.ep, NULL, 0));
	REFUSED(fi_cq_readerr(n.rxcq, NULL, 0));
	close_bad();
}

/* No data where some must be: only 0-byte operations may leave it out. */
static void test_null_buffers(long arg)
{
	struct fi_cq_tagged_entry e;
	size_t len = 16;

	(void)arg;
	open_bad();
	REFUSED(fi_sendv(n.ep, NULL, NULL, 2, n.peer[0], &n));
	REFUSED(fi_trecvv(n.ep, NULL, NULL, 2, FI_ADDR_UNSPEC, 1, 0, &n));
	REFUSED(fi_inject(n.ep, NULL, 8, n.peer[0]));
	REFUSED(fi_tsend(n.ep, NULL, 8, NULL, n.peer[0], 1, &n));
	REFUSED(fi_trecv(n.ep, NULL, 8, NULL, FI_ADDR_UNSPEC, 1, 0, &n));
	REFUSED(fi_cq_read(n.rxcq, NULL, 1));
	REFUSED(fi_getname(&n.ep->fid, NULL, &len));
	REFUSED(fi_getname(&n.ep->fid, buf, NULL));
	REFUSED(fi_av_insert(n.av, NULL, 1, NULL, 0, NULL) > 0 ? 0 : -FI_EINVAL);
	REFUSED(fi_av_lookup(n.av, 0, buf, NULL));
	CHECK(fi_cq_read(n.rxcq, &e, 0) <= 0);
	close_bad();
}

/* Opening with missing or senseless attributes. */
static void test_open(long arg)
{
	struct fi_av_attr av_attr = { .type = (enum fi_av_type)77 };
	struct fi_cntr_attr cntr_attr = { .events = (enum fi_cntr_events)77 };
	struct fi_cq_attr cq_attr = { .flags = FI_MULTICAST };
	struct fid_av *av = NULL;
	struct fid_cntr *cntr = NULL;
	struct fid_cq *cq = NULL;
	struct fid_mr *mr = NULL;
	struct fid_ep *ep = NULL;

	(void)arg;
	open_bad();
	REFUSED(fi_av_open(n.domain, &av_attr, &av, NULL));
	REFUSED(fi_av_open(n.domain, NULL, &av, NULL));
	REFUSED(fi_cntr_open(n.domain, &cntr_attr, &cntr, NULL));
	REFUSED(fi_cq_open(n.domain, &cq_attr, &cq, NULL));
	REFUSED(fi_endpoint(n.domain, NULL, &ep, NULL));
	REFUSED(fi_mr_reg(n.domain, buf, 8, FI_SEND, 0, 0, 1ull << 57, &mr, NULL));
	REFUSED(fi_mr_regattr(n.domain, NULL, 0, &mr));
	CHECK(!av && !cntr && !cq && !ep && !mr);
	close_bad();
}

/* Longer than the longest message there is. */
static void test_too_long(long arg)
{
	size_t limit;

	(void)arg;
	open_bad();
	limit = n.info->ep_attr->max_msg_size;
	if (limit == SIZE_MAX)
		SKIP("any size_t is a length here");
	REFUSED(fi_tsend(n.ep, buf, limit + 1, NULL, n.peer[0], 1, &n));
	REFUSED(fi_send(n.ep, buf, SIZE_MAX, NULL, n.peer[0], &n));
	close_bad();
}

/* Commands and options that do not exist. */
static void test_control(long arg)
{
	uint64_t value = 0;
	size_t len = sizeof(value);

	(void)arg;
	open_bad();
	REFUSED(fi_control(&n.ep->fid, 9999, &value));
	REFUSED(fi_control(&n.rxcq->fid, 9999, &value));
	REFUSED(fi_control(&n.ep->fid, FI_GETOPSFLAG, NULL));
	EXPECT_RC(fi_getopt(&n.ep->fid, FI_OPT_ENDPOINT, 9999, &value, &len), -FI_ENOPROTOOPT);
	EXPECT_RC(fi_setopt(&n.ep->fid, FI_OPT_ENDPOINT, 9999, &value, len), -FI_ENOPROTOOPT);
	close_bad();
}

/* Operations of other kinds of endpoints: an error, not a missing function. */
static void test_other_kinds(long arg)
{
	(void)arg;
	open_bad();
	REFUSED(fi_connect(n.ep, buf, NULL, 0));
	REFUSED(fi_accept(n.ep, NULL, 0));
	REFUSED(fi_shutdown(n.ep, 0));
	REFUSED(fi_join(n.ep, buf, 0, (struct fid_mc **)(void *)buf, NULL));
	close_bad();
}

static const struct test tests[] = {
	{ "addresses", test_addresses, 1, 0, 0 },
	{ "removed_address", test_removed_address, 1, 0, 0 },
	{ "inject_size", test_inject_size, 1, 0, 0 },
	{ "iov", test_iov, 1, 0, 0 },
	{ "flags", test_flags, 1, 0, 0 },
	{ "null_structures", test_null_structures, 1, 0, 0 },
	{ "null_buffers", test_null_buffers, 1, 0, 0 },
	{ "open", test_open, 1, 0, 0 },
	{ "too_long", test_too_long, 1, 0, 0 },
	{ "control", test_control, 1, 0, 0 },
	{ "other_kinds", test_other_kinds, 1, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
