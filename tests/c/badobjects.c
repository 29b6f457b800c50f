/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a caller may get wrong with queues, counters, address vectors, regions, options and one-sided
 * operations (badinput has transfers): the errno of the man page where it names one, else any error
 * at once. Afterwards everything still works.
 */
#include "common.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

static struct node n;
static char buf[4096];

static void open_bad(uint64_t caps)
{
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED | caps, .counters = true };

	node_open(&n, &o);
	node_connect(&n);
}

static void close_bad(void)
{
	char in[8], out[8] = "fine";

	wait_none(&n, n.txcq, 5);
	wait_none(&n, n.rxcq, 5);
	trecv(&n, in, 8, FI_ADDR_UNSPEC, 0x600d, 0, in);
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

static void test_cq(long arg)
{
	struct fi_cq_attr attr = { .format = (enum fi_cq_format)99 };
	struct fi_cq_tagged_entry e;
	struct fid_cq *cq = NULL;
	fi_addr_t src;

	(void)arg;
	open_bad(0);
	REFUSED(fi_cq_open(n.domain, &attr, &cq, NULL));
	attr.format = FI_CQ_FORMAT_CONTEXT;
	attr.wait_obj = (enum fi_wait_obj)99;
	REFUSED(fi_cq_open(n.domain, &attr, &cq, NULL));
	attr.wait_obj = FI_WAIT_SET; /* without a set */
	REFUSED(fi_cq_open(n.domain, &attr, &cq, NULL));
	attr.wait_obj = FI_WAIT_UNSPEC;
	attr.wait_cond = (enum fi_cq_wait_cond)99;
	REFUSED(fi_cq_open(n.domain, &attr, &cq, NULL));
	attr.wait_cond = FI_CQ_COND_NONE;
	attr.size = SIZE_MAX;
	REFUSED(fi_cq_open(n.domain, &attr, &cq, NULL));
	REFUSED(fi_cq_open(n.domain, NULL, &cq, NULL));
	REFUSED(fi_cq_open(n.domain, &attr, NULL, NULL));
	CHECK(cq == NULL);
	REFUSED(fi_cq_sread(n.rxcq, &e, 1, NULL, 10)); /* FI_WAIT_NONE */
	REFUSED(fi_cq_sreadfrom(n.rxcq, &e, 1, &src, NULL, 10));
	REFUSED(fi_cq_signal(n.rxcq));
	REFUSED(fi_control(&n.rxcq->fid, FI_GETWAIT, buf));
	REFUSED(fi_cq_readfrom(n.rxcq, NULL, 1, &src));
	EXPECT_RC(fi_cq_read(n.rxcq, &e, 0) == 0 ? -FI_EAGAIN : fi_cq_read(n.rxcq, &e, 0), -FI_EAGAIN);
	EXPECT_RC(fi_cq_readerr(n.rxcq, (struct fi_cq_err_entry *)buf, 0), -FI_EAGAIN);
	CHECK(fi_cq_strerror(n.rxcq, 12345, NULL, NULL, 0) != NULL);
	CHECK(fi_cq_strerror(n.rxcq, -1, NULL, buf, 1) != NULL);
	close_bad();
}

static void test_cntr(long arg)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = (enum fi_wait_obj)99 };
	struct fid_cntr *cntr = NULL;

	(void)arg;
	open_bad(0);
	REFUSED(fi_cntr_open(n.domain, &attr, &cntr, NULL));
	attr.wait_obj = FI_WAIT_NONE;
	attr.flags = 1ull << 57;
	REFUSED(fi_cntr_open(n.domain, &attr, &cntr, NULL));
	CHECK(cntr == NULL);
	attr.flags = 0;
	OK(fi_cntr_open(n.domain, &attr, &cntr, NULL));
	REFUSED(fi_cntr_wait(cntr, 1, 10)); /* FI_WAIT_NONE */
	OK(fi_close(&cntr->fid));
	EXPECT_RC(fi_cntr_wait(n.txcntr, 1ull << 40, 10), -FI_ETIMEDOUT);
	close_bad();
}

