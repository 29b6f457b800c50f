/* SPDX-License-Identifier: BSD-2-Clause */
/* What clients ask that enters the Go runtime, and how often, by the counter of entries (docs/clients.md is the table).
 * What never enters it is in steady.c. */
#include "counts.h"
#include "hmem.h"
#include <sys/stat.h>

#define FOLDER "/dev/shm/weft-entries.%d" /* and the rank: of the processes of one that runs them */
#define ROUNDS 100
#define WARM 20
#define LONG 80000 /* a rendezvous, of whose memory one in 4 MiB is counted by the runtime */
#define MOST (1 << 22)
#define ANY FI_ADDR_UNSPEC
#define CAP_TAGGED_MULTI (1ULL << 46) /* FI_TAGGED_MULTI_RECV of 2.0 */

static char in[MOST], out[MOST];

/* One thing that a client asks. Ranks do as many rounds as each other. */
struct cell {
	const char *name;
	void (*round)(struct node *n, uint64_t i);
	uint64_t least, most; /* entries in a round, of this process */
	struct node_opts o;
	int procs;		      /* 0: 1, which sends to itself */
	void (*open)(struct node *n); /* what the rounds need besides */
	void (*close)(struct node *n);
	const char *variable, *value; /* in the environment */
	bool device;		      /* memory of a GPU */
	size_t len;		      /* of a message */
	bool shared;		      /* both sides copy: rank 1 enters with each poll meanwhile */
	bool apart;		      /* ranks are on hosts of their own; each call may enter */
};

static const struct cell *cell;
static struct node other; /* a second endpoint of this process */
static struct buffer device;
static uint64_t posts, polls; /* of a process apart */
static uint64_t posted;	      /* entries of its posts */

/* ---- waiting ---- */

static void cancel(struct node *n, uint64_t i)
{
	trecv(n, in, 8, ANY, i, 0, in);
	OK(fi_cancel(&n->ep->fid, in));
	wait_err(n, n->rxcq, FI_ECANCELED);
}

static void trywait(struct node *n, uint64_t i)
{
	struct fid *fids[2] = { &n->rxcq->fid, &n->txcq->fid };
	int rc;

	(void)i;
	rc = fi_trywait(n->fabric, fids, cell->least);
	CHECKF(rc == 0 || rc == -FI_EAGAIN, "fi_trywait = %d", rc);
}

static void sread_timeout(struct node *n, uint64_t i)
{
	struct fi_cq_tagged_entry e;

	(void)i;
	CHECK_RC(fi_cq_sread(n->rxcq, &e, 1, NULL, 1), -FI_EAGAIN);
}

/* Rank 1 sleeps when the message comes. */
static void sread(struct node *n, uint64_t i)
{
	struct fi_cq_tagged_entry e;
	char ready = 0;

	if (test_rank == 0) {
		link_recv(1, &ready, 1);
		usleep(1000);
		tsend(n, out, 8, n->peer[1], i, out);
		wait_ctx(n, n->txcq, out);
		return;
	}
	trecv(n, in, 8, ANY, i, 0, in);
	link_send(0, &ready, 1);
	CHECK_RC(fi_cq_sread(n->rxcq, &e, 1, NULL, -1), 1);
	CHECK(e.op_context == in);
}

static void cntr_reached(struct node *n, uint64_t i)
{
	trecv(n, in, 8, ANY, i, 0, in);
	tsend(n, out, 8, n->peer[0], i, out);
	wait_ctx(n, n->rxcq, in);
	wait_ctx(n, n->txcq, out);
	OK(fi_cntr_wait(n->rxcntr, i + 1, -1));
}

static void cntr_sleep(struct node *n, uint64_t i)
{
	(void)i;
	CHECK_RC(fi_cntr_wait(n->rxcntr, 1, 1), -FI_ETIMEDOUT);
}

/* ---- messages ---- */

static void notify(struct node *n, struct node *to, uint64_t tag)
{
	trecv(to, in, 8, ANY, tag, 0, in);
	tsend(n, out, 8, n->peer[0], tag, out);
	wait_ctx(n, n->txcq, out);
	wait_ctx(to, to->rxcq, in);
}

static uint64_t kept(struct node *n)
{
	return node_counter(n, "rx_unexpected");
}

static uint64_t entries(struct node *n)
{
	return value(open_stats(&n->domain->fid), &n->domain->fid, "runtime_entries");
}

#include "stranger.h"

