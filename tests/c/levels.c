/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion levels, FI_INJECT, FI_MORE and FI_FENCE of single operations. */
#include "common.h"

#include <poll.h>

#define LARGE 400000

static char *big_in, *big_out;

static void open_levels(struct node *n, uint64_t need)
{
	struct node_opts o = { .tx_flags = need & ~(uint64_t)FI_FENCE };

	if (need & FI_FENCE)
		o.caps = FI_MSG | FI_TAGGED | FI_FENCE;
	if (need) {
		struct fi_info *info = node_info(&o);

		NEED(info != NULL, "this completion level");
		fi_freeinfo(info);
	}
	o.tx_flags = 0;
	node_open(n, &o);
	node_connect(n);
	big_in = guard_alloc(LARGE);
	big_out = guard_alloc(LARGE);
}

static void close_levels(struct node *n)
{
	barrier(n);
	node_close(n);
	guard_free(big_in, LARGE);
	guard_free(big_out, LARGE);
}

static void send_flags(struct node *n, fi_addr_t to, size_t len, uint64_t tag, uint64_t flags)
{
	struct op o = {
		.form = F_MSG, .tagged = true, .addr = to, .tag = tag, .flags = flags | FI_COMPLETION, .ctx = big_out
	};

	op_split(&o, big_out, len, 1, false);
	post_send(n, &o);
}

static const size_t sizes[] = { 0, 8, 100, 4096, 65536, 65537, LARGE };

/* After any completion the buffer may be reused: overwriting it must not show at the receiver. */
static void test_reuse(long flags)
{
	struct node n;

	open_levels(&n, (uint64_t)flags);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		if (test_rank == 0) {
			fill(big_out, sizes[i], i);
			send_flags(&n, n.peer[1], sizes[i], i, (uint64_t)flags);
			barrier(&n);
			wait_ctx(&n, n.txcq, big_out);
			memset(big_out, 0x33, sizes[i]);
			barrier(&n);
			continue;
		}
		barrier(&n);
		if (sizes[i] <= 65536)
			usleep(2000); /* a buffered one has completed by now */
		trecv(&n, big_in, LARGE, FI_ADDR_UNSPEC, i, 0, big_in);
		wait_ctx(&n, n.rxcq, big_in);
		verify(big_in, sizes[i], i);
		barrier(&n);
	}
	close_levels(&n);
}

/* FI_INJECT: the buffer is the caller's on return, the completion (if any) comes later. */
static void test_inject_flag(long arg)
{
	struct node n;

	(void)arg;
	open_levels(&n, 0);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		if (sizes[i] > n.info->tx_attr->inject_size)
			continue;
		if (test_rank == 0) {
			fill(big_out, sizes[i], i);
			send_flags(&n, n.peer[1], sizes[i], i, FI_INJECT);
			memset(big_out, 0x44, sizes[i]);
			barrier(&n);
			wait_ctx(&n, n.txcq, big_out);
		} else {
			barrier(&n);
			trecv(&n, big_in, LARGE, FI_ADDR_UNSPEC, i, 0, big_in);
			wait_ctx(&n, n.rxcq, big_in);
			verify(big_in, sizes[i], i);
		}
	}
	close_levels(&n);
}

/* FI_DELIVERY_COMPLETE: with a receive posted, the data is in it when the sender's completion is
 * there, although the receiver has not read its own completion. */
static void test_delivery(long arg)
{
	struct node n;

	(void)arg;
	open_levels(&n, FI_DELIVERY_COMPLETE);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		if (test_rank == 0) {
			fill(big_out, sizes[i], i + 10);
			barrier(&n);
			send_flags(&n, n.peer[1], sizes[i], i, FI_DELIVERY_COMPLETE);
			wait_ctx(&n, n.txcq, big_out);
			barrier(&n);
			barrier(&n);
		} else {
			trecv(&n, big_in, LARGE, FI_ADDR_UNSPEC, i, 0, big_in);
			barrier(&n);
			barrier(&n); /* progresses until the sender has its completion */
			verify(big_in, sizes[i], i + 10);
			wait_ctx(&n, n.rxcq, big_in);
			barrier(&n);
		}
	}
	close_levels(&n);
}

/* Injected messages of an endpoint whose operations complete with FI_DELIVERY_COMPLETE are
 * counted when they are delivered: not while the receiver, what has no thread for it, does nothing. */
