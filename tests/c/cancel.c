/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_cancel of receives: each ends exactly once, as canceled or as received. */
#include "common.h"

static void test_pending(long tagged)
{
	struct op o = { .addr = FI_ADDR_UNSPEC, .tagged = tagged, .tag = 5 };
	char in[3][8], out[8];
	struct node n;

	node_open(&n, NULL);
	node_connect(&n);
	for (int i = 0; i < 3; i++) {
		o.buf = o.ctx = in[i];
		o.len = 8;
		post_recv(&n, &o);
	}
	OK(fi_cancel(&n.ep->fid, in[1]));
	wait_err(&n, n.rxcq, FI_ECANCELED);
	CHECK(n.err.op_context == in[1]);
	CHECK(n.err.len == 0);
	o.addr = n.peer[0];
	o.buf = o.ctx = out;
	for (uint64_t i = 0; i < 2; i++) {
		fill(out, 8, i);
		post_send(&n, &o);
		wait_ctx(&n, n.txcq, out);
		wait_ctx(&n, n.rxcq, in[2 * i]); /* the two others, in order */
		verify(in[2 * i], 8, i);
	}
	wait_none(&n, n.rxcq, 1);
	node_close(&n);
}

/* What is over, or never was, cannot be canceled: no completion comes of it. */
static void test_unknown(long arg)
{
	char in[8], out[8] = "done";
	struct node n;
	int rc;

	(void)arg;
	node_open(&n, NULL);
	node_connect(&n);
	rc = fi_cancel(&n.ep->fid, &n);
	if (!deviates("cancel-unknown"))
		CHECK(rc == 0);
	trecv(&n, in, 8, FI_ADDR_UNSPEC, 1, 0, in);
	tsend(&n, out, 8, n.peer[0], 1, out);
	wait_ctx(&n, n.rxcq, in);
	rc = fi_cancel(&n.ep->fid, in);
	if (!deviates("cancel-unknown"))
		CHECK(rc == 0);
	wait_ctx(&n, n.txcq, out);
	wait_none(&n, n.rxcq, 10);
	wait_none(&n, n.txcq, 1);
	node_close(&n);
}

/* Of several operations with one context, one cancel ends one. */
static void test_same_context(long arg)
{
	char in[8];
	struct node n;

	(void)arg;
	node_open(&n, NULL);
	node_connect(&n);
	for (uint64_t i = 0; i < 5; i++)
		trecv(&n, in, 8, FI_ADDR_UNSPEC, i, 0, in);
	for (int i = 0; i < 5; i++) {
		OK(fi_cancel(&n.ep->fid, in));
		wait_err(&n, n.rxcq, FI_ECANCELED);
		CHECK(n.err.op_context == in);
		wait_none(&n, n.rxcq, 2);
	}
	node_close(&n);
}

/* A program that polls rarely sees soon that a receive was canceled, and that a
 * peek found nothing: nothing has to send it a message for that. */
static void test_prompt(long peek)
{
	struct fi_msg_tagged msg = { .addr = FI_ADDR_UNSPEC, .context = &msg };
	struct fi_cq_tagged_entry e;
	ssize_t rc = -FI_EAGAIN;
	struct node n;
	char in[8];
	bool matches;

	node_open(&n, NULL);
	node_connect(&n);
	matches = n.info->ep_attr->protocol == FI_PROTO_CXI;
	if (peek) {
		OK(fi_trecvmsg(n.ep, &msg, FI_PEEK));
	} else {
		trecv(&n, in, 8, FI_ADDR_UNSPEC, 1, 0, &msg);
		OK(fi_cancel(&n.ep->fid, &msg));
	}
	for (int i = 0; i < 100 && rc == -FI_EAGAIN; i++) {
		if (matches) /* the NIC's answer, which it gives without being asked again */
			usleep(1000);
		rc = fi_cq_read(n.rxcq, &e, 1);
	}
	CHECKF(rc == -FI_EAVAIL, "%zd", rc);
	wait_err(&n, n.rxcq, peek ? FI_ENOMSG : FI_ECANCELED);
	CHECK(n.err.op_context == &msg);
	node_close(&n);
}

