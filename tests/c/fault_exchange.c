/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kill -9 of members of all-to-alls at random instants: of those that send, receive, give credits and relay.
 * Rank 0 and others stay; mortal ranks are executed anew for each round, in which all make a group in an
 * order of its own and run operations until one ends with an error. What completed before has the right
 * bytes, nothing hangs, and those that stay then make a group of their own, whose operations complete.
 *
 * Between hosts (WEFT_TEST_NETNS with as many namespaces as ranks), of which one reaches another by a slow
 * path, members relay: rank 1 is the one and rank 2 the other. WEFT_TEST_KILLS: rounds of each test;
 * WEFT_TEST_RELAYS: something has to go through relays where these two stay.
 */
#include <signal.h>
#include <sys/wait.h>

#include "../../include/weft/coll.h"
#include "group.h"

enum {
	RANKS = 6,
	ROUNDS = 1,
	LONGEST = 200000, /* bytes of a part */
	LIMIT_MS = 30000, /* for an operation to end: only what hangs takes so long */
};

static struct group g; /* its peers are by rank of the test; its size and rank are the group's */
static struct weft_coll_ops *ops;
static uint8_t *in, *out;
static long mortals;   /* bit by rank */
static uint64_t seeds; /* rank 0's, for rounds */

/* What the survivors have seen. */
static struct tally {
	uint64_t whole, failed, relayed, carried, again, put;
} seen;

/* What rank 0 gives everyone before a round. */
struct round {
	uint64_t seed;
	struct name names[NODE_PEERS];
};

static bool mortal(int rank)
{
	return mortals >> rank & 1;
}

/* A group's members: ranks of the test, in an order by chance. */
static size_t order(uint64_t seed, bool survivors, int ranks[RANKS])
{
	size_t n = 0;

	for (int r = 0; r < RANKS; r++)
		if (!survivors || !mortal(r))
			ranks[n++] = r;
	for (size_t i = n; i > 1; i--) {
		size_t k = rnd(&seed) % i;
		int t = ranks[i - 1];

		ranks[i - 1] = ranks[k];
		ranks[k] = t;
	}
	return n;
}

static void join(const int ranks[RANKS], size_t size)
{
	struct fi_av_set_attr attr = { .start_addr = FI_ADDR_NOTAVAIL, .end_addr = FI_ADDR_NOTAVAIL };
	fi_addr_t addr;

	OK(fi_av_set(g.n.av, &attr, &g.set, NULL));
	for (size_t i = 0; i < size; i++) {
		OK(fi_av_set_insert(g.set, g.n.peer[ranks[i]]));
		if (ranks[i] == test_rank)
			g.rank = i;
	}
	g.size = size;
	OK(fi_av_set_addr(g.set, &addr));
	OK(fi_join_collective(g.n.ep, addr, g.set, 0, &g.mc, &g));
	group_joined(&g, g.mc, &g);
	g.addr = fi_mc_addr(g.mc);
}

/* Bytes that one rank of the test has for another in an operation. The slow path has many; in every second
 * operation mortal ranks have none for anybody and get none, and are there to relay. */
static size_t part(uint64_t seed, int op, int from, int to)
{
	uint64_t s = seed + (uint64_t)op * 4096 + (uint64_t)from * 64 + (uint64_t)to;
	uint64_t v = rnd(&s);

	if (op % 2 && (mortal(from) || mortal(to)))
		return 0;
	if (from == 1 && to == 2)
		return LONGEST - v % 50000;
	return v % 4 == 0 ? v / 4 % 8000 : v / 4 % LONGEST;
}

static uint64_t pattern_of(uint64_t seed, int op, int from, int to)
{
	return seed * 31 + (uint64_t)op * 1009 + (uint64_t)from * 17 + (uint64_t)to;
}