static void test_inject_counted(long arg)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct node_opts o = { .tx_flags = FI_DELIVERY_COMPLETE, .data = FI_PROGRESS_MANUAL, .disabled = true };
	struct op out[] = {
		{ .form = F_INJECT, .tagged = true, .len = 8 },
		{ .form = F_INJECTDATA, .tagged = true, .len = 400 },
		{ .form = F_INJECT, .len = 400 },
		{ .form = F_INJECTDATA, .len = 8 },
	};
	char in[ARRAY_LEN(out)][512], bytes[512] = { 1 }, a = 1;
	struct fid_cntr *cntr;
	struct node n;

	(void)arg;
	node_open(&n, &o);
	OK(fi_cntr_open(n.domain, &attr, &cntr, NULL));
	OK(fi_ep_bind(n.ep, &cntr->fid, FI_SEND));
	OK(fi_enable(n.ep));
	n.o.disabled = false;
	node_connect(&n);
	barrier(&n);
	for (size_t i = 0; i < ARRAY_LEN(out); i++) {
		struct op r = { .tagged = out[i].tagged,
				.buf = in[i],
				.len = 512,
				.addr = FI_ADDR_UNSPEC,
				.tag = i,
				.ctx = &out[i] };

		out[i].buf = bytes;
		out[i].addr = n.peer[!test_rank];
		out[i].tag = i;
		if (test_rank == 1)
			post_recv(&n, &r);
	}
	if (test_rank == 0) {
		link_recv(1, &a, 1); /* rank 1 does nothing any more */
		for (size_t i = 0; i < ARRAY_LEN(out); i++)
			post_send(&n, &out[i]);
		for (uint64_t end = now_ms() + 30; now_ms() < end;)
			CHECK(fi_cntr_read(cntr) == 0);
		link_send(1, &a, 1);
		while (fi_cntr_read(cntr) < ARRAY_LEN(out))
			progress(&n);
	} else {
		link_send(0, &a, 1);
		link_recv(0, &a, 1);
		for (size_t i = 0; i < ARRAY_LEN(out); i++)
			wait_ok(&n, n.rxcq, &(struct fi_cq_tagged_entry){ 0 });
	}
	barrier(&n);
	wait_none(&n, n.txcq, 1);
	OK(fi_close(&n.ep->fid));
	OK(fi_close(&cntr->fid));
	n.ep = NULL;
	node_close(&n);
}

/* FI_MATCH_COMPLETE: no completion before a receive has matched. */
static void test_match(long arg)
{
	struct node n;

	(void)arg;
	open_levels(&n, FI_MATCH_COMPLETE);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		if (test_rank == 0) {
			fill(big_out, sizes[i], i + 20);
			send_flags(&n, n.peer[1], sizes[i], i, FI_MATCH_COMPLETE);
			wait_none(&n, n.txcq, 20);
			barrier(&n);
			wait_ctx(&n, n.txcq, big_out);
		} else {
			barrier(&n); /* progresses: the message arrives and is not matched */
			trecv(&n, big_in, LARGE, FI_ADDR_UNSPEC, i, 0, big_in);
			wait_ctx(&n, n.rxcq, big_in);
			verify(big_in, sizes[i], i + 20);
		}
		barrier(&n);
	}
	close_levels(&n);
}

/* A completed send needs nothing of its sender any more: it may close everything and exit while the
 * message is still unmatched. Rendezvous may complete only once it is matched, so the first that
 * does not complete soon ends the test. */
static int send_until_pending(struct node *n, uint64_t flags)
{
	struct fi_cq_tagged_entry e;
	int done = 0;

	for (; done < (int)ARRAY_LEN(sizes); done++) {
		fill(big_out, sizes[done], (uint64_t)done + 30);
		send_flags(n, n->peer[1], sizes[done], (uint64_t)done, flags);
		if (wait_for(n, n->txcq, &e, 1000) != 1)
			break;
	}
	return done;
}

static void test_sender_leaves(long flags)
{
	struct node n;
	int done;

	open_levels(&n, (uint64_t)flags);
	if (test_rank == 0) {
		done = send_until_pending(&n, (uint64_t)flags);
		barrier(&n);
		node_close(&n);
		link_send(1, &done, sizeof(done)); /* rank 1 has not posted a receive */
		return;
	}
	barrier(&n); /* progresses */
	link_recv(0, &done, sizeof(done));
	CHECKF(done >= 3, "only %d sends completed", done);
	usleep(20000);
	for (int i = 0; i < done; i++) {
		trecv(&n, big_in, LARGE, FI_ADDR_UNSPEC, (uint64_t)i, 0, big_in);
		wait_ctx(&n, n.rxcq, big_in);
		verify(big_in, sizes[i], (uint64_t)i + 30);
	}
	node_close(&n);
}