/* The address vector has a name, by which other processes open it. */
static void open_named(struct node *n)
{
	char name[64];
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .name = name, .count = 64 };

	snprintf(name, sizeof(name), "weft_test_entries_%d", (int)getpid());
	OK(fi_close(&n->ep->fid));
	OK(fi_close(&n->av->fid));
	OK(fi_av_open(n->domain, &attr, &n->av, NULL));
	OK(fi_endpoint(n->domain, n->info, &n->ep, NULL));
	OK(fi_ep_bind(n->ep, &n->av->fid, 0));
	OK(fi_ep_bind(n->ep, &n->txcq->fid, FI_TRANSMIT));
	OK(fi_ep_bind(n->ep, &n->rxcq->fid, FI_RECV));
	OK(fi_enable(n->ep));
	n->peer[0] = node_insert(n, n);
}

/* More senders than rings that one of them has alone. */
#define SENDERS 12
static struct node senders[SENDERS];

static void open_senders(struct node *n)
{
	for (int k = 0; k < SENDERS; k++) {
		node_open_on(&senders[k], n, NULL);
		senders[k].peer[0] = node_insert(&senders[k], n);
		node_insert(n, &senders[k]);
	}
}

static void close_senders(struct node *n)
{
	(void)n;
	for (int k = 0; k < SENDERS; k++)
		node_close(&senders[k]);
}

static void from_each(struct node *n, uint64_t i)
{
	for (int k = 0; k < SENDERS; k++)
		notify(&senders[k], n, i);
}

static void to_self(struct node *n, uint64_t i)
{
	notify(n, n, i);
}

/* The address vector has changed since the receive before. */
static void directed_changed(struct node *n, uint64_t i)
{
	fi_addr_t addr = node_insert(n, &other);

	trecv(n, in, 8, n->peer[0], i, 0, in);
	tsend(n, out, 8, n->peer[0], i, out);
	wait_ctx(n, n->txcq, out);
	wait_ctx(n, n->rxcq, in);
	CHECK_RC(fi_av_remove(n->av, &addr, 1, 0), 0);
}

/* A message without a receive, that has arrived. */
static void leave(struct node *n, uint64_t tag)
{
	uint64_t before = kept(n);

	tsend(n, out, 8, n->peer[0], tag, out);
	wait_ctx(n, n->txcq, out);
	for (int k = 0; k < 100000 && kept(n) == before; k++)
		progress(n);
	CHECK(kept(n) == before + 1);
}

/* A search by other bits in each round. */
static void other_bits(struct node *n, uint64_t i)
{
	uint64_t ignore = 1ull << 62 | (i + 1) << 8;
	struct op o = {
		.form = F_MSG, .tagged = true, .addr = ANY, .tag = 3, .ignore = ignore, .flags = FI_PEEK, .ctx = in
	};

	leave(n, 3);
	post_recv(n, &o);
	wait_ctx(n, n->rxcq, in);
	trecv(n, in, 8, ANY, 3, ignore, in);
	wait_ctx(n, n->rxcq, in);
}

static void open_least(struct node *n)
{
	size_t least = 8;

	OK(fi_setopt(&n->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof(least)));
}

/* A buffer for tagged messages, which one fills. */
static void tagged_multi(struct node *n, uint64_t i)
{
	struct op o = { .form = F_MSG, .tagged = true, .addr = ANY, .tag = i, .flags = FI_MULTI_RECV, .ctx = in };
	struct fi_cq_tagged_entry e;

	op_split(&o, in, 8, 1, false);
	post_recv(n, &o);
	tsend(n, out, 8, n->peer[0], i, out);
	wait_ctx(n, n->txcq, out);
	wait_ok(n, n->rxcq, &e);
	CHECK(e.op_context == in);
	if (!(e.flags & FI_MULTI_RECV))
		wait_ok(n, n->rxcq, &e);
	CHECK(e.flags & FI_MULTI_RECV);
}

/* Rank 0 sends a message, which rank 1 has a receive for. */
static void longer(struct node *n, uint64_t i)
{
	char ready = 0;

	if (test_rank == 0) {
		link_recv(1, &ready, 1);
		tsend(n, out, cell->len, n->peer[1], i, out);
		wait_ctx(n, n->txcq, out);
		return;
	}
	trecv(n, in, cell->len, ANY, i, 0, in);
	link_send(0, &ready, 1);
	wait_ctx(n, n->rxcq, in);
}

/* ---- memory of a GPU ---- */

static void open_device(struct node *n)
{
	device = buffer_open(n, LONG, true);
}

static void close_device(struct node *n)
{
	(void)n;
	buffer_close(&device);
}

static void device_recv(struct node *n, uint64_t i)
{
	POST(n, fi_trecv(n->ep, device.p, LONG, device.desc, ANY, i, 0, in));
	tsend(n, out, 8, n->peer[0], i, out);
	wait_ctx(n, n->txcq, out);
	wait_ctx(n, n->rxcq, in);
}