static void test_av(long arg)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .flags = 1ull << 57 };
	struct fid_av *av = NULL;
	struct name name;
	fi_addr_t addr = 0, bad[2] = { 0, 12345 };
	size_t len = sizeof(buf);

	(void)arg;
	open_bad(0);
	node_name(&n, &name);
	REFUSED(fi_av_open(n.domain, &attr, &av, NULL));
	CHECK(av == NULL);
	EXPECT_RC(fi_av_insert(n.av, name.bytes, 0, &addr, 0, NULL), 0);
	REFUSED(fi_av_insert(n.av, name.bytes, 1, &addr, 1ull << 57, NULL));
	REFUSED(fi_av_insert(n.av, name.bytes, 1, &addr, FI_SYNC_ERR, NULL)); /* without errors' place */
	REFUSED(fi_av_insertsvc(n.av, NULL, NULL, &addr, 0, NULL));
	EXPECT(fi_av_insertsvc(n.av, "127.0.0.1", NULL, &addr, 0, NULL) <= 0); /* no port */
	REFUSED(fi_av_insertsym(n.av, NULL, 1, "1", 1, &addr, 0, NULL));
	EXPECT_RC(fi_av_remove(n.av, &bad[1], 1, 0), -FI_EINVAL);
	EXPECT_RC(fi_av_insertsvc(n.av, "127.0.0.1", "9", &bad[0], 0, NULL), 1);
	EXPECT_RC(fi_av_remove(n.av, bad, 2, 0), -FI_EINVAL);
	EXPECT_RC(fi_av_lookup(n.av, bad[0], buf, &len), -FI_EINVAL); /* the good one is removed all the same */
	len = sizeof(buf);
	REFUSED(fi_av_remove(n.av, &addr, 1, 1ull << 57));
	REFUSED(fi_av_remove(n.av, NULL, 1, 0));
	EXPECT_RC(fi_av_lookup(n.av, 12345, buf, &len), -FI_EINVAL);
	REFUSED(fi_av_lookup(n.av, 0, NULL, &len));
	REFUSED(fi_close(&n.av->fid)); /* bound */
	close_bad();
}

static void test_mr(long arg)
{
	struct iovec iov[64] = { { buf, 8 } };
	struct fi_mr_attr attr = { .mr_iov = iov, .iov_count = 1, .access = FI_SEND };
	struct fid_mr *mr = NULL;

	(void)arg;
	open_bad(0);
	REFUSED(fi_mr_reg(n.domain, buf, SIZE_MAX, FI_SEND, 0, 0, 0, &mr, NULL)); /* past the end of memory */
	REFUSED(fi_mr_reg(n.domain, buf, 8, FI_SEND, 0, 0, 0, NULL, NULL));
	REFUSED(fi_mr_regv(n.domain, NULL, 1, FI_SEND, 0, 0, 0, &mr, NULL));
	REFUSED(fi_mr_regv(n.domain, iov, 64, FI_SEND, 0, 0, 0, &mr, NULL));
	REFUSED(fi_mr_regattr(n.domain, &attr, 1ull << 57, &mr));
	attr.mr_iov = NULL;
	REFUSED(fi_mr_regattr(n.domain, &attr, 0, &mr));
	CHECK(mr == NULL);
	close_bad();
}

