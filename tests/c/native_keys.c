/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints of FI_PROTO_CXI: keys that they choose, counters of regions, fences, and control operations beside calls of
 * one thread. Without a NIC of Slingshot, or its model (tests/clients/cxi.sh), all is skipped. */
#include <pthread.h>
#include <stdatomic.h>

#include "native_rma.h"

/* A region with a key that the endpoint chooses, and a counter of what is written, NULL: none. */
static struct fid_mr *expose_chosen(uint64_t access, uint64_t flags, struct fid_cntr *count)
{
	struct fid_mr *mr;

	OK(fi_mr_reg(n.domain, memory, sizeof(memory), access, 0, 77, flags, &mr, &n));
	CHECK(fi_mr_key(mr) == FI_KEY_NOTAVAIL);
	if (count)
		OK(fi_mr_bind(mr, &count->fid, FI_REMOTE_WRITE));
	OK(fi_mr_bind(mr, &n.ep->fid, 0));
	OK(fi_mr_enable(mr));
	CHECK(fi_mr_key(mr) >> 63 == 1 && fi_mr_key(mr) != FI_KEY_NOTAVAIL);
	return mr;
}

/* Keys that the endpoint chooses: memory is reached in every way by them, writes are counted, and no key that is closed
 * reaches anything. */
static void test_chosen(long flags)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct node_opts o = opts;
	struct fi_cq_tagged_entry e;
	struct fid_cntr *count, *all; /* of a region, and of the endpoint */
	struct fid_mr *mr;
	uint64_t key, last = 0, wrote;

	o.mr_mode |= FI_MR_PROV_KEY;
	o.caps |= FI_RMA_EVENT;
	o.disabled = true;
	open_node(o);
	OK(fi_cntr_open(n.domain, &attr, &all, NULL));
	EXPECT_RC(fi_ep_bind(n.ep, &all->fid, FI_REMOTE_READ), -FI_EOPNOTSUPP);
	OK(fi_ep_bind(n.ep, &all->fid, FI_REMOTE_WRITE));
	OK(fi_enable(n.ep));
	CHECK(n.info->domain_attr->mr_mode & FI_MR_PROV_KEY);
	n.peer[1] = node_insert(&n, &n);
	OK(fi_cntr_open(n.domain, &attr, &count, NULL));
	for (int round = 0; round < 8; round++) {
		mr = expose_chosen(round % 2 ? ALL : FI_REMOTE_WRITE, (uint64_t)flags, round % 4 < 2 ? count : NULL);
		key = fi_mr_key(mr);
		CHECK(key != last);
		wrote = fi_cntr_read(count);
		for (enum call w = 0; w < WAYS; w++) {
			memset(local, 3 * round + (int)w + 1, 100);
			memset(memory, 0, 200);
			do_write(w, 100, 50, key);
			if (has_data(w)) {
				wait_ok(&n, n.rxcq, &e);
				CHECK(e.flags == (FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA) && e.data == ~key);
			}
			for (int tries = 0; ((volatile unsigned char *)memory)[149] != 3 * round + (int)w + 1;
			     tries++) {
				CHECK(tries < 10000);
				wait_none(&n, n.txcq, 1);
			}
			CHECK(!memory[49] && memory[50] == memory[149] && !memory[150]);
		}
		if (round % 4 < 2) {
			OK(fi_cntr_wait(count, wrote + WAYS, 60000));
			CHECK(fi_cntr_read(count) == wrote + WAYS);
		}
		OK(fi_cntr_wait(all, (uint64_t)(round + 1) * WAYS, 60000));
		CHECK(fi_cntr_read(all) == (uint64_t)(round + 1) * WAYS);
		if (round % 2)
			do_read(0, 100, 50, key);
		else
			refused(true, 8, 50, key);
		refused(false, 8, sizeof(memory) - 7, key);
		OK(fi_close(&mr->fid));
		refused(false, 8, 0, key);
		last = key;
	}
	EXPECT_RC(fi_write(n.ep, local, 8, NULL, n.peer[1], 0, 1ull << 62, local), -FI_EKEYREJECTED);
	OK(fi_close(&count->fid));
	OK(fi_close(&n.ep->fid));
	OK(fi_close(&all->fid));
	n.ep = NULL;
	node_close(&n);
}

/* Counters of what peers write are those of endpoints with FI_RMA_EVENT, bound before they are enabled. */
static void test_counters(long arg)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct node_opts o = opts;
	struct fid_cntr *all;

	(void)arg;
	for (int events = 0; events < 2; events++) {
		if (events)
			o.caps |= FI_RMA_EVENT;
		open_node(o);
		OK(fi_cntr_open(n.domain, &attr, &all, NULL));
		EXPECT_RC(fi_ep_bind(n.ep, &all->fid, FI_REMOTE_WRITE), events ? -FI_EOPBADSTATE : -FI_EINVAL);
		OK(fi_close(&all->fid));
		node_close(&n);
	}
}

