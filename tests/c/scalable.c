/* SPDX-License-Identifier: BSD-2-Clause */
/* Scalable endpoints: transfers between contexts, in one process and between two. */
#include "common.h"

#include <pthread.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#define CTXS 3
#define BITS 2

static const size_t sizes[] = { 8, 4000, 300000 };

/* A scalable endpoint with all its contexts, each with a CQ of its own. */
struct sep {
	struct node n; /* fabric, domain and the addresses of all ranks */
	struct fid_ep *ep, *tx[CTXS], *rx[CTXS];
	struct fid_cq *txcq[CTXS], *rxcq[CTXS];
};

/* What the helpers of xfer.c need to send from tx t, or to receive with rx r. Both CQs make progress. */
static struct node sender(struct sep *s, int t, int r)
{
	struct node v = s->n;

	v.ep = s->tx[t];
	v.txcq = s->txcq[t];
	v.rxcq = s->rxcq[r];
	return v;
}

static struct node receiver(struct sep *s, int t, int r)
{
	struct node v = sender(s, t, r);

	v.ep = s->rx[r];
	return v;
}

static void open_context(struct sep *s, int i)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_rx_attr rx = *s->n.info->rx_attr;

	rx.caps |= FI_NAMED_RX_CTX; /* the endpoint has it, so it may be asked for */
	OK(fi_cq_open(s->n.domain, &cq, &s->txcq[i], NULL));
	OK(fi_cq_open(s->n.domain, &cq, &s->rxcq[i], NULL));
	OK(fi_tx_context(s->ep, i, NULL, &s->tx[i], NULL));
	OK(fi_rx_context(s->ep, i, i ? &rx : NULL, &s->rx[i], NULL));
	OK(fi_ep_bind(s->tx[i], &s->txcq[i]->fid, FI_TRANSMIT));
	OK(fi_ep_bind(s->rx[i], &s->rxcq[i]->fid, FI_RECV));
	OK(fi_enable(s->tx[i]));
	OK(fi_enable(s->rx[i]));
}

static enum fi_progress progress_model; /* of what sep_open opens */

static void sep_open(struct sep *s, uint64_t caps, enum fi_threading threading)
{
	struct node_opts o = {
		.caps = FI_MSG | FI_TAGGED | FI_NAMED_RX_CTX | caps,
		.threading = threading,
		.control = progress_model,
		.data = progress_model,
	};
	struct fi_av_attr av = { .type = FI_AV_TABLE, .rx_ctx_bits = BITS };

	NEED_WAY(WAY_UDP, "contexts of scalable endpoints");
	memset(s, 0, sizeof(*s));
	node_open_domain(&s->n, &o);
	NEED(s->n.info->domain_attr->max_ep_tx_ctx >= CTXS && s->n.info->domain_attr->max_ep_rx_ctx >= CTXS,
	     "scalable endpoints");
	s->n.info->ep_attr->tx_ctx_cnt = s->n.info->ep_attr->rx_ctx_cnt = CTXS;
	OK(fi_av_open(s->n.domain, &av, &s->n.av, NULL));
	OK(fi_scalable_ep(s->n.domain, s->n.info, &s->ep, NULL));
	OK(fi_scalable_ep_bind(s->ep, &s->n.av->fid, 0));
	for (int i = 0; i < CTXS; i++)
		open_context(s, i);
	OK(fi_enable(s->ep));
	s->n.ep = s->ep; /* what its name is asked of */
	s->n.txcq = s->txcq[0];
	s->n.rxcq = s->rxcq[0];
	node_connect(&s->n);
}

static void sep_close(struct sep *s)
{
	CHECK_RC(fi_close(&s->ep->fid), -FI_EBUSY); /* contexts are open */
	for (int i = 0; i < CTXS; i++) {
		if (s->tx[i])
			OK(fi_close(&s->tx[i]->fid));
		OK(fi_close(&s->rx[i]->fid));
	}
	CHECK_RC(fi_close(&s->n.av->fid), -FI_EBUSY);
	OK(fi_close(&s->ep->fid));
	for (int i = 0; i < CTXS; i++) {
		OK(fi_close(&s->txcq[i]->fid));
		OK(fi_close(&s->rxcq[i]->fid));
	}
	OK(fi_close(&s->n.av->fid));
	node_close_domain(&s->n);
}

