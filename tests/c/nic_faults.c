/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A NIC of Slingshot that may not be used, has no room, or refuses a command: an endpoint that demands it
 * (FI_WEFT_CXI=yes) is not enabled, with an error, and without the demand messages go over UDP; what was posted when it
 * refuses a command ends, lists among them (weft/token.h). Rank 0 has the fault, or the owner of a list's memory; the
 * software model of the NIC (tests/cassini) takes it from CASSINI. tests/clients/cxi.sh runs this.
 */
#include "common.h"
#include "tokens.h"

#define OPS 8	       /* of each kind */
#define LIMIT_MS 60000 /* for all that was posted to end; only what hangs takes so long */
#define BIG 100000

enum kind {
	REFUSED, /* no endpoint can have the NIC */
	FEW,	 /* not every endpoint of a domain can */
	ANY,	 /* the endpoint is refused or works */
	LATER,	 /* so it is, or it breaks */
};

static const struct fault {
	const char *name, *settings;
	enum kind kind;
} faults[] = {
	{ "open_permission", "open_rc=13", REFUSED },
	{ "open_none", "devices=0", REFUSED },
	{ "open_user", "member=12345", REFUSED },
	{ "open_disabled", "enable=0", REFUSED },
	{ "open_profiles", "lcids=0", REFUSED },
	{ "open_contexts", "lacs=0", REFUSED },
	{ "open_pids", "pids=0", REFUSED },
	{ "open_event_queues", "eqs=2", REFUSED },
	{ "open_transmit_queues", "txqs=0", REFUSED },
	{ "open_target_queues", "tgqs=0", REFUSED },
	{ "open_tables", "ptes=2", REFUSED },
	{ "open_entries", "les=8", REFUSED },
	{ "open_short_queue", "slots=64", REFUSED },
	{ "open_short_events", "eq_bytes=4096", REFUSED },
	{ "open_unused", "cts=0 tles=0", ANY },
	{ "few_pids", "pids=2", FEW },
	{ "few_event_queues", "eqs=8", FEW },
	{ "few_entries", "les=40", FEW },
	{ "call_3", "call_at=3 call_rc=5", ANY },
	{ "call_9", "call_at=9 call_rc=28", ANY },
	{ "call_13", "call_at=13 call_rc=1", ANY },
	{ "call_17", "call_at=17 call_rc=12", ANY },
	{ "call_21", "call_at=21 call_rc=19", ANY },
	{ "call_25", "call_at=25 call_rc=28", ANY },
	{ "command_1", "fault_at=1 fault_rc=50", LATER },
	{ "command_3", "fault_at=3 fault_rc=46", LATER },
	{ "command_12", "fault_at=12 fault_rc=18", LATER },
	{ "command_22", "fault_at=22 fault_rc=50", LATER },
	{ "command_26", "fault_at=26 fault_rc=2", LATER },
	{ "command_30", "fault_at=30 fault_rc=49", LATER },
	{ "command_36", "fault_at=36 fault_rc=33", LATER },
	{ "command_44", "fault_at=44 fault_rc=50", LATER },
};

static struct node n;

/* An operation that is posted and has not ended. */
struct pending {
	char *buf;
	size_t len;
	uint64_t tag;
	bool receive;
};

/* broke reports whether an error is that of a peer, or of a NIC, that is gone. */
static bool broke(long rc)
{
	return rc == -FI_ECONNRESET || rc == -FI_EHOSTUNREACH || rc == -FI_EIO || rc == -FI_ENODEV ||
	       rc == -FI_ESHUTDOWN;
}

/* post posts one, as often as it is asked to come again. False: the peer or the NIC is gone. */
static bool post(struct pending *p, uint64_t end)
{
	struct op o = {
		.tagged = true, .buf = p->buf, .len = p->len, .addr = n.peer[!test_rank], .tag = p->tag, .ctx = p
	};
	long rc;

	while ((rc = p->receive ? op_recv(n.ep, &o) : op_send(n.ep, &o)) == -FI_EAGAIN) {
		CHECKF(now_ms() < end, "%s of %zu bytes: FI_EAGAIN for %d ms", p->receive ? "receive" : "send", p->len,
		       LIMIT_MS);
		progress(&n);
	}
	CHECKF(rc == 0 || broke(rc), "%s = %ld (%s)", p->receive ? "receive" : "send", rc, fi_strerror((int)-rc));
	return rc == 0;
}

/* drain takes completions of a queue until left have come, and returns how many were errors. */
static int drain(struct fid_cq *cq, int left, uint64_t end, bool may_break)
{
	struct fi_cq_tagged_entry e;
	int errors = 0;

	for (; left > 0; left--) {
		int rc = wait_for(&n, cq, &e, (int)(end > now_ms() ? end - now_ms() : 1));
		struct pending *p = rc > 0 ? e.op_context : n.err.op_context;

		CHECKF(rc, "%d %s have not ended within %d ms", left, cq == n.txcq ? "sends" : "receives", LIMIT_MS);
		CHECKF(rc > 0 || (may_break && broke(rc)), "completion with error %d (%s)", -rc, fi_strerror(-rc));
		errors += rc < 0;
		if (rc > 0 && p->receive)
			verify(p->buf, p->len, p->tag);
	}
	return errors;
}

