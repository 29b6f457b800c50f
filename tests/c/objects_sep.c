/* SPDX-License-Identifier: BSD-2-Clause */
/* Scalable endpoints as objects: attributes, binding, states, names, closing. */
#include "common.h"

struct sep {
	struct node n; /* fabric and domain */
	struct fid_ep *ep;
	struct fid_av *av;
	struct fid_cq *cq;
};

static void sep_open(struct sep *s, size_t tx, size_t rx)
{
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED | FI_NAMED_RX_CTX | FI_SOURCE };
	struct fi_av_attr av = { .type = FI_AV_TABLE, .rx_ctx_bits = 2 };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED };

	memset(s, 0, sizeof(*s));
	node_open_domain(&s->n, &o);
	NEED(s->n.info->domain_attr->max_ep_tx_ctx > 1 && s->n.info->domain_attr->max_ep_rx_ctx > 1,
	     "scalable endpoints");
	s->n.info->ep_attr->tx_ctx_cnt = tx;
	s->n.info->ep_attr->rx_ctx_cnt = rx;
	OK(fi_av_open(s->n.domain, &av, &s->av, NULL));
	OK(fi_cq_open(s->n.domain, &cq, &s->cq, NULL));
	OK(fi_scalable_ep(s->n.domain, s->n.info, &s->ep, NULL));
}

/* Contexts that are enabled have a socket each, by which they ask for peers' devices. */
static void sep_open_used(struct sep *s, size_t tx, size_t rx)
{
	NEED_WAY(WAY_UDP, "contexts of scalable endpoints");
	sep_open(s, tx, rx);
}

static void sep_close(struct sep *s)
{
	OK(fi_close(&s->ep->fid));
	OK(fi_close(&s->cq->fid));
	OK(fi_close(&s->av->fid));
	node_close_domain(&s->n);
}

/* Hints for numbers of contexts are met or refused. */
static void test_hints(long arg)
{
	struct fi_info *hints = node_hints(NULL), *info = NULL;
	size_t most;

	(void)arg;
	OK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	most = info->domain_attr->max_ep_tx_ctx;
	NEED(most > 1 && info->domain_attr->max_ep_rx_ctx > 1, "scalable endpoints");
	CHECK(info->ep_attr->tx_ctx_cnt == 1 && info->ep_attr->rx_ctx_cnt == 1);
	CHECK(!(info->caps & FI_NAMED_RX_CTX)); /* a primary capability, not asked for */
	fi_freeinfo(info);
	hints->caps |= FI_NAMED_RX_CTX;
	hints->ep_attr->tx_ctx_cnt = most;
	hints->ep_attr->rx_ctx_cnt = 2;
	hints->domain_attr->max_ep_tx_ctx = most;
	OK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	CHECK(info->ep_attr->tx_ctx_cnt == most && info->ep_attr->rx_ctx_cnt == 2);
	CHECK(info->caps & FI_NAMED_RX_CTX && info->tx_attr->caps & FI_NAMED_RX_CTX);
	fi_freeinfo(info);
	hints->ep_attr->tx_ctx_cnt = most + 1;
	CHECK_RC(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), -FI_ENODATA);
	hints->ep_attr->tx_ctx_cnt = 1;
	hints->domain_attr->max_ep_rx_ctx = most + 1;
	CHECK_RC(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), -FI_ENODATA);
	fi_freeinfo(hints);
}

static void test_counts(long arg)
{
	struct fid_ep *ep;
	struct sep s;

	(void)arg;
	sep_open(&s, 0, 2); /* 0 stands for 1 */
	OK(fi_tx_context(s.ep, 0, NULL, &ep, NULL));
	OK(fi_close(&ep->fid));
	CHECK_RC(fi_tx_context(s.ep, 1, NULL, &ep, NULL), -FI_EINVAL);
	CHECK_RC(fi_tx_context(s.ep, -1, NULL, &ep, NULL), -FI_EINVAL);
	CHECK_RC(fi_rx_context(s.ep, 2, NULL, &ep, NULL), -FI_EINVAL);
	CHECK_RC(fi_rx_context(s.ep, 0, NULL, NULL, NULL), -FI_EINVAL);
	OK(fi_rx_context(s.ep, 1, NULL, &ep, NULL));
	OK(fi_close(&ep->fid));
	s.n.info->ep_attr->tx_ctx_cnt = s.n.info->domain_attr->max_ep_tx_ctx + 1;
	CHECK_RC(fi_scalable_ep(s.n.domain, s.n.info, &ep, NULL), -FI_EINVAL);
	s.n.info->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
	CHECK_RC(fi_scalable_ep(s.n.domain, s.n.info, &ep, NULL), -FI_EINVAL);
	CHECK_RC(fi_scalable_ep(s.n.domain, NULL, &ep, NULL), -FI_EINVAL);
	sep_close(&s);
}

