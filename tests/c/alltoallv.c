/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weft's alltoallv (weft/coll.h): data checks with parts of no, one and many elements, in place, in groups
 * that are subsets, members that do not agree on a count, and what the call refuses.
 */
#include <signal.h>
#include <stddef.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "../../include/weft/coll.h"
#include "group.h"

enum { MANY = NODE_PEERS, GAP = 3 };

#define EVENTS_BYTES 1 /* FI_CNTR_EVENTS_BYTES, since 2.0 */

static struct weft_coll_ops *open_coll(struct group *g)
{
	struct weft_coll_ops *ops = NULL;

	if (!test_is_weft())
		SKIP("an extension of weft");
	OK(fi_open_ops(&g->n.ep->fid, WEFT_COLL_OPS, 0, (void **)&ops, NULL));
	CHECK(ops && ops->size >= sizeof(*ops));
	return ops;
}

/* How many elements one rank has for another: from none to a few times scale. Symmetric ones
 * are for operations in place. */
static uint64_t elements(size_t from, size_t to, uint64_t scale, bool symmetric)
{
	size_t a = symmetric && from > to ? to : from, b = symmetric && from > to ? from : to;

	return (a * 5 + b * 3) % 4 * scale + (a + b) % 2;
}

/* A byte of what one rank has for another. */
static uint8_t byte_of(size_t from, size_t to, size_t i) { return (uint8_t)(from * 31 + to * 17 + i * 7 + 1); }

/* The parts of a buffer, the last rank's first, with gaps between them. */
struct parts {
	uint64_t counts[MANY], displs[MANY];
	size_t bytes; /* of the buffer */
	uint8_t *buf;
};

static void lay(struct parts *p, size_t size, size_t elem)
{
	uint64_t at = 0;

	for (size_t i = size; i-- > 0; at += p->counts[i] + GAP)
		p->displs[i] = p->counts[i] ? at : ~0ull; /* which is not used */
	p->bytes = at * elem;
	p->buf = guard_alloc(p->bytes);
	memset(p->buf, 0xAA, p->bytes);
}

static void parts_free(struct parts *p) { guard_free(p->buf, p->bytes); }

static void vector(struct group *g, struct weft_coll_ops *ops, size_t elem, uint64_t scale, bool in_place)
{
	struct parts in, out;
	size_t gaps = 0;

	for (size_t i = 0; i < g->size; i++) {
		in.counts[i] = elements(g->rank, i, scale, in_place);
		out.counts[i] = elements(i, g->rank, scale, in_place);
	}
	lay(&in, g->size, elem);
	lay(&out, g->size, elem);
	for (size_t i = 0; i < g->size; i++)
		for (size_t k = 0; k < in.counts[i] * elem; k++)
			(in_place ? &out : &in)->buf[in.displs[i] * elem + k] = byte_of(g->rank, i, k);
	OK(ops->alltoallv(g->n.ep, &(struct weft_alltoallv){
		.size = sizeof(struct weft_alltoallv), .elem = elem, .buf = in_place ? WEFT_IN_PLACE : in.buf,
		.counts = in_place ? NULL : in.counts, .displs = in_place ? NULL : in.displs, .result = out.buf,
		.result_counts = out.counts, .result_displs = out.displs, .coll_addr = g->addr, .context = &in }));
	group_done(g, &in);
	for (size_t i = 0; i < g->size; i++) {
		for (size_t k = 0; k < out.counts[i] * elem; k++)
			CHECKF(out.buf[out.displs[i] * elem + k] == byte_of(i, g->rank, k), "byte %zu from rank %zu", k, i);
	}
	for (size_t i = g->size, at = 0; i-- > 0; at += GAP * elem) {
		at += out.counts[i] * elem;
		for (size_t k = 0; k < GAP * elem; k++)
			gaps += out.buf[at + k] == 0xAA;
	}
	CHECKF(gaps == g->size * GAP * elem, "%zu of %zu bytes between the parts are left", gaps, g->size * GAP * elem);
	parts_free(&in);
	parts_free(&out);
}