/* A fenced operation is refused as long as one before it to its peer is under way. */
static void test_fence(long arg)
{
	struct node_opts o = opts;
	struct iovec iov = { local, 8 };
	struct fi_rma_iov remote = { 0, 8, 5 };
	struct fi_msg_rma m = {
		.msg_iov = &iov, .iov_count = 1, .rma_iov = &remote, .rma_iov_count = 1, .context = local
	};
	struct fi_cq_tagged_entry e;
	struct fid_mr *mr;
	ssize_t rc;

	(void)arg;
	o.caps |= FI_FENCE;
	open_node(o);
	n.peer[1] = node_insert(&n, &n);
	mr = expose(memory, sizeof(memory), ALL, 5);
	m.addr = n.peer[1];
	while ((rc = fi_tsend(n.ep, local, LARGE, NULL, n.peer[1], 9, back)) == -FI_EAGAIN) /* waits for its receive */
		progress(&n);
	CHECK_RC(rc, 0);
	for (int k = 0; k < 100; k++) {
		EXPECT_RC(fi_writemsg(n.ep, &m, FI_FENCE | FI_COMPLETION), -FI_EAGAIN);
		progress(&n);
	}
	do_write(WRITE, 8, 0, 5); /* what is not fenced does not wait */
	OK(fi_trecv(n.ep, memory, LARGE, NULL, FI_ADDR_UNSPEC, 9, 0, back));
	wait_ok(&n, n.rxcq, &e);
	wait_ok(&n, n.txcq, &e);
	do {
		rc = fi_writemsg(n.ep, &m, FI_FENCE | FI_COMPLETION);
		progress(&n);
	} while (rc == -FI_EAGAIN);
	CHECK_RC(rc, 0);
	wait_ok(&n, n.txcq, &e);
	CHECK(e.op_context == local);
	OK(fi_close(&mr->fid));
	node_close(&n);
}

/* A thread of a domain whose calls the application serialises writes, receives and reads queues, while others make
 * control operations: all of what is written and sent arrives. */
static void *control(void *over)
{
	static unsigned char own[4096];

	while (!atomic_load((atomic_bool *)over)) {
		struct fid_mr *mr = expose(own, sizeof(own), ALL, keys[1]);

		CHECK_RC(fi_cancel(&n.ep->fid, own), 0); /* of no receive */
		OK(fi_close(&mr->fid));
	}
	return NULL;
}

static void test_alone(long threading)
{
	struct node_opts o = opts;
	struct fi_cq_tagged_entry e;
	struct fid_mr *mr;
	atomic_bool over = false;
	pthread_t other;
	uint64_t seed = 1;

	o.threading = (enum fi_threading)threading;
	open_node(o);
	n.peer[1] = node_insert(&n, &n);
	mr = expose(memory, sizeof(memory), ALL, keys[4]);
	OK(-pthread_create(&other, NULL, control, &over));
	for (uint64_t until = now_ms() + 2000; now_ms() < until; seed++) {
		size_t len = (size_t[]){ 8, 192, 2048, 5000 }[seed % 4];

		OK(fi_trecv(n.ep, back, len, NULL, FI_ADDR_UNSPEC, seed, 0, back));
		fill(local, len, seed);
		do_write(DELIVERED, len, 16, keys[4]);
		verify(memory + 16, len, seed);
		OK(fi_tsend(n.ep, local, len, NULL, n.peer[1], seed, local));
		wait_ok(&n, n.txcq, &e);
		CHECK(e.op_context == local && e.flags == (FI_SEND | FI_TAGGED));
		wait_ok(&n, n.rxcq, &e);
		CHECK(e.op_context == back && e.tag == seed && e.len == len);
		verify(back, len, seed);
	}
	atomic_store(&over, true);
	OK(-pthread_join(other, NULL));
	CHECKF(seed > 20, "%llu rounds", (unsigned long long)seed);
	OK(fi_close(&mr->fid));
	node_close(&n);
}

static const struct test tests[] = {
	{ "chosen", test_chosen, 0, 0, 0 },
	{ "chosen_events", test_chosen, 0, 0, (long)FI_RMA_EVENT },
	{ "counters", test_counters, 0, 0, 0 },
	{ "fence", test_fence, 0, 0, 0 },
	{ "alone_domain", test_alone, 0, 0, FI_THREAD_DOMAIN },
	{ "alone_completion", test_alone, 0, 0, FI_THREAD_COMPLETION },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