/* The same with delivery at stake: rank 1 progresses but matches only after rank 0 is gone. */
static void test_sender_leaves_delivered(long arg)
{
	struct pollfd left = { .fd = link_fd(0), .events = POLLIN };
	struct node n;
	char c;

	(void)arg;
	open_levels(&n, FI_DELIVERY_COMPLETE);
	if (test_rank == 0) {
		fill(big_out, 3000, 1);
		send_flags(&n, n.peer[1], 3000, 1, FI_DELIVERY_COMPLETE);
		barrier(&n);
		wait_ctx(&n, n.txcq, big_out);
		node_close(&n);
		link_send(1, "x", 1);
		return;
	}
	trecv(&n, big_in, LARGE, FI_ADDR_UNSPEC, 1, 0, big_in);
	barrier(&n);
	wait_ctx(&n, n.rxcq, big_in);
	while (poll(&left, 1, 0) == 0)
		progress(&n); /* the answer may need a path first */
	link_recv(0, &c, 1);
	verify(big_in, 3000, 1);
	node_close(&n);
}

/* Short messages that no receive waits for complete as soon as they are at the peer: rank 1 asks for
 * them after a later one. */
static void test_unmatched(long flags)
{
	static const size_t lens[] = { 0, 8, 100, 4096 };
	struct node n;

	open_levels(&n, (uint64_t)flags);
	for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
		if (test_rank == 0) {
			fill(big_out, lens[i], i + 40);
			send_flags(&n, n.peer[1], lens[i], i, (uint64_t)flags);
			wait_ctx(&n, n.txcq, big_out);
			memset(big_out, 0, lens[i]);
			send_flags(&n, n.peer[1], 8, 99, 0);
			wait_ctx(&n, n.txcq, big_out);
		} else {
			trecv(&n, big_in, LARGE, FI_ADDR_UNSPEC, 99, 0, big_in);
			wait_ctx(&n, n.rxcq, big_in);
			trecv(&n, big_in, LARGE, FI_ADDR_UNSPEC, i, 0, big_in);
			wait_ctx(&n, n.rxcq, big_in);
			verify(big_in, lens[i], i + 40);
		}
		barrier(&n);
	}
	wait_none(&n, n.txcq, 1);
	close_levels(&n);
}

/* MANY: more than goes out at once. */
#define MANY 400
#define MANY_LEN 900

static void post_many(struct node *n, uint64_t count)
{
	for (uint64_t i = 0; test_rank == 1 && i < count; i++)
		trecv(n, big_in + i * MANY_LEN, MANY_LEN, FI_ADDR_UNSPEC, i, 0, big_in + i * MANY_LEN);
}

static void send_many(struct node *n, uint64_t count, uint64_t flags)
{
	for (uint64_t i = 0; i < count; i++) {
		fill(big_out, MANY_LEN, i);
		send_flags(n, n->peer[1], MANY_LEN, i, flags | FI_INJECT);
	}
	for (uint64_t i = 0; i < count; i++)
		wait_ctx(n, n->txcq, big_out);
}

static void receive_many(struct node *n, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		wait_ctx(n, n->rxcq, big_in + i * MANY_LEN);
		verify(big_in + i * MANY_LEN, MANY_LEN, i);
	}
}

/* FI_TRANSMIT_COMPLETE: what is complete needs nothing of its sender, what may end without closing
 * anything. */
static void test_sender_exits(long arg)
{
	struct node n;

	(void)arg;
	open_levels(&n, FI_TRANSMIT_COMPLETE);
	post_many(&n, MANY);
	barrier(&n);
	if (test_rank == 0) {
		send_many(&n, MANY, FI_TRANSMIT_COMPLETE);
		_exit(0);
	}
	receive_many(&n, MANY);
	node_close(&n);
}

/* A number of messages of any level outlive their sender's exit if it closed the endpoint, although the receiver polls
 * late: those in slots and bounce buffers, and those behind them, of which the sender keeps a copy. */
