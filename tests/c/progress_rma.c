/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One-sided operations on a target that never calls the library: with FI_PROGRESS_AUTO they are
 * performed, acknowledged and counted while it sleeps.
 */
#include "common.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#define BYTES (1 << 20)
#define KEY 42
#define ADDS 1000

struct target {
	struct node n;
	struct fid_mr *mr;
	struct fid_cntr *remote;
	uint64_t *memory; /* BYTES */
};

static void open_target(struct target *t)
{
	struct node_opts o = {
		.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RMA_EVENT,
		.control = FI_PROGRESS_AUTO, .data = FI_PROGRESS_AUTO,
		.tx_flags = FI_DELIVERY_COMPLETE, .disabled = true,
	};
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };

	node_open(&t->n, &o);
	CHECK(t->n.info->domain_attr->data_progress == FI_PROGRESS_AUTO);
	OK(fi_cntr_open(t->n.domain, &attr, &t->remote, NULL));
	OK(fi_ep_bind(t->n.ep, &t->remote->fid, FI_REMOTE_WRITE | FI_REMOTE_READ));
	OK(fi_enable(t->n.ep));
	t->n.o.disabled = false;
	t->memory = calloc(1, BYTES);
	CHECK(t->memory != NULL);
	OK(fi_mr_reg(t->n.domain, t->memory, BYTES, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0,
		     &t->mr, NULL));
	CHECK(fi_mr_key(t->mr) == KEY);
	node_connect(&t->n);
}

static void close_target(struct target *t)
{
	barrier(&t->n);
	OK(fi_close(&t->mr->fid));
	OK(fi_close(&t->n.ep->fid));
	OK(fi_close(&t->remote->fid));
	t->n.ep = NULL;
	node_close(&t->n);
	free(t->memory);
}

/* Posts until there is room, then waits for the completion. */
#define DO(t, call)                                                                                \
	do {                                                                                       \
		ssize_t rc_;                                                                       \
		while ((rc_ = (call)) == -FI_EAGAIN)                                               \
			progress(&(t)->n);                                                         \
		CHECKF(rc_ == 0, #call " = %zd (%s)", rc_, fi_strerror((int)-rc_));               \
		wait_ctx(&(t)->n, (t)->n.txcq, NULL);                                              \
	} while (0)

static void test_write_read(long len)
{
	char *buf = malloc((size_t)len), byte;
	struct target t;

	CHECK(buf != NULL);
	open_target(&t);
	if (test_rank == 1) {
		link_recv(0, &byte, 1); /* asleep, outside the library */
		verify(t.memory, (size_t)len, 3);
		CHECK(fi_cntr_read(t.remote) == 2); /* a write and a read */
	} else {
		fill(buf, (size_t)len, 3);
		DO(&t, fi_write(t.n.ep, buf, (size_t)len, NULL, t.n.peer[1], 0, KEY, NULL));
		memset(buf, 0, (size_t)len);
		DO(&t, fi_read(t.n.ep, buf, (size_t)len, NULL, t.n.peer[1], 0, KEY, NULL));
		verify(buf, (size_t)len, 3);
		usleep(20000); /* the counter may come after the data of a read */
		link_send(1, "d", 1);
	}
	close_target(&t);
	free(buf);
}

static void test_atomics(long unused)
{
	struct target t;
	char byte;

	(void)unused;
	open_target(&t);
	if (test_rank == 1) {
		link_recv(0, &byte, 1);
		CHECK(t.memory[3] == ADDS);
	} else {
		uint64_t one = 1, before;

		for (uint64_t i = 0; i < ADDS; i++) {
			DO(&t, fi_fetch_atomic(t.n.ep, &one, 1, NULL, &before, NULL, t.n.peer[1], 24,
					       KEY, FI_UINT64, FI_SUM, NULL));
			CHECKF(before == i, "fetched %lu, want %lu", (unsigned long)before,
			       (unsigned long)i);
		}
		link_send(1, "d", 1);
	}
	close_target(&t);
}

static const struct test tests[] = {
	{ "write_read_small", test_write_read, 2, 30, 8 },
	{ "write_read_large", test_write_read, 2, 30, BYTES },
	{ "atomics", test_atomics, 2, 30, 0 },
};

int main(int argc, char **argv) { return tests_main(argc, argv, tests, ARRAY_LEN(tests)); }