/* exchange sends and receives messages of several lengths; everything ends. */
static void exchange(bool may_break)
{
	static struct pending in[OPS], out[OPS];
	static const size_t sizes[] = { 0, 8, 200, 3000, BIG };
	uint64_t end = now_ms() + LIMIT_MS;
	int receives = 0, sends = 0, errors;

	for (int i = 0; i < OPS; i++) {
		size_t len = sizes[(size_t)i % ARRAY_LEN(sizes)];

		in[i] = (struct pending){ calloc(1, BIG), len, (uint64_t)(10 * i + !test_rank), true };
		out[i] = (struct pending){ calloc(1, BIG), len, (uint64_t)(10 * i + test_rank), false };
		CHECK(in[i].buf && out[i].buf);
		fill(out[i].buf, len, out[i].tag);
		receives += post(&in[i], end);
	}
	for (int i = 0; i < OPS; i++)
		sends += post(&out[i], end);
	CHECKF(may_break || (receives == OPS && sends == OPS), "%d receives and %d sends of %d are posted", receives,
	       sends, OPS);
	errors = drain(n.txcq, sends, end, may_break);
	errors += drain(n.rxcq, receives, end, may_break);
	note("%d sends, %d receives, %d of them end with an error", sends, receives, errors);
}

/* more opens endpoints on the same domain until one is refused, or some work, and returns the error. */
static long more(struct node extra[4], int *count)
{
	struct node_opts o = { .disabled = true };
	long rc = 0;

	for (*count = 0; *count < 4 && rc == 0; ++*count) {
		node_open_on(&extra[*count], &n, &o);
		rc = fi_enable(extra[*count].ep);
	}
	return rc;
}

/* agree notifies the other rank how enabling ended, and returns how it did there. */
static long agree(long rc)
{
	long other;

	link_send(!test_rank, &rc, sizeof(rc));
	link_recv(!test_rank, &other, sizeof(other));
	return other;
}

static void test_fault(long arg)
{
	const struct fault *f = &faults[arg];
	const char *want = getenv("FI_WEFT_CXI"), *model = getenv("CASSINI");
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV, .disabled = true };
	struct node extra[4];
	char settings[256];
	bool demanded;
	int count = 0;
	long rc, other, last = 0;

	if (!want || !model)
		SKIP("FI_WEFT_CXI and CASSINI name no model of a NIC");
	demanded = strcmp(want, "yes") == 0;
	snprintf(settings, sizeof(settings), "%s %s", model, f->settings);
	if (test_rank == 0)
		setenv("CASSINI", settings, 1);
	setenv("FI_WEFT_PEER_TIMEOUT", "2s", 0);
	node_open(&n, &o);
	rc = fi_enable(n.ep);
	CHECKF(rc == 0 || (demanded && test_rank == 0 && rc == -FI_ENODEV), "fi_enable = %ld (%s)", rc,
	       fi_strerror((int)-rc));
	if (test_rank == 0) {
		CHECKF(f->kind != REFUSED || !demanded || rc, "an endpoint has a NIC with %s", f->settings);
		CHECKF(f->kind != FEW || !rc, "no endpoint has a NIC with %s", f->settings);
		if (f->kind == FEW && (last = more(extra, &count)) != (demanded ? -FI_ENODEV : 0))
			test_fail(true, __FILE__, __LINE__, "endpoint %d: %ld (%s)", count + 1, last,
				  fi_strerror((int)-last));
	}
	other = agree(rc);
	if (rc == 0 && other == 0) {
		node_connect(&n);
		exchange(f->kind == LATER);
		barrier(&n); /* with progress: what the NIC refused may be an ACK, which goes again then */
	} else {
		note("%s: the endpoint is refused: %s", f->settings, fi_strerror((int)-(rc ? rc : other)));
	}
	while (count > 0)
		node_close(&extra[--count]);
	node_close(&n);
}

/* ---- lists ---- */

enum { ELEMENTS = 64, BYTES = 512, APART = 2048, LISTS = 40 };

static const struct list_fault {
	const char *name, *settings;
	int rank;  /* whose NIC has the fault */
	bool well; /* no memory can be registered for the device: all lists end well, as messages */
} list_faults[] = {
	{ "list_command_50", "fault_at=50 fault_rc=50", 0, false },
	{ "list_command_200", "fault_at=200 fault_rc=46", 0, false },
	{ "list_command_1000", "fault_at=1000 fault_rc=50", 0, false },
	{ "list_target_command_20", "fault_at=20 fault_rc=50", 1, false },
	{ "list_target_command_40", "fault_at=40 fault_rc=18", 1, false },
	{ "list_no_room_here", "map_most=6", 0, true },
	{ "list_no_room_there", "map_most=6", 1, true },
};