#define ROUNDS 3000
#define POSTED 8

static void race_sender(struct node *n)
{
	static char out[80000];
	struct fi_cq_tagged_entry e;

	for (uint64_t k = 0; k < ROUNDS; k++) {
		size_t len = k % 3 == 0 ? 8 : k % 3 == 1 ? 3000 : sizeof(out);

		fill(out, len, k);
		tsend(n, out, len, n->peer[1], 1, out);
		wait_ok(n, n->txcq, &e);
	}
}

/* Takes in the next message, of which got were taken in before. The end of a long one may be read behind that of the
 * one after it (comp_order FI_ORDER_NONE): late says that one is missing so. */
static void race_took(const char *in, size_t len, uint64_t got, bool *late)
{
	static char want[80000];

	if (*late) {
		*late = false;
		return verify(in, len, got - 1);
	}
	fill(want, len, got);
	*late = memcmp(in, want, len) != 0;
	if (*late)
		verify(in, len, got + 1);
}

/* Cancels while messages come in: a canceled receive got nothing, and no message is lost. */
static void race_receiver(struct node *n)
{
	static char in[POSTED][80000];
	bool busy[POSTED] = { false }, late = false;
	uint64_t seed = 1, got = 0, canceled = 0;

	while (got < ROUNDS) {
		struct fi_cq_tagged_entry e;
		int rc;

		for (int i = 0; i < POSTED; i++)
			if (!busy[i]) {
				busy[i] = true;
				trecv(n, in[i], sizeof(in[i]), FI_ADDR_UNSPEC, 1, 0, &busy[i]);
			}
		if (rnd(&seed) % 4 == 0) {
			rc = fi_cancel(&n->ep->fid, &busy[rnd(&seed) % POSTED]);
			CHECK(rc == 0 || rc == -FI_EAGAIN || deviates("cancel-unknown"));
		}
		rc = wait_for(n, n->rxcq, &e, 0);
		if (rc == 1) {
			bool *b = e.op_context;

			CHECK(b >= busy && b < busy + POSTED && *b);
			*b = false;
			race_took(in[b - busy], e.len, got++, &late);
		} else if (rc < 0) {
			bool *b = n->err.op_context;

			CHECKF(rc == -FI_ECANCELED, "error %d", -rc);
			CHECK(b >= busy && b < busy + POSTED && *b);
			*b = false;
			canceled++;
		}
	}
	note("%llu canceled, %llu received", (unsigned long long)canceled, (unsigned long long)got);
	CHECK(canceled > 0 && !late);
}

static void test_race(long arg)
{
	struct node n;

	(void)arg;
	node_open(&n, NULL);
	node_connect(&n);
	if (test_rank == 0)
		race_sender(&n);
	else
		race_receiver(&n);
	barrier(&n);
	node_close(&n);
}

/* Closing the endpoint drops what is pending, silently. */
static void test_close_pending(long arg)
{
	char in[100][8];
	struct node n;

	(void)arg;
	node_open(&n, NULL);
	node_connect(&n);
	for (uint64_t i = 0; i < 100; i++)
		trecv(&n, in[i], 8, FI_ADDR_UNSPEC, i, 0, in[i]);
	node_close(&n);
}

static const struct test tests[] = {
	{ "pending_tagged", test_pending, 1, 0, true },
	{ "pending_untagged", test_pending, 1, 0, false },
	{ "unknown", test_unknown, 1, 0, 0 },
	{ "same_context", test_same_context, 1, 0, 0 },
	{ "prompt_cancel", test_prompt, 1, 0, false },
	{ "prompt_peek", test_prompt, 1, 0, true },
	{ "race", test_race, 2, 60, 0 },
	{ "close_pending", test_close_pending, 1, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
