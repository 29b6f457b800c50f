/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints: bind rules, enable, names, options, operation flags, aliases. */
#include <rdma/fi_rma.h>

#include "common.h"

#include <netinet/in.h>

static void test_enable_without(long arg)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_MSG };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *ep;
	struct node n;
	int rc;

	(void)arg;
	node_open_domain(&n, NULL);
	OK(fi_cq_open(n.domain, &cq_attr, &cq, NULL));
	OK(fi_av_open(n.domain, &av_attr, &av, NULL));
	OK(fi_endpoint(n.domain, n.info, &ep, NULL));
	rc = fi_enable(ep);
	EXPECTF(rc == -FI_ENOCQ || rc == -FI_ENOAV, "enable with nothing: %d", rc);
	OK(fi_ep_bind(ep, &av->fid, 0));
	EXPECT_RC(fi_enable(ep), -FI_ENOCQ);
	OK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT));
	EXPECT_RC(fi_enable(ep), -FI_ENOCQ); /* it can receive, too */
	OK(fi_ep_bind(ep, &cq->fid, FI_RECV));
	OK(fi_enable(ep));
	OK(fi_close(&ep->fid));
	OK(fi_endpoint(n.domain, n.info, &ep, NULL));
	OK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	EXPECT_RC(fi_enable(ep), -FI_ENOAV);
	OK(fi_close(&ep->fid));
	OK(fi_close(&cq->fid));
	OK(fi_close(&av->fid));
	node_close_domain(&n);
}

/* What only reads and writes others' memory needs no queue for receives. */
static void test_enable_rma(long arg)
{
	struct node_opts o = { .caps = FI_RMA };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_MSG };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *ep;
	struct node n;

	(void)arg;
	node_open_domain(&n, &o);
	OK(fi_cq_open(n.domain, &cq_attr, &cq, NULL));
	OK(fi_av_open(n.domain, &av_attr, &av, NULL));
	OK(fi_endpoint(n.domain, n.info, &ep, NULL));
	OK(fi_ep_bind(ep, &av->fid, 0));
	EXPECT_RC(fi_enable(ep), -FI_ENOCQ);
	OK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT));
	OK(fi_enable(ep));
	OK(fi_close(&ep->fid));
	OK(fi_close(&cq->fid));
	OK(fi_close(&av->fid));
	node_close_domain(&n);
}

/* An endpoint that could receive and has nothing for it, and is used for writes. */
static void test_deaf(long arg)
{
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_RMA_EVENT };
	struct fi_cntr_attr cntr_attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	static uint64_t word = 7, mem;
	struct fid_cntr *cntr;
	struct fid_mr *mr;
	struct node n;

	(void)arg;
	node_open_domain(&n, &o);
	OK(fi_cq_open(n.domain, &cq_attr, &n.txcq, NULL));
	OK(fi_av_open(n.domain, &av_attr, &n.av, NULL));
	OK(fi_cntr_open(n.domain, &cntr_attr, &cntr, NULL));
	OK(fi_endpoint(n.domain, n.info, &n.ep, NULL));
	OK(fi_ep_bind(n.ep, &n.av->fid, 0));
	EXPECT_RC(fi_enable(n.ep), -FI_ENOCQ); /* what it initiates has to complete somewhere */
	OK(fi_ep_bind(n.ep, &n.txcq->fid, FI_TRANSMIT));
	OK(fi_enable(n.ep));
	n.rxcq = n.txcq;
	EXPECT_RC(fi_recv(n.ep, &mem, sizeof(mem), NULL, FI_ADDR_UNSPEC, NULL), -FI_ENOCQ);
	EXPECT_RC(fi_trecv(n.ep, &mem, sizeof(mem), NULL, FI_ADDR_UNSPEC, 0, 0, NULL), -FI_ENOCQ);
	EXPECT_RC(fi_enable(n.ep), -FI_EOPBADSTATE);
	n.peer[0] = node_insert(&n, &n);
	OK(fi_mr_reg(n.domain, &mem, sizeof(mem), FI_REMOTE_WRITE, 0, 1, 0, &mr, NULL));
	OK(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE));
	OK(fi_write(n.ep, &word, sizeof(word), NULL, n.peer[0], 0, 1, &word));
	wait_ctx(&n, n.txcq, &word);
	OK(fi_cntr_wait(cntr, 1, 10000));
	CHECK(mem == 7);
	OK(fi_close(&mr->fid));
	OK(fi_close(&n.ep->fid));
	OK(fi_close(&cntr->fid));
	OK(fi_close(&n.txcq->fid));
	OK(fi_close(&n.av->fid));
	node_close_domain(&n);
}