static void device_send(struct node *n, uint64_t i)
{
	if (test_rank == 0) {
		POST(n, fi_tsend(n->ep, device.p, LONG, device.desc, n->peer[1], i, out));
		wait_ctx(n, n->txcq, out);
	} else {
		trecv(n, in, LONG, ANY, i, 0, in);
		wait_ctx(n, n->rxcq, in);
	}
	barrier(NULL);
}

/* ---- a shared receive context with a queue for each of its endpoints ---- */

static struct fid_ep *context, *ends[2];
static struct fid_cq *queues[2];
static struct fid_av *known;
static fi_addr_t at[2];

static void open_shared(struct node *n)
{
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_info *info = fi_dupinfo(n->info);

	OK(fi_av_open(n->domain, &av, &known, NULL));
	OK(fi_srx_context(n->domain, info->rx_attr, &context, NULL));
	info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	for (int k = 0; k < 2; k++) {
		struct name name = { .len = sizeof(name.bytes) };

		OK(fi_cq_open(n->domain, &cq, &queues[k], NULL));
		OK(fi_endpoint(n->domain, info, &ends[k], NULL));
		OK(fi_ep_bind(ends[k], &context->fid, 0));
		OK(fi_ep_bind(ends[k], &known->fid, 0));
		OK(fi_ep_bind(ends[k], &queues[k]->fid, FI_TRANSMIT | FI_RECV));
		OK(fi_enable(ends[k]));
		OK(fi_getname(&ends[k]->fid, name.bytes, &name.len));
		CHECK_RC(fi_av_insert(known, name.bytes, 1, &at[k], 0, NULL), 1);
	}
	fi_freeinfo(info);
}

static void close_shared(struct node *n)
{
	(void)n;
	for (int k = 0; k < 2; k++)
		OK(fi_close(&ends[k]->fid));
	OK(fi_close(&context->fid));
	OK(fi_close(&known->fid));
	for (int k = 0; k < 2; k++)
		OK(fi_close(&queues[k]->fid));
}

/* A message comes to the first endpoint, whose queue is not polled once the receive is there. */
static void shared_other(struct node *n, uint64_t i)
{
	struct node first = { .ep = ends[0] };
	struct fi_cq_tagged_entry e;
	uint64_t before = kept(&first), end = now_ms() + 20000;

	(void)n;
	while (fi_tinject(ends[1], out, 8, at[0], i) == -FI_EAGAIN)
		fi_cq_read(queues[1], NULL, 0);
	while (kept(&first) == before && now_ms() < end)
		fi_cq_read(queues[0], NULL, 0);
	while (fi_trecv(context, in, 8, NULL, ANY, i, 0, in) == -FI_EAGAIN)
		;
	for (int k = 0; k < 100; k++) /* has the receive find the message */
		fi_cq_read(queues[1], NULL, 0);
	while (fi_cq_read(queues[0], &e, 1) != 1)
		CHECK(now_ms() < end);
	CHECK(e.op_context == in && e.tag == i);
}

#define SOURCE \
	{ \
		.caps = FI_MSG | FI_TAGGED | FI_SOURCE \
	}
#define SOURCE_ERR \
	{ \
		.caps = FI_MSG | FI_TAGGED | FI_SOURCE | FI_SOURCE_ERR \
	}
#define DIRECTED \
	{ \
		.caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV \
	}
#define WAITS \
	{ \
		.wait = FI_WAIT_FD \
	}
#define GPU \
	{ \
		.caps = CAPS, .mr_mode = FI_MR_HMEM \
	}

