/* SPDX-License-Identifier: BSD-2-Clause */
/* Both routes into the data plane behave alike: a random program runs in a process that calls it directly and in one
 * that calls it through the runtime (FI_WEFT_DIRECT), and what each observes is compared: completions with flags,
 * lengths, tags, data, contexts and sources, which message each receive has got, the bytes, memory, counters. */
#include <sys/wait.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "common.h"

#define NODES 3
#define STEPS 150
#define MOST 12	     /* operations of each side in a step */
#define BUFFER 70000 /* of an operation: up to a rendezvous */
#define REGION (MOST * BUFFER)
#define SOURCE_SHIFT 32 /* of a tag: receives name their source by it */
#define NEVER 0xffffull /* the low bits of a tag that no message has */

/* An operation of a step, which is its context. */
struct slot {
	struct fi_context2 ctx;
	int node; /* whose queue has its completion */
	bool awaited;
	size_t len; /* of buf */
	char buf[BUFFER];
	char text[200]; /* what its completion says */
};

static struct node n[NODES];
static fi_addr_t addr[NODES][NODES]; /* of the second, in the first's address vector */
static struct fid_mr *mr[NODES];
static char memory[NODES][REGION], model[REGION];
static struct slot slots[2 * MOST];
static int used, awaited;
static uint64_t state;
static FILE *observed;

static uint64_t sum(const char *p, size_t len)
{
	uint64_t h = 14695981039346656037ull; /* FNV-1a */

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)p[i]) * 1099511628211ull;
	return h;
}

static size_t below(size_t n_)
{
	return (size_t)(rnd(&state) % n_);
}

static struct slot *slot_of(int node, bool waits)
{
	struct slot *s = &slots[used++];

	s->node = node;
	s->awaited = waits;
	s->text[0] = 0;
	awaited += waits;
	return s;
}

static int rank_of(int node, fi_addr_t src)
{
	for (int i = 0; i < NODES; i++)
		if (addr[node][i] == src)
			return i;
	return -1;
}

/* Takes what is on the queues. */
static void take(void)
{
	for (int i = 0; i < NODES; i++) {
		struct fi_cq_tagged_entry e;
		struct fi_cq_err_entry err = { 0 };
		fi_addr_t src = FI_ADDR_NOTAVAIL;
		ssize_t rc = fi_cq_readfrom(n[i].rxcq, &e, 1, &src);
		struct slot *s;

		if (rc == -FI_EAGAIN)
			continue;
		if (rc == -FI_EAVAIL) {
			CHECK(fi_cq_readerr(n[i].rxcq, &err, 0) == 1);
			s = err.op_context;
			CHECK(s && s->awaited && s->node == i);
			snprintf(s->text, sizeof(s->text), "error %d flags %#llx len %zu olen %zu tag %#llx sum %#llx",
				 err.err, (unsigned long long)err.flags, err.len, err.olen, (unsigned long long)err.tag,
				 (unsigned long long)sum(s->buf, s->len));
		} else {
			CHECKF(rc == 1, "read: %zd", rc);
			s = e.op_context;
			if (!s) { /* a write with data: its target has no operation of its own */
				fprintf(observed, "node %d: flags %#llx len %zu data %#llx\n", i,
					(unsigned long long)e.flags, e.len, (unsigned long long)e.data);
				awaited--;
				continue;
			}
			CHECK(s >= slots && s < slots + used && s->awaited && s->node == i);
			snprintf(s->text, sizeof(s->text), "flags %#llx len %zu tag %#llx data %#llx from %d sum %#llx",
				 (unsigned long long)e.flags, e.flags & FI_RECV ? e.len : 0, /* else not defined */
				 e.flags & FI_RECV ? (unsigned long long)e.tag : 0,
				 e.flags & FI_REMOTE_CQ_DATA ? (unsigned long long)e.data : 0,
				 e.flags & FI_RECV ? rank_of(i, src) : -1, (unsigned long long)sum(s->buf, s->len));
		}
		s->awaited = false;
		awaited--;
	}
}

/* Ends a step: waits for its completions, and writes down what they said. */
static void end_step(int step)
{
	uint64_t end = now_ms() + 20000;

	while (awaited) {
		take();
		CHECKF(now_ms() < end, "step %d: %d completions are missing", step, awaited);
	}
	for (int i = 0; i < used; i++)
		fprintf(observed, "step %d: operation %d at node %d: %s\n", step, i, slots[i].node, slots[i].text);
	used = 0;
}

/* A receive of a message of the tag from a node; a tag of 0: an untagged one. */
static void receive(int to, int from, uint64_t tag, uint64_t ignore, size_t len)
{
	struct slot *s = slot_of(to, true);
	struct op o = { .form = below(2) ? F_MSG : F_V,
			.tagged = tag != 0,
			.addr = addr[to][from],
			.tag = tag,
			.ignore = ignore,
			.ctx = s };

	memset(s->buf, 0, s->len = len);
	op_split(&o, s->buf, len, below(4) ? 1 : 3, false);
	post_recv(&n[to], &o);
}