static void test_bind_rules(long arg)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_MSG };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct node_opts o = { .disabled = true };
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *ep;
	struct node n, other;
	int rc;

	(void)arg;
	node_open(&n, &o);
	node_open(&other, &o);
	OK(fi_cq_open(n.domain, &cq_attr, &cq, NULL));
	OK(fi_av_open(n.domain, &av_attr, &av, NULL));
	EXPECT(fi_ep_bind(n.ep, &cq->fid, FI_TRANSMIT) < 0); /* one CQ for each direction */
	EXPECT(fi_ep_bind(n.ep, &cq->fid, FI_RECV) < 0);
	rc = fi_ep_bind(n.ep, &cq->fid, FI_MULTICAST | FI_RMA);
	EXPECTF(rc == -FI_EBADFLAGS || rc == -FI_EINVAL, "nonsense flags: %d", rc);
	EXPECT(fi_ep_bind(n.ep, &av->fid, 0) < 0);
	OK(fi_endpoint(n.domain, n.info, &ep, NULL));
	EXPECT_RC(fi_ep_bind(ep, &other.av->fid, 0), -FI_EDOMAIN);
	EXPECT_RC(fi_ep_bind(ep, &other.txcq->fid, FI_TRANSMIT), -FI_EDOMAIN);
	OK(fi_close(&ep->fid));
	EXPECT(fi_ep_bind(n.ep, &n.domain->fid, 0) < 0); /* not a thing to bind */
	OK(fi_enable(n.ep));
	EXPECT_RC(fi_ep_bind(n.ep, &cq->fid, FI_TRANSMIT), -FI_EINVAL);
	OK(fi_close(&cq->fid)); /* no refused bind kept it */
	OK(fi_close(&av->fid));
	node_close(&n);
	node_close(&other);
}

static void test_not_enabled(long arg)
{
	struct node_opts o = { .disabled = true };
	char buf[8] = "";
	struct node n;

	(void)arg;
	node_open(&n, &o);
	EXPECT_RC(fi_trecv(n.ep, buf, 8, NULL, FI_ADDR_UNSPEC, 1, 0, NULL), -FI_EOPBADSTATE);
	EXPECT_RC(fi_recv(n.ep, buf, 8, NULL, FI_ADDR_UNSPEC, NULL), -FI_EOPBADSTATE);
	EXPECT_RC(fi_tsend(n.ep, buf, 8, NULL, 0, 1, NULL), -FI_EOPBADSTATE);
	EXPECT_RC(fi_send(n.ep, buf, 8, NULL, 0, NULL), -FI_EOPBADSTATE);
	EXPECT_RC(fi_inject(n.ep, buf, 8, 0), -FI_EOPBADSTATE);
	node_close(&n);
}

