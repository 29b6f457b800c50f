/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints of FI_PROTO_CXI: as many regions as there is room for, and again, keys of both kinds between endpoints, and
 * what regions are asked for. Without a NIC of Slingshot, or its model (tests/clients/cxi.sh), all is skipped. */
#include "native_rma.h"

#define MANY 200
#define SLICE 4096

static void write_at(uint64_t at, uint64_t key, uint64_t seed)
{
	fill(local, 64, seed);
	do_write(DELIVERED, 64, at, key);
}

/* More regions than there are indices of their own for, by keys of the application or (1) such that the endpoint
 * chooses: each is reached, and none when it is closed. */
static void test_many(long chosen)
{
	static struct fid_mr *mr[MANY];
	static uint64_t key[MANY];
	struct node_opts o = opts;

	if (chosen)
		o.mr_mode |= FI_MR_PROV_KEY;
	open_node(o);
	n.peer[1] = node_insert(&n, &n);
	for (size_t k = 0; k < MANY; k++) {
		OK(fi_mr_reg(n.domain, memory + SLICE * k, SLICE, ALL, 0, k, 0, &mr[k], NULL));
		OK(fi_mr_bind(mr[k], &n.ep->fid, 0));
		OK(fi_mr_enable(mr[k]));
		key[k] = fi_mr_key(mr[k]);
		CHECK(chosen ? key[k] != FI_KEY_NOTAVAIL : key[k] == k);
		for (size_t i = 0; i < k; i++)
			CHECK(key[i] != key[k]);
	}
	for (size_t k = 0; k < MANY; k++)
		write_at(8, key[k], k);
	for (size_t k = 0; k < MANY; k++) {
		verify(memory + SLICE * k + 8, 64, k);
		OK(fi_close(&mr[k]->fid));
		refused(k % 2, 8, 0, key[k]);
	}
	node_close(&n);
}

/* A key, with an index of its own or without, is a region's again and again. */
static void test_again(long key)
{
	struct fid_mr *mr;

	open_node(opts);
	n.peer[1] = node_insert(&n, &n);
	for (uint64_t k = 0; k < 2100; k++) {
		unsigned char *at = memory + 8 * (k % 1000);

		mr = expose(at, 100, ALL, (uint64_t)key);
		if (k % 50 == 0) {
			write_at(0, (uint64_t)key, k);
			verify(at, 64, k);
		}
		OK(fi_close(&mr->fid));
	}
	refused(false, 8, 0, (uint64_t)key);
	node_close(&n);
}

/* Registers until there is no room for a region more. Returns how many there are. */
static size_t fill_up(struct fid_mr **mr, size_t most)
{
	for (size_t k = 0; k < most; k++) {
		int rc;

		OK(fi_mr_reg(n.domain, memory + k, 8, ALL, 0, 200 + k, 0, &mr[k], NULL));
		OK(fi_mr_bind(mr[k], &n.ep->fid, 0));
		rc = fi_mr_enable(mr[k]);
		if (rc == 0)
			continue;
		CHECK_RC(rc, -FI_ENOSPC);
		CHECK_RC(fi_mr_enable(mr[k]), -FI_ENOSPC);
		OK(fi_close(&mr[k]->fid));
		return k;
	}
	CHECKF(false, "%zu regions", most);
	return 0;
}

/* A NIC with few list entries has room for some regions. The others are refused, those that are there are reached, and
 * messages come; when they are closed there is room for as many. */
static void test_full(long arg)
{
	static struct fid_mr *mr[1000];
	size_t count[3];
	const char *model = getenv("CASSINI");
	char few[256];

	(void)arg;
	if (!model)
		SKIP("CASSINI names no model of a NIC, of which the list entries could be few");
	snprintf(few, sizeof(few), "%s les=150", model);
	setenv("CASSINI", few, 1);
	open_node(opts);
	n.peer[1] = node_insert(&n, &n);
	for (int round = 0; round < 3; round++) {
		count[round] = fill_up(mr, ARRAY_LEN(mr));
		CHECKF(count[round] > 20 && count[round] == count[0], "%zu regions, then %zu", count[0], count[round]);
		for (size_t k = 0; k < count[round]; k += 10) {
			fill(local, 8, k);
			do_write(WRITE, 8, 0, 200 + k);
			do_read(0, 8, 0, 200 + k);
			verify(back, 8, k);
		}
		for (size_t k = 0; k < count[round]; k++)
			OK(fi_close(&mr[k]->fid));
		trecv(&n, back, 100, FI_ADDR_UNSPEC, 1, 0, back);
		tsend(&n, local, 100, n.peer[1], 1, local);
		wait_ctx(&n, n.rxcq, back);
		wait_ctx(&n, n.txcq, local);
	}
	node_close(&n);
}

/* Endpoints whose keys the application chooses, and such that choose them, reach each other's memory. */
static void test_mixed(long arg)
{
	static const uint64_t asked_for[] = { 7, 5000 };
	struct node_opts o = opts;
	struct node other, *at;
	struct fid_mr *mr;

	(void)arg;
	open_node(opts);
	o.mr_mode |= FI_MR_PROV_KEY;
	node_open(&other, &o);
	for (size_t k = 0; k < 4; k++) {
		struct node mine = n;

		at = k % 2 ? &n : &other; /* the target; n and local are the initiator's */
		if (k % 2) {
			n = other;
			other = mine;
			at = &other;
		}
		n.peer[1] = node_insert(&n, at);
		OK(fi_mr_reg(at->domain, memory, 1000, ALL, 0, asked_for[k / 2], 0, &mr, NULL));
		OK(fi_mr_bind(mr, &at->ep->fid, 0));
		OK(fi_mr_enable(mr));
		CHECK((fi_mr_key(mr) == asked_for[k / 2]) == (k % 2));
		write_at(100, fi_mr_key(mr), k);
		verify(memory + 100, 64, k);
		do_read(0, 64, 100, fi_mr_key(mr));
		verify(back, 64, k);
		refused(false, 8, 993, fi_mr_key(mr));
		OK(fi_close(&mr->fid));
		if (k % 2) {
			mine = n;
			n = other;
			other = mine;
		}
	}
	node_close(&other);
	node_close(&n);
}

