/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the manual pages of libfabric 2.1 to 2.6 say more clearly than those before: operations of no bytes, injected
 * operations that fail, posts refused after some with FI_MORE, addresses that are not in the vector, wait objects'
 * kinds, and operations under way to an address that is removed. Rank 0 posts, rank 1 is the target.
 */
#include "common.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#define KEY 5
#define BYTES 4096

static struct node n;
static struct fid_mr *mr;
static char memory[BYTES], local[BYTES];

/* What rank 1 has to offer: its memory. */
static void open_pair(uint64_t tx_bind)
{
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC, .tx_bind = tx_bind };

	node_open(&n, &o);
	node_connect(&n);
	memset(memory, 0x11, sizeof(memory));
	OK(fi_mr_reg(n.domain, memory, BYTES, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL));
	barrier(&n);
}

static void close_pair(void)
{
	barrier(&n);
	OK(fi_close(&mr->fid));
	node_close(&n);
}

/* A call until it is not -FI_EAGAIN. */
#define AGAIN(call) \
	({ \
		ssize_t rc_; \
		while ((rc_ = (call)) == -FI_EAGAIN) \
			progress(&n); \
		rc_; \
	})

/* ---- no bytes: buffer, vector, count and descriptor are ignored ---- */

static void send_nothing(fi_addr_t to, void *wild)
{
	struct iovec nowhere[2] = { { wild, 0 }, { wild, 0 } };
	void *descs[2] = { wild, wild };
	struct fi_msg msg = { .msg_iov = wild, .desc = wild, .iov_count = 0, .addr = to };
	struct fi_msg_tagged tagged = { .msg_iov = wild, .desc = wild, .iov_count = 0, .addr = to, .tag = 1 };

	OK(AGAIN(fi_send(n.ep, wild, 0, wild, to, NULL)));
	OK(AGAIN(fi_sendv(n.ep, wild, wild, 0, to, NULL)));
	OK(AGAIN(fi_sendv(n.ep, nowhere, descs, 2, to, NULL)));
	OK(AGAIN(fi_sendmsg(n.ep, &msg, FI_COMPLETION)));
	OK(AGAIN(fi_senddata(n.ep, wild, 0, wild, 7, to, NULL)));
	OK(AGAIN(fi_inject(n.ep, wild, 0, to)));
	OK(AGAIN(fi_tsend(n.ep, wild, 0, wild, to, 1, NULL)));
	OK(AGAIN(fi_tsendv(n.ep, wild, wild, 0, to, 1, NULL)));
	OK(AGAIN(fi_tsendmsg(n.ep, &tagged, FI_COMPLETION)));
	OK(AGAIN(fi_tinject(n.ep, wild, 0, to, 1)));
}

#define SENT 8 /* of them with a completion */

static void receive_nothing(void *wild)
{
	struct iovec nowhere[2] = { { wild, 0 }, { wild, 0 } };
	void *descs[2] = { wild, wild };
	struct fi_msg msg = { .msg_iov = wild, .desc = wild, .iov_count = 0, .addr = FI_ADDR_UNSPEC };
	struct fi_msg_tagged tagged = { .msg_iov = wild, .desc = wild, .addr = FI_ADDR_UNSPEC, .tag = 1 };

	OK(AGAIN(fi_recv(n.ep, wild, 0, wild, FI_ADDR_UNSPEC, NULL)));
	OK(AGAIN(fi_recv(n.ep, NULL, 0, NULL, FI_ADDR_UNSPEC, NULL)));
	OK(AGAIN(fi_recvv(n.ep, wild, wild, 0, FI_ADDR_UNSPEC, NULL)));
	OK(AGAIN(fi_recvv(n.ep, nowhere, descs, 2, FI_ADDR_UNSPEC, NULL)));
	OK(AGAIN(fi_recvmsg(n.ep, &msg, 0)));
	OK(AGAIN(fi_recvmsg(n.ep, &msg, FI_COMPLETION)));
	OK(AGAIN(fi_trecv(n.ep, wild, 0, wild, FI_ADDR_UNSPEC, 1, 0, NULL)));
	OK(AGAIN(fi_trecvv(n.ep, wild, wild, 0, FI_ADDR_UNSPEC, 1, 0, NULL)));
	OK(AGAIN(fi_trecvmsg(n.ep, &tagged, 0)));
	OK(AGAIN(fi_trecv(n.ep, NULL, 0, NULL, FI_ADDR_UNSPEC, 1, 0, NULL)));
}