/* Attributes of a context may be less than its endpoint's, not more. */
static void test_attributes(long arg)
{
	struct fi_tx_attr tx;
	struct fi_rx_attr rx;
	struct fid_ep *ep;
	struct sep s;

	(void)arg;
	sep_open(&s, 2, 2);
	tx = (struct fi_tx_attr){ .caps = FI_TAGGED, .size = 64, .op_flags = FI_COMPLETION };
	OK(fi_tx_context(s.ep, 0, &tx, &ep, NULL));
	CHECK(tx.caps == (FI_TAGGED | FI_SEND) && tx.size == 64 && tx.op_flags == FI_COMPLETION);
	CHECK(tx.inject_size == s.n.info->tx_attr->inject_size && tx.iov_limit == s.n.info->tx_attr->iov_limit);
	CHECK_RC((int)fi_send(ep, NULL, 0, NULL, 0, NULL), -FI_ENOSYS);
	OK(fi_close(&ep->fid));
	tx = (struct fi_tx_attr){ 0 };
	OK(fi_tx_context(s.ep, 0, &tx, &ep, NULL));
	CHECK(tx.caps == s.n.info->tx_attr->caps && tx.size == s.n.info->tx_attr->size);
	OK(fi_close(&ep->fid));
	tx = *s.n.info->tx_attr;
	OK(fi_tx_context(s.ep, 0, &tx, &ep, NULL));
	OK(fi_close(&ep->fid));
	tx = (struct fi_tx_attr){ .caps = FI_TAGGED | FI_FENCE }; /* not asked of the endpoint */
	CHECK_RC(fi_tx_context(s.ep, 0, &tx, &ep, NULL), -FI_EINVAL);
	tx = (struct fi_tx_attr){ .inject_size = s.n.info->tx_attr->inject_size + 1 };
	CHECK_RC(fi_tx_context(s.ep, 0, &tx, &ep, NULL), -FI_EINVAL);
	tx = (struct fi_tx_attr){ .iov_limit = s.n.info->tx_attr->iov_limit + 1 };
	CHECK_RC(fi_tx_context(s.ep, 0, &tx, &ep, NULL), -FI_EINVAL);
	tx = (struct fi_tx_attr){ .op_flags = FI_MORE };
	CHECK_RC(fi_tx_context(s.ep, 0, &tx, &ep, NULL), -FI_EBADFLAGS);

	rx = (struct fi_rx_attr){ .caps = FI_MSG, .size = 64 };
	OK(fi_rx_context(s.ep, 1, &rx, &ep, NULL));
	CHECK(rx.caps == (FI_MSG | FI_RECV) && rx.size == 64);
	CHECK(rx.iov_limit == s.n.info->rx_attr->iov_limit);
	CHECK_RC((int)fi_trecv(ep, NULL, 0, NULL, FI_ADDR_UNSPEC, 0, 0, NULL), -FI_ENOSYS);
	CHECK_RC((int)fi_send(ep, NULL, 0, NULL, 0, NULL), -FI_ENOSYS);
	OK(fi_close(&ep->fid));
	rx = *s.n.info->rx_attr;
	OK(fi_rx_context(s.ep, 1, &rx, &ep, NULL));
	OK(fi_close(&ep->fid));
	rx = (struct fi_rx_attr){ .caps = FI_DIRECTED_RECV };
	CHECK_RC(fi_rx_context(s.ep, 1, &rx, &ep, NULL), -FI_EINVAL);
	rx = (struct fi_rx_attr){ .iov_limit = 1000 };
	CHECK_RC(fi_rx_context(s.ep, 1, &rx, &ep, NULL), -FI_EINVAL);
	rx = (struct fi_rx_attr){ .op_flags = FI_INJECT };
	CHECK_RC(fi_rx_context(s.ep, 1, &rx, &ep, NULL), -FI_EBADFLAGS);
	sep_close(&s);
}

/* An endpoint that only sends has no receive contexts. */
static void test_one_way(long arg)
{
	struct fid_ep *ep;
	struct sep s;

	(void)arg;
	sep_open(&s, 1, 1);
	OK(fi_close(&s.ep->fid));
	s.n.info->caps &= ~FI_RECV;
	OK(fi_scalable_ep(s.n.domain, s.n.info, &s.ep, NULL));
	CHECK_RC(fi_rx_context(s.ep, 0, NULL, &ep, NULL), -FI_EINVAL);
	OK(fi_tx_context(s.ep, 0, NULL, &ep, NULL));
	OK(fi_close(&ep->fid));
	sep_close(&s);
}

