/* SPDX-License-Identifier: BSD-2-Clause */
/* Collective operations of endpoints of FI_PROTO_CXI, by messages of weft's own over the same NIC. Without a NIC of
 * Slingshot, or its model, all is skipped. */
#include <pthread.h>
#include <sched.h>

#include "../../include/weft/coll.h"
#include "group.h"

/* Options of a member. */
static struct node_opts member_opts(void)
{
	return (struct node_opts){ .addr_format = FI_ADDR_CXI };
}

static void open_member(struct group *g, const struct node_opts *o)
{
	node_need(o);
	group_open_as(g, o);
	CHECK(g->n.info->addr_format == FI_ADDR_CXI && g->n.info->ep_attr->protocol == FI_PROTO_CXI);
	CHECK(g->n.info->caps & FI_COLLECTIVE);
}

static void close_member(struct group *g)
{
	barrier(&g->n);
	group_leave(g);
	group_close(g);
}

/* Every operation, short and long, in the group of every stride-th rank. */
static void test_every(long stride)
{
	static const size_t counts[] = { 1, 1000, 40000 };
	struct node_opts o = member_opts();
	struct group g;

	open_member(&g, &o);
	group_join(&g, 0, stride);
	for (size_t i = 0; g.rank < g.size && i < ARRAY_LEN(counts); i++)
		group_every(&g, i % g.size, g.n.peer[i % g.size * stride], counts[i]);
	close_member(&g);
}

/* The same of members that differ in threads and progress, and sleep. */
static void test_modes(long arg)
{
	static const enum fi_threading threading[] = { FI_THREAD_DOMAIN, FI_THREAD_COMPLETION, FI_THREAD_SAFE,
						       FI_THREAD_ENDPOINT };
	struct node_opts o = member_opts();
	struct group g;

	(void)arg;
	o.threading = threading[test_rank % ARRAY_LEN(threading)];
	o.data = test_rank % 2 ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
	o.wait = test_rank % 3 ? FI_WAIT_NONE : FI_WAIT_UNSPEC;
	open_member(&g, &o);
	group_join(&g, 0, 1);
	for (int i = 0; i < 20; i++)
		group_every(&g, i % g.size, g.n.peer[i % g.size], i);
	close_member(&g);
}

/* Messages that the NIC matches go beside, and neither waits for the other. */
static void test_beside(long rounds)
{
	struct node_opts o = member_opts();
	size_t to = (test_rank + 1) % test_procs, from = (test_rank + test_procs - 1) % test_procs;
	char out[100], in[sizeof(out)];
	struct fi_cq_tagged_entry e;
	uint64_t one = 1, all;
	struct group g;

	open_member(&g, &o);
	group_join(&g, 0, 1);
	for (long i = 0; i < rounds; i++) {
		int sent = 0, summed = 0;

		memset(out, (int)i, sizeof(out));
		all = 0;
		OK(fi_trecv(g.n.ep, in, sizeof(in), NULL, g.n.peer[from], i, 0, in));
		OK(fi_allreduce(g.n.ep, &one, 1, NULL, &all, NULL, g.addr, FI_UINT64, FI_SUM, 0, &all));
		OK(fi_tsend(g.n.ep, out, sizeof(out), NULL, g.n.peer[to], i, out));
		while (!sent || !summed) {
			wait_ok(&g.n, g.n.txcq, &e);
			sent += e.op_context == out;
			summed += e.op_context == &all;
		}
		CHECK(sent == 1 && summed == 1 && all == g.size);
		wait_ok(&g.n, g.n.rxcq, &e);
		CHECK(e.op_context == in && e.len == sizeof(in) && in[0] == (char)i && in[99] == (char)i);
	}
	close_member(&g);
}

