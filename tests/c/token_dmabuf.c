/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and writes (fi_read, fi_write) with memory of the GPU on both sides, over an RDMA device: rank 0's, to and from
 * rank 1's. WEFT_TEST_DMABUF has the device take it, with the stand-in of fake/dmabuf.c; else it goes as messages.
 */
#include <rdma/fi_rma.h>

#include "common.h"
#include "gpu.h"
#include "tokens.h"

enum { LEN = 32 << 10, ROUNDS = 6 };

struct side {
	struct node n;
	struct weft_token_ops *t;
	char *mem;
	struct fid_mr *mr;
	struct weft_remote *remote; /* of rank 0 */
	struct weft_remote_info info;
};

static struct fid_mr *region(struct side *s, void *mem, size_t len, uint64_t key)
{
	struct iovec iov = { mem, len };
	struct fi_mr_attr attr = {
		.mr_iov = &iov,
		.iov_count = 1,
		.access = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE,
		.requested_key = key,
		.iface = FI_HMEM_CUDA,
	};
	struct fid_mr *mr;

	OK(fi_mr_regattr(s->n.domain, &attr, 0, &mr));
	return mr;
}

static void open_side(struct side *s)
{
	if (!test_is_weft())
		SKIP("an extension of weft");
	memset(s, 0, sizeof(*s));
	gpu_open();
	node_open(&s->n, &(struct node_opts){
				 .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_HMEM,
				 .mr_mode = FI_MR_HMEM | FI_MR_ALLOCATED,
			 });
	s->t = token_ops(&s->n.ep->fid);
	s->mem = gpu_alloc(LEN);
	s->mr = region(s, s->mem, LEN, 1);
	if (test_rank == 1)
		token_send(s->t, s->mr, 0);
	else
		s->remote = token_receive(s->t, s->n.ep, 1, &s->info);
}

static void close_side(struct side *s)
{
	barrier(&s->n);
	if (s->remote)
		OK(fi_close(&s->remote->fid));
	OK(fi_close(&s->mr->fid));
	CHECKF(gpu_registered() == 0, "%d registrations of memory that is closed", gpu_registered());
	barrier(&s->n);
	node_close(&s->n);
	gpu_free(s->mem);
}

/* A read or write of LEN bytes between memory here and there, which goes by the device or does not. */
static void move(struct side *s, void *mem, struct fid_mr *mr, const struct weft_remote_info *to, bool read,
		 bool device)
{
	const uint64_t before = node_counter(&s->n, "rma_device");
	struct fi_cq_tagged_entry e;
	void *desc = fi_mr_desc(mr);
	uint64_t n;
	ssize_t rc;

	do {
		rc = read ? fi_read(s->n.ep, mem, LEN, desc, to->addr, to->base, to->key, s)
			  : fi_write(s->n.ep, mem, LEN, desc, to->addr, to->base, to->key, s);
		if (rc == -FI_EAGAIN)
			progress(&s->n);
	} while (rc == -FI_EAGAIN);
	CHECKF(rc == 0, "%zd", rc);
	wait_ok(&s->n, s->n.txcq, &e);
	n = node_counter(&s->n, "rma_device") - before;
	CHECKF(n == device, "%s by the device: %lu", read ? "read" : "write", (unsigned long)n);
}

/* A read or write of all memory. */
static void transfer(struct side *s, bool read)
{
	move(s, s->mem, s->mr, &s->info, read, gpu_reaches_devices(""));
}

/* Between rounds the initiator frees its memory and allocates other: it is registered as long as a region of it is
 * open, and what is allocated where it was is not taken for it. */
static void test_by_device(long unused)
{
	char *want = malloc(LEN), *got = malloc(LEN);
	struct side s;

	(void)unused;
	if (!device_is_demanded())
		SKIP("no RDMA device is demanded");
	setenv("FI_WEFT_HMEM_MAP_SIZE", "0", 1);
	open_side(&s);
	for (int i = 0; i < ROUNDS; i++) {
		const bool read = i & 1;

		fill(want, LEN, (uint64_t)i);
		memset(got, 0, LEN);
		gpu_put(s.mem, (test_rank == 0) == read ? got : want, LEN);
		barrier(&s.n);
		if (test_rank == 0)
			transfer(&s, read);
		barrier(&s.n);
		if ((test_rank == 0) == read) {
			gpu_get(got, s.mem, LEN);
			CHECKF(!memcmp(got, want, LEN), "round %d", i);
		}
		CHECKF(gpu_registered() == gpu_reaches_devices(""), "%d registrations", gpu_registered());
		if (test_rank == 0 && read) {
			OK(fi_close(&s.mr->fid));
			CHECKF(gpu_registered() == 0, "%d registrations of memory that is closed", gpu_registered());
			gpu_free(s.mem);
			s.mem = gpu_alloc(LEN);
			s.mr = region(&s, s.mem, LEN, 1);
		}
	}
	if (test_rank == 0 && gpu_reaches_devices(""))
		transfer(&s, true); /* and its registration ends with the region */
	close_side(&s);
	free(want);
	free(got);
}

/* On either side there is memory that the device does not reach, as its exporter refuses: that goes as messages, and
 * all other memory by the device, before and after. */
static void test_one_refused(long unused)
{
	char *want = malloc(LEN), *got = malloc(LEN), *mem[2];
	struct weft_remote_info info[2];
	struct weft_remote *remote = NULL;
	struct fid_mr *mr[2];
	struct side s;

	(void)unused;
	if (!device_is_demanded())
		SKIP("no RDMA device is demanded");
	setenv("FI_WEFT_HMEM_MAP_SIZE", "0", 1);
	open_side(&s);
	gpu_refuse_devices(2 * LEN);
	mem[0] = s.mem;
	mem[1] = gpu_alloc(2 * LEN);
	mr[0] = s.mr;
	mr[1] = region(&s, mem[1], 2 * LEN, 2);
	info[0] = s.info;
	if (test_rank == 1)
		token_send(s.t, mr[1], 0);
	else
		remote = token_receive(s.t, s.n.ep, 1, &info[1]);
	for (int i = 0; i < 16; i++) {
		const int here = i & 1, there = i >> 1 & 1, mine = test_rank == 0 ? here : there;
		const bool read = i & 4;

		fill(want, LEN, (uint64_t)i);
		memset(got, 0, LEN);
		gpu_put(mem[mine], (test_rank == 0) == read ? got : want, LEN);
		barrier(&s.n);
		if (test_rank == 0)
			move(&s, mem[here], mr[here], &info[there], read, gpu_reaches_devices("") && !here && !there);
		barrier(&s.n);
		gpu_get(got, mem[mine], LEN);
		CHECKF(!memcmp(got, want, LEN), "%d: %s between %d and %d", i, read ? "read" : "write", here, there);
	}
	if (test_rank == 0)
		OK(fi_close(&remote->fid));
	barrier(&s.n);
	OK(fi_close(&mr[1]->fid));
	close_side(&s);
	gpu_free(mem[1]);
	free(want);
	free(got);
}

static const struct test tests[] = {
	{ "by_device_plain", test_by_device, 2, 180, 0 },
	{ "one_refused", test_one_refused, 2, 180, 0 },
};

int main(int argc, char **argv)
{
	gpu_main(argv);
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