#define RECEIVED 10

/* One-sided operations of no bytes, at an address within the region, or with no remote part at all. */
static int access_nothing(fi_addr_t to, void *wild)
{
	struct fi_msg_rma msg = { .msg_iov = wild, .desc = wild, .addr = to };

	OK(AGAIN(fi_write(n.ep, wild, 0, wild, to, 0, KEY, NULL)));
	OK(AGAIN(fi_writev(n.ep, wild, wild, 0, to, 0, KEY, NULL)));
	OK(AGAIN(fi_read(n.ep, wild, 0, wild, to, 0, KEY, NULL)));
	OK(AGAIN(fi_readv(n.ep, wild, wild, 0, to, 0, KEY, NULL)));
	OK(AGAIN(fi_writemsg(n.ep, &msg, FI_COMPLETION)));
	OK(AGAIN(fi_readmsg(n.ep, &msg, FI_COMPLETION)));
	OK(AGAIN(fi_inject_write(n.ep, wild, 0, to, 0, KEY)));
	return 6;
}

static void test_no_bytes(long unused)
{
	void *wild = (void *)16; /* nothing is there */
	struct fi_cq_tagged_entry e;

	(void)unused;
	open_pair(0);
	if (test_rank == 0) {
		send_nothing(n.peer[1], wild);
		for (int i = 0; i < SENT; i++)
			wait_ok(&n, n.txcq, &e);
		for (int i = access_nothing(n.peer[1], wild); i > 0; i--)
			wait_ok(&n, n.txcq, &e);
		wait_none(&n, n.txcq, 5);
	} else {
		receive_nothing(wild);
		for (int i = 0; i < RECEIVED; i++) {
			wait_ok(&n, n.rxcq, &e);
			CHECK(e.len == 0);
		}
	}
	close_pair();
}

/* ---- injected operations that fail ---- */

/* They have an error entry, also where successes have none; the buffer is the application's at once. */
static void test_inject_fails(long selective)
{
	size_t len = sizeof(uint64_t);
	uint64_t value = 3;

	open_pair(selective ? FI_SELECTIVE_COMPLETION : 0);
	if (test_rank == 0) {
		for (int i = 0; i < 3; i++) {
			uint64_t *given = malloc(len);

			CHECK(given);
			*given = value;
			if (i < 2)
				OK(AGAIN(fi_inject_write(n.ep, given, len, n.peer[1], 0, i ? KEY + 1 : KEY)));
			else
				OK(AGAIN(fi_inject_atomic(n.ep, given, 1, n.peer[1], 0, KEY + 1, FI_UINT64, FI_SUM)));
			memset(given, 0x77, len);
			free(given);
			if (i == 0) {
				wait_none(&n, n.txcq, 5);
				continue;
			}
			wait_err(&n, n.txcq, FI_ENOKEY);
			CHECK(n.err.flags & (i == 1 ? FI_RMA : FI_ATOMIC));
		}
		wait_none(&n, n.txcq, 5);
	}
	barrier(&n);
	if (test_rank == 1)
		CHECK(!memcmp(memory, &value, len));
	close_pair();
}