/* What can be bound where, and in which state. */
static void test_binding(long arg)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_ep *tx, *rx, *srx;
	struct fid_cntr *cntr;
	struct sep s;

	(void)arg;
	sep_open_used(&s, 1, 1);
	OK(fi_cntr_open(s.n.domain, &attr, &cntr, NULL));
	OK(fi_srx_context(s.n.domain, NULL, &srx, NULL));
	OK(fi_tx_context(s.ep, 0, NULL, &tx, NULL));
	OK(fi_rx_context(s.ep, 0, NULL, &rx, NULL));
	CHECK_RC(fi_enable(s.ep), -FI_ENOAV);
	CHECK_RC(fi_scalable_ep_bind(s.ep, &s.cq->fid, FI_TRANSMIT), -FI_EINVAL);
	CHECK_RC(fi_scalable_ep_bind(s.ep, &s.av->fid, 1), -FI_EBADFLAGS);
	CHECK_RC(fi_ep_bind(tx, &s.cq->fid, FI_TRANSMIT | FI_RECV), -FI_EBADFLAGS);
	CHECK_RC(fi_ep_bind(rx, &s.cq->fid, FI_TRANSMIT), -FI_EBADFLAGS);
	CHECK_RC(fi_ep_bind(rx, &cntr->fid, FI_SEND), -FI_EBADFLAGS);
	CHECK_RC(fi_ep_bind(rx, &srx->fid, 0), -FI_EINVAL);
	CHECK_RC(fi_ep_bind(tx, &s.av->fid, 0), -FI_EINVAL);
	CHECK_RC(fi_enable(tx), -FI_ENOAV);
	OK(fi_scalable_ep_bind(s.ep, &s.av->fid, 0));
	CHECK_RC(fi_scalable_ep_bind(s.ep, &s.av->fid, 0), -FI_EINVAL);
	CHECK_RC(fi_enable(tx), -FI_ENOCQ);
	CHECK_RC(fi_enable(rx), -FI_ENOCQ);
	OK(fi_ep_bind(tx, &s.cq->fid, FI_TRANSMIT));
	CHECK_RC((int)fi_tsend(tx, NULL, 0, NULL, 0, 0, NULL), -FI_EOPBADSTATE);
	OK(fi_enable(tx));
	CHECK_RC(fi_enable(tx), -FI_EOPBADSTATE);
	OK(fi_enable(s.ep));
	CHECK_RC(fi_enable(s.ep), -FI_EOPBADSTATE);
	CHECK_RC((int)fi_trecv(rx, NULL, 0, NULL, FI_ADDR_UNSPEC, 0, 0, NULL), -FI_EOPBADSTATE);
	OK(fi_ep_bind(rx, &cntr->fid, FI_RECV)); /* a counter is enough */
	OK(fi_enable(rx));
	CHECK_RC((int)fi_tsend(s.ep, NULL, 0, NULL, 0, 0, NULL), -FI_ENOSYS);
	CHECK_RC(fi_close(&s.cq->fid), -FI_EBUSY);
	CHECK_RC(fi_close(&cntr->fid), -FI_EBUSY);
	OK(fi_close(&tx->fid));
	OK(fi_close(&rx->fid));
	OK(fi_close(&srx->fid));
	OK(fi_close(&cntr->fid));
	sep_close(&s);
}

/* Receive contexts count for themselves. */
static void test_counters(long arg)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *cntr[2], *sent;
	struct fid_ep *tx, *rx[2];
	struct name name;
	struct sep s;
	uint64_t in;

	(void)arg;
	sep_open_used(&s, 1, 2);
	s.n.ep = s.ep;
	s.n.av = s.av;
	OK(fi_scalable_ep_bind(s.ep, &s.av->fid, 0));
	OK(fi_cntr_open(s.n.domain, &attr, &sent, NULL));
	OK(fi_tx_context(s.ep, 0, NULL, &tx, NULL));
	OK(fi_ep_bind(tx, &sent->fid, FI_SEND));
	OK(fi_enable(tx));
	for (int i = 0; i < 2; i++) {
		OK(fi_cntr_open(s.n.domain, &attr, &cntr[i], NULL));
		OK(fi_rx_context(s.ep, i, NULL, &rx[i], NULL));
		OK(fi_ep_bind(rx[i], &cntr[i]->fid, FI_RECV));
		OK(fi_enable(rx[i]));
	}
	node_name(&s.n, &name);
	node_insert_name(&s.n, &name);
	for (uint64_t i = 0; i < 30; i++) {
		OK((int)fi_trecv(rx[i % 3 == 0], &in, 8, NULL, FI_ADDR_UNSPEC, 0, ~0ull, &in));
		OK((int)fi_tinject(tx, &i, 8, fi_rx_addr(0, i % 3 == 0, 2), i));
	}
	while (fi_cntr_read(cntr[0]) < 20 || fi_cntr_read(cntr[1]) < 10)
		;
	CHECK(fi_cntr_read(cntr[0]) == 20 && fi_cntr_read(cntr[1]) == 10 && fi_cntr_read(sent) == 30);
	OK(fi_close(&tx->fid));
	OK(fi_close(&sent->fid));
	for (int i = 0; i < 2; i++) {
		OK(fi_close(&rx[i]->fid));
		OK(fi_close(&cntr[i]->fid));
	}
	sep_close(&s);
}

