/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages whose sender the receiver does not have in its address vector: a part of entries.c, whose names it uses. */
#ifndef STRANGER_H
#define STRANGER_H

/* Another endpoint, which knows the first and is not known to it. */
static void open_stranger(struct node *n)
{
	node_open_on(&other, n, NULL);
	other.peer[0] = node_insert(&other, n);
}

static void close_other(struct node *n)
{
	(void)n;
	node_close(&other);
}

static void stranger(struct node *n, uint64_t i)
{
	notify(&other, n, i);
}

/* One that is kept as unexpected before its receive is posted. */
static void stranger_unexpected(struct node *n, uint64_t i)
{
	uint64_t before = kept(n);

	tsend(&other, out, 8, other.peer[0], i, out);
	wait_ctx(&other, other.txcq, out);
	for (int k = 0; k < 100000 && kept(n) == before; k++)
		progress(n);
	trecv(n, in, 8, ANY, i, 0, in);
	wait_ctx(n, n->rxcq, in);
}

/* One of any length whose sender waits until it is delivered. */
static void stranger_delivered(struct node *n, uint64_t i)
{
	struct op o = { .form = F_MSG,
			.tagged = true,
			.addr = other.peer[0],
			.tag = i,
			.buf = out,
			.len = cell->len ? cell->len : 8,
			.flags = FI_DELIVERY_COMPLETE,
			.ctx = out };
	uint64_t end = now_ms() + 20000;
	int got = 0, sent = 0;

	op_split(&o, out, o.len, 1, false);
	trecv(n, in, sizeof(in), ANY, i, 0, in);
	post_send(&other, &o);
	while (!got || !sent) {
		struct fi_cq_tagged_entry e;

		CHECK(now_ms() < end);
		if (fi_cq_read(n->rxcq, &e, 1) == 1)
			got = e.op_context == in;
		if (fi_cq_read(other.txcq, &e, 1) == 1)
			sent = e.op_context == out;
	}
}

/* One that FI_SOURCE_ERR reports with its sender's name. */
static void stranger_reported(struct node *n, uint64_t i)
{
	trecv(n, in, 8, ANY, i, 0, in);
	tsend(&other, out, 8, other.peer[0], i, out);
	wait_ctx(&other, other.txcq, out);
	wait_err(n, n->rxcq, FI_EADDRNOTAVAIL);
}

/* Rank 0's other endpoint knows rank 1's, and is not known to it. */
static void open_stranger_apart(struct node *n)
{
	struct name name = { .len = sizeof(name.bytes) };

	if (test_rank)
		return;
	node_open_on(&other, n, NULL);
	OK(fi_av_lookup(n->av, n->peer[1], name.bytes, &name.len));
	other.peer[1] = node_insert_name(&other, &name);
}

static void close_stranger_apart(struct node *n)
{
	if (!test_rank)
		close_other(n);
}

/* Posts a message over UDP, or its receive. */
static ssize_t post_apart(struct node *n, uint64_t i)
{
	uint64_t was = entries(n);
	ssize_t rc = 0;

	if (test_rank)
		trecv(n, in, 8, ANY, i, 0, in);
	else
		rc = fi_tsend(other.ep, out, 8, NULL, other.peer[1], i, out);
	posted += entries(n) - was;
	posts++;
	return rc;
}

/* One over UDP. */
static void stranger_apart(struct node *n, uint64_t i)
{
	struct fid_cq *q = test_rank ? n->rxcq : other.txcq;
	uint64_t end = now_ms() + 20000;
	struct fi_cq_tagged_entry e;
	ssize_t rc;

	for (; (rc = post_apart(n, i)) == -FI_EAGAIN; polls++)
		CHECK_RC(fi_cq_read(q, &e, 0), -FI_EAGAIN);
	OK(rc);
	for (polls++; (rc = fi_cq_read(q, &e, 1)) == -FI_EAGAIN; polls++)
		CHECK(now_ms() < end);
	CHECK_RC(rc, 1);
	CHECK(e.op_context == (test_rank ? in : out));
}

/* The sender is inserted before one message and removed before the next. */
static void acquainted(struct node *n, uint64_t i)
{
	fi_addr_t known = FI_ADDR_NOTAVAIL, src;
	struct fi_cq_tagged_entry e;

	for (int k = 0; k < 2; k++) {
		ssize_t rc;

		trecv(n, in, 8, ANY, i, 0, in);
		tsend(&other, out, 8, other.peer[0], i, out);
		wait_ctx(&other, other.txcq, out);
		while ((rc = fi_cq_readfrom(n->rxcq, &e, 1, &src)) == -FI_EAGAIN)
			;
		CHECK_RC(rc, 1);
		CHECKF(src == known, "from %#llx, not %#llx", (unsigned long long)src, (unsigned long long)known);
		if (k == 0)
			known = node_insert(n, &other);
		else
			CHECK_RC(fi_av_remove(n->av, &known, 1, 0), 0);
	}
}

#endif
