/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mappings of other processes' GPU memory: kept, recalled, and gone with their memory. Without a GPU the driver is the
 * stand-in of fake/libcuda.c, which ends the process for what is wrong with them.
 */
#include <signal.h>

#include "hmem.h"

/* Why a test is skipped that counts mappings. */
#define MAPPED "messages in GPU memory that the receiver maps"

/* One message of all of b from rank 0 to rank 1, by mapping. */
static void mapped_message(struct node *n, struct buffer *b, uint64_t seed)
{
	struct fi_cq_tagged_entry e;

	if (test_rank == 0) {
		buffer_fill(b, LARGEST, seed);
		POST(n, fi_tsend(n->ep, b->p, LARGEST, b->desc, n->peer[1], seed, NULL));
		wait_ok(n, n->txcq, &e);
	} else {
		POST(n, fi_trecv(n->ep, b->p, LARGEST, b->desc, FI_ADDR_UNSPEC, seed, 0, NULL));
		wait_ok(n, n->rxcq, &e);
		buffer_verify(b, LARGEST, seed);
	}
	barrier(n);
}

/* Mappings are opened once and kept, as many as there may be, and recalled when their region is closed: the driver
 * accuses whatever frees memory that is mapped. */
static void test_kept(long entries)
{
	static const int order[] = { 0, 0, 1, 0, 1, 1 };
	char text[16];
	struct node n;
	struct buffer b[2];
	int want = 0, last = -1;

	if (!gpu_is_fake())
		SKIP("counted by the stand-in driver");
	NEED_WAY(WAY_MEMORY, MAPPED);
	snprintf(text, sizeof(text), "%ld", entries);
	setenv("FI_WEFT_IPC_CACHE", text, 1);
	open_node(&n, 0);
	for (int i = 0; i < 2; i++)
		b[i] = buffer_open(&n, LARGEST, true);
	node_connect(&n);
	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		mapped_message(&n, &b[order[i]], i);
		want += entries == 2 ? i == 0 || i == 2 : entries == 0 || order[i] != last;
		last = order[i];
	}
	if (test_rank == 1) {
		CHECKF(gpu_imports() == want, "mapped %d times, want %d", gpu_imports(), want);
		CHECKF(gpu_mapped() == entries, "%d mappings, want %ld", gpu_mapped(), entries);
	}
	barrier(&n);
	for (int i = 0; i < 2; i++) {
		if (test_rank == 0)
			buffer_close(&b[i]);
		barrier(&n);
		if (test_rank == 1)
			CHECK(gpu_mapped() <= 1 - i);
		if (test_rank == 1)
			buffer_close(&b[i]);
	}
	node_close(&n);
}

/* Memory that takes the place of freed memory is mapped anew. */
static void test_reused(long unused)
{
	struct node n;
	struct buffer b;

	(void)unused;
	if (!gpu_is_fake())
		SKIP("a real driver chooses the addresses");
	NEED_WAY(WAY_MEMORY, MAPPED);
	open_node(&n, 0);
	for (int i = 0; i < 5; i++) {
		b = buffer_open(&n, LARGEST, true);
		if (i == 0)
			node_connect(&n);
		mapped_message(&n, &b, i);
		if (test_rank == 0) {
			OK(fi_close(&b.mr->fid));
			gpu_free(b.p);
			b = buffer_open(&n, LARGEST, true);
		}
		barrier(&n);
		mapped_message(&n, &b, i + 100);
		if (test_rank == 1)
			CHECKF(gpu_imports() == 2 * i + 2, "mapped %d times", gpu_imports());
		barrier(&n);
		buffer_close(&b);
		barrier(&n);
	}
	node_close(&n);
}

/* Both sides have mappings of each other's memory, and close their regions at once. */
static void test_recall_both(long unused)
{
	struct node n;

	(void)unused;
	open_node(&n, 0);
	for (int round = 0; round < 20; round++) {
		struct buffer out = buffer_open(&n, LARGEST, true), in = buffer_open(&n, LARGEST, false);
		struct fi_cq_tagged_entry e;

		if (round == 0)
			node_connect(&n);
		buffer_fill(&out, LARGEST, (uint64_t)(round + test_rank));
		POST(&n, fi_trecv(n.ep, in.p, LARGEST, NULL, FI_ADDR_UNSPEC, (uint64_t)round, 0, NULL));
		POST(&n, fi_tsend(n.ep, out.p, LARGEST, out.desc, n.peer[!test_rank], (uint64_t)round, NULL));
		wait_ok(&n, n.rxcq, &e);
		wait_ok(&n, n.txcq, &e);
		verify(in.p, LARGEST, (uint64_t)(round + !test_rank));
		barrier(&n);
		buffer_close(&out);
		buffer_close(&in);
	}
	barrier(&n);
	node_close(&n);
}