static void test_getname(long arg)
{
	char name[NODE_NAME_MAX], part[NODE_NAME_MAX];
	size_t len = sizeof(name), short_len;
	struct node n, second;

	(void)arg;
	node_open(&n, NULL);
	OK(fi_getname(&n.ep->fid, name, &len));
	CHECK(len > 0 && len <= sizeof(name));
	for (size_t room = 0; room < len; room++) {
		memset(part, 0x4e, sizeof(part));
		short_len = room;
		CHECK_RC(fi_getname(&n.ep->fid, part, &short_len), -FI_ETOOSMALL);
		CHECK(short_len == len);
		CHECK(memcmp(part, name, room) == 0);
		CHECK(part[room] == 0x4e);
	}
	node_open_on(&second, &n, NULL);
	short_len = sizeof(part);
	OK(fi_getname(&second.ep->fid, part, &short_len));
	CHECK(short_len != len || memcmp(part, name, len) != 0); /* names are unique */
	node_close(&second);
	node_close(&n);
}

/* Finds a free port by asking for any; returns 0 for providers not named by sockaddr. */
static uint16_t free_port(struct node *n, struct sockaddr_in *sin)
{
	size_t len = sizeof(*sin);

	if (n->info->addr_format != FI_SOCKADDR_IN)
		return 0;
	OK(fi_getname(&n->ep->fid, sin, &len));
	return ntohs(sin->sin_port);
}

static void test_setname(long arg)
{
	struct node_opts o = { .disabled = true, .addr_format = FI_SOCKADDR_IN };
	struct sockaddr_in want, got;
	size_t len = sizeof(got);
	struct fi_info *info = node_info(&o);
	struct node n;

	(void)arg;
	NEED(info != NULL, "FI_SOCKADDR_IN");
	fi_freeinfo(info);
	o.disabled = false;
	node_open(&n, &o);
	NEED(free_port(&n, &want) != 0, "names that are ports");
	node_close(&n);
	o.disabled = true;
	node_open(&n, &o);
	OK(fi_setname(&n.ep->fid, &want, sizeof(want)));
	OK(fi_enable(n.ep));
	OK(fi_getname(&n.ep->fid, &got, &len));
	CHECK(got.sin_port == want.sin_port);
	EXPECT(fi_setname(&n.ep->fid, &want, sizeof(want)) < 0);
	node_close(&n);
}

/* The port that a getinfo with FI_SOURCE named is the endpoint's; a second owner is refused. */
static void test_source_port(long arg)
{
	struct node_opts o = { .addr_format = FI_SOCKADDR_IN };
	struct sockaddr_in want, got;
	struct fi_info *info = node_info(&o);
	char service[16];
	struct node n;

	(void)arg;
	NEED(info != NULL, "FI_SOCKADDR_IN");
	fi_freeinfo(info);
	node_open(&n, &o);
	NEED(free_port(&n, &want) != 0, "names that are ports");
	node_close(&n);
	snprintf(service, sizeof(service), "%u", ntohs(want.sin_port));
	o.service = service;
	node_open(&n, &o);
	CHECK(free_port(&n, &got) == ntohs(want.sin_port));
	if (test_is_weft()) {
		struct fid_ep *ep;
		int rc = fi_endpoint(n.domain, n.info, &ep, NULL);

		if (rc == 0) { /* it may notice at the latest when it is enabled */
			OK(fi_ep_bind(ep, &n.av->fid, 0));
			OK(fi_ep_bind(ep, &n.txcq->fid, FI_TRANSMIT | FI_RECV));
			rc = fi_enable(ep);
			OK(fi_close(&ep->fid));
		}
		CHECK_RC(rc, -FI_EADDRINUSE);
	}
	node_close(&n);
}

static void test_options(long arg)
{
	struct node_opts o = { .caps = FI_MSG | FI_MULTI_RECV, .disabled = true };
	size_t value = 1000, got = 0, len = sizeof(got);
	struct node n;

	(void)arg;
	node_open(&n, &o);
	OK(fi_getopt(&n.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &got, &len));
	CHECK(len == sizeof(got));
	OK(fi_setopt(&n.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, sizeof(value)));
	OK(fi_getopt(&n.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &got, &len));
	CHECK(got == 1000);
	len = 2;
	EXPECT_RC(fi_getopt(&n.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &got, &len), -FI_ETOOSMALL);
	EXPECT_RC(fi_setopt(&n.ep->fid, FI_OPT_ENDPOINT, 0x7777, &value, sizeof(value)), -FI_ENOPROTOOPT);
	len = sizeof(got);
	EXPECT_RC(fi_getopt(&n.ep->fid, FI_OPT_ENDPOINT, 0x7777, &got, &len), -FI_ENOPROTOOPT);
	EXPECT_RC(fi_getopt(&n.ep->fid, 99, FI_OPT_MIN_MULTI_RECV, &got, &len), -FI_ENOPROTOOPT);
	OK(fi_enable(n.ep));
	OK(fi_getopt(&n.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &got, &len));
	CHECK(got == 1000);
	node_close(&n);
}

