/* SPDX-License-Identifier: BSD-2-Clause */
/* Registration modes as asked for, alone and together, and regions that other providers take. */
#include <rdma/fi_rma.h>

#include "common.h"

#ifndef FI_MR_SINGLE_USE
#define FI_MR_SINGLE_USE (1ULL << 41)
#endif

#define LEN ((size_t)200000)
#define RIGHTS (FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

/* What rank 0 must know of a region of rank 1's. */
struct place {
	uint64_t key, addr;
};

static const int bits[] = { FI_MR_LOCAL, FI_MR_VIRT_ADDR, FI_MR_ALLOCATED, FI_MR_PROV_KEY, FI_MR_ENDPOINT };

/* An operation of rank 0, waited for; its outcome. */
static int done(struct node *n, ssize_t rc)
{
	struct fi_cq_tagged_entry e;
	int got;

	if (rc)
		return (int)rc;
	got = wait_for(n, n->txcq, &e, 10000);
	CHECK(got != 0);
	return got == 1 ? 0 : got;
}

#define DO(n, call) \
	({ \
		ssize_t rc_; \
		while ((rc_ = (call)) == -FI_EAGAIN) \
			progress(n); \
		done(n, rc_); \
	})

/* A region of rank 1, registered as the mode asks, and bound to the endpoint as some programs do that have offered
 * FI_MR_ENDPOINT. key is not read where the provider chooses. */
static struct fid_mr *reg(struct node *n, char *mem, size_t len, uint64_t access, uint64_t flags, uint64_t key,
			  bool bound, struct place *to)
{
	int mode = n->info->domain_attr->mr_mode;
	struct fid_mr *mr = NULL;

	OK(fi_mr_reg(n->domain, mem, len, access, 0, key, flags, &mr, NULL));
	if (bound) {
		OK(fi_mr_bind(mr, &n->ep->fid, 0));
		EXPECT_RC(fi_mr_bind(mr, &n->ep->fid, 0), -FI_EINVAL);
		OK(fi_mr_enable(mr));
	}
	*to = (struct place){ fi_mr_key(mr), mode & (FI_MR_VIRT_ADDR | 1) ? (uintptr_t)mem : 0 };
	CHECK(to->key != FI_KEY_NOTAVAIL);
	if (!(mode & (FI_MR_PROV_KEY | 1)))
		CHECK(to->key == key);
	return mr;
}

/* Rank 1 registers two regions, rank 0 reads and writes both. FI_MR_BASIC (1) and FI_MR_SCALABLE (2) stand alone. */
static void use(int asked, int want)
{
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED | FI_RMA,
			       .mr_mode = asked,
			       .tx_flags = FI_DELIVERY_COMPLETE };
	struct fid_mr *mr[2] = { NULL, NULL };
	char *mem = guard_alloc(LEN), *in = guard_alloc(LEN);
	struct place at[2];
	struct node n;

	node_open(&n, &o);
	CHECKF(n.info->domain_attr->mr_mode == want, "asked for %#x, got %#x", asked, n.info->domain_attr->mr_mode);
	node_connect(&n);
	fill(mem, LEN, 1);
	if (test_rank == 1) {
		/* with keys of the provider's own both may ask for the same */
		int own = !(want & (FI_MR_PROV_KEY | 1));

		mr[0] = reg(&n, mem, LEN / 2, RIGHTS, 0, 7, asked & FI_MR_ENDPOINT, &at[0]);
		mr[1] = reg(&n, mem + LEN / 2, LEN / 2, RIGHTS, 0, 7 + own, false, &at[1]);
		CHECK(at[0].key != at[1].key);
		if (asked & FI_MR_ENDPOINT)
			EXPECT_RC(fi_close(&n.ep->fid), -FI_EBUSY);
		link_send(0, at, sizeof(at));
	} else {
		struct fid_mr *local = NULL;
		void *desc;

		OK(fi_mr_reg(n.domain, in, LEN, FI_READ | FI_WRITE, 0, 1, 0, &local, NULL));
		desc = fi_mr_desc(local);
		link_recv(1, at, sizeof(at));
		for (size_t i = 0; i < 2; i++) {
			OK(DO(&n,
			      fi_read(n.ep, in + i * (LEN / 2), LEN / 2, desc, n.peer[1], at[i].addr, at[i].key, &n)));
			OK(DO(&n, fi_write(n.ep, in, 100, desc, n.peer[1], at[i].addr + 50, at[i].key, &n)));
			CHECK(DO(&n, fi_read(n.ep, in, 1, desc, n.peer[1], at[i].addr + LEN / 2, at[i].key, &n)) != 0);
		}
		verify(in, LEN, 1);
		OK(fi_close(&local->fid));
	}
	barrier(&n);
	if (test_rank == 1) {
		CHECK(!memcmp(mem + 50, mem + LEN / 2 + 50, 100));
		OK(fi_close(&mr[0]->fid));
		OK(fi_close(&mr[1]->fid));
	}
	node_close(&n);
	guard_free(in, LEN);
	guard_free(mem, LEN);
}