/* An endpoint without the capability has none of the calls. */
static void refuses(struct node *n, struct fid_av_set *set)
{
	uint64_t in = 1, out = 0;
	struct fid_mc *group;

	EXPECT_RC(fi_join_collective(n->ep, FI_ADDR_NOTAVAIL, set, 0, &group, NULL), -FI_ENOSYS);
	EXPECT_RC(fi_barrier(n->ep, 0, NULL), -FI_ENOSYS);
	EXPECT_RC(fi_allreduce(n->ep, &in, 1, NULL, &out, NULL, 0, FI_UINT64, FI_SUM, 0, NULL), -FI_ENOSYS);
}

/* The last rank's endpoint has no messages of weft's own, as one of libfabric's provider has not: joins of the others
 * end with an error, within a time, and those of groups without it do not. */
static void test_silent(long limit)
{
	struct node_opts o = member_opts();
	bool silent = test_rank == test_procs - 1;
	struct fi_av_set_attr attr;
	struct fid_av_set *set;
	struct fi_eq_err_entry err = { 0 };
	struct group g = { 0 };
	struct fid_mc *mc;
	uint32_t event;
	char entry[64];
	ssize_t rc;

	node_need(&o);
	if (silent) {
		node_open(&g.n, &o);
		CHECK(!(g.n.info->caps & FI_COLLECTIVE));
		node_connect(&g.n);
	} else {
		open_member(&g, &o);
	}
	attr = (struct fi_av_set_attr){ .start_addr = g.n.peer[0], .end_addr = g.n.peer[test_procs - 1], .stride = 1 };
	OK(fi_av_set(g.n.av, &attr, &set, NULL));
	if (silent) {
		refuses(&g.n, set);
	} else {
		uint64_t began = now_ms();

		OK(fi_join_collective(g.n.ep, FI_ADDR_NOTAVAIL, set, 0, &mc, &g));
		rc = fi_eq_sread(g.eq, &event, entry, sizeof(entry), 20000, 0);
		CHECKF(rc == -FI_EAVAIL, "%zd", rc);
		CHECK(fi_eq_readerr(g.eq, &err, 0) == sizeof(err));
		CHECKF(err.err == FI_EHOSTUNREACH && err.context == &g && err.fid == &mc->fid, "%d", err.err);
		CHECKF(now_ms() - began < (uint64_t)limit, "after %lu ms", (unsigned long)(now_ms() - began));
		OK(fi_close(&mc->fid));
		if (test_procs > 2) {
			struct fid_av_set *whole = set;

			OK(fi_av_set_remove(whole, g.n.peer[test_procs - 1]));
			OK(fi_join_collective(g.n.ep, FI_ADDR_NOTAVAIL, whole, 0, &g.mc, &g));
			group_joined(&g, g.mc, &g);
			g.addr = fi_mc_addr(g.mc), g.size = test_procs - 1, g.rank = test_rank;
			group_every(&g, 0, g.n.peer[0], 10);
			OK(fi_close(&g.mc->fid));
		}
	}
	barrier(&g.n);
	OK(fi_close(&set->fid));
	if (silent)
		node_close(&g.n);
	else
		group_close(&g);
}