static void test_every(long stride)
{
	static const size_t elems[] = { 1, 3, 16 };
	static const uint64_t scales[] = { 0, 1, 700, 30000 };
	struct weft_coll_ops *ops;
	struct group g;

	group_open(&g);
	ops = open_coll(&g);
	group_join(&g, 0, stride);
	for (size_t i = 0; g.rank < g.size && i < 2 * ARRAY_LEN(elems) * ARRAY_LEN(scales); i++)
		vector(&g, ops, elems[i / 2 % ARRAY_LEN(elems)], scales[i / 2 / ARRAY_LEN(elems)], i % 2);
	barrier(&g.n);
	group_leave(&g);
	group_close(&g);
}

/* Rank 1 expects another number of elements than rank 0 sends, and gets FI_ETRUNC. So does rank 0 if it
 * still waits for rank 1, as with long parts; what has all and has sent all may have completed. */
static void test_differs(long elems)
{
	struct weft_coll_ops *ops;
	struct group g;

	group_open(&g);
	ops = open_coll(&g);
	group_join(&g, 0, 1);
	for (int i = 0; i < 4; i++) {
		uint64_t counts[MANY], displs[MANY], others[MANY];
		uint8_t *in = calloc(MANY, elems + 1), *out = calloc(MANY, elems + 1);
		bool must = g.rank == 1 || (g.rank == 0 && elems > 100000);
		struct fi_cq_tagged_entry e;
		int rc;

		for (size_t r = 0; r < g.size; r++) {
			counts[r] = others[r] = elems;
			displs[r] = r * (elems + 1);
		}
		if (g.rank == 1)
			others[0] += i % 2 ? 1 : -1;
		OK(ops->alltoallv(g.n.ep, &(struct weft_alltoallv){
			.size = sizeof(struct weft_alltoallv), .elem = 1, .buf = in, .counts = counts, .displs = displs,
			.result = out, .result_counts = others, .result_displs = displs, .coll_addr = g.addr, .context = in }));
		rc = wait_for(&g.n, g.n.txcq, &e, 20000);
		CHECKF(rc < 0 || (rc == 1 && !must), "operation %d: %d", i, rc);
		if (rc < 0)
			CHECKF(g.n.err.err == FI_ETRUNC && g.n.err.op_context == in, "operation %d: %s", i, fi_strerror(g.n.err.err));
		barrier(&g.n);
		free(in);
		free(out);
	}
	vector(&g, ops, 1, 1000, false);
	barrier(&g.n);
	group_leave(&g);
	group_close(&g);
}

/* The last rank dies while operations run, at another instant each time. The others' operations have the right
 * bytes until one ends with an error. */
static void test_killed(long elems)
{
	struct itimerval when = { { 0, 0 }, { 0, 1 + (getpid() * 7919l + (long)now_us()) % 100000 } };
	bool last = test_rank == test_procs - 1;
	struct weft_coll_ops *ops;
	struct group g;
	int rc = 1;

	if (last && !*test_role()) {
		int status;

		CHECK(waitpid(respawn("victim"), &status, 0) > 0);
		CHECK(WIFSIGNALED(status));
		return;
	}
	group_open(&g);
	ops = open_coll(&g);
	group_join(&g, 0, 1);
	barrier(&g.n);
	if (last) {
		signal(SIGALRM, SIG_DFL);
		CHECK(!setitimer(ITIMER_REAL, &when, NULL)); /* whose signal ends the process */
	}
	uint64_t counts[MANY], displs[MANY];
	size_t bytes = g.size * elems;
	uint8_t *in = malloc(bytes), *out = malloc(bytes);

	for (size_t r = 0; r < g.size; r++) {
		counts[r] = elems;
		displs[r] = r * elems;
	}
	for (int i = 0; rc == 1; i++) {
		struct fi_cq_tagged_entry e;

		for (size_t r = 0; r < g.size; r++)
			memset(in + displs[r], byte_of(g.rank, r, i), elems);
		memset(out, 0, bytes);
		OK(ops->alltoallv(g.n.ep, &(struct weft_alltoallv){
			.size = sizeof(struct weft_alltoallv), .elem = 1, .buf = in, .counts = counts, .displs = displs,
			.result = out, .result_counts = counts, .result_displs = displs, .coll_addr = g.addr, .context = in }));
		rc = wait_for(&g.n, g.n.txcq, &e, 20000);
		CHECKF(rc != 0, "operation %d does not end", i);
		for (size_t k = 0; rc == 1 && k < bytes; k++)
			CHECKF(out[k] == byte_of(k / elems, g.rank, i), "byte %zu of operation %d", k, i);
	}
	CHECKF(g.n.err.err == FI_ECONNRESET, "it ends with %s", fi_strerror(g.n.err.err));
	free(in);
	free(out);
	group_leave(&g);
	group_close(&g);
}

