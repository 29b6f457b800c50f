/* SPDX-License-Identifier: BSD-2-Clause */
/* FI_SOURCE and FI_SOURCE_ERR: what sent it, and what happens when the sender is not in the AV. */
#include "common.h"

#define COUNT 200

/* One completion with its source; fills n->err for -FI_EAVAIL. */
static ssize_t read_from(struct node *n, struct fi_cq_tagged_entry *e, fi_addr_t *src)
{
	ssize_t rc;

	*src = 0x5a5a;
	while ((rc = fi_cq_readfrom(n->rxcq, e, 1, src)) == -FI_EAGAIN)
		progress(n);
	if (rc == -FI_EAVAIL) {
		memset(&n->err, 0, sizeof(n->err));
		n->err.err_data = n->err_data;
		n->err.err_data_size = sizeof(n->err_data);
		CHECK_RC(fi_cq_readerr(n->rxcq, &n->err, 0), 1);
	} else {
		CHECK(rc == 1);
	}
	return rc;
}

static void send_ranks(struct node *n, fi_addr_t to, int count, size_t len)
{
	char *out = malloc(len);
	struct fi_cq_tagged_entry e;

	CHECK(out != NULL);
	fill(out, len, (uint64_t)test_rank);
	for (int i = 0; i < count; i++) {
		tsend(n, out, len, to, (uint64_t)test_rank, out);
		wait_ok(n, n->txcq, &e);
	}
	free(out);
}

/* Ranks 1 and 2 send; each completion names its sender. */
static void test_known(long len)
{
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED | FI_SOURCE };
	struct fi_cq_tagged_entry e;
	fi_addr_t src;
	struct node n;

	node_open(&n, &o);
	node_connect(&n);
	if (test_rank) {
		send_ranks(&n, n.peer[0], COUNT, (size_t)len);
	} else {
		char *in = malloc((size_t)len);

		CHECK(in != NULL);
		for (int i = 0; i < 2 * COUNT; i++) {
			trecv(&n, in, (size_t)len, FI_ADDR_UNSPEC, 0, 3, in);
			CHECK(read_from(&n, &e, &src) == 1);
			CHECK(e.tag == 1 || e.tag == 2);
			CHECKF(src == n.peer[e.tag], "source %llu of rank %llu, want %llu", (unsigned long long)src,
			       (unsigned long long)e.tag, (unsigned long long)n.peer[e.tag]);
			verify(in, (size_t)len, e.tag);
		}
		free(in);
	}
	barrier(&n);
	node_close(&n);
}

static void test_self(long arg)
{
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED | FI_SOURCE };
	struct fi_cq_tagged_entry e;
	char in[8], out[8] = "self";
	fi_addr_t src;
	struct node n;

	(void)arg;
	node_open(&n, &o);
	node_connect(&n);
	trecv(&n, in, sizeof(in), FI_ADDR_UNSPEC, 0, 0, in);
	tsend(&n, out, sizeof(out), n.peer[0], 0, out);
	CHECK(read_from(&n, &e, &src) == 1);
	CHECK(src == n.peer[0]);
	node_close(&n);
}

/* Opens without inserting the peer's name at rank 0; rank 1 knows rank 0. */
static void open_stranger(struct node *n, uint64_t caps, struct name names[NODE_PEERS])
{
	struct node_opts o = { .caps = caps };

	node_open(n, &o);
	node_names(n, names);
	if (test_rank)
		n->peer[0] = node_insert_name(n, &names[0]);
	barrier(n);
}

/* FI_SOURCE alone: the message arrives, its source is FI_ADDR_NOTAVAIL until it is inserted. */
static void test_unknown(long arg)
{
	struct name names[NODE_PEERS];
	struct fi_cq_tagged_entry e;
	char in[64];
	fi_addr_t src, known;
	struct node n;

	(void)arg;
	open_stranger(&n, FI_MSG | FI_TAGGED | FI_SOURCE, names);
	if (test_rank) {
		send_ranks(&n, n.peer[0], 1, sizeof(in));
		barrier(&n);
		send_ranks(&n, n.peer[0], 1, sizeof(in));
	} else {
		trecv(&n, in, sizeof(in), FI_ADDR_UNSPEC, 1, 0, in);
		CHECK(read_from(&n, &e, &src) == 1);
		CHECK(src == FI_ADDR_NOTAVAIL);
		verify(in, sizeof(in), 1);
		known = node_insert_name(&n, &names[1]);
		barrier(&n);
		trecv(&n, in, sizeof(in), FI_ADDR_UNSPEC, 1, 0, in);
		CHECK(read_from(&n, &e, &src) == 1);
		CHECK(src == known);
	}
	barrier(&n);
	node_close(&n);
}