/* Too long: an errno from the call, and then no entry. */
static void test_inject_refused(long unused)
{
	size_t len;

	(void)unused;
	open_pair(0);
	if (test_rank == 0) {
		char *much = calloc(1, n.info->tx_attr->inject_size + 1);

		CHECK(much);
		len = n.info->tx_attr->inject_size + 1;
		CHECK(fi_inject(n.ep, much, len, n.peer[1]) < 0);
		CHECK(fi_tinject(n.ep, much, len, n.peer[1], 1) < 0);
		CHECK(fi_inject_write(n.ep, much, len, n.peer[1], 0, KEY) < 0);
		CHECK_RC(fi_inject(n.ep, much, 1, 12345), -FI_EINVAL);
		wait_none(&n, n.txcq, 5);
		free(much);
	}
	close_pair();
}

/* ---- FI_MORE ---- */

/* What was posted with FI_MORE goes when a later post is refused. Nothing is read from the queue, nor posted, then. */
static void test_more_refused(long kind)
{
	struct iovec iov = { .iov_base = local, .iov_len = 8 };
	struct fi_rma_iov at = { .addr = 0, .len = 8, .key = KEY };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1 };
	struct fi_msg_rma put = { .msg_iov = &iov, .iov_count = 1, .rma_iov = &at, .rma_iov_count = 1 };
	struct fi_cq_tagged_entry e;
	char in[8];

	open_pair(0);
	memset(local, 0x22, sizeof(local));
	if (test_rank == 0) {
		AGAIN(fi_write(n.ep, local, 8, NULL, n.peer[1], 64, KEY, NULL)); /* the peer is met */
		wait_ok(&n, n.txcq, &e);
		barrier(&n);
		msg.addr = put.addr = n.peer[1];
		OK(AGAIN(kind ? fi_writemsg(n.ep, &put, FI_MORE | FI_COMPLETION)
			      : fi_sendmsg(n.ep, &msg, FI_MORE | FI_COMPLETION)));
		CHECK_RC(kind ? fi_write(n.ep, local, 8, NULL, 12345, 0, KEY, NULL)
			      : fi_send(n.ep, local, 8, NULL, 12345, NULL),
			 -FI_EINVAL);
		link_recv(1, in, 1); /* it is there */
		wait_ok(&n, n.txcq, &e);
	} else {
		barrier(&n);
		if (kind) {
			while (((volatile char *)memory)[7] != 0x22)
				progress(&n);
		} else {
			OK(fi_recv(n.ep, in, 8, NULL, FI_ADDR_UNSPEC, NULL));
			wait_ok(&n, n.rxcq, &e);
		}
		link_send(0, in, 1);
	}
	close_pair();
}

/* ---- addresses ---- */

static void test_addresses(long type)
{
	static const fi_addr_t beyond[] = { 1, 12345, 1ull << 20, 1ull << 40, FI_ADDR_NOTAVAIL };
	struct node_opts o = { .av_type = (enum fi_av_type)type };
	char buf[64];
	struct name name;
	fi_addr_t a;
	size_t len;

	node_open(&n, &o);
	node_name(&n, &name);
	a = node_insert_name(&n, &name);
	for (size_t i = 0; i < ARRAY_LEN(beyond); i++) {
		fi_addr_t b = beyond[i];

		len = sizeof(buf);
		CHECK(b != a);
		CHECK_RC(fi_av_lookup(n.av, b, buf, &len), -FI_EINVAL);
		CHECK_RC(fi_av_remove(n.av, &b, 1, 0), -FI_EINVAL);
	}
	len = 3;
	OK(fi_av_lookup(n.av, a, buf, &len)); /* cut off */
	CHECK(len == name.len && !memcmp(buf, name.bytes, 3));
	OK(fi_av_remove(n.av, &a, 1, 0));
	CHECK_RC(fi_av_remove(n.av, &a, 1, 0), -FI_EINVAL);
	len = sizeof(buf);
	CHECK_RC(fi_av_lookup(n.av, a, buf, &len), -FI_EINVAL);
	CHECK_RC(fi_send(n.ep, buf, 1, NULL, a, NULL), -FI_EINVAL);
	node_close(&n);
}

/* Operations under way to an address that is removed end: as they would have, or with an error. size: of reads, 0:
 * atomics that fetch. */