/* Answers come to the transmit context that asked, from whichever receive context. */
static void test_fetch(long arg)
{
	uint64_t word = 0, one = 1, before = 0, want = 0;
	struct fid_mr *mr;
	struct sep s;

	(void)arg;
	sep_open(&s, FI_RMA | FI_ATOMIC, FI_THREAD_SAFE);
	OK(fi_mr_reg(s.n.domain, &word, sizeof(word), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 7, 0, &mr, NULL));
	for (int k = 0; k < 20 * CTXS * CTXS; k++) {
		int t = k % CTXS, r = k / CTXS % CTXS;
		struct node v = sender(&s, t, r);
		uint64_t addr = s.n.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)&word : 0;
		fi_addr_t peer = fi_rx_addr(s.n.peer[0], r, BITS);
		ssize_t rc;

		if (k % 3 == 2)
			rc = fi_read(v.ep, &before, sizeof(before), NULL, peer, addr, fi_mr_key(mr), &before);
		else
			rc = fi_fetch_atomic(v.ep, &one, 1, NULL, &before, NULL, peer, addr, fi_mr_key(mr), FI_UINT64,
					     FI_SUM, &before);
		OK(rc);
		wait_ctx(&v, v.txcq, &before);
		CHECKF(before == want, "fetched %lu, want %lu", (unsigned long)before, (unsigned long)want);
		want += k % 3 != 2;
	}
	OK(fi_close(&mr->fid));
	sep_close(&s);
}

/* Every transmit context reaches every receive context by its index, and no other. */
static void test_named(long arg)
{
	struct sep s;

	(void)arg;
	sep_open(&s, 0, FI_THREAD_SAFE);
	for (int t = 0; t < CTXS; t++)
		for (int r = 0; r < CTXS; r++) {
			uint64_t in[CTXS] = { 0 }, out = (uint64_t)(t * 10 + r + 1);
			struct node v = sender(&s, t, r);

			for (int i = 0; i < CTXS; i++)
				OK(fi_trecv(s.rx[i], &in[i], 8, NULL, FI_ADDR_UNSPEC, 3, 0, &in[i]));
			tsend(&v, &out, 8, fi_rx_addr(s.n.peer[0], r, BITS), 3, &out);
			wait_ctx(&v, v.rxcq, &in[r]);
			wait_ctx(&v, v.txcq, &out);
			CHECK(in[r] == out);
			for (int i = 0; i < CTXS; i++)
				if (i != r) {
					CHECK(in[i] == 0);
					OK(fi_cancel(&s.rx[i]->fid, &in[i]));
					v = receiver(&s, t, i);
					wait_err(&v, v.rxcq, FI_ECANCELED);
				}
		}
	sep_close(&s);
}

/* An index that names no context: refused, or tried until the connect time-out. */
static void test_no_context(long arg)
{
	struct fi_cq_tagged_entry e;
	struct sep s;
	ssize_t rc;

	(void)arg;
	CHECK(setenv("FI_WEFT_CONNECT_TIMEOUT", "50ms", 1) == 0);
	sep_open(&s, 0, FI_THREAD_SAFE);
	while ((rc = fi_tsend(s.tx[0], "x", 1, NULL, fi_rx_addr(s.n.peer[0], CTXS, BITS), 0, NULL)) == -FI_EAGAIN)
		fi_cq_read(s.txcq[0], &e, 1);
	CHECK_RC((int)rc, -FI_EHOSTUNREACH);
	CHECK_RC((int)fi_tsend(s.tx[0], "x", 1, NULL, fi_rx_addr(s.n.peer[0] + 1, 1, BITS), 0, NULL), -FI_EINVAL);
	sep_close(&s);
}

/* Waits for one completion and which it is from. */
static void wait_from(struct node *v, fi_addr_t want, struct fi_cq_tagged_entry *e)
{
	fi_addr_t src = 0x5a5a;
	ssize_t rc;

	while ((rc = fi_cq_readfrom(v->rxcq, e, 1, &src)) == -FI_EAGAIN)
		progress(v);
	CHECK_RC((int)rc, 1);
	CHECKF(src == want, "source %#llx, want %#llx", (unsigned long long)src, (unsigned long long)want);
}

/* Rank 1 sends from each context to each of rank 0, in every protocol; rank 0 receives by source.
 * With arg the receives come late. */