/* One operation with its data checked. Returns 1, or the error that it ended with. */
static int operate(uint64_t seed, int op, const int ranks[RANKS])
{
	uint64_t counts[2][RANKS], displs[RANKS];
	struct fi_cq_tagged_entry e;
	int rc;

	for (size_t i = 0; i < g.size; i++) {
		counts[0][i] = part(seed, op, test_rank, ranks[i]);
		counts[1][i] = part(seed, op, ranks[i], test_rank);
		displs[i] = i * LONGEST;
		fill(in + displs[i], counts[0][i], pattern_of(seed, op, test_rank, ranks[i]));
		memset(out + displs[i], 0, counts[1][i]);
	}
	OK(ops->alltoallv(g.n.ep, &(struct weft_alltoallv){ .size = sizeof(struct weft_alltoallv),
							    .elem = 1,
							    .buf = in,
							    .counts = counts[0],
							    .displs = displs,
							    .result = out,
							    .result_counts = counts[1],
							    .result_displs = displs,
							    .coll_addr = g.addr,
							    .context = in }));
	rc = wait_for(&g.n, g.n.txcq, &e, LIMIT_MS);
	CHECKF(rc != 0, "operation %d of seed %llu does not end", op, (unsigned long long)seed);
	CHECKF(rc == 1 || rc == -FI_ECONNRESET, "operation %d ends with %s", op, fi_strerror(-rc));
	if (rc == 1)
		for (size_t i = 0; i < g.size; i++)
			verify(out + displs[i], counts[1][i], pattern_of(seed, op, ranks[i], test_rank));
	return rc;
}

/* Rank 0 gathers the names of what is new, which all are in the first round, and gives everyone all. */
static void meet(struct round *r, bool first)
{
	if (first || mortal(test_rank)) {
		node_name(&g.n, &r->names[test_rank]);
		if (test_rank)
			link_send(0, &r->names[test_rank], sizeof(r->names[0]));
	}
	if (test_rank) {
		link_recv(0, r, sizeof(*r));
	} else {
		r->seed = rnd(&seeds) >> 8;
		for (int i = 1; i < RANKS; i++)
			if (first || mortal(i))
				link_recv(i, &r->names[i], sizeof(r->names[0]));
		for (int i = 1; i < RANKS; i++)
			link_send(i, r, sizeof(*r));
	}
	for (int i = 0; i < RANKS; i++)
		if (first || mortal(test_rank) || mortal(i))
			g.n.peer[i] = node_insert_name(&g.n, &r->names[i]);
}

/* A round of a process that is there: a survivor's, or a mortal one's until it is killed. gate: where the
 * latter says that its end may come. */
static void take_part(struct round *r, bool first, int gate)
{
	int ranks[RANKS];

	meet(r, first);
	join(ranks, order(r->seed, false, ranks));
	barrier(&g.n);
	CHECK(gate < 0 || write(gate, "k", 1) == 1);
	for (int op = 0;; op++) {
		if (operate(r->seed, op, ranks) < 0)
			break;
		seen.whole++;
		if ((r->seed + (uint64_t)op * 7 + (uint64_t)test_rank) % 8 == 0)
			usleep(3000); /* late for the next one */
	}
	seen.failed++;
	if (gate >= 0)
		for (;;)
			progress(&g.n); /* another one's death: its own is near */
	group_leave(&g);
	for (int i = 0; i < RANKS; i++)
		if (mortal(i))
			OK(fi_av_remove(g.n.av, &g.n.peer[i], 1, 0));
	join(ranks, order(r->seed + 1, true, ranks));
	for (int op = 0; op < 4; op++) {
		int rc = operate(r->seed + 1, op, ranks);

		CHECKF(rc == 1, "an operation without the dead ends with %s", fi_strerror(-rc));
	}
	barrier(&g.n);
	group_leave(&g);
}

static void open_all(void)
{
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED | FI_COLLECTIVE, .disabled = true };
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };

	node_open(&g.n, &o);
	OK(fi_eq_open(g.n.fabric, &attr, &g.eq, NULL));
	OK(fi_ep_bind(g.n.ep, &g.eq->fid, 0));
	OK(fi_enable(g.n.ep));
	g.n.o.disabled = false;
	OK(fi_open_ops(&g.n.ep->fid, WEFT_COLL_OPS, 0, (void **)&ops, NULL));
	CHECK((in = malloc(RANKS * LONGEST)) != NULL && (out = malloc(RANKS * LONGEST)) != NULL);
}

