/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Full rings and full CQs: posting says -FI_EAGAIN and has done nothing; when there is room again
 * everything arrives, once and in order.
 */
#include <sys/uio.h>

#include "common.h"

#define LIMIT 20000 /* posts without reading anything; a provider may hold that many */
#define TAG 3

struct flow {
	struct node *n;
	uint64_t *seq; /* seq[k] is what message k carries; its address is the context */
	uint64_t posted, completed;
};

static void flow_open(struct flow *f, struct node *n, uint64_t count)
{
	memset(f, 0, sizeof(*f));
	f->n = n;
	f->seq = calloc(count, sizeof(*f->seq));
	CHECK(f->seq != NULL);
}

/* Each rank hears from the other once: a provider may connect when it is first used. */
static void warm_up(struct node *n)
{
	char in[8], out[8] = "hello";

	trecv(n, in, 8, FI_ADDR_UNSPEC, 0xaaaa, 0, in);
	tsend(n, out, 8, n->peer[!test_rank], 0xaaaa, out);
	wait_ctx(n, n->txcq, out);
	wait_ctx(n, n->rxcq, in);
	barrier(n);
}

/* Posts sends without reading a completion until one is refused three times, or count. */
static void fill_up(struct flow *f, fi_addr_t to, uint64_t count, enum form form, size_t len, char *big)
{
	int refused = 0;

	while (f->posted < count && refused < 3) {
		struct op o = { .form = form,
				.tagged = true,
				.buf = &f->seq[f->posted],
				.len = 8,
				.addr = to,
				.tag = TAG,
				.ctx = &f->seq[f->posted] };
		ssize_t rc;

		f->seq[f->posted] = f->posted;
		if (len > 8) {
			memcpy(big, &f->posted, 8);
			o.buf = big;
			o.len = len;
		}
		rc = op_send(f->n->ep, &o);
		CHECKF(rc == 0 || rc == -FI_EAGAIN, "send = %zd (%s)", rc, fi_strerror((int)-rc));
		if (rc)
			refused++;
		else
			f->posted++;
	}
}

/* Completions in the order of posting? Not promised; each exactly once is. */
static void complete_all(struct flow *f, uint64_t count)
{
	struct fi_cq_tagged_entry e;
	bool *seen = calloc(count, 1);

	CHECK(seen != NULL);
	for (; f->completed < count; f->completed++) {
		uint64_t k;

		wait_ok(f->n, f->n->txcq, &e);
		k = (uint64_t)((uint64_t *)e.op_context - f->seq);
		CHECKF(k < count && !seen[k], "completion of %llu", (unsigned long long)k);
		seen[k] = true;
	}
	free(seen);
}

static void receive_all(struct node *n, uint64_t count, size_t len)
{
	struct fi_cq_tagged_entry e;
	char *in = malloc(len);

	CHECK(in != NULL);
	for (uint64_t k = 0; k < count; k++) {
		uint64_t got;

		trecv(n, in, len, FI_ADDR_UNSPEC, TAG, 0, in);
		wait_ok(n, n->rxcq, &e);
		memcpy(&got, in, 8);
		CHECKF(got == k, "message %llu, want %llu", (unsigned long long)got, (unsigned long long)k);
		CHECK(e.len == len);
	}
	free(in);
}

/* Rank 0 posts against a rank 1 that does nothing at all. arg: message size. */
static void test_ring(long len)
{
	uint64_t count = 0;
	char *big = calloc(1, (size_t)len);
	struct flow f;
	struct node n;

	node_open(&n, NULL);
	node_connect(&n);
	warm_up(&n);
	if (test_rank == 0) {
		flow_open(&f, &n, LIMIT);
		fill_up(&f, n.peer[1], LIMIT, len == 8 ? F_PLAIN : F_INJECT, (size_t)len, big);
		note("%llu posted before -FI_EAGAIN", (unsigned long long)f.posted);
		CHECK(f.posted > 0);
		link_send(1, &f.posted, 8);
		if (len == 8)
			complete_all(&f, f.posted);
		barrier(&n);
		free(f.seq);
	} else {
		link_recv(0, &count, 8); /* no progress until the other side is stuck */
		receive_all(&n, count, (size_t)len);
		wait_none(&n, n.rxcq, 1);
		barrier(&n);
	}
	free(big);
	node_close(&n);
}