static void test_pairs(long late)
{
	struct fi_cq_tagged_entry e;
	char *buf = malloc(sizes[2]);
	struct sep s;

	CHECK(buf != NULL);
	sep_open(&s, FI_SOURCE | FI_DIRECTED_RECV, FI_THREAD_SAFE);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		for (int t = 0; t < CTXS; t++)
			for (int r = 0; r < CTXS; r++) {
				uint64_t tag = (uint64_t)(t * 8 + r);
				struct node v = test_rank ? sender(&s, t, r) : receiver(&s, t, r);

				if (test_rank) {
					fill(buf, sizes[i], tag);
					if (!late)
						barrier(&v);
					tsend(&v, buf, sizes[i], fi_rx_addr(s.n.peer[0], r, BITS), tag, buf);
					if (late)
						barrier(&v);
					wait_ctx(&v, v.txcq, buf);
					continue;
				}
				if (late)
					barrier(&v);
				trecv(&v, buf, sizes[i], fi_rx_addr(s.n.peer[1], t, BITS), tag, 0, buf);
				if (!late)
					barrier(&v);
				wait_from(&v, s.n.peer[1], &e);
				CHECK(e.op_context == buf && e.len == sizes[i] && e.tag == tag);
				verify(buf, sizes[i], tag);
			}
	barrier(&s.n);
	sep_close(&s);
	free(buf);
}

/* Receives, or searches for, a message with a tag in up to two elements, and waits. Returns the error, or 0. */
static int receive_as(struct node *v, uint64_t tag, char *buf, size_t len, int elements, uint64_t flags)
{
	static struct fi_context2 context; /* FI_CLAIM asks for it */
	struct op o = {
		.form = F_MSG, .tagged = true, .addr = FI_ADDR_UNSPEC, .tag = tag, .flags = flags, .ctx = &context
	};
	struct fi_cq_tagged_entry e;
	ssize_t rc;

	op_split(&o, buf, len, elements, false);
	while ((rc = op_recv(v->ep, &o)) == -FI_EAGAIN)
		progress(v);
	OK((int)rc);
	rc = wait_for(v, v->rxcq, &e, -1);
	CHECK(rc < 0 || (e.op_context == &context && e.tag == tag));
	return rc < 0 ? (int)-rc : 0;
}

/* Messages from a context that come before their receives, which are of every kind: into two elements, claimed, into a
 * buffer that is too short, discarded. Their sender hears of each, at every completion level. */
static void test_kinds(long level)
{
	enum { SIZE = 100000, SHORT = 5000, KINDS = 4 };
	char *buf = malloc(SIZE);
	struct sep s;

	CHECK(buf != NULL);
	sep_open(&s, 0, FI_THREAD_SAFE);
	for (uint64_t i = 0; i < 6 * KINDS; i++) {
		size_t size = i / KINDS % 2 ? SHORT : SIZE;
		struct node v = test_rank ? sender(&s, 1, 2) : receiver(&s, 1, 2);
		struct op o = { .form = F_MSG,
				.tagged = true,
				.addr = fi_rx_addr(s.n.peer[0], 2, BITS),
				.tag = i,
				.flags = FI_COMPLETION | (uint64_t)level,
				.ctx = buf };
		uint64_t claim = i % KINDS == 1 ? FI_CLAIM : i % KINDS == 3 ? FI_DISCARD : 0;
		int rc;

		if (test_rank) {
			fill(buf, size, i);
			op_split(&o, buf, size, 1, false);
			while (op_send(v.ep, &o) == -FI_EAGAIN)
				progress(&v);
			wait_ctx(&v, v.txcq, buf);
			continue;
		}
		wait_none(&v, v.rxcq, 10); /* takes it in, most often */
		while ((rc = receive_as(&v, i, NULL, 0, 0, FI_PEEK | claim)))
			CHECK_RC(rc, FI_ENOMSG);
		if (i % KINDS == 3)
			continue;
		rc = receive_as(&v, i, buf, i % KINDS == 2 ? 1000 : size, i % KINDS ? 1 : 2, claim);
		CHECK_RC(rc, i % KINDS == 2 ? FI_ETRUNC : 0);
		if (!rc)
			verify(buf, size, i);
	}
	barrier(&s.n);
	sep_close(&s);
	free(buf);
}

/* A progress thread drives every context: what was sent to one arrives though nothing reads the
 * others' queues, and a rendezvous ends though its sender sleeps. */