static void test_ep(long arg)
{
	struct fi_tx_attr *tx = NULL;
	uint64_t value = 0;
	size_t len = 1;

	(void)arg;
	open_bad(0);
	REFUSED(fi_enable(n.ep)); /* twice */
	REFUSED(fi_ep_bind(n.ep, &n.txcq->fid, FI_TRANSMIT));
	REFUSED(fi_ep_bind(n.ep, &n.ep->fid, 0));
	REFUSED(fi_ep_bind(n.ep, &n.domain->fid, 0));
	REFUSED(fi_setopt(&n.ep->fid, 77, FI_OPT_MIN_MULTI_RECV, &value, sizeof(value)));
	REFUSED(fi_setopt(&n.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, 1));
	REFUSED(fi_setopt(&n.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, NULL, sizeof(value)));
	REFUSED(fi_getopt(&n.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, &len));
	REFUSED(fi_getopt(&n.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, NULL, NULL));
	REFUSED(fi_setname(&n.ep->fid, buf, 3));
	REFUSED(fi_getpeer(n.ep, buf, &len));
	REFUSED(fi_tx_context(n.ep, 0, tx, NULL, NULL));
	REFUSED(fi_rx_context(n.ep, 0, NULL, NULL, NULL));
	REFUSED(fi_close(&n.domain->fid)); /* in use */
	REFUSED(fi_close(&n.fabric->fid));
	REFUSED(fi_close(&n.rxcq->fid));
	close_bad();
}

/* Keys, ranges and rights that the target does not have: an error completion, and no byte changes. */
static void test_rma(long arg)
{
	static char region[256], local[256];
	struct fi_rma_iov remote = { 0, 8, 0 };
	struct iovec iov = { local, 8 };
	struct fi_msg_rma m = { .msg_iov = &iov, .iov_count = 1, .rma_iov = &remote, .rma_iov_count = 1 };
	struct fid_mr *mr;
	uint64_t base, key;

	(void)arg;
	open_bad(FI_RMA);
	OK(fi_mr_reg(n.domain, region, sizeof(region), FI_REMOTE_READ, 0, 0, 0, &mr, NULL));
	key = fi_mr_key(mr);
	base = n.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)region : 0;
	memset(local, 'x', sizeof(local));
	OK(fi_write(n.ep, local, 8, NULL, n.peer[0], base, key, &n)); /* no right to */
	wait_err(&n, n.txcq, FI_EACCES);
	OK(fi_read(n.ep, local, 8, NULL, n.peer[0], base, key + 1, &n)); /* no such key */
	CHECK(wait_for(&n, n.txcq, (struct fi_cq_tagged_entry *)buf, 2000) < 0);
	OK(fi_read(n.ep, local, 8, NULL, n.peer[0], base + sizeof(region) - 7, key, &n)); /* past the end */
	CHECK(wait_for(&n, n.txcq, (struct fi_cq_tagged_entry *)buf, 2000) < 0);
	OK(fi_read(n.ep, local, 8, NULL, n.peer[0], ~0ull - 3, key, &n)); /* round the end */
	CHECK(wait_for(&n, n.txcq, (struct fi_cq_tagged_entry *)buf, 2000) < 0);
	for (size_t i = 0; i < sizeof(region); i++)
		CHECK(region[i] == 0 && local[i] == 'x');
	REFUSED(fi_read(n.ep, local, 8, NULL, 12345, base, key, &n));
	REFUSED(fi_read(n.ep, NULL, 8, NULL, n.peer[0], base, key, &n));
	REFUSED(fi_writemsg(n.ep, NULL, 0));
	m.addr = n.peer[0];
	REFUSED(fi_writemsg(n.ep, &m, 1ull << 57));
	m.rma_iov = NULL;
	REFUSED(fi_writemsg(n.ep, &m, 0));
	m.rma_iov = &remote;
	m.rma_iov_count = 300;
	REFUSED(fi_readmsg(n.ep, &m, 0));
	REFUSED(fi_inject_write(n.ep, local, n.info->tx_attr->inject_size + 1, n.peer[0], base, key));
	OK(fi_close(&mr->fid));
	close_bad();
}

static const struct test tests[] = {
	{ "cq", test_cq, 1, 0, 0 }, { "cntr", test_cntr, 1, 0, 0 }, { "av", test_av, 1, 0, 0 },
	{ "mr", test_mr, 1, 0, 0 }, { "ep", test_ep, 1, 0, 0 },	    { "rma", test_rma, 1, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
