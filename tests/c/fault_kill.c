/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kill -9 at random instants. Rank 0 survives; rank 1 never opens anything but starts the victims
 * and kills them (victim.c); rank 2 is a peer that stays. After each death every operation of the
 * survivor has ended; what arrived came once, in order and whole, and only messages that were to be
 * fetched from the dead one did not; it talks to rank 2 as before; and in the end no file of the
 * dead is left.
 */
#include "common.h"

#include <sys/socket.h>

#include "shmdir.h"
#include "victim.h"

#define LIMIT_MS 30000	     /* for the survivor to notice */
#define ROUND_MAX (4u << 20) /* messages of one victim */

struct slot {
	char *buf;
	bool busy;
	uint64_t number; /* a receive's place among those of this victim */
};

static struct node n;
static struct slot slots[VICTIM_WINDOW];
static uint64_t posted;	  /* receives from this victim; lowered by those that were cancelled */
static uint32_t *came;	  /* by receive: the number of its message plus one, 0: it ended with an error */
static uint64_t received; /* whole messages, of all victims */
static uint64_t errors;	  /* operations that ended with FI_ECONNRESET */
static uint32_t serial;	  /* of the victim */

static bool dead_yet(void)
{
	struct victim_note msg;
	ssize_t got = recv(link_fd(1), &msg, sizeof(msg), MSG_DONTWAIT);

	if (got < 0)
		return false;
	if ((size_t)got < sizeof(msg))
		link_recv(1, (char *)&msg + got, sizeof(msg) - (size_t)got);
	CHECK(msg.kind == 'd');
	return true;
}

/* One completion frees its slot. An error must say that the peer is gone, or be a cancellation. */
static bool reap(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry e;
	int rc = wait_for(&n, cq, &e, 0);
	struct slot *s = rc > 0 ? e.op_context : n.err.op_context;

	if (rc == 0)
		return false;
	CHECKF(s >= slots && s < slots + VICTIM_WINDOW, "completion of an unknown context %p", (void *)s);
	CHECKF(s->busy, "slot %zd completed twice", s - slots);
	s->busy = false;
	if (rc == -FI_ECANCELED && cq == n.rxcq) {
		posted = s->number < posted ? s->number : posted;
		return true;
	}
	if (rc < 0) {
		CHECKF(rc == -FI_ECONNRESET, "error completion %d (%s)", -rc, fi_strerror(-rc));
		errors++;
		return true;
	}
	if (cq == n.rxcq) {
		came[s->number] = 1 + victim_check(s->buf, e.len, serial);
		received++;
	}
	return true;
}

static void post_slot(struct slot *s)
{
	CHECK(posted < ROUND_MAX);
	s->busy = true;
	s->number = posted++;
	came[s->number] = 0;
	trecv(&n, s->buf, VICTIM_MAX, FI_ADDR_UNSPEC, VICTIM_TO_US, 0, s);
}

/* What the dead one sent is in our ring. When it is read, no receive can match any more. What reads the
 * ring may be a progress thread, which polls do not wait for: then it is quiet for a while. */
static void drain(void)
{
	const char *thread = getenv("FI_WEFT_PROGRESS_THREAD");
	uint64_t calm = thread && !strcmp(thread, "yes") ? 50 : 0, end = now_ms() + calm;

	for (int quiet = 0; quiet < 500 || now_ms() < end; quiet++)
		if (reap(n.rxcq)) {
			quiet = 0;
			end = now_ms() + calm;
		}
}

/* Everything that is pending ends, one way or the other, in bounded time. */
static void settle(bool receives)
{
	uint64_t end = now_ms() + LIMIT_MS;

	for (struct slot *s = slots; s < slots + VICTIM_WINDOW; s++) {
		while (s->busy) {
			if (receives) {
				int rc = fi_cancel(&n.ep->fid, s);

				CHECK(rc == 0 || rc == -FI_EAGAIN || rc == -FI_ENOENT);
			}
			for (int spin = 0; spin < 1000 && s->busy; spin++)
				reap(receives ? n.rxcq : n.txcq);
			CHECKF(now_ms() < end, "a %s of the dead does not end", receives ? "receive" : "send");
		}
	}
}

/* Receives from the victim until it is dead. */
static void take_from(void)
{
	while (!dead_yet())
		for (struct slot *s = slots; s < slots + VICTIM_WINDOW; s++) {
			if (!s->busy)
				post_slot(s);
			reap(n.rxcq);
		}
	drain();
	settle(true);
}