static void test_auto(long arg)
{
	struct fi_cq_tagged_entry e;
	char *buf = malloc(sizes[2]);
	struct sep s;
	ssize_t rc;

	(void)arg;
	CHECK(buf != NULL);
	progress_model = FI_PROGRESS_AUTO;
	sep_open(&s, FI_SOURCE, FI_THREAD_SAFE);
	for (int i = 0; i < CTXS; i++) {
		fill(buf, sizes[2], (uint64_t)i);
		if (test_rank) {
			barrier(NULL);
			do /* until the other host has answered */
				rc = fi_tsend(s.tx[i], buf, sizes[2], NULL, fi_rx_addr(s.n.peer[0], i, BITS), 7, buf);
			while (rc == -FI_EAGAIN);
			OK((int)rc);
			barrier(NULL);
			while ((rc = fi_cq_read(s.txcq[i], &e, 1)) == -FI_EAGAIN)
				;
			CHECK(rc == 1 && e.op_context == buf);
			continue;
		}
		memset(buf, 0, sizes[2]);
		OK((int)fi_trecv(s.rx[i], buf, sizes[2], NULL, FI_ADDR_UNSPEC, 7, 0, buf));
		barrier(NULL);
		while ((rc = fi_cq_read(s.rxcq[i], &e, 1)) == -FI_EAGAIN)
			;
		CHECK(rc == 1 && e.len == sizes[2]);
		verify(buf, sizes[2], (uint64_t)i);
		barrier(NULL);
	}
	sep_close(&s);
	free(buf);
}

/* Without an index the first receive context is meant, which is also what an ordinary endpoint is. */
static void test_plain(long arg)
{
	struct sep s;
	struct node n;
	struct node v;
	char in[8], out[8] = "hello";
	fi_addr_t addr;

	(void)arg;
	sep_open(&s, 0, FI_THREAD_SAFE);
	node_open(&n, NULL);
	v = receiver(&s, 0, 0);
	addr = node_insert(&n, &s.n);
	trecv(&v, in, sizeof(in), FI_ADDR_UNSPEC, 1, 0, in);
	tsend(&n, out, sizeof(out), addr, 1, out);
	wait_ctx(&n, n.txcq, out);
	wait_ctx(&v, v.rxcq, in);
	CHECK(!memcmp(in, out, sizeof(in)));
	addr = node_insert(&s.n, &n);
	v = sender(&s, 2, 0);
	trecv(&n, in, sizeof(in), FI_ADDR_UNSPEC, 2, 0, in);
	tsend(&v, out, sizeof(out), addr, 2, out);
	wait_ctx(&v, v.txcq, out);
	wait_ctx(&n, n.rxcq, in);
	node_close(&n);
	sep_close(&s);
}

/* A receive from a peer outlives one of the peer's contexts, but not the peer. */
static void test_leave(long arg)
{
	struct sep s;
	struct node v;
	char in[8], out[8] = "bye";

	(void)arg;
	sep_open(&s, FI_SOURCE | FI_DIRECTED_RECV, FI_THREAD_SAFE);
	v = test_rank ? sender(&s, 0, 0) : receiver(&s, 0, 0);
	if (test_rank) {
		tsend(&v, out, sizeof(out), s.n.peer[0], 1, out);
		wait_ctx(&v, v.txcq, out);
		barrier(&v);
		OK(fi_close(&s.tx[0]->fid));
		s.tx[0] = NULL;
		barrier(&s.n);
		v = sender(&s, 1, 0);
		tsend(&v, out, sizeof(out), s.n.peer[0], 2, out);
		wait_ctx(&v, v.txcq, out);
		barrier(&v);
		_exit(0); /* as a crash: nothing is closed */
	}
	trecv(&v, in, sizeof(in), s.n.peer[1], 1, 0, in);
	wait_ctx(&v, v.rxcq, in);
	trecv(&v, in, sizeof(in), s.n.peer[1], 2, 0, in);
	barrier(&v);
	wait_none(&v, v.rxcq, 500); /* some reads the peer */
	barrier(&v);
	wait_ctx(&v, v.rxcq, in);
	trecv(&v, in, sizeof(in), s.n.peer[1], 3, 0, in);
	barrier(&v);
	wait_err(&v, v.rxcq, FI_ECONNRESET);
	sep_close(&s);
}

#define ROUNDS 20000

struct worker {
	struct sep *s;
	int i;
	pthread_t thread;
};

