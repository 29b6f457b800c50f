/* SPDX-License-Identifier: BSD-2-Clause */
/* Notifications (weft/token.h) between contexts of scalable endpoints: rank 1 owns memory, rank 0 writes to it. */
#include "common.h"
#include "tokens.h"

#define CTXS 2
#define BITS 1
#define LEN 100000

struct side {
	struct node n; /* fabric, domain and address vector */
	struct weft_token_ops *t;
	struct fid_ep *sep, *ctx[CTXS];
	struct fid_cq *cq[CTXS], *noted;
	char *mem;
};

/* Rank 0 has transmit contexts, rank 1 receive contexts, the second with a queue of its notifications. */
static void open_side(struct side *s, enum fi_progress progress)
{
	struct node_opts o = { .caps = FI_MSG | FI_RMA | FI_NAMED_RX_CTX, .data = progress };
	struct fi_av_attr av = { .type = FI_AV_TABLE, .rx_ctx_bits = BITS };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED };

	NEED_WAY(WAY_UDP, "contexts of scalable endpoints");
	memset(s, 0, sizeof(*s));
	node_open_domain(&s->n, &o);
	NEED(s->n.info->domain_attr->max_ep_tx_ctx >= CTXS, "scalable endpoints");
	s->n.info->ep_attr->tx_ctx_cnt = s->n.info->ep_attr->rx_ctx_cnt = CTXS;
	OK(fi_av_open(s->n.domain, &av, &s->n.av, NULL));
	OK(fi_scalable_ep(s->n.domain, s->n.info, &s->sep, NULL));
	OK(fi_scalable_ep_bind(s->sep, &s->n.av->fid, 0));
	OK(fi_cq_open(s->n.domain, &cq, &s->noted, NULL));
	for (int i = 0; i < CTXS; i++) {
		OK(fi_cq_open(s->n.domain, &cq, &s->cq[i], NULL));
		if (test_rank == 0)
			OK(fi_tx_context(s->sep, i, NULL, &s->ctx[i], NULL));
		else
			OK(fi_rx_context(s->sep, i, NULL, &s->ctx[i], NULL));
		s->t = token_ops(&s->ctx[i]->fid);
		OK(fi_ep_bind(s->ctx[i], &s->cq[i]->fid, test_rank == 0 ? FI_TRANSMIT : FI_RECV));
		if (i == 1)
			CHECK_RC(s->t->bind(s->ctx[i], &s->noted->fid, 0), test_rank == 0 ? -FI_ENOSYS : 0);
		OK(fi_enable(s->ctx[i]));
	}
	OK(fi_enable(s->sep));
	s->n.ep = s->sep;
	s->n.txcq = s->cq[0];
	s->n.rxcq = s->cq[1];
	node_connect(&s->n);
	s->mem = calloc(1, LEN);
}

static void close_side(struct side *s)
{
	for (int i = 0; i < CTXS; i++)
		OK(fi_close(&s->ctx[i]->fid));
	OK(fi_close(&s->sep->fid));
	OK(fi_close(&s->noted->fid));
	for (int i = 0; i < CTXS; i++)
		OK(fi_close(&s->cq[i]->fid));
	OK(fi_close(&s->n.av->fid));
	free(s->mem);
	node_close_domain(&s->n);
}

/* The token of a receive context, by any road. */
static void send_token(struct side *s, struct fid_mr *mr, int i)
{
	struct weft_token_attr attr = { .ep = s->ctx[i] };
	char token[WEFT_TOKEN_MAX];
	size_t len = sizeof(token);

	OK(s->t->pack(mr, &attr, token, &len));
	link_send(0, &len, sizeof(len));
	link_send(0, token, len);
}

static void end(struct side *s, int i, void *context)
{
	struct fi_cq_tagged_entry e;
	ssize_t rc;

	while ((rc = fi_cq_read(s->cq[i], &e, 1)) == -FI_EAGAIN)
		fi_cq_read(s->cq[1 - i], NULL, 0);
	CHECKF(rc == 1 && e.op_context == context, "read: %zd", rc);
}

#define POST(s, i, call) \
	do { \
		ssize_t rc_; \
		while ((rc_ = (call)) == -FI_EAGAIN) \
			fi_cq_read((s)->cq[i], NULL, 0); \
		CHECKF(rc_ == 0, "post: %zd", rc_); \
	} while (0)

static const size_t sizes[] = { 8, 4000, LEN };

