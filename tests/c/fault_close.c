/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A target closes its endpoint as soon as it sees in its memory what was done to it. What it has performed
 * succeeds: from the call that posts it to its completion. Rank 0 posts, and a child of it stops it for a few
 * milliseconds meanwhile, as a busy machine does. Rank 1 is the target: an endpoint for each round, in which only
 * progress threads call the library. Its addresses come back between two hosts with few ports: a call to an
 * endpoint that lives never gives -FI_ECONNRESET.
 */
#include "common.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#define BYTES (64 << 10)
#define KEY 7
#define ROUNDS 200 /* WEFT_TEST_CLOSES for more */
#define STOP_US 4000
#define LATEST_US 100 /* after the post has begun it is stopped */
#define LIMIT_MS 20000

enum kind { WRITE, INJECT, ATOMIC, FETCH, PIECES, MESSAGE };

struct what {
	enum kind kind;
	size_t len;
};

static const struct what whats[] = {
	{ WRITE, 8 }, { WRITE, 4096 },	{ WRITE, BYTES }, { INJECT, 8 },     { ATOMIC, 8 },
	{ FETCH, 8 }, { PIECES, 4096 }, { MESSAGE, 8 },	  { MESSAGE, 4096 },
};

static struct node base;
static struct fid_mr *mr;
static char *memory, *local; /* BYTES, and 4096 in which the two meet */

static int rounds(void)
{
	const char *more = getenv("WEFT_TEST_CLOSES");

	return more ? atoi(more) : ROUNDS;
}

static void open_base(void)
{
	struct node_opts o = {
		.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC,
		.tx_flags = FI_DELIVERY_COMPLETE,
		.counters = true,
		.control = FI_PROGRESS_AUTO,
		.data = FI_PROGRESS_AUTO,
	};

	node_open(&base, &o);
	memory = calloc(1, BYTES + 4096);
	local = calloc(1, BYTES + 4096);
	CHECK(memory && local);
	OK(fi_mr_reg(base.domain, memory, BYTES + 4096, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL));
}

static void close_base(void)
{
	OK(fi_close(&mr->fid));
	node_close(&base);
	free(memory);
	free(local);
}

/* ---- the target ---- */

static void target(const struct what *w)
{
	size_t at = w->kind == ATOMIC || w->kind == FETCH ? 0 : w->len - 1;
	volatile char *flag = &memory[at];
	struct node_opts o = base.o;
	char next;

	for (int r = rounds(); r > 0; r--) {
		struct name name;
		struct node n;
		uint64_t end = now_ms() + LIMIT_MS;

		*flag = 0;
		node_open_on(&n, &base, &o);
		if (w->kind == MESSAGE)
			trecv(&n, memory, w->len, FI_ADDR_UNSPEC, 1, 0, memory);
		node_name(&n, &name);
		link_send(0, &name, sizeof(name));
		while (!*flag) {
			CHECKF(now_ms() < end, "nothing came with %d rounds to go", r);
			usleep(20);
		}
		OK(fi_close(&n.ep->fid));
		n.ep = NULL;
		link_recv(0, &next, 1);
		node_close(&n);
	}
}

/* ---- the initiator, and the child that stops it ---- */

static volatile int *posting; /* shared by the two; below 0: the child ends */