static void test_op_flags(long arg)
{
	struct node_opts o = { .tx_bind = FI_SELECTIVE_COMPLETION };
	uint64_t flags = FI_TRANSMIT;
	char in[8], out[8];
	struct node n;

	(void)arg;
	node_open(&n, &o);
	node_connect(&n);
	OK(fi_control(&n.ep->fid, FI_GETOPSFLAG, &flags));
	CHECK(!(flags & FI_COMPLETION));
	flags = FI_TRANSMIT | FI_COMPLETION;
	OK(fi_control(&n.ep->fid, FI_SETOPSFLAG, &flags));
	flags = FI_TRANSMIT;
	OK(fi_control(&n.ep->fid, FI_GETOPSFLAG, &flags));
	CHECK(flags & FI_COMPLETION);
	trecv(&n, in, 8, FI_ADDR_UNSPEC, 1, 0, in);
	tsend(&n, out, 8, n.peer[0], 1, out);
	wait_ctx(&n, n.rxcq, in);
	wait_ctx(&n, n.txcq, out); /* the new default asks for it */
	flags = FI_TRANSMIT | FI_RECV;
	EXPECT(fi_control(&n.ep->fid, FI_GETOPSFLAG, &flags) < 0);
	node_close(&n);
}

/* An alias is the same endpoint with other default flags, and must go first. */
static void test_alias(long arg)
{
	struct node_opts o = { .tx_bind = FI_SELECTIVE_COMPLETION };
	struct fid_ep *alias = NULL, *none = NULL;
	char in[8], out[8];
	struct node n;

	(void)arg;
	node_open(&n, &o);
	node_connect(&n);
	OK(fi_ep_alias(n.ep, &alias, FI_TRANSMIT | FI_COMPLETION));
	for (int i = 0; i < 2; i++)
		trecv(&n, in, 8, FI_ADDR_UNSPEC, 1, 0, in);
	OK(fi_tsend(alias, out, 8, NULL, n.peer[0], 1, out));
	wait_ctx(&n, n.rxcq, in);
	wait_ctx(&n, n.txcq, out);
	tsend(&n, out, 8, n.peer[0], 1, out);
	wait_ctx(&n, n.rxcq, in);
	wait_none(&n, n.txcq, 5); /* the endpoint itself is as before */
	EXPECT(fi_ep_alias(n.ep, &none, FI_TRANSMIT | FI_RECV) < 0);
	EXPECT_RC(fi_close(&n.ep->fid), -FI_EBUSY);
	OK(fi_close(&alias->fid));
	node_close(&n);
}

static const struct test tests[] = {
	{ "enable_without", test_enable_without, 1, 0, 0 },
	{ "enable_rma", test_enable_rma, 1, 0, 0 },
	{ "deaf", test_deaf, 1, 0, 0 },
	{ "bind_rules", test_bind_rules, 1, 0, 0 },
	{ "not_enabled", test_not_enabled, 1, 0, 0 },
	{ "getname", test_getname, 1, 0, 0 },
	{ "setname", test_setname, 1, 0, 0 },
	{ "source_port", test_source_port, 1, 0, 0 },
	{ "options", test_options, 1, 0, 0 },
	{ "op_flags", test_op_flags, 1, 0, 0 },
	{ "alias", test_alias, 1, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