static const struct cell cells[] = {
	{ .name = "cancel", cancel, 2, 2 },
	{ .name = "trywait", trywait, 1, 1, WAITS },
	{ .name = "trywait_two", trywait, 2, 2, WAITS },
	{ .name = "sread", sread, 1, 1, WAITS, .procs = 2 },
	{ .name = "sread_timeout", sread_timeout, 2, 2, WAITS },
	{ .name = "cntr_reached", cntr_reached, 0, 0, { .counters = true } },
	{ .name = "cntr_sleep", cntr_sleep, 1, 1, { .counters = true } },
	{ .name = "stranger", stranger, 0, 0, .open = open_stranger, .close = close_other },
	{ .name = "stranger_source", stranger, 0, 0, SOURCE, .open = open_stranger, .close = close_other },
	{ .name = "stranger_directed", stranger, 0, 0, DIRECTED, .open = open_stranger, .close = close_other },
	{ .name = "stranger_unexpected",
	  stranger_unexpected,
	  0,
	  0,
	  SOURCE,
	  .open = open_stranger,
	  .close = close_other },
	{ .name = "stranger_delivered", stranger_delivered, 0, 0, SOURCE, .open = open_stranger, .close = close_other },
	{ .name = "stranger_long",
	  stranger_delivered,
	  0,
	  0,
	  SOURCE,
	  .open = open_stranger,
	  .close = close_other,
	  .len = LONG },
	{ .name = "stranger_reported",
	  stranger_reported,
	  2,
	  2,
	  SOURCE_ERR,
	  .open = open_stranger,
	  .close = close_other },
	{ .name = "stranger_udp",
	  stranger_apart,
	  1,
	  1,
	  .procs = 2,
	  .open = open_stranger_apart,
	  .close = close_stranger_apart,
	  .apart = true },
	{ .name = "acquainted", acquainted, 2, 2, SOURCE, .open = open_stranger, .close = close_other },
	{ .name = "directed_changed", directed_changed, 1, 1, DIRECTED, .open = open_stranger, .close = close_other },
	{ .name = "senders", from_each, 0, 0, SOURCE, .open = open_senders, .close = close_senders },
	{ .name = "auto", to_self, 0, 1, { .data = FI_PROGRESS_AUTO } },
	{ .name = "auto_reached", cntr_reached, 0, 1, { .data = FI_PROGRESS_AUTO, .counters = true } },
	{ .name = "av_named", to_self, 2, 2, .open = open_named },
	{ .name = "av_named_source", to_self, 2, 2, SOURCE, .open = open_named },
	{ .name = "other_bits", other_bits, 1, 1 },
	{ .name = "tagged_multi",
	  tagged_multi,
	  1,
	  1,
	  { .ep_caps = FI_MSG | FI_TAGGED | CAP_TAGGED_MULTI },
	  .open = open_least },
	{ .name = "shared_other", shared_other, 1, 1, .open = open_shared, .close = close_shared },
	{ .name = "assist_256k", longer, 1, 1, .procs = 2, .len = 1 << 18, .shared = true },
	{ .name = "assist_4m", longer, 1, 1, .procs = 2, .len = MOST, .shared = true },
	{ .name = "no_cma", longer, 2, 3, .procs = 2, .len = LONG, .variable = "FI_WEFT_USE_CMA", .value = "no" },
	{ .name = "device_recv", device_recv, 2, 2, GPU, .device = true, .open = open_device, .close = close_device },
	{ .name = "device_send",
	  device_send,
	  2,
	  3,
	  GPU,
	  .procs = 2,
	  .device = true,
	  .open = open_device,
	  .close = close_device },
};

static void test_cell(long arg)
{
	struct node n;
	uint64_t was, now, most, i = 0, more = ROUNDS / 20; /* for what else has come meanwhile */
	char dir[64];

	cell = &cells[arg];
	if (!test_is_weft())
		SKIP("counters of weft");
	if (cell->apart) {
		NEED_WAY(WAY_UDP, "messages to another host");
		snprintf(dir, sizeof(dir), FOLDER ".%d", (int)getppid(), test_rank); /* of this process alone */
		CHECK(mkdir(dir, 0700) == 0);
		setenv("FI_WEFT_SHM_DIR", dir, 1);
	} else {
		NEED_WAY(WAY_MEMORY, "messages that enter no runtime");
	}
	if (cell->variable)
		setenv(cell->variable, cell->value, 1);
	if (cell->device)
		gpu_open();
	node_open(&n, &cell->o);
	node_connect(&n);
	if (cell->open)
		cell->open(&n);
	for (; i < WARM; i++)
		cell->round(&n, i);
	barrier(&n);
	was = entries(&n);
	posts = polls = posted = 0;
	for (; i < WARM + ROUNDS; i++)
		cell->round(&n, i);
	now = entries(&n) - was;
	most = cell->apart ? posted + polls : cell->most * ROUNDS;
	barrier(&n);
	if (cell->len >= LONG)
		more += ROUNDS * cell->len >> 22;
	EXPECTF(now + more >= cell->least * ROUNDS && (now <= most + more || (cell->shared && test_rank)),
		"%llu entries into the runtime in %d rounds", (unsigned long long)now, ROUNDS);
	EXPECTF(posted <= (test_rank ? 0 : posts) + more, "%llu entries of %llu posts", (unsigned long long)posted,
		(unsigned long long)posts);
	if (cell->close)
		cell->close(&n);
	node_close(&n);
}

int main(int argc, char **argv)
{
	char command[64];
	int rc;
	struct test tests[ARRAY_LEN(cells)];

	gpu_main(argv);
	for (size_t i = 0; i < ARRAY_LEN(cells); i++)
		tests[i] = (struct test){
			.name = cells[i].name, .run = test_cell, .procs = cells[i].procs, .arg = (long)i
		};
	rc = tests_main(argc, argv, tests, ARRAY_LEN(tests));
	snprintf(command, sizeof(command), "rm -rf " FOLDER ".*", (int)getpid()); /* also of tests that failed */
	return system(command) == 0 ? rc : 1;
}
