/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Notifications (weft/token.h) beside tagged messages, in turn: a write with one there and back, and notifications
 * alone one after the other.
 */
#include <string.h>

#include "bench.h"

enum {
	NOTE_BYTES = 32,
	MOVED = 4096,
	TRIPS = 20,
	MANY = 2000,
	BATCHES = 2000,
};

struct notified {
	struct weft_token_ops *t;
	struct weft_remote *remote;
	struct weft_remote_info info;
	struct weft_list *list;
	char note[NOTE_BYTES];
};

/* Each rank has a token of the other's receive buffer, and a list that writes to it. False: the provider has no
 * tokens. */
static bool open_notified(struct node *n, struct notified *w)
{
	struct weft_local_piece here = { .len = MOVED };
	struct weft_remote_piece there = { .len = MOVED };
	struct fid_mr *mr;

	node_open(n, &(struct wish){ .threading = FI_THREAD_DOMAIN, .one_sided = true });
	if (fi_open_ops(&n->ep->fid, WEFT_TOKEN_OPS, 0, (void **)&w->t, NULL))
		return false;
	node_connect(n);
	must(fi_mr_reg(n->domain, n->rx, BUFFER_BYTES, FI_REMOTE_WRITE, 0, 1, 0, &mr, NULL), "fi_mr_reg");
	share_token(n, w->t, mr);
	meet(n);
	w->remote = open_token(n, w->t);
	must(w->t->info(w->remote, &w->info, sizeof(w->info)), "info");
	here.addr = n->tx;
	there.remote = w->remote;
	there.addr = w->info.base;
	must(w->t->list(n->ep, &here, &there, 1, 0, &w->list), "list");
	return true;
}

/* Calls until there is room, and waits for the end. */
#define RUN(n, call) \
	do { \
		ssize_t ret_; \
		while ((ret_ = (call)) == -FI_EAGAIN) \
			poll_cq(n); \
		if (ret_) \
			die(#call, (int)ret_); \
		(n)->sent++; \
	} while (0)

static void take(struct node *n, struct notified *w, int count)
{
	char data[16][NOTE_BYTES];
	struct weft_note e[16];
	ssize_t got;

	for (int i = 0; i < 16; i++)
		e[i] = (struct weft_note){ .data = data[i], .size = NOTE_BYTES };
	for (; count; count -= (int)got) {
		got = w->t->notes(n->ep, e, count < 16 ? (size_t)count : 16);
		if (got < 0)
			die("notes", (int)got);
	}
}

static void note_trips(struct node *n, struct notified *w)
{
	for (int i = 0; i < TRIPS; i++) {
		if (n->rank == 1)
			take(n, w, 1);
		RUN(n, w->t->post(w->list, WEFT_WRITE, NULL, 0, w->note, NOTE_BYTES, 0, next_context(n)));
		if (n->rank == 0)
			take(n, w, 1);
		wait_sent(n);
	}
}

static void message_trips(struct node *n, struct notified *w)
{
	(void)w;
	for (int i = 0; i < TRIPS; i++) {
		if (n->rank == 0)
			send_to(n, 1, MOVED, 1);
		wait_received(n, 1);
		post_recv(n, BUFFER_BYTES, 1);
		if (n->rank == 1)
			send_to(n, 0, MOVED, 1);
		wait_sent(n);
	}
}

static void many_notes(struct node *n, struct notified *w)
{
	if (n->rank == 1) {
		take(n, w, MANY);
		return;
	}
	for (int i = 0; i < MANY; i++)
		RUN(n, w->t->notify(n->ep, w->info.addr, 7, w->note, NOTE_BYTES, 0, next_context(n)));
	wait_sent(n);
}

static void many_messages(struct node *n, struct notified *w)
{
	ssize_t ret;

	(void)w;
	if (n->rank == 1) {
		for (uint64_t posted = 0; posted < MANY;) {
			poll_cq(n);
			for (; posted < n->rx_done - n->rx_want; posted++)
				post_recv(n, BUFFER_BYTES, 1);
		}
		n->rx_want += MANY;
		return;
	}
	for (int i = 0; i < MANY; i++) {
		while ((ret = fi_tsend(n->ep, n->tx, NOTE_BYTES, NULL, n->peer[1], 1, next_context(n))) == -FI_EAGAIN)
			poll_cq(n);
		if (ret)
			die("fi_tsend", (int)ret);
		n->sent++;
	}
	wait_sent(n);
}

/* Two kinds in turn until the time is over, each answered by the other rank when it has all. A sample is the time of
 * the whole batch. */
static void in_turn(struct node *n, struct notified *w, void (*const run[2])(struct node *, struct notified *),
		    double scale, const char *const names[2])
{
	static double took[2][BATCHES];
	struct deadline end = deadline_in(n->opt->seconds);
	int rounds = 0;

	while (agree(n, rounds < BATCHES && (rounds < 8 || !passed(end)))) {
		for (int k = 0; k < 2; k++) {
			uint64_t t0;

			meet(n);
			t0 = ticks();
			run[k](n, w);
			meet(n);
			took[k][rounds % BATCHES] = (double)(ticks() - t0) * tick_ns() * scale;
		}
		rounds++;
	}
	for (int k = 0; n->rank == 0 && k < 2; k++) {
		clear_samples();
		for (int i = 0; i < rounds; i++)
			sample(took[k][i]);
		report(names[k], quantile(0.5));
	}
}

void test_note(struct node *n)
{
	struct notified w = { 0 };

	if (!open_notified(n, &w))
		return;
	for (int i = 0; i < WINDOW; i++)
		post_recv(n, BUFFER_BYTES, 1);
	in_turn(n, &w, (void (*const[2])(struct node *, struct notified *)){ note_trips, message_trips },
		0.5e-3 / TRIPS, (const char *const[2]){ "note_write_4096_us", "note_pingpong_4096_us" });
	in_turn(n, &w, (void (*const[2])(struct node *, struct notified *)){ many_notes, many_messages }, 1.0 / MANY,
		(const char *const[2]){ "note_alone_ns", "note_message_ns" });
	must(fi_close(&w.list->fid), "close list");
	must(fi_close(&w.remote->fid), "close remote");
}