/* One thread uses one transmit and one receive context, without regard to the others. */
static void *work(void *arg)
{
	struct worker *w = arg;
	struct node v = sender(w->s, w->i, w->i);
	fi_addr_t to = fi_rx_addr(w->s->n.peer[0], w->i, BITS);
	struct fi_cq_tagged_entry e;

	for (uint64_t round = 0; round < ROUNDS; round++) {
		uint64_t in = 0, out = round << 8 | (uint64_t)w->i;
		ssize_t rc;

		OK(fi_trecv(w->s->rx[w->i], &in, 8, NULL, FI_ADDR_UNSPEC, 0, ~0ull, &in));
		while ((rc = fi_tsend(v.ep, &out, 8, NULL, to, round, &out)) == -FI_EAGAIN)
			fi_cq_read(v.txcq, NULL, 0);
		CHECK_RC((int)rc, 0);
		while ((rc = fi_cq_read(v.rxcq, &e, 1)) == -FI_EAGAIN)
			;
		CHECK(rc == 1 && e.op_context == &in && in == out && e.tag == round);
		while ((rc = fi_cq_read(v.txcq, &e, 1)) == -FI_EAGAIN)
			;
		CHECK(rc == 1 && e.op_context == &out);
	}
	return NULL;
}

static void test_threads(long threading)
{
	struct worker w[CTXS];
	struct sep s;

	sep_open(&s, 0, (enum fi_threading)threading);
	for (int i = 0; i < CTXS; i++) {
		w[i] = (struct worker){ .s = &s, .i = i };
		CHECK(pthread_create(&w[i].thread, NULL, work, &w[i]) == 0);
	}
	for (int i = 0; i < CTXS; i++)
		CHECK(pthread_join(w[i].thread, NULL) == 0);
	sep_close(&s);
}

/* A receive context without a queue, as one has that peers only read from and write to: readers of the transmit
 * contexts' queues serve peers there, also those that sleep, whichever context is enabled first, and after one of them
 * has gone; so do those of a counter that is bound to an enabled one. */
enum { RX_FIRST = 1, SLEEP = 2, ONE_CLOSED = 4, LATE = 8 };

static void open_silent(struct sep *s, long how)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED,
				 .wait_obj = how & SLEEP ? FI_WAIT_UNSPEC : FI_WAIT_NONE };
	struct fi_av_attr av = { .type = FI_AV_TABLE, .rx_ctx_bits = BITS };
	struct node_opts o = { .caps = FI_RMA | FI_ATOMIC, .threading = FI_THREAD_COMPLETION, .unordered = true };

	NEED_WAY(WAY_UDP, "contexts of scalable endpoints");
	memset(s, 0, sizeof(*s));
	node_open_domain(&s->n, &o);
	s->n.info->ep_attr->tx_ctx_cnt = 2;
	s->n.info->ep_attr->rx_ctx_cnt = 1;
	OK(fi_av_open(s->n.domain, &av, &s->n.av, NULL));
	OK(fi_scalable_ep(s->n.domain, s->n.info, &s->ep, NULL));
	OK(fi_scalable_ep_bind(s->ep, &s->n.av->fid, 0));
	OK(fi_rx_context(s->ep, 0, NULL, &s->rx[0], NULL));
	if (how & RX_FIRST)
		OK(fi_enable(s->rx[0]));
	for (int i = 0; i < 2; i++) {
		OK(fi_cq_open(s->n.domain, &cq, &s->txcq[i], NULL));
		OK(fi_tx_context(s->ep, i, NULL, &s->tx[i], NULL));
		OK(fi_ep_bind(s->tx[i], &s->txcq[i]->fid, FI_TRANSMIT));
		OK(fi_enable(s->tx[i]));
	}
	if (!(how & RX_FIRST))
		OK(fi_enable(s->rx[0]));
	OK(fi_enable(s->ep));
	s->n.ep = s->ep;
	s->n.txcq = s->txcq[1];
	s->n.rxcq = s->txcq[1];
	node_connect(&s->n);
	if (how & ONE_CLOSED) {
		OK(fi_close(&s->tx[0]->fid));
		OK(fi_close(&s->txcq[0]->fid)); /* the receive context does not keep it */
	}
}

static void close_silent(struct sep *s, long how)
{
	OK(fi_close(&s->rx[0]->fid));
	for (int i = how & ONE_CLOSED ? 1 : 0; i < 2; i++) {
		OK(fi_close(&s->tx[i]->fid));
		OK(fi_close(&s->txcq[i]->fid));
	}
	OK(fi_close(&s->ep->fid));
	OK(fi_close(&s->n.av->fid));
	node_close_domain(&s->n);
}