static void transmit(int from, int to, uint64_t tag, size_t len, int order)
{
	static const uint64_t flags[] = { 0, FI_INJECT, FI_DELIVERY_COMPLETE, FI_MATCH_COMPLETE, FI_TRANSMIT_COMPLETE };
	struct op o = { .form = (enum form)below(6),
			.tagged = tag != 0,
			.addr = addr[from][to],
			.tag = tag,
			.data = 0xda7a0000u + (uint64_t)order,
			.flags = flags[below(5)] };
	bool small = len <= n[from].info->tx_attr->inject_size;
	struct slot *s;

	if (!small && (o.form == F_INJECT || o.form == F_INJECTDATA))
		o.form = F_PLAIN;
	if (!small && o.flags == FI_INJECT)
		o.flags = 0;
	if (below(2))
		o.flags |= FI_REMOTE_CQ_DATA;
	s = slot_of(from, o.form != F_INJECT && o.form != F_INJECTDATA);
	o.ctx = s;
	fill(s->buf, s->len = len, rnd(&state));
	op_split(&o, s->buf, len, below(4) ? 1 : 2, false);
	post_send(&n[from], &o);
}

/* The tag of a node's message. */
static uint64_t tag_of(int from, int which)
{
	return (uint64_t)(from + 1) << SOURCE_SHIFT | (uint64_t)which;
}

static size_t length(void)
{
	static const size_t upto[] = { 9, 200, 5000, BUFFER };

	return below(upto[below(4)]);
}

/* Messages from one node to another: receives before and after, in another order, with wildcards, too short. */
static void messages(int from, int to)
{
	int count = 1 + (int)below(MOST), before = (int)below((size_t)count + 1), turn = (int)below((size_t)count);
	bool tagged = below(3), wild = below(3) == 0;
	size_t len[MOST];

	for (int i = 0; i < count; i++)
		len[i] = length();
	for (int i = 0; i < count; i++) {
		int which = wild || !tagged ? i : (i + turn) % count;
		uint64_t tag = tagged ? tag_of(from, which) : 0;

		if (i == before)
			for (int k = 0; k < count; k++)
				transmit(from, to, tagged ? tag_of(from, k) : 0, len[k], k);
		if (i >= before && below(2))
			take();
		receive(to, from, tag, wild && tagged ? 0xffff : 0, below(8) ? BUFFER : len[which] / 2);
	}
	if (before == count)
		for (int k = 0; k < count; k++)
			transmit(from, to, tagged ? tag_of(from, k) : 0, len[k], k);
}

/* Posts a search and returns whether it finds a message. */
static bool search(int at, int from, uint64_t tag, uint64_t flags, struct slot *s)
{
	struct op o = { .form = F_MSG, .tagged = true, .addr = addr[at][from], .tag = tag, .flags = flags, .ctx = s };
	int left = awaited;

	if (!s)
		o.ctx = s = slot_of(at, false);
	s->awaited = true;
	awaited++;
	op_split(&o, s->buf, s->len = flags & FI_PEEK ? 0 : BUFFER, 1, false);
	post_recv(&n[at], &o);
	while (awaited > left)
		take();
	return strncmp(s->text, "error", 5) != 0;
}

/* Searches for messages that come, and for one that does not: a peek, a claim, a message that is discarded. */
static void searches(int from, int to)
{
	uint64_t tag = tag_of(from, 0);
	struct slot *s;
	char found[sizeof(s->text)];

	for (uint64_t k = 0; k < 3; k++)
		transmit(from, to, tag | k, length(), (int)k);
	s = slot_of(to, false);
	for (uint64_t k = 0; k < 3; k++) {
		static const uint64_t how[] = { FI_PEEK, FI_PEEK | FI_CLAIM, FI_PEEK | FI_DISCARD };

		while (!search(to, from, tag | k, how[k], s)) /* until it is there */
			;
		memcpy(found, s->text, sizeof(found));
		if (k < 2)
			CHECK(search(to, from, tag | k, k ? FI_CLAIM : 0, s));
		fprintf(observed, "search %d: %s, then %s\n", (int)k, found, s->text);
	}
	CHECK(!search(to, from, tag | NEVER, FI_PEEK, NULL));
}