/* One that is started again and again with other data, without its arrays, between others; where its chunks are copied
 * by one side, the first start registers as many regions as there are others, and no other one does. */
static void run_persistent(long elems, bool copies)
{
	uint64_t counts[MANY], displs[MANY];
	uint8_t *in = calloc(MANY, elems), *out = calloc(MANY, elems);
	struct weft_alltoallv_req *req = NULL;
	struct weft_coll_ops *ops;
	struct group g;

	group_open(&g);
	ops = open_coll(&g);
	group_join(&g, 0, 1);
	struct weft_alltoallv a = {
		.size = sizeof(a), .elem = 1, .buf = in, .counts = counts, .displs = displs, .result = out,
		.result_counts = counts, .result_displs = displs, .coll_addr = g.addr, .context = &req,
	};
	for (size_t i = 0; i < g.size; i++) {
		counts[i] = elems;
		displs[i] = i * elems;
	}
	OK(ops->alltoallv_init(g.n.ep, &a, &req));
	memset(counts, 0, sizeof(counts));
	for (int round = 0; round < 5; round++) {
		uint64_t had = node_counter(&g.n, "exchange_registered");

		memset(in, (int)g.rank + 16 * round, g.size * elems);
		OK(ops->alltoallv_start(req));
		group_done(&g, &req);
		had = node_counter(&g.n, "exchange_registered") - had;
		CHECKF(had == (copies && round == 0 ? g.size - 1 : 0), "round %d registers %ju regions", round, (uintmax_t)had);
		for (size_t i = 0; i < g.size * elems; i++)
			CHECKF(out[i] == (uint8_t)(i / elems + 16 * round), "round %d: byte %zu is %d", round, i, out[i]);
		vector(&g, ops, 1, 100, false);
	}
	EXPECT(!copies == !(node_counter(&g.n, "exchange_put") + node_counter(&g.n, "exchange_got")));
	OK(ops->alltoallv_free(req));
	EXPECT_RC(ops->alltoallv_start(req), -FI_EINVAL);
	EXPECT_RC(ops->alltoallv_free(req), -FI_EINVAL);
	EXPECT_RC(ops->alltoallv_start(NULL), -FI_EINVAL);
	a.elem = 0;
	EXPECT_RC(ops->alltoallv_init(g.n.ep, &a, &req), -FI_EINVAL);
	EXPECT_RC(ops->alltoallv_init(g.n.ep, NULL, &req), -FI_EINVAL);
	EXPECT_RC(ops->alltoallv_init(g.n.ep, &a, NULL), -FI_EINVAL);
	barrier(&g.n);
	group_leave(&g);
	group_close(&g);
	free(in);
	free(out);
}

static void test_persistent(long elems) { run_persistent(elems, false); }

