/* SPDX-License-Identifier: BSD-2-Clause */
/* Each CQ format: entries of the right size, several in one read, and the fields that it has. */
#include "common.h"

#define COUNT 6

static size_t entry_size(enum fi_cq_format f)
{
	switch (f) {
	case FI_CQ_FORMAT_CONTEXT:
		return sizeof(struct fi_cq_entry);
	case FI_CQ_FORMAT_MSG:
		return sizeof(struct fi_cq_msg_entry);
	case FI_CQ_FORMAT_DATA:
		return sizeof(struct fi_cq_data_entry);
	default:
		return sizeof(struct fi_cq_tagged_entry);
	}
}

/* Reads count entries, asking for more than one at a time; nothing may be written past them. */
static void read_all(struct node *n, struct fid_cq *cq, char *entries, size_t size, size_t count)
{
	char buf[COUNT * sizeof(struct fi_cq_tagged_entry) + 16];
	size_t have = 0;

	while (have < count) {
		ssize_t rc;

		memset(buf, 0xd5, sizeof(buf));
		rc = fi_cq_read(cq, buf, COUNT);
		if (rc == -FI_EAGAIN) {
			progress(n);
			continue;
		}
		CHECKF(rc > 0 && rc <= (ssize_t)(count - have), "fi_cq_read = %zd", rc);
		for (size_t i = (size_t)rc * size; i < sizeof(buf); i++)
			CHECKF((unsigned char)buf[i] == 0xd5, "byte %zu past %zd entries", i, rc);
		memcpy(entries + have * size, buf, (size_t)rc * size);
		have += (size_t)rc;
	}
}

static void check_rx(enum fi_cq_format f, const char *entry, char *bufs, size_t i)
{
	const struct fi_cq_tagged_entry *e = (const void *)entry;
	bool data = i & 1;

	CHECK(e->op_context == bufs + i * 64);
	if (f == FI_CQ_FORMAT_CONTEXT)
		return;
	CHECK((e->flags & (FI_RECV | FI_TAGGED)) == (FI_RECV | FI_TAGGED));
	CHECK(e->len == i * 7);
	if (f == FI_CQ_FORMAT_MSG)
		return;
	CHECK(!(e->flags & FI_REMOTE_CQ_DATA) == !data);
	if (data)
		CHECK(e->data == 0x1122334455667700ull + i);
	if (f == FI_CQ_FORMAT_TAGGED)
		CHECK(e->tag == 0xf000000000000000ull + i);
}

static void test_format(long arg)
{
	enum fi_cq_format f = (enum fi_cq_format)arg;
	struct node_opts o = { .format = f };
	size_t size = entry_size(f);
	char entries[COUNT * sizeof(struct fi_cq_tagged_entry)], in[COUNT * 64], out[COUNT * 64];
	struct node n;

	node_open(&n, &o);
	node_connect(&n);
	for (size_t i = 0; i < COUNT; i++)
		trecv(&n, in + i * 64, 64, FI_ADDR_UNSPEC, 0xf000000000000000ull + i, 0, in + i * 64);
	for (size_t i = 0; i < COUNT; i++) {
		struct op s = { .form = i & 1 ? F_DATA : F_PLAIN,
				.tagged = true,
				.buf = out + i * 64,
				.len = i * 7,
				.addr = n.peer[0],
				.tag = 0xf000000000000000ull + i,
				.data = 0x1122334455667700ull + i,
				.ctx = out + i * 64 };

		fill(s.buf, s.len, i);
		post_send(&n, &s);
	}
	read_all(&n, n.rxcq, entries, size, COUNT);
	for (size_t i = 0; i < COUNT; i++) {
		check_rx(f, entries + i * size, in, i);
		verify(in + i * 64, i * 7, i);
	}
	read_all(&n, n.txcq, entries, size, COUNT);
	for (size_t i = 0; i < COUNT; i++)
		CHECK(*(void **)(entries + i * size) == out + i * 64);
	node_close(&n);
}

/* A format that the provider chooses must still be one of the four, as fi_cq_read shows. */
static void test_unspec(long arg)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_UNSPEC };
	struct fid_cq *cq;
	struct node n;

	(void)arg;
	node_open(&n, NULL);
	OK(fi_cq_open(n.domain, &attr, &cq, NULL));
	OK(fi_close(&cq->fid));
	node_close(&n);
}

/* One CQ for both directions: every completion says which it is. */
static void test_shared(long arg)
{
	struct node_opts o = { .one_cq = true };
	struct fi_cq_tagged_entry e;
	char in[32], out[32];
	int sent = 0, received = 0;
	struct node n;

	(void)arg;
	node_open(&n, &o);
	node_connect(&n);
	fill(out, sizeof(out), 5);
	trecv(&n, in, sizeof(in), FI_ADDR_UNSPEC, 1, 0, in);
	tsend(&n, out, sizeof(out), n.peer[0], 1, out);
	for (int i = 0; i < 2; i++) {
		wait_ok(&n, n.txcq, &e);
		if (e.flags & FI_SEND)
			sent += e.op_context == out && !(e.flags & FI_RECV);
		else
			received += e.op_context == in && (e.flags & FI_RECV);
	}
	CHECK(sent == 1 && received == 1);
	verify(in, sizeof(in), 5);
	node_close(&n);
}

static const struct test tests[] = {
	{ "context", test_format, 1, 0, FI_CQ_FORMAT_CONTEXT },
	{ "msg", test_format, 1, 0, FI_CQ_FORMAT_MSG },
	{ "data", test_format, 1, 0, FI_CQ_FORMAT_DATA },
	{ "tagged", test_format, 1, 0, FI_CQ_FORMAT_TAGGED },
	{ "unspec", test_unspec, 1, 0, 0 },
	{ "shared_cq", test_shared, 1, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