static void test_removed(long size)
{
	uint64_t before[16];
	int posted = 0;

	open_pair(0);
	if (test_rank == 0) {
		for (int i = 0; i < 16; i++) {
			ssize_t rc = size ? fi_read(n.ep, local, size, NULL, n.peer[1], 0, KEY, NULL)
					  : fi_fetch_atomic(n.ep, local, 1, NULL, &before[i], NULL, n.peer[1], 0, KEY,
							    FI_UINT64, FI_SUM, NULL);

			CHECK(rc == 0 || rc == -FI_EAGAIN);
			posted += !rc;
			if (rc) {
				progress(&n);
				i--;
			}
		}
		OK(fi_av_remove(n.av, &n.peer[1], 1, 0));
		for (int i = 0; i < posted; i++) {
			struct fi_cq_tagged_entry e;
			int rc = wait_for(&n, n.txcq, &e, 60000);

			CHECKF(rc, "operation %d of %d does not end", i, posted);
		}
		CHECK(fi_read(n.ep, local, 8, NULL, n.peer[1], 0, KEY, NULL) == -FI_EINVAL);
	}
	close_pair();
}

/* ---- wait objects ---- */

static void test_wait_objects(long wanted)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_MSG, .wait_obj = (enum fi_wait_obj)wanted };
	struct fi_cntr_attr cntr_attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = (enum fi_wait_obj)wanted };
	struct fi_eq_attr eq_attr = { .wait_obj = (enum fi_wait_obj)wanted };
	struct fid *fids[3];
	struct fid_cntr *cntr;
	struct fid_cq *cq;
	struct fid_eq *eq;

	node_open(&n, NULL);
	OK(fi_cq_open(n.domain, &cq_attr, &cq, NULL));
	OK(fi_cntr_open(n.domain, &cntr_attr, &cntr, NULL));
	OK(fi_eq_open(n.fabric, &eq_attr, &eq, NULL));
	fids[0] = &cq->fid;
	fids[1] = &cntr->fid;
	fids[2] = &eq->fid;
	for (size_t i = 0; i < ARRAY_LEN(fids); i++) {
		enum fi_wait_obj kind = (enum fi_wait_obj)99;

		OK(fi_control(fids[i], FI_GETWAITOBJ, &kind));
		if (wanted == FI_WAIT_UNSPEC)
			CHECKF(kind == FI_WAIT_UNSPEC || kind == FI_WAIT_FD || kind == FI_WAIT_POLLFD, "object %zu: %d",
			       i, kind);
		else
			CHECKF(kind == (enum fi_wait_obj)wanted, "object %zu: %d", i, kind);
		CHECK(fi_control(fids[i], FI_GETWAITOBJ, NULL) < 0);
		OK(fi_close(fids[i]));
	}
	node_close(&n);
}

static const struct test tests[] = {
	{ "no_bytes", test_no_bytes, 2, 0, 0 },
	{ "inject_fails", test_inject_fails, 2, 0, false },
	{ "inject_fails_selective", test_inject_fails, 2, 0, true },
	{ "inject_refused", test_inject_refused, 2, 0, 0 },
	{ "more_refused_message", test_more_refused, 2, 0, 0 },
	{ "more_refused_write", test_more_refused, 2, 0, 1 },
	{ "addresses_table", test_addresses, 1, 0, FI_AV_TABLE },
	{ "addresses_map", test_addresses, 1, 0, FI_AV_MAP },
	{ "removed_fetch", test_removed, 2, 0, 0 },
	{ "removed_short_read", test_removed, 2, 0, 8 },
	{ "removed_read", test_removed, 2, 0, BYTES },
	{ "wait_none", test_wait_objects, 1, 0, FI_WAIT_NONE },
	{ "wait_unspec", test_wait_objects, 1, 0, FI_WAIT_UNSPEC },
	{ "wait_fd", test_wait_objects, 1, 0, FI_WAIT_FD },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