/* Stuck, drained a little, stuck again, many times: the refused posts left no trace. */
static void test_again(long arg)
{
	enum { COUNT = 30000 };
	struct flow f;
	struct node n;

	(void)arg;
	node_open(&n, NULL);
	node_connect(&n);
	if (test_rank == 0) {
		struct fi_cq_tagged_entry e;

		flow_open(&f, &n, COUNT);
		while (f.posted < COUNT) {
			fill_up(&f, n.peer[1], COUNT, F_PLAIN, 8, NULL);
			while (wait_for(&n, n.txcq, &e, 0) == 1)
				f.completed++;
		}
		while (f.completed < COUNT) {
			wait_ok(&n, n.txcq, &e);
			f.completed++;
		}
		wait_none(&n, n.txcq, 1);
		barrier(&n);
		free(f.seq);
	} else {
		receive_all(&n, COUNT, 8);
		barrier(&n);
		wait_none(&n, n.rxcq, 1);
	}
	node_close(&n);
}

/* A CQ of 16 entries that nothing reads while hundreds of messages come and go. */
static void test_small_cq(long arg)
{
	enum { COUNT = 2000 };
	struct node_opts o = { .cq_size = 16 };
	struct flow f;
	struct node n;

	(void)arg;
	node_open(&n, &o);
	node_connect(&n);
	if (test_rank == 0) {
		flow_open(&f, &n, COUNT);
		while (f.posted < COUNT) {
			struct fi_cq_tagged_entry e;

			fill_up(&f, n.peer[1], COUNT, F_PLAIN, 8, NULL);
			usleep(50);
			while (wait_for(&n, n.txcq, &e, 0) == 1)
				f.completed++;
		}
		while (f.completed < COUNT) {
			wait_ctx(&n, n.txcq, &f.seq[f.completed]);
			f.completed++;
		}
		barrier(&n);
		free(f.seq);
	} else {
		uint64_t in[COUNT], posted = 0, done = 0;

		while (done < COUNT) {
			struct fi_cq_tagged_entry e;
			struct op r = { .tagged = true, .addr = FI_ADDR_UNSPEC, .tag = TAG, .len = 8 };

			for (int refused = 0; posted < COUNT && refused < 2;) {
				ssize_t rc;

				r.buf = r.ctx = &in[posted];
				rc = op_recv(n.ep, &r);
				CHECK(rc == 0 || rc == -FI_EAGAIN);
				rc ? refused++ : (int)posted++;
			}
			for (int i = 0; i < 40; i++) /* progress without room for completions */
				fi_cq_read(n.txcq, NULL, 0);
			while (wait_for(&n, n.rxcq, &e, 0) == 1) {
				CHECK(e.op_context == &in[done] && in[done] == done);
				done++;
			}
		}
		barrier(&n);
	}
	node_close(&n);
}

/* Both flood each other before either reads: no deadlock, nothing lost. */
static void test_flood_both(long len)
{
	uint64_t count;
	char *big = calloc(1, (size_t)len);
	struct flow f;
	struct node n;

	node_open(&n, NULL);
	node_connect(&n);
	warm_up(&n);
	flow_open(&f, &n, LIMIT);
	fill_up(&f, n.peer[!test_rank], LIMIT, len == 8 ? F_PLAIN : F_INJECT, (size_t)len, big);
	CHECK(f.posted > 0);
	link_send(!test_rank, &f.posted, 8);
	link_recv(!test_rank, &count, 8);
	receive_all(&n, count, (size_t)len);
	if (len == 8)
		complete_all(&f, f.posted);
	barrier(&n);
	wait_none(&n, n.rxcq, 1);
	node_close(&n);
	free(f.seq);
	free(big);
}