/* Awaits the n-th write of a context. */
static ssize_t written(struct fid_cq *cq, struct fid_cntr *late, uint64_t n, long how)
{
	struct fi_cq_tagged_entry e;

	if (late && how & SLEEP)
		return fi_cntr_wait(late, n, 5000) ?: 1;
	if (late)
		return fi_cntr_read(late) >= n ? 1 : -FI_EAGAIN;
	return how & SLEEP ? fi_cq_sread(cq, &e, 1, NULL, 5000) : fi_cq_read(cq, &e, 1);
}

static void test_silent(long how)
{
	struct fi_cntr_attr attr = { .wait_obj = how & SLEEP ? FI_WAIT_UNSPEC : FI_WAIT_NONE };
	struct fid_cntr *late = NULL;
	static uint64_t words[4096], out[4096];
	struct {
		uint64_t addr, key;
	} mine, theirs;
	struct fid_mr *mr;
	struct sep s;
	int peer = 1 - test_rank;

	open_silent(&s, how);
	if (how & LATE) {
		OK(fi_cntr_open(s.n.domain, &attr, &late, NULL));
		OK(fi_ep_bind(s.tx[1], &late->fid, FI_WRITE));
	}
	OK(fi_mr_reg(s.n.domain, words, sizeof(words), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 7, 0, &mr, NULL));
	mine.addr = s.n.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)words : 0;
	mine.key = fi_mr_key(mr);
	link_send(peer, &mine, sizeof(mine));
	link_recv(peer, &theirs, sizeof(theirs));
	for (int k = 0; k < 40; k++) {
		size_t len = k % 4 == 3 ? sizeof(out) : 8;
		struct iovec iov = { out, len };
		struct fi_rma_iov rma = { theirs.addr, len, theirs.key };
		struct fi_msg_rma msg = {
			.msg_iov = &iov, .iov_count = 1, .addr = s.n.peer[peer], .rma_iov = &rma, .rma_iov_count = 1
		};
		uint64_t end = now_ms() + 20000;
		ssize_t rc;

		out[0] = k + 1;
		do
			rc = fi_writemsg(s.tx[1], &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION);
		while (rc == -FI_EAGAIN && (written(s.txcq[1], late, ~0ull, how & ~SLEEP), now_ms() < end));
		OK(rc);
		do
			rc = written(s.txcq[1], late, k + 1, how);
		while (rc == -FI_EAGAIN && now_ms() < end);
		CHECKF(rc == 1, "write %d: %zd", k, rc);
	}
	barrier(&s.n);
	CHECK(words[0] == 40);
	OK(fi_close(&mr->fid));
	if (late) {
		CHECK_RC(fi_close(&late->fid), -FI_EBUSY);
		OK(fi_close(&s.tx[1]->fid));
		OK(fi_close(&late->fid)); /* the receive context does not keep it */
		OK(fi_tx_context(s.ep, 1, NULL, &s.tx[1], NULL));
	}
	close_silent(&s, how);
}

static const struct test tests[] = {
	{ "named", test_named, 1, 0, 0 },
	{ "fetch", test_fetch, 1, 0, 0 },
	{ "no_context", test_no_context, 1, 0, 0 },
	{ "pairs_early", test_pairs, 2, 0, 0 },
	{ "pairs_late", test_pairs, 2, 0, 1 },
	{ "kinds", test_kinds, 2, 0, 0 },
	{ "kinds_delivery", test_kinds, 2, 0, FI_DELIVERY_COMPLETE },
	{ "kinds_match", test_kinds, 2, 0, FI_MATCH_COMPLETE },
	{ "auto", test_auto, 2, 0, 0 },
	{ "plain", test_plain, 1, 0, 0 },
	{ "silent", test_silent, 2, 60, 0 },
	{ "silent_first", test_silent, 2, 60, RX_FIRST },
	{ "silent_sleep", test_silent, 2, 60, SLEEP },
	{ "silent_first_sleep", test_silent, 2, 60, RX_FIRST | SLEEP },
	{ "silent_closed", test_silent, 2, 60, ONE_CLOSED | SLEEP },
	{ "silent_late", test_silent, 2, 60, LATE },
	{ "silent_late_sleep", test_silent, 2, 60, LATE | SLEEP },
	{ "leave", test_leave, 2, 0, 0 },
	{ "threads_safe", test_threads, 1, 0, FI_THREAD_SAFE },
	{ "threads_completion", test_threads, 1, 0, FI_THREAD_COMPLETION },
	{ "threads_endpoint", test_threads, 1, 0, FI_THREAD_ENDPOINT },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