/* Every transmit context writes through the token of every receive context, which has the notification then. */
static void test_named(long progress)
{
	static char note[WEFT_NOTE_MAX], room[WEFT_NOTE_MAX];
	struct weft_remote *remote[CTXS];
	struct weft_remote_info info[CTXS];
	struct fid_mr *mr = NULL;
	struct side s;

	open_side(&s, progress);
	if (test_rank == 1)
		OK(fi_mr_reg(s.n.domain, s.mem, LEN, FI_REMOTE_WRITE, 0, 5, 0, &mr, NULL));
	for (int r = 0; r < CTXS; r++) {
		if (test_rank == 1)
			send_token(&s, mr, r);
		else
			remote[r] = token_receive(s.t, s.ctx[0], 1, &info[r]);
	}
	for (int k = 0; k < 2 * CTXS * (int)ARRAY_LEN(sizes); k++) {
		int r = k % CTXS;
		size_t len = sizes[k / 2 % ARRAY_LEN(sizes)], n = k % 3 == 0 ? WEFT_NOTE_MAX : 40;

		fill(note, sizeof(note), k);
		if (test_rank == 0) {
			struct weft_local_piece here = { .addr = s.mem, .len = len };
			struct weft_remote_piece there = { .remote = remote[r], .addr = info[r].base, .len = len };
			struct weft_list *list;

			fill(s.mem, len, 100 + k);
			OK(s.t->list(s.ctx[0], &here, &there, 1, 0, &list));
			OK(s.t->tag(list, k));
			POST(&s, 0, s.t->post(list, WEFT_WRITE, NULL, 0, note, n, 0, &s));
			end(&s, 0, &s);
			POST(&s, 1, s.t->notify(s.ctx[1], info[r].addr, k, note, n, 0, note));
			end(&s, 1, note);
			OK(fi_close(&list->fid));
		} else {
			int behind = 0;

			for (int got = 0; got < 2;) { /* of two contexts: in any order */
				struct weft_note e = { .data = room, .size = sizeof(room) };
				ssize_t rc = s.t->notes(s.ctx[r], &e, 1);

				fi_cq_read(s.cq[1 - r], NULL, 0);
				if (rc == 0)
					continue;
				CHECKF(rc == 1 && e.tag == (uint64_t)k && e.len == n && !memcmp(room, note, n),
				       "%d: notes %zd, %lu bytes, tag %lu", k, rc, (unsigned long)e.len,
				       (unsigned long)e.tag);
				CHECK(e.src == s.n.peer[0]);
				if (e.op == WEFT_WRITE) {
					verify(s.mem, len, 100 + k);
					behind++;
				}
				got++;
			}
			CHECK(behind == 1 && s.t->notes(s.ctx[1 - r], NULL, 0) == 0);
			for (int got = 0; r == 1 && got < 2; got++) { /* the second context has a queue of them */
				struct fi_cq_tagged_entry e;

				CHECK(fi_cq_read(s.noted, &e, 1) == 1 && e.data == (uint64_t)k && e.len == n);
			}
		}
		barrier(&s.n);
	}
	if (test_rank == 0) {
		for (int r = 0; r < CTXS; r++)
			OK(fi_close(&remote[r]->fid));
	} else {
		OK(fi_close(&mr->fid));
	}
	close_side(&s);
}

/* Each kind of context has the calls of its direction. */
static void test_bad(long arg)
{
	struct weft_token_attr attr = { 0 };
	struct weft_remote *remote;
	char token[WEFT_TOKEN_MAX], room[8];
	struct weft_note e = { .data = room, .size = sizeof(room) };
	size_t len = sizeof(token);
	struct fid_mr *mr;
	struct side s;

	(void)arg;
	open_side(&s, FI_PROGRESS_UNSPEC);
	OK(fi_mr_reg(s.n.domain, s.mem, LEN, FI_REMOTE_WRITE, 0, 5, 0, &mr, NULL));
	attr.ep = s.ctx[1];
	if (test_rank == 0) {
		EXPECT_RC(s.t->notes(s.ctx[0], &e, 1), -FI_ENOSYS);
		EXPECT_RC(s.t->pack(mr, &attr, token, &len), -FI_EINVAL);
		EXPECT_RC(s.t->pack(mr, NULL, token, &len), -FI_EOPBADSTATE); /* no peer reaches any */
		EXPECT_RC(s.t->notes(s.sep, &e, 1), -FI_EINVAL);
		EXPECT_RC(s.t->notify(s.sep, s.n.peer[1], 0, "x", 1, 0, NULL), -FI_EINVAL);
	} else {
		EXPECT_RC(s.t->notify(s.ctx[0], s.n.peer[0], 0, "x", 1, 0, NULL), -FI_ENOSYS);
		OK(s.t->pack(mr, &attr, token, &len));
		EXPECT_RC(s.t->open(s.ctx[0], token, len, &remote), -FI_ENOSYS);
		EXPECT_RC(s.t->notes(s.ctx[0], &e, 1), 0);
	}
	OK(fi_close(&mr->fid));
	barrier(&s.n);
	close_side(&s);
}

static const struct test tests[] = {
	{ "named", test_named, 2, 0, FI_PROGRESS_UNSPEC },
	{ "named_auto", test_named, 2, 0, FI_PROGRESS_AUTO },
	{ "bad", test_bad, 2, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