/* One-sided operations of a node at another's memory, each at a place of its own. */
static void one_sided(int from, int to)
{
	int count = 1 + (int)below(MOST);

	memcpy(model, memory[to], REGION);
	for (int i = 0; i < count; i++) {
		size_t len = length() / 8 * 8, at = (size_t)i * BUFFER;
		struct slot *s = slot_of(from, true);
		int what = (int)below(5);
		ssize_t rc;

		s->len = len = len ? len : 8;
		if (what == 4 && len > 2048) /* an atomic operation is one message */
			s->len = len = 2048;
		fill(s->buf, len, rnd(&state));
		do {
			switch (what) {
			case 0:
				rc = fi_read(n[from].ep, s->buf, len, NULL, addr[from][to], at, (uint64_t)to + 1, s);
				break;
			case 1:
				rc = fi_writedata(n[from].ep, s->buf, len, NULL, (uint64_t)i, addr[from][to], at,
						  (uint64_t)to + 1, s);
				break;
			case 4:
				rc = fi_atomic(n[from].ep, s->buf, len / 8, NULL, addr[from][to], at, (uint64_t)to + 1,
					       FI_UINT64, FI_SUM, s);
				break;
			default:
				rc = fi_write(n[from].ep, s->buf, len, NULL, addr[from][to], at, (uint64_t)to + 1, s);
			}
			if (rc == -FI_EAGAIN)
				take();
		} while (rc == -FI_EAGAIN);
		CHECKF(rc == 0, "operation %d: %zd", what, rc);
		if (what == 1)
			awaited++; /* at the target */
		for (size_t k = 0; what == 4 && k < len / 8; k++)
			((uint64_t *)(model + at))[k] += ((uint64_t *)s->buf)[k];
		if (what && what != 4)
			memcpy(model + at, s->buf, len);
	}
}

static void run_program(uint64_t seed)
{
	state = seed;
	for (int step = 0; step < STEPS; step++) {
		int from = (int)below(NODES), to = (from + 1 + (int)below(NODES - 1)) % NODES, what = (int)below(4);
		uint64_t end = now_ms() + 20000;

		if (what == 0)
			one_sided(from, to);
		else if (what == 1)
			searches(from, to);
		else
			messages(from, to);
		end_step(step);
		while (what == 0 && memcmp(model, memory[to], REGION) != 0) {
			take();
			CHECKF(now_ms() < end, "step %d: memory is not as it should be", step);
		}
	}
	for (int i = 0; i < NODES; i++)
		fprintf(observed, "memory of node %d: %#llx\n", i, (unsigned long long)sum(memory[i], REGION));
}

/* The shapes that endpoints of a program have. */
#define CAPS (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SOURCE | FI_DIRECTED_RECV)
static const struct node_opts shapes[] = {
	{ .caps = CAPS, .one_cq = true },
	{ .caps = CAPS, .one_cq = true, .counters = true, .threading = FI_THREAD_DOMAIN },
};

/* Runs a program in this process, and writes what it observes to a file. */
static void observe(long shape, const char *file)
{
	observed = fopen(file, "w");
	CHECK(observed != NULL);
	for (int i = 0; i < NODES; i++) {
		if (i)
			node_open_on(&n[i], &n[0], &shapes[shape]);
		else
			node_open(&n[i], &shapes[shape]);
		OK(fi_mr_reg(n[0].domain, memory[i], REGION, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, (uint64_t)i + 1, 0,
			     &mr[i], NULL));
	}
	for (int i = 0; i < NODES; i++)
		for (int k = 0; k < NODES; k++)
			addr[i][k] = node_insert(&n[i], &n[k]);
	for (uint64_t seed = 1; seed <= 3; seed++)
		run_program(seed);
	for (int i = 0; i < NODES && n[i].rxcntr; i++)
		fprintf(observed, "node %d: %llu received, %llu failed, %llu sent\n", i,
			(unsigned long long)fi_cntr_read(n[i].rxcntr), (unsigned long long)fi_cntr_readerr(n[i].rxcntr),
			(unsigned long long)fi_cntr_read(n[i].txcntr));
	CHECK(fclose(observed) == 0);
	_exit(0);
}

/* Has a process of its own run the program by a route, and returns what it has observed. */
static FILE *by_route(const char *direct)
{
	char file[] = "/tmp/weft-routes-XXXXXX";
	int fd = mkstemp(file), status;
	FILE *f;

	CHECK(fd >= 0);
	close(fd);
	setenv("FI_WEFT_DIRECT", direct, 1);
	CHECK(waitpid(respawn(file), &status, 0) > 0);
	f = fopen(file, "r");
	unlink(file);
	CHECKF(WIFEXITED(status) && WEXITSTATUS(status) == 0, "with FI_WEFT_DIRECT=%s: status %#x", direct, status);
	CHECK(f != NULL);
	return f;
}

static void test_routes(long shape)
{
	char one[400], two[400];
	FILE *direct, *through;
	int lines = 0;

	if (!test_is_weft())
		SKIP("routes of weft");
	NEED_WAY(WAY_MEMORY, "the data plane between processes of a host");
	if (*test_role())
		observe(shape, test_role());
	direct = by_route("yes");
	through = by_route("no");
	while (fgets(one, sizeof(one), direct)) {
		lines++;
		CHECKF(fgets(two, sizeof(two), through), "through the runtime line %d is missing", lines);
		CHECKF(!strcmp(one, two), "line %d: directly \"%s\", through the runtime \"%s\"", lines, one, two);
	}
	CHECKF(!fgets(two, sizeof(two), through), "through the runtime there is also %s", two);
	CHECKF(lines > STEPS, "%d lines", lines);
	note("%d lines agree", lines);
	fclose(direct);
	fclose(through);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "one_queue", test_routes, 0, 0, 0 },
		{ "domain_counters", test_routes, 0, 0, 1 },
	};

	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