/* Sends to the victim until it is dead, and then until that shows. */
static void give_to(fi_addr_t to, uint64_t *seed)
{
	bool dead = false, notified = false;
	uint64_t end = 0, number = 0, before = errors;

	while (!notified) {
		for (struct slot *s = slots; s < slots + VICTIM_WINDOW && !notified; s++) {
			struct op o = { .tagged = true, .buf = s->buf, .addr = to, .tag = VICTIM_FROM_US, .ctx = s };
			ssize_t rc;

			reap(n.txcq);
			notified = dead && errors > before;
			if (s->busy)
				continue;
			o.len = victim_fill(s->buf, serial, number);
			rc = op_send(n.ep, &o);
			CHECKF(rc == 0 || rc == -FI_EAGAIN || rc == -FI_ECONNRESET || rc == -FI_EHOSTUNREACH,
			       "send = %zd (%s)", rc, fi_strerror((int)-rc));
			s->busy = rc == 0;
			number += rc == 0;
			notified |= dead && rc < 0 && rc != -FI_EAGAIN;
			if (rnd(seed) % 8 == 0)
				usleep(50); /* two cores: let it receive */
		}
		if (!dead && dead_yet()) {
			dead = true;
			end = now_ms() + LIMIT_MS;
		}
		CHECKF(!dead || notified || now_ms() < end, "sending to the dead still works");
	}
	settle(false);
}

/* Whether a message may be fetched from its sender: a long one, or one of up to the inject size that found
 * no bounce buffer for some time, because the survivor was not running. */
static bool may_be_fetched(size_t len)
{
	return len > 8192 || (len > 104 && len <= 4096);
}

/* Receives match in the order of posting, messages in that of sending: so the numbers rise. A message
 * between them that did not come must be one that is fetched from its sender. */
static void check_order(void)
{
	uint32_t next = 0;

	for (uint64_t r = 0; r < posted; r++) {
		if (came[r] == 0)
			continue;
		CHECKF(came[r] > next, "message %u came after %u", came[r] - 1, next - 1);
		for (uint32_t lost = next; lost < came[r] - 1; lost++)
			CHECKF(may_be_fetched(victim_length(serial, lost)), "message %u of %zu bytes is lost, %u came",
			       lost, victim_length(serial, lost), came[r] - 1);
		next = came[r];
	}
}

/* Messages of the dead that nothing had posted a receive for: each is whole, or an error. One that is
 * fetched ends when the death shows, which drain does not wait for, and has others behind it: only a
 * receive that could be cancelled, which lowers posted, has found none. */
static void clear_unexpected(void)
{
	uint64_t end = now_ms() + LIMIT_MS, before;

	do {
		before = posted;
		post_slot(&slots[0]);
		drain();
		settle(true);
		CHECKF(now_ms() < end, "messages of the dead never end");
	} while (posted > before);
	check_order();
}

static void talk_to_peer(void)
{
	char *in = slots[0].buf, *out = slots[1].buf;

	for (uint64_t i = 0; i < VICTIM_TALKS; i++) {
		size_t len = i % 2 ? 80000 : 16;

		trecv(&n, in, VICTIM_MAX, n.peer[2], 7, 0, in);
		fill(out, len, i);
		tsend(&n, out, len, n.peer[2], 6, out);
		wait_ctx(&n, n.txcq, out);
		wait_ctx(&n, n.rxcq, in);
		verify(in, len, i);
	}
}

static void survivor(long mode)
{
	struct victim_note msg;
	uint64_t seed = 1, kills = 0;

	for (struct slot *s = slots; s < slots + VICTIM_WINDOW; s++)
		CHECK((s->buf = calloc(1, VICTIM_MAX)) != NULL);
	CHECK((came = calloc(ROUND_MAX, sizeof(*came))) != NULL);
	for (;; kills++) {
		fi_addr_t to;

		link_recv(1, &msg, sizeof(msg));
		if (msg.kind == 'e')
			break;
		CHECK(msg.kind == 'n');
		serial = msg.serial;
		posted = 0;
		to = node_insert_name(&n, &msg.name);
		link_send(1, "g", 1);
		if (mode == VICTIM_RECEIVES || (mode == VICTIM_BOTH && serial % 2))
			give_to(to, &seed);
		else
			take_from();
		clear_unexpected();
		OK(fi_av_remove(n.av, &to, 1, 0));
		talk_to_peer();
		link_send(1, "o", 1);
	}
	note("%llu kills, %llu whole messages received, %llu operations ended with FI_ECONNRESET",
	     (unsigned long long)kills, (unsigned long long)received, (unsigned long long)errors);
}