/* The GPU is reset under registered memory: errors, and messages in host memory go on. */
static void test_reset(long unused)
{
	struct node n;
	struct buffer b, host;
	struct fi_cq_tagged_entry e;

	(void)unused;
	if (!gpu_is_fake())
		SKIP("a real GPU is not reset");
	open_node(&n, 0);
	b = buffer_open(&n, LARGEST, true);
	host = buffer_open(&n, LARGEST, false);
	node_connect(&n);
	mapped_message(&n, &b, 1);
	if (test_rank == 1)
		gpu_reset();
	barrier(&n);
	if (test_rank == 0) {
		POST(&n, fi_tsend(n.ep, b.p, LARGEST, b.desc, n.peer[1], 2, NULL));
		wait_err(&n, n.txcq, FI_EIO);
		fill(host.p, LARGEST, 3);
		POST(&n, fi_tsend(n.ep, host.p, LARGEST, NULL, n.peer[1], 3, NULL));
		wait_ok(&n, n.txcq, &e);
	} else {
		POST(&n, fi_trecv(n.ep, b.p, LARGEST, b.desc, FI_ADDR_UNSPEC, 2, 0, NULL));
		wait_err(&n, n.rxcq, FI_EIO);
		POST(&n, fi_trecv(n.ep, host.p, LARGEST, NULL, FI_ADDR_UNSPEC, 3, 0, NULL));
		wait_ok(&n, n.rxcq, &e);
		verify(host.p, LARGEST, 3);
	}
	barrier(&n);
	OK(fi_close(&b.mr->fid));
	buffer_close(&host);
	node_close(&n);
}

/* The target frees memory under its region, and other memory takes its place: reads and writes end with an error, and
 * that memory is neither read nor written. */
static void test_rma_stale(long unused)
{
	struct node n;
	struct buffer b;
	struct remote r;

	(void)unused;
	NEED_WAY(WAY_MEMORY, MAPPED);
	if (!gpu_is_fake())
		SKIP("a real driver chooses the addresses");
	open_node(&n, 0);
	b = buffer_open(&n, LARGEST, true);
	node_connect(&n);
	exchange(&n, &b, &r);
	if (test_rank == 1) {
		gpu_free(b.p);
		b.p = gpu_alloc(LARGEST);
	}
	buffer_fill(&b, LARGEST, 7);
	barrier(&n);
	if (test_rank == 0) {
		POST(&n, fi_write(n.ep, b.p, LARGEST, b.desc, n.peer[1], r.addr, r.key, NULL));
		wait_err(&n, n.txcq, FI_EIO);
		POST(&n, fi_read(n.ep, b.p, LARGEST, b.desc, n.peer[1], r.addr, r.key, NULL));
		wait_err(&n, n.txcq, FI_EIO);
		CHECK(gpu_imports() == 0);
	}
	barrier(&n);
	buffer_verify(&b, LARGEST, 7);
	buffer_close(&b);
	node_close(&n);
}

/* The target closes its region, and frees its memory, while reads and writes are under way: these end, and no mapping
 * outlives the memory. */
static void test_rma_closed(long kinds)
{
	struct node n;

	open_node(&n, 0);
	for (int round = 0; round < 8; round++) {
		struct buffer b = buffer_open(&n, LARGEST, kinds & (test_rank ? 2 : 1));
		bool failed = false;
		struct fi_cq_tagged_entry e;
		struct remote r;

		if (round == 0)
			node_connect(&n);
		exchange(&n, &b, &r);
		if (test_rank == 1) {
			usleep((unsigned)(round * 977 % 5000));
			buffer_close(&b);
		}
		while (test_rank == 0 && !failed) {
			if (round & 1)
				POST(&n, fi_write(n.ep, b.p, LARGEST, b.desc, n.peer[1], r.addr, r.key, &n));
			else
				POST(&n, fi_read(n.ep, b.p, LARGEST, b.desc, n.peer[1], r.addr, r.key, &n));
			failed = wait_for(&n, n.txcq, &e, -1) != 1;
		}
		CHECKF(!failed || n.err.err == FI_ENOKEY || n.err.err == FI_EACCES, "%s", fi_strerror(n.err.err));
		if (test_rank == 0)
			buffer_close(&b);
		barrier(&n);
		if (gpu_is_fake())
			CHECKF(gpu_mapped() == 0, "%d mappings are left", gpu_mapped());
	}
	node_close(&n);
}