/* FI_SOURCE_ERR: an error entry with the completion and the address, which may be inserted. */
static void test_source_err(long len)
{
	struct name names[NODE_PEERS];
	struct fi_cq_tagged_entry e;
	fi_addr_t src, known = FI_ADDR_NOTAVAIL;
	char *in = malloc((size_t)len);
	struct node n;

	CHECK(in != NULL);
	open_stranger(&n, FI_MSG | FI_TAGGED | FI_SOURCE | FI_SOURCE_ERR, names);
	if (test_rank) {
		send_ranks(&n, n.peer[0], 1, (size_t)len);
		barrier(&n);
		send_ranks(&n, n.peer[0], 1, (size_t)len);
	} else {
		trecv(&n, in, (size_t)len, FI_ADDR_UNSPEC, 1, 0, in);
		CHECK(read_from(&n, &e, &src) == -FI_EAVAIL);
		CHECKF(n.err.err == FI_EADDRNOTAVAIL, "err %d", n.err.err);
		CHECK(n.err.op_context == in);
		CHECK(n.err.len == (size_t)len);
		CHECK(n.err.tag == 1);
		CHECK(n.err.err_data_size >= names[1].len);
		CHECK(memcmp(n.err.err_data, names[1].bytes, names[1].len) == 0);
		verify(in, (size_t)len, 1);
		CHECK_RC(fi_av_insert(n.av, n.err.err_data, 1, &known, 0, NULL), 1);
		barrier(&n);
		trecv(&n, in, (size_t)len, FI_ADDR_UNSPEC, 1, 0, in);
		CHECK(read_from(&n, &e, &src) == 1);
		CHECK(src == known);
	}
	barrier(&n);
	node_close(&n);
	free(in);
}

/* Removing an address takes its source away, inserting it again brings it back. */
static void test_removed(long arg)
{
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED | FI_SOURCE };
	struct name names[NODE_PEERS];
	struct fi_cq_tagged_entry e;
	char in[64];
	fi_addr_t src, peer;
	struct node n;

	(void)arg;
	node_open(&n, &o);
	node_names(&n, names);
	peer = node_insert_name(&n, &names[!test_rank]);
	for (int round = 0; round < 3; round++) {
		barrier(&n);
		if (test_rank) {
			send_ranks(&n, peer, 1, sizeof(in));
			barrier(&n);
			continue;
		}
		trecv(&n, in, sizeof(in), FI_ADDR_UNSPEC, 1, 0, in);
		CHECK(read_from(&n, &e, &src) == 1);
		if (round == 1)
			CHECKF(src == FI_ADDR_NOTAVAIL, "a removed address is still a source");
		else
			CHECK(src == peer);
		barrier(&n);
		if (round == 0)
			OK(fi_av_remove(n.av, &peer, 1, 0));
		else if (round == 1)
			peer = node_insert_name(&n, &names[1]);
	}
	node_close(&n);
}

/* Without FI_SOURCE the call works; it may not know, but must not say something wrong. */
static void test_no_source(long arg)
{
	struct fi_cq_tagged_entry e;
	char in[8], out[8] = "x";
	fi_addr_t src;
	struct node n;

	(void)arg;
	node_open(&n, NULL);
	node_connect(&n);
	trecv(&n, in, sizeof(in), FI_ADDR_UNSPEC, 0, 0, in);
	tsend(&n, out, sizeof(out), n.peer[0], 0, out);
	CHECK(read_from(&n, &e, &src) == 1);
	CHECKF(src == FI_ADDR_NOTAVAIL || src == n.peer[0], "source %#llx", (unsigned long long)src);
	node_close(&n);
}

static const struct test tests[] = {
	{ "known_small", test_known, 3, 0, 16 },
	{ "known_large", test_known, 3, 0, 100000 },
	{ "self", test_self, 1, 0, 0 },
	{ "unknown", test_unknown, 2, 0, 0 },
	{ "source_err_small", test_source_err, 2, 0, 16 },
	{ "source_err_large", test_source_err, 2, 0, 100000 },
	{ "removed", test_removed, 2, 0, 0 },
	{ "no_source", test_no_source, 1, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