/* The peer that stays: echoes until the survivor says that it is over. */
static void echo(void)
{
	struct fi_cq_tagged_entry e;
	char *buf = malloc(VICTIM_MAX);

	CHECK(buf != NULL);
	for (;;) {
		trecv(&n, buf, VICTIM_MAX, FI_ADDR_UNSPEC, 6, 0, buf);
		wait_ok(&n, n.rxcq, &e);
		if (e.len == 0)
			break;
		tsend(&n, buf, e.len, n.peer[0], 7, buf);
		wait_ctx(&n, n.txcq, buf);
	}
	free(buf);
}

/* Rank 0 and 2 know each other, rank 1 knows rank 0. */
static void meet(void)
{
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV };
	struct name own, other;
	int peer = 2 - test_rank;

	node_open(&n, &o);
	node_name(&n, &own);
	link_send(peer, &own, sizeof(own));
	link_recv(peer, &other, sizeof(other));
	n.peer[peer] = node_insert_name(&n, &other);
	if (test_rank == 0)
		link_send(1, &own, sizeof(own));
}

static void leave(void)
{
	struct node_opts o = n.o;
	int left;

	tsend(&n, slots[0].buf, 0, n.peer[2], 6, &slots[0]);
	wait_ctx(&n, n.txcq, &slots[0]);
	barrier(&n);
	node_close(&n);
	barrier(NULL);
	node_open(&n, &o); /* opening searches for leftovers */
	node_close(&n);
	left = shmdir_count();
	CHECKF(left <= 0, "%d files are left", left);
	shmdir_remove();
}

static void test_kill(long mode)
{
	setenv("FI_WEFT_PEER_CHECK_INTERVAL", "20ms", 0);
	setenv("FI_WEFT_CONNECT_TIMEOUT", "500ms", 0); /* one that was killed before it was met */
	if (mode & VICTIM_FRAGMENTS)
		setenv("FI_WEFT_USE_CMA", "no", 1);
	mode &= ~VICTIM_FRAGMENTS;
	if (test_role()[0]) {
		victim(mode);
		return;
	}
	shmdir_make();
	if (test_rank == 1) {
		victim_killer(mode);
		barrier(NULL);
		barrier(NULL);
		return;
	}
	meet();
	if (test_rank == 0) {
		survivor(mode);
		leave();
		return;
	}
	echo();
	barrier(&n);
	node_close(&n);
	barrier(NULL);
}

/* A peer that has only received: the receive that names it ends with it, however it ends. */
static void test_silent(long kill_it)
{
	struct node_opts o = { .caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV };
	char in[8], out[8] = "silent";

	node_open(&n, &o);
	node_connect(&n);
	if (test_rank == 1) {
		trecv(&n, in, sizeof(in), FI_ADDR_UNSPEC, 6, 0, in);
		wait_ctx(&n, n.rxcq, in);
		barrier(&n);
		if (kill_it)
			_exit(0); /* without a word */
		node_close(&n);
		return;
	}
	trecv(&n, in, sizeof(in), n.peer[1], 5, 0, in);
	tsend(&n, out, sizeof(out), n.peer[1], 6, out);
	wait_ctx(&n, n.txcq, out);
	barrier(&n);
	wait_err(&n, n.rxcq, FI_ECONNRESET);
	CHECK(n.err.op_context == in);
	node_close(&n);
}

static const struct test tests[] = {
	{ "silent_killed", test_silent, 2, 60, true },
	{ "silent_closed", test_silent, 2, 60, false }, /* behind it: its processes remove the killed one's page */
	{ "sender", test_kill, 3, 120, VICTIM_SENDS },
	{ "receiver", test_kill, 3, 120, VICTIM_RECEIVES },
	{ "both_ways", test_kill, 3, 120, VICTIM_BOTH },
	{ "fragments", test_kill, 3, 120, VICTIM_BOTH | VICTIM_FRAGMENTS },
	{ "opening", test_kill, 3, 120, VICTIM_OPENS },
};

int main(int argc, char **argv)
{
	return tests_main(argc, argv, tests, ARRAY_LEN(tests));
}