static void test_sender_closes(long count)
{
	struct node n;

	open_levels(&n, 0);
	post_many(&n, (uint64_t)count);
	barrier(&n);
	if (test_rank == 0) {
		send_many(&n, (uint64_t)count, 0);
		node_close(&n);
		exit(0);
	}
	usleep(300000);
	receive_many(&n, (uint64_t)count);
	node_close(&n);
}

/* FI_MORE may delay, but a post without it, or reading the CQ, gets everything going. */
static void test_more(long arg)
{
	struct node n;

	(void)arg;
	open_levels(&n, 0);
	if (test_rank == 0) {
		fill(big_out, 64, 7);
		for (uint64_t i = 0; i < 20; i++)
			send_flags(&n, n.peer[1], 64, i, i < 19 ? FI_MORE : 0);
		for (int i = 0; i < 20; i++)
			wait_ctx(&n, n.txcq, big_out);
	} else {
		for (uint64_t i = 0; i < 20; i++) {
			trecv(&n, big_in + 64 * i, 64, FI_ADDR_UNSPEC, i, 0, big_in);
		}
		for (uint64_t i = 0; i < 20; i++)
			wait_ctx(&n, n.rxcq, big_in);
		for (uint64_t i = 0; i < 20; i++)
			verify(big_in + 64 * i, 64, 7);
	}
	close_levels(&n);
}

/* A fenced operation starts after all before it to that peer have completed. */
static void test_fence(long arg)
{
	struct node n;

	(void)arg;
	open_levels(&n, FI_FENCE);
	for (int round = 0; round < 20; round++) {
		struct fi_cq_tagged_entry e;
		char small[8];

		if (test_rank == 0) {
			struct op o = { .form = F_MSG,
					.tagged = true,
					.addr = n.peer[1],
					.tag = 2,
					.flags = FI_FENCE | FI_COMPLETION | FI_DELIVERY_COMPLETE,
					.ctx = small };

			fill(big_out, LARGE, (uint64_t)round);
			fill(small, 8, 99);
			send_flags(&n, n.peer[1], LARGE, 1, 0);
			op_split(&o, small, 8, 1, false);
			post_send(&n, &o);
			wait_ok(&n, n.txcq, &e);
			CHECK(e.op_context == big_out);
			wait_ctx(&n, n.txcq, small);
		} else {
			trecv(&n, small, 8, FI_ADDR_UNSPEC, 2, 0, small);
			trecv(&n, big_in, LARGE, FI_ADDR_UNSPEC, 1, 0, big_in);
			wait_ok(&n, n.rxcq, &e);
			CHECK(e.op_context == big_in); /* the fenced one came second */
			verify(big_in, LARGE, (uint64_t)round);
			wait_ctx(&n, n.rxcq, small);
		}
	}
	close_levels(&n);
}

static const struct test tests[] = {
	{ "reuse_default", test_reuse, 2, 0, 0 },
	{ "reuse_inject_complete", test_reuse, 2, 0, FI_INJECT_COMPLETE },
	{ "reuse_transmit_complete", test_reuse, 2, 0, FI_TRANSMIT_COMPLETE },
	{ "inject_flag", test_inject_flag, 2, 0, 0 },
	{ "delivery_complete", test_delivery, 2, 0, 0 },
	{ "inject_counted", test_inject_counted, 2, 0, 0 },
	{ "match_complete", test_match, 2, 0, 0 },
	{ "sender_leaves_default", test_sender_leaves, 2, 0, 0 },
	{ "sender_leaves_transmit_complete", test_sender_leaves, 2, 0, FI_TRANSMIT_COMPLETE },
	{ "unmatched_transmit_complete", test_unmatched, 2, 0, FI_TRANSMIT_COMPLETE },
	{ "unmatched_delivery_complete", test_unmatched, 2, 0, FI_DELIVERY_COMPLETE },
	{ "sender_exits", test_sender_exits, 2, 0, 0 },
	{ "sender_closes_few", test_sender_closes, 2, 0, 40 },
	{ "sender_closes", test_sender_closes, 2, 0, 120 },
	{ "sender_closes_many", test_sender_closes, 2, 0, MANY },
	{ "sender_leaves_delivered", test_sender_leaves_delivered, 2, 0, 0 },
	{ "more", test_more, 2, 0, 0 },
	{ "fence", test_fence, 2, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