/* Several joins of each member at once, whose events come in any order. */
static void test_several(long arg)
{
	enum { JOINS = 3 };
	struct node_opts o = member_opts();
	fi_addr_t addr[JOINS];
	struct fid_av_set *sets[JOINS];
	struct fid_mc *mcs[JOINS];
	struct group g;

	(void)arg;
	open_member(&g, &o);
	for (size_t i = 0; i < JOINS; i++) {
		struct fi_av_set_attr attr = { .start_addr = g.n.peer[0],
					       .end_addr = g.n.peer[test_procs - 1 - (i == 1)],
					       .stride = 1 + (i == 2) };
		bool in = i == 1 ? test_rank < test_procs - 1 : i != 2 || test_rank % 2 == 0;

		sets[i] = NULL;
		if (!in)
			continue;
		OK(fi_av_set(g.n.av, &attr, &sets[i], NULL));
		OK(fi_join_collective(g.n.ep, FI_ADDR_NOTAVAIL, sets[i], 0, &mcs[i], &addr[i]));
	}
	for (size_t i = 0; i < JOINS; i++) {
		struct fi_eq_entry e;
		uint32_t event;

		if (!sets[i])
			continue;
		CHECK(fi_eq_sread(g.eq, &event, &e, sizeof(e), 20000, 0) == sizeof(e) && event == FI_JOIN_COMPLETE);
		for (size_t k = 0; k < JOINS; k++)
			CHECK(!sets[k] || (e.context == &addr[k]) == (e.fid == &mcs[k]->fid));
	}
	for (size_t i = 0; i < JOINS; i++) {
		uint64_t one = 1, all = 0;

		if (!sets[i])
			continue;
		OK(fi_allreduce(g.n.ep, &one, 1, NULL, &all, NULL, fi_mc_addr(mcs[i]), FI_UINT64, FI_SUM, 0, &all));
		group_done(&g, &all);
		CHECK(all == (i == 0 ? (uint64_t)test_procs : i == 1 ? test_procs - 1ul : (test_procs + 1) / 2ul));
	}
	barrier(&g.n);
	for (size_t i = 0; i < JOINS; i++) {
		if (sets[i]) {
			OK(fi_close(&mcs[i]->fid));
			OK(fi_close(&sets[i]->fid));
		}
	}
	group_close(&g);
}

/* Endpoints beside the member's own, opened and closed by another thread on the queue that the member reads. */
static _Atomic bool beside_ends;

static void *closes(void *arg)
{
	struct group *g = arg;

	while (!beside_ends) {
		struct fid_ep *ep;
		uint64_t end = now_ms() + 3;

		OK(fi_endpoint(g->n.domain, g->n.info, &ep, NULL));
		OK(fi_ep_bind(ep, &g->eq->fid, 0));
		OK(fi_ep_bind(ep, &g->n.av->fid, 0));
		OK(fi_ep_bind(ep, &g->n.txcq->fid, FI_TRANSMIT | FI_RECV));
		OK(fi_enable(ep));
		while (now_ms() < end)
			sched_yield();
		OK(fi_close(&ep->fid));
	}
	return NULL;
}

/* Joins, operations and closes of groups, beside which another thread opens and closes endpoints of the same queue. */
static void test_close_beside(long rounds)
{
	struct node_opts o = member_opts();
	struct group g;
	pthread_t other;

	o.wait = FI_WAIT_UNSPEC;
	open_member(&g, &o);
	beside_ends = false;
	CHECK(pthread_create(&other, NULL, closes, &g) == 0);
	for (long i = 0; i < rounds; i++) {
		group_join(&g, 0, 1);
		group_every(&g, 0, g.n.peer[0], (size_t)i);
		barrier(&g.n);
		group_leave(&g);
	}
	beside_ends = true;
	CHECK(pthread_join(other, NULL) == 0);
	barrier(&g.n);
	group_close(&g);
}

/* Joins that are closed before they end. */
static void test_withdraw(long rounds)
{
	struct node_opts o = member_opts();
	struct group g;

	node_need(&o);
	group_open_as(&g, &o);
	group_withdraw(&g, rounds);
	barrier(&g.n);
	group_close(&g);
}

/* Opens an endpoint that is to have a PID, and gives its name. */
static void prepare_named(struct group *g, uint64_t pid, struct name *own)
{
	struct node_opts o = member_opts();
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	uint64_t name;

	o.caps = FI_MSG | FI_TAGGED | FI_COLLECTIVE;
	o.disabled = true;
	memset(g, 0, sizeof(*g));
	node_open(&g->n, &o);
	memcpy(&name, g->n.info->src_addr, sizeof(name));
	name = (name & ~0x1ffull) | pid;
	OK(fi_eq_open(g->n.fabric, &attr, &g->eq, NULL));
	OK(fi_ep_bind(g->n.ep, &g->eq->fid, 0));
	OK(fi_setname(&g->n.ep->fid, &name, sizeof(name)));
	own->len = sizeof(name);
	memcpy(own->bytes, &name, sizeof(name));
}