/* Every member is given what is wrong; nothing is written, and the group goes on. */
static void test_refused(long arg)
{
	static uint64_t counts[MANY] = { 1, 1 }, displs[MANY] = { 0, 1 }, many[MANY] = { 1ull << 62, 1 };
	struct weft_coll_ops *ops;
	struct group g;
	uint8_t in[2] = { 1, 2 }, out[2] = { 7, 7 };
	void *none = &g;
	struct fid_cntr *bytes;

	(void)arg;
	group_open(&g);
	OK(fi_cntr_open(g.n.domain, &(struct fi_cntr_attr){ .events = EVENTS_BYTES }, &bytes, NULL));
	ops = open_coll(&g);
	EXPECT_RC(fi_open_ops(&g.n.ep->fid, WEFT_COLL_OPS, 1, &none, NULL), -FI_EBADFLAGS);
	EXPECT_RC(fi_open_ops(&g.n.domain->fid, WEFT_COLL_OPS, 0, &none, NULL), -FI_ENOSYS);
	group_join(&g, 0, 1);
	struct weft_alltoallv good = {
		.size = sizeof(good), .elem = 1, .buf = in, .counts = counts, .displs = displs, .result = out,
		.result_counts = counts, .result_displs = displs, .coll_addr = g.addr, .context = &g,
	};
	const struct {
		const char *what;
		size_t at, size;
		uint64_t value;
		int rc;
	} bad[] = {
#define BAD(field, value, rc) { #field, offsetof(struct weft_alltoallv, field), sizeof(good.field), (uint64_t)(value), rc }
		BAD(size, offsetof(struct weft_alltoallv, arrived) - 8, -FI_EINVAL),
		BAD(arrived, &g.n.domain->fid, -FI_EINVAL),
		BAD(arrived, bytes, -FI_EINVAL),
		BAD(elem, 0, -FI_EINVAL),
		BAD(buf, 0, -FI_EINVAL),
		BAD(counts, 0, -FI_EINVAL),
		BAD(displs, 0, -FI_EINVAL),
		BAD(result, 0, -FI_EINVAL),
		BAD(result_counts, 0, -FI_EINVAL),
		BAD(result_displs, 0, -FI_EINVAL),
		BAD(coll_addr, g.n.peer[0], -FI_EINVAL),
		BAD(coll_addr, FI_ADDR_NOTAVAIL, -FI_EINVAL),
		BAD(flags, FI_PEEK, -FI_EBADFLAGS),
		BAD(counts, (uintptr_t)many, -FI_EMSGSIZE),
		BAD(result_displs, (uintptr_t)many, -FI_EMSGSIZE),
		BAD(elem, 1ull << 63, -FI_EMSGSIZE),
		BAD(result, ~0ull, -FI_EINVAL), /* ends behind the address space */
#undef BAD
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct weft_alltoallv a = good;
		ssize_t rc;

		memcpy((char *)&a + bad[i].at, &bad[i].value, bad[i].size);
		rc = ops->alltoallv(g.n.ep, &a);
		CHECKF(rc == bad[i].rc, "%s of %#llx: %zd, want %d", bad[i].what, (unsigned long long)bad[i].value, rc, bad[i].rc);
	}
	EXPECT_RC(ops->alltoallv(g.n.ep, NULL), -FI_EINVAL);
	EXPECT_RC(ops->alltoallv(NULL, &good), -FI_EINVAL);
	EXPECT(out[0] == 7 && out[1] == 7);
	OK(ops->alltoallv(g.n.ep, &good));
	group_done(&g, &g);
	EXPECT(out[0] == g.rank + 1 && out[1] == g.rank + 1);
	OK(fi_close(&bytes->fid));
	barrier(&g.n);
	group_leave(&g);
	group_close(&g);
}

/* A counter that is bound to nothing counts the others as their parts are here, which are seen then; those that give
 * nothing at once. A program that does not know of it is served without. */
static void test_arrivals(long elems)
{
	struct weft_coll_ops *ops;
	struct fid_cntr *cntr;
	struct group g;

	group_open(&g);
	ops = open_coll(&g);
	OK(fi_cntr_open(g.n.domain, &(struct fi_cntr_attr){ .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC },
		&cntr, NULL));
	group_join(&g, 0, 1);
	for (size_t round = 0; round < 8; round++) {
		bool old = round == 7;
		struct parts in, out;
		uint64_t seen = 0, none = 0;

		for (size_t i = 0; i < g.size; i++) {
			in.counts[i] = round == 6 ? 0 : elements(g.rank + round, i, elems, false);
			out.counts[i] = round == 6 ? 0 : elements(i + round, g.rank, elems, false);
			none += i != g.rank && !out.counts[i];
		}
		lay(&in, g.size, 1);
		lay(&out, g.size, 1);
		for (size_t i = 0; i < g.size; i++)
			for (size_t k = 0; k < in.counts[i]; k++)
				in.buf[in.displs[i] + k] = byte_of(g.rank, i, k);
		OK(fi_cntr_set(cntr, 0));
		OK(ops->alltoallv(g.n.ep, &(struct weft_alltoallv){
			.size = old ? offsetof(struct weft_alltoallv, arrived) : sizeof(struct weft_alltoallv),
			.elem = 1, .buf = in.buf, .counts = in.counts, .displs = in.displs, .result = out.buf,
			.result_counts = out.counts, .result_displs = out.displs, .coll_addr = g.addr,
			.context = &in, .arrived = cntr }));
		EXPECT(old || fi_cntr_read(cntr) >= none);
		while (!old && seen < g.size - 1) {
			uint64_t whole = 0;

			OK(fi_cntr_wait(cntr, seen + 1, 20000));
			seen = fi_cntr_read(cntr);
			for (size_t i = 0; i < g.size; i++) {
				size_t k = 0;

				while (k < out.counts[i] && out.buf[out.displs[i] + k] == byte_of(i, g.rank, k))
					k++;
				whole += i != g.rank && k == out.counts[i];
			}
			CHECKF(whole >= seen, "%lu members have arrived of %lu that count", whole, seen);
		}
		group_done(&g, &in);
		EXPECT(fi_cntr_read(cntr) == (old ? 0 : g.size - 1));
		EXPECT(!fi_cntr_readerr(cntr));
		parts_free(&in);
		parts_free(&out);
	}
	OK(fi_close(&cntr->fid));
	barrier(&g.n);
	group_leave(&g);
	group_close(&g);
}