/* The initiator closes its endpoint with operations under way. */
static void test_rma_left(long kinds)
{
	for (int round = 0; round < 4; round++) {
		struct node n;
		struct buffer b;
		struct remote r;

		open_node(&n, 0);
		b = buffer_open(&n, LARGEST, kinds & (test_rank ? 2 : 1));
		node_connect(&n);
		exchange(&n, &b, &r);
		for (int i = 0; test_rank == 0 && i <= round; i++)
			POST(&n, fi_write(n.ep, b.p, LARGEST, b.desc, n.peer[1], r.addr, r.key, NULL));
		if (test_rank == 0) {
			OK(fi_close(&n.ep->fid));
			n.ep = NULL;
			buffer_close(&b);
			link_send(1, &round, sizeof(round));
		} else {
			int done;

			link_recv(0, &done, sizeof(done));
			buffer_close(&b);
		}
		node_close(&n);
	}
}

/* Stops a process, and returns when it is stopped. */
static void stop(pid_t pid)
{
	char path[64], line[256], state = 0;
	FILE *f;

	CHECK(kill(pid, SIGSTOP) == 0);
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	while (state != 'T') {
		f = fopen(path, "r");
		CHECK(f && fgets(line, sizeof(line), f));
		fclose(f);
		state = strrchr(line, ')')[2];
	}
}

/* The target closes its region while the initiator, which has it mapped, is stopped: the close waits for
 * FI_WEFT_PEER_TIMEOUT. Operations of the initiator, which goes on then, end with an error, and the memory stays as it
 * is. */
static void test_recall_stopped(long kinds)
{
	enum { LIMIT_US = 500000, LATE_US = 10000000 }; /* LATE_US: a machine that is busy */
	pid_t pid = getpid();
	uint64_t start, took;
	struct node n;
	struct buffer b;
	struct remote r;

	setenv("FI_WEFT_PEER_TIMEOUT", "500ms", 1);
	open_node(&n, 0);
	b = buffer_open(&n, LARGEST, kinds & (test_rank ? 2 : 1));
	node_connect(&n);
	exchange(&n, &b, &r);
	if (test_rank == 0) {
		DO(&n, fi_write(n.ep, b.p, LARGEST, b.desc, n.peer[1], r.addr, r.key, NULL));
		if (gpu_is_fake())
			CHECKF(gpu_mapped() == 1, "%d mappings", gpu_mapped());
		link_send(1, &pid, sizeof(pid));
	} else {
		link_recv(0, &pid, sizeof(pid));
		buffer_fill(&b, LARGEST, 7);
		stop(pid);
		start = now_us();
		OK(fi_close(&b.mr->fid));
		took = now_us() - start;
		CHECK(kill(pid, SIGCONT) == 0);
		CHECKF(took >= LIMIT_US && took < LATE_US, "the close took %llu us", (unsigned long long)took);
	}
	barrier(&n);
	if (test_rank == 0) {
		POST(&n, fi_write(n.ep, b.p, LARGEST, b.desc, n.peer[1], r.addr, r.key, NULL));
		wait_err(&n, n.txcq, FI_ENOKEY);
		POST(&n, fi_read(n.ep, b.p, LARGEST, b.desc, n.peer[1], r.addr, r.key, NULL));
		wait_err(&n, n.txcq, FI_ENOKEY);
		while (gpu_is_fake() && gpu_mapped() != 0)
			usleep(1000); /* it takes in the recall on a thread of its own */
		OK(fi_close(&b.mr->fid));
	}
	barrier(&n);
	if (test_rank == 1)
		buffer_verify(&b, LARGEST, 7);
	if (b.device)
		gpu_free(b.p);
	else
		free(b.p);
	node_close(&n);
}

static const struct test tests[] = {
	{ "rma_stale", test_rma_stale, 2, 60, 0 },
	{ "rma_closed_host_device", test_rma_closed, 2, 60, 2 },
	{ "rma_closed_device_host", test_rma_closed, 2, 60, 1 },
	{ "rma_closed_device_device", test_rma_closed, 2, 60, 3 },
	{ "rma_left_host_device", test_rma_left, 2, 60, 2 },
	{ "rma_left_device_host", test_rma_left, 2, 60, 1 },
	{ "kept", test_kept, 2, 60, 2 },
	{ "kept_one", test_kept, 2, 60, 1 },
	{ "kept_none", test_kept, 2, 60, 0 },
	{ "reused", test_reused, 2, 60, 0 },
	{ "recall_both", test_recall_both, 2, 60, 0 },
	{ "recall_stopped_host_device", test_recall_stopped, 2, 60, 2 },
	{ "recall_stopped_device_device", test_recall_stopped, 2, 60, 3 },
	{ "reset", test_reset, 2, 60, 0 },
};

int main(int argc, char **argv)
{
	gpu_main(argv);
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