static void enable_named(struct group *g)
{
	OK(fi_enable(g->n.ep));
	g->n.o.disabled = false;
}

static void open_named(struct group *g, uint64_t pid)
{
	struct name own = { 0 };

	prepare_named(g, pid, &own);
	enable_named(g);
}

/* A member of a group that closes its endpoint, and is back under its name, joins again with members whose first group
 * is still open, every other time before they notice its end. */
static void test_again(long rounds)
{
	struct node_opts o = member_opts();
	bool leaves = test_rank == test_procs - 1;
	struct name names[NODE_PEERS];
	struct group first, g;

	struct group *own = leaves ? &g : &first; /* g has the last group */

	node_need(&o);
	if (leaves) {
		open_named(own, 123);
		node_connect(&own->n);
	} else {
		open_member(own, &o);
	}
	group_join(own, 0, 1);
	group_every(own, 0, own->n.peer[0], 10);
	barrier(&own->n);
	if (!leaves)
		g = first;
	for (long i = 0; i < rounds; i++) {
		if (leaves) {
			group_leave(&g);
			group_close(&g);
			open_named(&g, 123);
		} else {
			struct fi_cq_tagged_entry e;

			for (uint64_t end = now_ms() + 50; i % 2 == 0 && now_ms() < end;)
				CHECK(fi_cq_read(g.n.txcq, &e, 1) == -FI_EAGAIN);
			if (i)
				group_leave(&g);
		}
		node_names(&g.n, names);
		for (int r = 0; leaves && r < test_procs; r++)
			g.n.peer[r] = node_insert_name(&g.n, &names[r]);
		group_join(&g, 0, 1);
		group_every(&g, 0, g.n.peer[0], 10);
		barrier(&g.n);
	}
	if (!leaves)
		group_leave(&g);
	close_member(own);
}

/* The error with which a join of all ranks ends. */
static int join_error(struct group *g)
{
	struct fi_av_set_attr attr = { .start_addr = g->n.peer[0], .end_addr = g->n.peer[test_procs - 1], .stride = 1 };
	struct fi_eq_err_entry err = { 0 };
	struct fid_av_set *set;
	struct fid_mc *mc;
	uint32_t event;
	char entry[64];

	OK(fi_av_set(g->n.av, &attr, &set, NULL));
	OK(fi_join_collective(g->n.ep, FI_ADDR_NOTAVAIL, set, 0, &mc, g));
	CHECK_RC((int)fi_eq_sread(g->eq, &event, entry, sizeof(entry), 20000, 0), -FI_EAVAIL);
	CHECK(fi_eq_readerr(g->eq, &err, 0) == sizeof(err) && err.fid == &mc->fid);
	OK(fi_close(&mc->fid));
	OK(fi_close(&set->fid));
	return err.err;
}

/* A member that was killed: a join with it ends with one error, whether its end was noticed before or not, and only
 * when another could have taken its place. */
static void test_killed(long noticed)
{
	struct node_opts o = member_opts();
	struct group g;
	uint64_t began;
	int err;

	setenv("FI_WEFT_CONNECT_TIMEOUT", "1s", 1);
	open_member(&g, &o);
	group_join(&g, 0, 1);
	barrier(&g.n);
	if (test_rank == test_procs - 1)
		_exit(0);
	for (uint64_t end = now_ms() + 300; now_ms() < end;)
		sched_yield();
	if (noticed) {
		OK(fi_barrier(g.n.ep, g.addr, &g));
		wait_err(&g.n, g.n.txcq, FI_ECONNRESET);
	}
	began = now_ms();
	err = join_error(&g);
	CHECKF(err == FI_EHOSTUNREACH && now_ms() - began >= 1000, "%d after %lu ms", err,
	       (unsigned long)(now_ms() - began));
	group_leave(&g);
	group_close(&g);
}