/* What is said of an all-to-all that followed the network, and of the paths. */
static void test_report(long elems)
{
	struct weft_coll_peer peers[MANY];
	struct weft_coll_ops *ops;
	uint64_t all = 0;
	struct group g;

	setenv("FI_WEFT_RTT_SCHED_ENABLE", "yes", 1);
	group_open(&g);
	ops = open_coll(&g);
	group_join(&g, 0, 1);
	struct weft_coll_report r = {
		.size = sizeof(r), .coll_addr = g.addr, .peers = peers, .peer_size = sizeof(*peers), .count = g.size };
	struct weft_coll_path path = { .size = sizeof(path) };

	EXPECT_RC(ops->report(g.n.ep, &r), -FI_ENODATA);
	vector(&g, ops, 1, elems, false);
	memset(peers, 0xFF, sizeof(peers));
	OK(ops->report(g.n.ep, &r));
	for (size_t i = 0; i < g.size; i++) {
		uint64_t in = elements(i, g.rank, elems, false), out = elements(g.rank, i, elems, false);
		struct weft_coll_peer *p = &peers[i];

		all += i == g.rank ? 0 : out;
		CHECKF(p->first <= p->last && p->last <= r.took, "rank %zu: %lu to %lu of %lu", i, p->first, p->last, r.took);
		CHECKF(i == g.rank ? !p->chunks : !out || p->chunks, "rank %zu: %lu chunks", i, p->chunks);
		CHECKF(i == g.rank || !in || (p->received && p->received <= r.took), "rank %zu: here at %lu", i, p->received);
	}
	EXPECT(r.out == all && r.received == r.in && r.took && r.chunks && !r.forged);
	EXPECT(peers[g.size].first == ~0ull);
	r.peers = NULL;
	OK(ops->report(g.n.ep, &r));
	r.peers = peers;
	r.count--;
	EXPECT_RC(ops->report(g.n.ep, &r), -FI_EINVAL);
	r.count++;
	r.peer_size--;
	EXPECT_RC(ops->report(g.n.ep, &r), -FI_EINVAL);
	r.peer_size += 2;
	EXPECT_RC(ops->report(g.n.ep, &r), -FI_EINVAL);
	r.peer_size--;
	r.coll_addr = g.n.peer[0];
	EXPECT_RC(ops->report(g.n.ep, &r), -FI_EINVAL);
	r.coll_addr = g.addr;
	r.size--;
	EXPECT_RC(ops->report(g.n.ep, &r), -FI_EINVAL);
	EXPECT_RC(ops->report(g.n.ep, NULL), -FI_EINVAL);

	for (size_t i = 0; i < g.size; i++) {
		int rc = ops->path(g.n.ep, g.n.peer[i], &path);

		if (i == g.rank || rc == -FI_EOPNOTSUPP)
			continue; /* on this host */
		OK(rc);
		EXPECT(path.base && path.smoothed >= path.base && path.samples);
		EXPECT(path.queue == path.smoothed - path.base);
	}
	EXPECT_RC(ops->path(g.n.ep, 1 << 20, &path), -FI_EINVAL);
	EXPECT_RC(ops->path(g.n.ep, g.n.peer[0], NULL), -FI_EINVAL);
	path.size--;
	EXPECT_RC(ops->path(g.n.ep, g.n.peer[0], &path), -FI_EINVAL);
	barrier(&g.n);
	group_leave(&g);
	group_close(&g);
}