static pid_t start_stopper(void)
{
	pid_t parent = getpid(), child;
	uint64_t state = 1;

	posting = mmap(NULL, sizeof(*posting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(posting != MAP_FAILED);
	child = fork();
	CHECK(child >= 0);
	if (child)
		return child;
	for (; *posting >= 0 && getppid() == parent; usleep(20)) {
		for (uint64_t end = now_us() + 2000; !*posting && now_us() < end;)
			;
		if (*posting <= 0)
			continue;
		for (uint64_t end = now_us() + rnd(&state) % LATEST_US; now_us() < end;)
			;
		kill(parent, SIGSTOP);
		usleep(STOP_US);
		kill(parent, SIGCONT);
		for (uint64_t end = now_us() + 2000; *posting > 0 && now_us() < end;)
			;
	}
	_exit(0);
}

static ssize_t post_one(const struct what *w, fi_addr_t to, uint64_t *result)
{
	struct fid_ep *ep = base.ep;

	switch (w->kind) {
	case WRITE:
		return fi_write(ep, local, w->len, NULL, to, 0, KEY, local);
	case INJECT:
		return fi_inject_write(ep, local, w->len, to, 0, KEY);
	case ATOMIC:
		return fi_atomic(ep, local, 1, NULL, to, 0, KEY, FI_UINT64, FI_SUM, local);
	case FETCH:
		return fi_fetch_atomic(ep, local, 1, NULL, result, NULL, to, 0, KEY, FI_UINT64, FI_SUM, local);
	case PIECES: { /* two pieces */
		struct iovec iov = { local, w->len };
		struct fi_rma_iov there[] = { { 0, w->len / 2, KEY }, { w->len / 2, w->len - w->len / 2, KEY } };
		struct fi_msg_rma m = { .msg_iov = &iov,
					.iov_count = 1,
					.addr = to,
					.rma_iov = there,
					.rma_iov_count = ARRAY_LEN(there),
					.context = local };

		return fi_writemsg(ep, &m, FI_COMPLETION | FI_DELIVERY_COMPLETE);
	}
	case MESSAGE:
		return fi_tsend(ep, local, w->len, NULL, to, 1, local);
	}
	return -FI_EINVAL;
}

static ssize_t post_until(const struct what *w, fi_addr_t to, uint64_t *result)
{
	uint64_t end = now_ms() + LIMIT_MS;
	ssize_t rc;

	while ((rc = post_one(w, to, result)) == -FI_EAGAIN && now_ms() < end)
		progress(&base);
	return rc;
}

/* An injected write gives no completion, but an error would be one. */
static void ends(const struct what *w, int round)
{
	struct fi_cq_tagged_entry e;
	int rc = wait_for(&base, base.txcq, &e, w->kind == INJECT ? 5 : LIMIT_MS);

	EXPECTF(rc == (w->kind == INJECT ? 0 : 1), "round %d: completion %d (%s)", round, rc,
		fi_strerror(rc < 0 ? -rc : 0));
}

static void requester(const struct what *w)
{
	static const struct what meeting = { WRITE, 8 };
	uint64_t result = 0;
	fi_addr_t to;

	memset(local, 1, BYTES);
	for (int r = 0; r < rounds(); r++) {
		struct name name;
		ssize_t rc;

		link_recv(1, &name, sizeof(name));
		to = node_insert_name(&base, &name);
		do { /* they meet at memory that the target does not watch */
			rc = fi_write(base.ep, local, 8, NULL, to, BYTES, KEY, local);
			CHECKF(rc == 0 || rc == -FI_EAGAIN, "round %d: call to an endpoint that lives: %zd (%s)", r, rc,
			       fi_strerror((int)-rc));
			progress(&base);
		} while (rc);
		ends(&meeting, r);
		usleep(500); /* the target's thread sleeps by then */
		*posting = 1;
		rc = post_until(w, to, &result);
		EXPECTF(rc == 0, "round %d: the call gives %zd (%s)", r, rc, fi_strerror((int)-rc));
		if (rc == 0)
			ends(w, r);
		*posting = 0;
		OK(fi_av_remove(base.av, &to, 1, 0));
		link_send(1, "n", 1);
	}
}

static void test_close(long arg)
{
	const struct what *w = &whats[arg];

	if (test_rank == 0) {
		pid_t stopper = start_stopper();

		open_base();
		requester(w);
		*posting = -1;
		CHECK(waitpid(stopper, NULL, 0) == stopper);
	} else {
		open_base();
		target(w);
	}
	close_base();
}

static const struct test tests[] = {
	{ "write", test_close, .procs = 2, .arg = 0 },	      { "write_4k", test_close, .procs = 2, .arg = 1 },
	{ "write_64k", test_close, .procs = 2, .arg = 2 },    { "inject_write", test_close, .procs = 2, .arg = 3 },
	{ "atomic", test_close, .procs = 2, .arg = 4 },	      { "fetch_atomic", test_close, .procs = 2, .arg = 5 },
	{ "write_pieces", test_close, .procs = 2, .arg = 6 }, { "message", test_close, .procs = 2, .arg = 7 },
	{ "message_4k", test_close, .procs = 2, .arg = 8 },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