static void test_modes(long arg)
{
	(void)arg;
	for (int set = 0; set < 1 << ARRAY_LEN(bits); set++) {
		int mode = 0;

		for (size_t i = 0; i < ARRAY_LEN(bits); i++)
			mode |= set >> i & 1 ? bits[i] : 0;
		use(mode, mode & ~FI_MR_ENDPOINT);
	}
	use(1, 1); /* FI_MR_BASIC */
	use(2, 2); /* FI_MR_SCALABLE */
	use(FI_MR_RAW | FI_MR_MMU_NOTIFY | FI_MR_RMA_EVENT | FI_MR_VIRT_ADDR, FI_MR_VIRT_ADDR);
}

/* A region for one operation: the second finds no key, which is free for another region. */
static void test_single(long op)
{
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED | FI_RMA, .tx_flags = FI_DELIVERY_COMPLETE };
	char *mem = guard_alloc(LEN), *in = guard_alloc(LEN);
	struct fid_mr *mr[2] = { NULL, NULL };
	struct place at;
	struct node n;

	node_open(&n, &o);
	node_connect(&n);
	fill(mem, LEN, test_rank);
	if (test_rank == 1)
		mr[0] = reg(&n, mem, LEN, RIGHTS, FI_MR_SINGLE_USE, 9, false, &at);
	barrier(&n);
	for (int i = 0; test_rank == 0 && i < 2; i++) {
		int rc = op == FI_READ ? DO(&n, fi_read(n.ep, in, LEN, NULL, n.peer[1], 0, 9, &n))
				       : DO(&n, fi_write(n.ep, mem, LEN, NULL, n.peer[1], 0, 9, &n));

		CHECKF(i ? rc < 0 : rc == 0, "operation %d: %d", i, rc);
	}
	barrier(&n);
	if (test_rank == 1)
		mr[1] = reg(&n, mem, LEN, RIGHTS, 0, 9, false, &at); /* while the other is open */
	barrier(&n);
	for (int i = 0; test_rank == 0 && i < 2; i++)
		OK(DO(&n, fi_read(n.ep, in, LEN, NULL, n.peer[1], 0, 9, &n)));
	if (test_rank == 0)
		verify(in, LEN, op == FI_READ ? 1 : 0);
	barrier(&n);
	if (test_rank == 1) {
		OK(fi_close(&mr[0]->fid));
		OK(fi_close(&mr[1]->fid));
	}
	node_close(&n);
	guard_free(in, LEN);
	guard_free(mem, LEN);
}

/* What libfabric's other providers register: capability bits among the rights, no bytes, an offset. */
static void test_taken(long mode)
{
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED | FI_RMA,
			       .mr_mode = (int)mode,
			       .tx_flags = FI_DELIVERY_COMPLETE };
	struct fid_mr *mr[4] = { NULL };
	char mem[64] = "";
	uint64_t addr;
	struct node n;

	node_open(&n, &o);
	n.peer[0] = node_insert(&n, &n);
	addr = n.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)mem : 0;
	OK(fi_mr_reg(n.domain, mem, sizeof(mem), RIGHTS | FI_RMA | FI_MSG, 0, 1, 0, &mr[0], NULL));
	OK(fi_mr_reg(n.domain, mem, 0, RIGHTS, 0, 2, 0, &mr[1], NULL));
	OK(fi_mr_reg(n.domain, NULL, 0, RIGHTS, 0, 3, 0, &mr[2], NULL));
	OK(fi_mr_reg(n.domain, mem, sizeof(mem), RIGHTS, 8, 4, FI_RMA_EVENT, &mr[3], NULL));
	for (int i = 0; i < 4; i++) {
		uint64_t at = i == 2 ? 0 : addr;

		OK(DO(&n, fi_write(n.ep, mem, 0, fi_mr_desc(mr[i]), n.peer[0], at, fi_mr_key(mr[i]), &n)));
		OK(DO(&n, fi_read(n.ep, mem, 0, fi_mr_desc(mr[i]), n.peer[0], at, fi_mr_key(mr[i]), &n)));
		if (i == 1 || i == 2)
			CHECK(DO(&n, fi_write(n.ep, mem, 1, fi_mr_desc(mr[i]), n.peer[0], at, fi_mr_key(mr[i]), &n)) !=
			      0);
	}
	for (int i = 0; i < 4; i++)
		OK(fi_close(&mr[i]->fid));
	node_close(&n);
}

static const struct test tests[] = {
	{ "every set of modes", test_modes, 2, 0, 0 },
	{ "single use, write", test_single, 2, 0, FI_WRITE },
	{ "single use, read", test_single, 2, 0, FI_READ },
	{ "no bytes and other bits", test_taken, 0, 0, 0 },
	{ "no bytes and other bits, as verbs", test_taken, 0, 0,
	  FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