/* The others with chunks that are put into the receivers' memory, over the transports where that is possible. */
static void by_puts(void)
{
	setenv("FI_WEFT_RTT_SCHED_ENABLE", "yes", 1); /* on one host, too */
	setenv("FI_WEFT_ALLTOALL_ALGORITHM", "put", 1);
}

static void test_put(long stride)
{
	by_puts();
	test_every(stride);
}

static void test_put_differs(long elems)
{
	by_puts();
	test_differs(elems);
}

static void test_put_killed(long elems)
{
	by_puts();
	test_killed(elems);
}

static void test_put_persistent(long elems)
{
	by_puts();
	run_persistent(elems, true);
}

static void test_put_arrivals(long elems)
{
	by_puts();
	test_arrivals(elems);
}

/* The same with chunks that the receivers get from the senders' memory. */
static void by_gets(void)
{
	setenv("FI_WEFT_RTT_SCHED_ENABLE", "yes", 1); /* on one host, too */
	setenv("FI_WEFT_ALLTOALL_ALGORITHM", "get", 1);
}

static void test_get(long stride)
{
	by_gets();
	test_every(stride);
}

static void test_get_differs(long elems)
{
	by_gets();
	test_differs(elems);
}

static void test_get_killed(long elems)
{
	by_gets();
	test_killed(elems);
}

static void test_get_persistent(long elems)
{
	by_gets();
	run_persistent(elems, true);
}

static void test_get_arrivals(long elems)
{
	by_gets();
	test_arrivals(elems);
}

/* Threads reserve the endpoint while they poll it, as often as they give it back; in between,
 * and when one only computes, progress is automatic. */
static void test_reserved(long elems)
{
	struct weft_coll_ops *ops;
	struct group g;

	setenv("FI_WEFT_PROGRESS_THREAD", "yes", 1);
	group_open(&g);
	ops = open_coll(&g);
	EXPECT_RC(ops->reserve(NULL, 1), -FI_EINVAL);
	group_join(&g, 0, 1);
	for (int i = 0; i < 20; i++) {
		EXPECT_RC(ops->reserve(g.n.ep, 0), -FI_EINVAL); /* it is not reserved */
		OK(ops->reserve(g.n.ep, 1));
		OK(ops->reserve(g.n.ep, 1));
		vector(&g, ops, 1, elems, false);
		OK(ops->reserve(g.n.ep, 0));
		if ((size_t)i % g.size == g.rank)
			usleep(5000);
		OK(ops->reserve(g.n.ep, 0));
		if ((size_t)i % g.size == g.rank)
			usleep(5000); /* the others' end may need this one */
	}
	barrier(&g.n);
	group_leave(&g);
	group_close(&g);
}

static const struct test tests[] = {
	{ "every_1", test_every, 1, 60, 1 },
	{ "every_5", test_every, 5, 60, 1 },
	{ "subset", test_every, 4, 60, 2 },
	{ "differs", test_differs, 3, 60, 100 },
	{ "differs_long", test_differs, 3, 60, 200000 },
	{ "killed", test_killed, 4, 60, 40000 },
	{ "killed_long", test_killed, 3, 60, 1000000 },
	{ "persistent", test_persistent, 4, 60, 3000 },
	{ "persistent_long", test_persistent, 2, 60, 300000 },
	{ "arrivals", test_arrivals, 4, 60, 3000 },
	{ "arrivals_long", test_arrivals, 3, 60, 300000 },
	{ "put", test_put, 5, 60, 1 },
	{ "put_differs", test_put_differs, 3, 60, 200000 },
	{ "put_killed", test_put_killed, 3, 60, 1000000 },
	{ "put_persistent", test_put_persistent, 4, 60, 300000 },
	{ "put_arrivals", test_put_arrivals, 3, 60, 300000 },
	{ "get", test_get, 5, 60, 1 },
	{ "get_differs", test_get_differs, 3, 60, 200000 },
	{ "get_killed", test_get_killed, 3, 60, 1000000 },
	{ "get_persistent", test_get_persistent, 4, 60, 300000 },
	{ "get_arrivals", test_get_arrivals, 3, 60, 300000 },
	{ "refused", test_refused, 2, 60, 0 },
	{ "report", test_report, 4, 60, 30000 },
	{ "reserved", test_reserved, 4, 60, 30000 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