/* Whether the kernel lets rank 1 read the memory of rank 0, and nothing forbids it. */
static bool reads_peer(void)
{
	struct place {
		pid_t pid;
		uint64_t *at;
	} mine;
	const char *use = getenv("FI_WEFT_USE_CMA");
	uint64_t word = 0x5eed, got = 0;
	char ok = !use || strcmp(use, "no");

	if (test_rank == 0) {
		mine = (struct place){ getpid(), &word };
		link_send(1, &mine, sizeof(mine));
		link_recv(1, &ok, 1);
	} else {
		link_recv(0, &mine, sizeof(mine));
		struct iovec in = { &got, sizeof(got) }, out = { mine.at, sizeof(got) };
		ok = ok && process_vm_readv(mine.pid, &in, 1, &out, 1, 0) == sizeof(got) && got == word;
		link_send(0, &ok, 1);
	}
	return ok;
}

/* More messages than a sender has bounce buffers, to a rank that does not inspect before all are
 * posted: none waits for it. */
static void test_asleep(long len)
{
	enum { COUNT = 200 };
	static const enum form forms[] = { F_INJECT, F_PLAIN, F_V, F_DATA };
	char *out = calloc(COUNT, (size_t)len), a = 1;
	struct fi_cq_tagged_entry e;
	uint64_t *seq = calloc(COUNT, sizeof(*seq));
	struct flow f = { .seq = seq };
	struct node n;
	bool inject;

	CHECK(out && seq);
	node_open(&n, NULL);
	node_connect(&n);
	warm_up(&n);
	if (!reads_peer())
		test_skip("the kernel lets no process read its peer");
	f.n = &n;
	if (test_rank == 0) {
		for (uint64_t k = 0; k < COUNT; k++) {
			struct op o = {
				.form = forms[k % 4], .tagged = true, .addr = n.peer[1], .tag = TAG, .ctx = &seq[k]
			};

			inject = o.form == F_INJECT;
			memcpy(out + k * (size_t)len, &k, 8);
			o.buf = out + k * (size_t)len;
			o.len = (size_t)len;
			if (o.form == F_V)
				op_split(&o, o.buf, o.len, 3, false);
			post_send(&n, &o); /* again and again while it is refused */
			if (inject)
				memset(o.buf, 0xff, o.len); /* injected: ours again */
			else
				f.posted++;
		}
		link_send(1, &a, 1);
		for (uint64_t k = 0; k < f.posted; k++)
			wait_ok(&n, n.txcq, &e);
		wait_none(&n, n.txcq, 1);
	} else {
		link_recv(0, &a, 1);
		receive_all(&n, COUNT, (size_t)len);
	}
	barrier(&n);
	node_close(&n);
	free(out);
	free(seq);
}

/* Posting receives until refused (or LIMIT): all of them work. */
static void test_receives(long arg)
{
	uint64_t *in = calloc(LIMIT, 8), posted = 0;
	struct node n;

	(void)arg;
	node_open(&n, NULL);
	node_connect(&n);
	for (int refused = 0; posted < LIMIT && refused < 3;) {
		struct op r = { .tagged = true,
				.addr = FI_ADDR_UNSPEC,
				.tag = TAG,
				.len = 8,
				.buf = &in[posted],
				.ctx = &in[posted] };
		ssize_t rc = op_recv(n.ep, &r);

		CHECK(rc == 0 || rc == -FI_EAGAIN);
		rc ? refused++ : (int)posted++;
	}
	note("%llu receives posted before -FI_EAGAIN", (unsigned long long)posted);
	for (uint64_t k = 0; k < posted; k++) {
		struct op s = { .form = F_INJECT, .tagged = true, .addr = n.peer[0], .tag = TAG, .len = 8, .buf = &k };

		post_send(&n, &s);
		wait_ctx(&n, n.rxcq, &in[k]);
		CHECK(in[k] == k);
	}
	wait_none(&n, n.rxcq, 1);
	node_close(&n);
	free(in);
}

static const struct test tests[] = {
	{ "ring_8_bytes", test_ring, 2, 0, 8 },	    { "ring_inject_64_bytes", test_ring, 2, 0, 64 },
	{ "ring_again", test_again, 2, 60, 0 },	    { "small_cq", test_small_cq, 2, 0, 0 },
	{ "flood_both", test_flood_both, 2, 0, 8 }, { "flood_both_inject", test_flood_both, 2, 0, 64 },
	{ "asleep_400", test_asleep, 2, 0, 400 },   { "asleep_4096", test_asleep, 2, 0, 4096 },
	{ "receives", test_receives, 1, 0, 0 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