/* A member whose name is known before it is enabled, which takes it a while: the join waits for it. */
static void test_late(long delay)
{
	struct node_opts o = member_opts();
	struct name own = { 0 }, other = { 0 };
	struct group g;

	node_need(&o);
	prepare_named(&g, 124 + (uint64_t)test_rank, &own);
	if (test_rank == 0)
		enable_named(&g);
	link_send(!test_rank, &own, sizeof(own));
	link_recv(!test_rank, &other, sizeof(other));
	for (uint64_t end = now_ms() + (uint64_t)delay; test_rank == 1 && now_ms() < end;)
		sched_yield();
	if (test_rank == 1)
		enable_named(&g);
	for (int r = 0; r < test_procs; r++)
		g.n.peer[r] = node_insert_name(&g.n, r == test_rank ? &own : &other);
	group_join(&g, 0, 1);
	group_every(&g, 0, g.n.peer[0], 10);
	close_member(&g);
}

/* What endpoints without a progress thread's polls and without measured paths refuse. */
static void test_refused(long arg)
{
	struct node_opts o = member_opts();
	struct weft_coll_path path = { .size = sizeof(path) };
	struct weft_coll_ops *ops;
	struct group g;

	(void)arg;
	open_member(&g, &o);
	OK(fi_open_ops(&g.n.ep->fid, WEFT_COLL_OPS, 0, (void **)&ops, NULL));
	EXPECT_RC(ops->path(g.n.ep, g.n.peer[0], &path), -FI_EINVAL);
	EXPECT_RC(ops->reserve(g.n.ep, 1), -FI_EINVAL);
	group_close(&g);
}

/* An endpoint of collective operations alone needs a queue or a counter, as others do. */
static void test_alone(long arg)
{
	struct node_opts o = member_opts();
	struct fi_info *info;
	struct fid_ep *ep;
	struct group g;

	(void)arg;
	open_member(&g, &o);
	info = fi_dupinfo(g.n.info);
	CHECK(info != NULL);
	info->caps = info->tx_attr->caps = info->rx_attr->caps = FI_COLLECTIVE;
	OK(fi_endpoint(g.n.domain, info, &ep, NULL));
	OK(fi_ep_bind(ep, &g.n.av->fid, 0));
	OK(fi_ep_bind(ep, &g.eq->fid, 0));
	EXPECT_RC(fi_enable(ep), -FI_ENOCQ);
	OK(fi_ep_bind(ep, &g.n.txcq->fid, FI_TRANSMIT));
	OK(fi_enable(ep));
	OK(fi_close(&ep->fid));
	fi_freeinfo(info);
	group_close(&g);
}

/* Bounce buffers that are longer than the NIC's messages may be. */
static void test_bounce(long size)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", size);
	setenv("FI_WEFT_BOUNCE_SIZE", text, 1);
	test_every(1);
}

static const struct test tests[] = {
	{ "every_1", test_every, 1, 60, 1 },
	{ "every_2", test_every, 2, 60, 1 },
	{ "every_4", test_every, 4, 120, 1 },
	{ "every_second", test_every, 4, 120, 2 },
	{ "modes", test_modes, 4, 120, 0 },
	{ "beside", test_beside, 2, 60, 300 },
	{ "silent_2", test_silent, 2, 60, 8000 },
	{ "silent_4", test_silent, 4, 60, 8000 },
	{ "several", test_several, 4, 60, 0 },
	{ "close_beside", test_close_beside, 3, 120, 6 },
	{ "withdraw", test_withdraw, 3, 60, 12 },
	{ "again", test_again, 3, 60, 4 },
	{ "alone", test_alone, 1, 60, 0 },
	{ "refused", test_refused, 2, 60, 0 },
	{ "bounce", test_bounce, 2, 60, 2 << 20 },
	{ "killed", test_killed, 2, 60, false },
	{ "killed_noticed", test_killed, 2, 60, true },
	{ "late", test_late, 2, 60, 1500 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