/* Regions that are for the owner alone have no key and no claim on one; those that no endpoint has are closed as they
 * are; flags and keys that there are not are refused. */
static void test_arguments(long chosen)
{
	struct iovec iov = { memory, 64 };
	struct fi_mr_attr attr = { .mr_iov = &iov, .iov_count = 1, .access = ALL, .requested_key = 0x123 };
	struct node_opts o = opts;
	struct fid_mr *mr[3];

	if (chosen)
		o.mr_mode |= FI_MR_PROV_KEY;
	open_node(o);
	n.peer[1] = node_insert(&n, &n);
	EXPECT_RC(fi_mr_regattr(n.domain, &attr, FI_DIRECTED_RECV, &mr[0]), -FI_EBADFLAGS);
	attr.requested_key = ~1ull;
	EXPECT_RC(fi_mr_regattr(n.domain, &attr, 0, &mr[0]), chosen ? 0 : -FI_EKEYREJECTED);
	if (chosen)
		OK(fi_close(&mr[0]->fid));
	for (int k = 0; k < 2; k++) {
		OK(fi_mr_reg(n.domain, memory, 64, FI_READ | FI_WRITE, 0, 0, 0, &mr[k], NULL));
		OK(fi_mr_bind(mr[k], &n.ep->fid, 0));
		OK(fi_mr_enable(mr[k]));
		CHECK(fi_mr_key(mr[k]) == FI_KEY_NOTAVAIL);
	}
	OK(fi_mr_reg(n.domain, memory, 64, ALL, 0, 0, 0, &mr[2], NULL)); /* the key that they have not */
	for (int k = 0; k < 3; k++)
		OK(fi_close(&mr[k]->fid));
	for (uint64_t key = 0; key < 400; key += 200) { /* without bytes, too */
		OK(fi_mr_reg(n.domain, NULL, 0, ALL, 0, key, 0, &mr[0], NULL));
		OK(fi_mr_bind(mr[0], &n.ep->fid, 0));
		OK(fi_mr_enable(mr[0]));
		do_write(WRITE, 0, 0, fi_mr_key(mr[0]));
		refused(false, 1, 0, fi_mr_key(mr[0]));
		OK(fi_close(&mr[0]->fid));
	}
	node_close(&n);
}

/* Writes with data name their sender, what may be unknown. */
static void test_source(long chosen)
{
	struct node_opts o = opts;
	struct node other, *from[2] = { &n, &other };
	struct fi_cq_tagged_entry e;
	struct fid_mr *mr;
	fi_addr_t src, known[2];

	o.caps |= FI_RMA_EVENT;
	if (chosen)
		o.mr_mode |= FI_MR_PROV_KEY;
	open_node(o);
	node_open(&other, &o);
	known[0] = node_insert(&n, &n);
	known[1] = node_insert(&n, &other);
	OK(fi_mr_reg(n.domain, memory, 4096, ALL, 0, 5000, FI_RMA_EVENT, &mr, NULL));
	OK(fi_mr_bind(mr, &n.ep->fid, 0));
	OK(fi_mr_enable(mr));
	for (int k = 0; k < 8; k++) {
		struct node *f = from[k % 2];
		fi_addr_t to = node_insert(f, &n), want = k < 6 ? known[k % 2] : FI_ADDR_NOTAVAIL;
		ssize_t rc;

		if (k == 6)
			OK(fi_av_remove(n.av, known, 2, 0));
		if (f == &n && k >= 6) /* it cannot reach itself without that address */
			continue;
		OK(fi_writedata(f->ep, local, 1024, NULL, 0xdeadbeef + (uint64_t)k, to, 0, fi_mr_key(mr), local));
		while ((rc = fi_cq_readfrom(n.rxcq, &e, 1, &src)) == -FI_EAGAIN)
			progress(f);
		CHECK_RC(rc, 1);
		CHECK(e.flags == (FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA) && e.len == 1024);
		CHECK(e.data == 0xdeadbeef + (uint64_t)k);
		CHECKF(src == want, "from %llu, not %llu", (unsigned long long)src, (unsigned long long)want);
		wait_ctx(f, f->txcq, local);
	}
	OK(fi_close(&mr->fid));
	node_close(&other);
	node_close(&n);
}

static const struct test tests[] = {
	{ "many", test_many, 1, 0, false },
	{ "many_chosen", test_many, 1, 0, true },
	{ "again_optimised", test_again, 1, 0, 0 },
	{ "again_standard", test_again, 1, 0, 5000 },
	{ "full", test_full, 1, 0, 0 },
	{ "mixed", test_mixed, 1, 0, 0 },
	{ "arguments", test_arguments, 1, 0, false },
	{ "arguments_chosen", test_arguments, 1, 0, true },
	{ "source", test_source, 1, 0, false },
	{ "source_chosen", test_source, 1, 0, true },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