static int rounds(void)
{
	const char *more = getenv("WEFT_TEST_KILLS");

	return more ? atoi(more) : ROUNDS;
}

/* Microseconds from the beginning of the operations to the kill. */
static useconds_t delay(uint64_t *seed)
{
	static const unsigned most[] = { 500, 30000, 400000, 1200000 };
	unsigned range = most[rnd(seed) % ARRAY_LEN(most)];

	return (useconds_t)(rnd(seed) % range);
}

/* A mortal rank: a process that has endpoints for each round, and that is killed. */
static void kill_each(void)
{
	uint64_t seed = (uint64_t)getpid() + now_us();

	for (int i = 0; i < rounds(); i++) {
		int fd[2], st;
		char text[16], byte;
		pid_t pid;

		CHECK(pipe(fd) == 0);
		snprintf(text, sizeof(text), "%d", fd[1]);
		pid = respawn(text);
		CHECK(pid > 0);
		close(fd[1]);
		CHECKF(read(fd[0], &byte, 1) == 1, "what is to be killed ended by itself");
		usleep(delay(&seed));
		kill(pid, SIGKILL);
		CHECK(waitpid(pid, &st, 0) == pid);
		CHECKF(WIFSIGNALED(st) && WTERMSIG(st) == SIGKILL, "what is to be killed ended by itself: %#x", st);
		close(fd[0]);
		barrier(NULL);
	}
}

/* The sum of what survivors have seen, by rank 0. */
static void sum_up(void)
{
	struct tally t;

	seen.relayed = node_counter(&g.n, "exchange_relayed");
	seen.carried = node_counter(&g.n, "exchange_carried");
	seen.again = node_counter(&g.n, "exchange_relayed_again");
	seen.put = node_counter(&g.n, "exchange_put");
	if (test_rank) {
		link_send(0, &seen, sizeof(seen));
		return;
	}
	for (int r = 1; r < RANKS; r++) {
		if (mortal(r))
			continue;
		link_recv(r, &t, sizeof(t));
		seen.whole += t.whole;
		seen.failed += t.failed;
		seen.relayed += t.relayed;
		seen.carried += t.carried;
		seen.again += t.again;
		seen.put += t.put;
	}
	note("%d rounds: %llu operations completed at survivors and %llu failed; %llu bytes through relays, "
	     "%llu passed on, %llu pieces again, %llu bytes put",
	     rounds(), (unsigned long long)seen.whole, (unsigned long long)seen.failed,
	     (unsigned long long)seen.relayed, (unsigned long long)seen.carried, (unsigned long long)seen.again,
	     (unsigned long long)seen.put);
	CHECK(seen.relayed != 0 || mortal(1) || mortal(2) || !getenv("WEFT_TEST_RELAYS"));
}

static void test_killed(long victims)
{
	struct round r = { .seed = 0 };

	seeds = now_us();
	if (!test_is_weft())
		SKIP("an extension of weft");
	setenv("FI_WEFT_PEER_CHECK_INTERVAL", "20ms", 0);
	setenv("FI_WEFT_PEER_TIMEOUT", "2s", 0);
	setenv("FI_WEFT_RTT_SCHED_ENABLE", "yes", 0); /* on one host, too */
	mortals = victims;
	if (mortal(test_rank) && !*test_role()) {
		kill_each();
		return;
	}
	open_all();
	if (*test_role()) {
		take_part(&r, false, atoi(test_role()));
		return;
	}
	for (int i = 0; i < rounds(); i++)
		take_part(&r, i == 0, -1);
	sum_up();
	group_close(&g);
}

static const struct test tests[] = {
	{ "source", test_killed, RANKS, 120, 1 << 1 },
	{ "target", test_killed, RANKS, 120, 1 << 2 },
	{ "relay", test_killed, RANKS, 120, 1 << 3 },
	{ "relays", test_killed, RANKS, 120, 1 << 3 | 1 << 5 },
	{ "target_relay", test_killed, RANKS, 120, 1 << 2 | 1 << 4 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