/* One name for the endpoint and its contexts. */
static void test_names(long arg)
{
	struct name own, other;
	struct fid_ep *tx;
	struct node v;
	struct sep s;

	(void)arg;
	sep_open_used(&s, 1, 1);
	OK(fi_scalable_ep_bind(s.ep, &s.av->fid, 0));
	OK(fi_tx_context(s.ep, 0, NULL, &tx, NULL));
	v = s.n;
	v.ep = s.ep;
	node_name(&v, &own);
	v.ep = tx;
	node_name(&v, &other);
	CHECK(own.len == other.len && !memcmp(own.bytes, other.bytes, own.len));
	CHECK_RC(fi_setname(&tx->fid, own.bytes, own.len), -FI_ENOSYS);
	memset(own.bytes + 2, 0, 2); /* port: any */
	OK(fi_setname(&s.ep->fid, own.bytes, own.len));
	node_name(&v, &own);
	CHECK(memcmp(own.bytes, other.bytes, own.len));
	OK(fi_ep_bind(tx, &s.cq->fid, FI_TRANSMIT));
	OK(fi_enable(tx));
	CHECK_RC(fi_setname(&s.ep->fid, own.bytes, own.len), -FI_EOPBADSTATE);
	OK(fi_close(&tx->fid));
	sep_close(&s);
}

/* A context is open once at a time; the endpoint goes after its contexts. */
static void test_life(long arg)
{
	struct fid_ep *rx, *again, *alias = NULL;
	struct sep s;

	(void)arg;
	sep_open_used(&s, 1, 2);
	OK(fi_scalable_ep_bind(s.ep, &s.av->fid, 0));
	for (int i = 0; i < 50; i++) {
		OK(fi_rx_context(s.ep, i % 2, NULL, &rx, NULL));
		CHECK_RC(fi_rx_context(s.ep, i % 2, NULL, &again, NULL), -FI_EBUSY);
		OK(fi_ep_bind(rx, &s.cq->fid, FI_RECV));
		OK(fi_enable(rx));
		OK(fi_ep_alias(rx, &alias, 0));
		CHECK_RC(fi_close(&s.ep->fid), -FI_EBUSY);
		CHECK_RC(fi_close(&rx->fid), -FI_EBUSY);
		OK(fi_close(&alias->fid));
		OK(fi_close(&rx->fid));
	}
	CHECK_RC(fi_close(&s.n.domain->fid), -FI_EBUSY);
	sep_close(&s);
}

/* Receive context bits: as many as weft can use and some more. */
static void test_bits(long arg)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE };
	struct fid_av *av;
	struct sep s;

	(void)arg;
	sep_open(&s, 1, 1);
	for (attr.rx_ctx_bits = 0; 1ul << attr.rx_ctx_bits <= 2 * s.n.info->domain_attr->max_ep_rx_ctx;
	     attr.rx_ctx_bits++) {
		OK(fi_av_open(s.n.domain, &attr, &av, NULL));
		OK(fi_close(&av->fid));
	}
	attr.rx_ctx_bits = 33;
	CHECK_RC(fi_av_open(s.n.domain, &attr, &av, NULL), -FI_EINVAL);
	attr.rx_ctx_bits = -1;
	CHECK_RC(fi_av_open(s.n.domain, &attr, &av, NULL), -FI_EINVAL);
	sep_close(&s);
}

static const struct test tests[] = {
	{ "hints", test_hints, 1, 0, 0 },
	{ "counts", test_counts, 1, 0, 0 },
	{ "attributes", test_attributes, 1, 0, 0 },
	{ "one_way", test_one_way, 1, 0, 0 },
	{ "binding", test_binding, 1, 0, 0 },
	{ "counters", test_counters, 1, 0, 0 },
	{ "names", test_names, 1, 0, 0 },
	{ "life", test_life, 1, 0, 0 },
	{ "bits", test_bits, 1, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