/* Posts lists of writes to the other rank until one fails, or all are done. Returns how many are done. */
static long post_lists(struct weft_token_ops *t, char *mem, bool well)
{
	struct weft_local_piece here = { .addr = mem, .len = BYTES, .stride = BYTES, .count = ELEMENTS };
	struct weft_remote_piece there = { .len = BYTES, .stride = APART, .count = ELEMENTS };
	uint64_t end = now_ms() + LIMIT_MS;
	struct weft_remote_info info;
	struct fi_cq_tagged_entry e;
	struct weft_list *list;
	long done;
	ssize_t rc;

	there.remote = token_receive(t, n.ep, 1, &info);
	there.addr = info.base;
	OK(t->list(n.ep, &here, &there, 1, 0, &list));
	for (done = 0; done < LISTS; done++) {
		fill(mem, ELEMENTS * BYTES, (uint64_t)done + 1);
		while ((rc = t->post(list, WEFT_WRITE, NULL, 0, NULL, 0, 0, &n)) == -FI_EAGAIN && now_ms() < end)
			progress(&n);
		if (rc == 0 && (rc = wait_for(&n, n.txcq, &e, (int)(end - now_ms()))) == 1)
			continue;
		CHECKF(rc && broke(rc) && !well, "list %ld: %zd (%s)", done, rc, fi_strerror((int)-rc));
		CHECKF(n.err.op_context != &n || n.err.len < ELEMENTS * BYTES, "%zu bytes are done", n.err.len);
		break;
	}
	note("%ld lists, %lu elements by the device, %lu as messages", done,
	     (unsigned long)node_counter(&n, "list_rdma"), (unsigned long)node_counter(&n, "list_message"));
	CHECKF(!well || !node_counter(&n, "list_rdma"), "elements went by a device without room");
	OK(fi_close(&list->fid));
	OK(fi_close(&there.remote->fid));
	return done;
}

/* The memory has what the list of number done wrote, or the one after it in part; nothing else is written. */
static void verify_lists(const char *mem, long done)
{
	static char old[ELEMENTS * BYTES], new[ELEMENTS * BYTES];

	if (done)
		fill(old, sizeof(old), (uint64_t)done);
	fill(new, sizeof(new), (uint64_t)done + 1);
	for (size_t i = 0; i < ELEMENTS * APART; i++) {
		size_t k = i / APART * BYTES + i % APART;
		bool ours = i % APART < BYTES;

		CHECKF(ours ? mem[i] == old[k] || (done < LISTS && mem[i] == new[k]) : !mem[i],
		       "byte %zu is %#x after %ld lists", i, mem[i], done);
	}
}

static void test_lists(long arg)
{
	const struct list_fault *f = &list_faults[arg];
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED | FI_RMA,
			       .mr_mode = FI_MR_ALLOCATED,
			       .data = FI_PROGRESS_AUTO };
	const char *want = getenv("FI_WEFT_CXI"), *model = getenv("CASSINI");
	char settings[256], *mem = calloc(ELEMENTS, APART);
	struct weft_token_ops *t;
	struct fid_mr *mr;
	long done;

	if (!want || !model || strcmp(want, "yes"))
		SKIP("FI_WEFT_CXI and CASSINI demand no model of a NIC");
	snprintf(settings, sizeof(settings), "%s %s", model, f->settings);
	if (test_rank == f->rank)
		setenv("CASSINI", settings, 1);
	setenv("FI_WEFT_PEER_TIMEOUT", "2s", 0);
	node_open(&n, &o);
	t = token_ops(&n.ep->fid);
	if (test_rank == 0) {
		done = post_lists(t, mem, f->well);
		agree(done);
		agree(0);
	} else {
		OK(fi_mr_reg(n.domain, mem, ELEMENTS * APART, FI_REMOTE_WRITE, 0, 1, 0, &mr, NULL));
		token_send(t, mr, 0);
		done = agree(0);
		verify_lists(mem, done);
		agree(0);
		OK(fi_close(&mr->fid));
	}
	node_close(&n);
	free(mem);
}

int main(int argc, char **argv)
{
	struct test tests[ARRAY_LEN(faults) + ARRAY_LEN(list_faults)];

	for (size_t i = 0; i < ARRAY_LEN(faults); i++)
		tests[i] = (struct test){ faults[i].name, test_fault, 2, 100, (long)i };
	for (size_t i = 0; i < ARRAY_LEN(list_faults); i++)
		tests[ARRAY_LEN(faults) + i] = (struct test){ list_faults[i].name, test_lists, 2, 100, (long)i };
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
