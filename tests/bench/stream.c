/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Between two ranks: latency, message rate, bandwidth, an idle queue's poll.
 */
#include <stdio.h>

#include "bench.h"

enum { BATCH = 50 };

typedef void batch_fn(struct node *n, size_t bytes, int count);

/* A cache line goes from core to core and back: what no provider can beat. */
void test_hop(struct node *n)
{
	_Atomic uint64_t *line = &n->shared->hop;
	const uint64_t hops = 200, me = (uint64_t)n->rank;

	clear_samples();
	for (uint64_t batch = 0; batch < 2000; batch++) {
		uint64_t t0 = ticks();
		for (uint64_t i = batch * hops; i < (batch + 1) * hops; i += 2) {
			while (atomic_load_explicit(line, memory_order_acquire) != i + me)
				;
			atomic_store_explicit(line, i + me + 1, memory_order_release);
		}
		sample((double)(ticks() - t0) * tick_ns() / (double)hops);
	}
	if (n->rank == 0)
		report("hop_ns", quantile(0.5));
}

/* round_trips does count round trips. A receive for a message of any size is
 * posted before and after. */
static void round_trips(struct node *n, size_t bytes, int count)
{
	int other = 1 - n->rank;

	for (int i = 0; i < count; i++) {
		if (n->rank == 0)
			send_to(n, other, bytes, 1);
		wait_received(n, 1);
		post_recv(n, BUFFER_BYTES, 1);
		if (n->rank == 1)
			send_to(n, other, bytes, 1);
		wait_sent(n);
	}
}

/* agree lets rank 0 say how often both ranks do something next, 0 for the end.
 * Rank 0 may be some turns ahead. */
int agree(struct node *n, int count)
{
	struct shared *s = n->shared;
	uint64_t turn = ++n->last_turn;

	if (n->rank == 0) {
		while (turn - atomic_load(&s->taken) > TURNS)
			poll_cq(n);
		atomic_store(&s->turns[turn % TURNS], count);
		atomic_store(&s->turn, turn);
		return count;
	}
	while (atomic_load(&s->turn) < turn)
		poll_cq(n);
	count = atomic_load(&s->turns[turn % TURNS]);
	atomic_store(&s->taken, turn);
	return count;
}

/* time_batches calls a batch of so many round trips or windows again and again
 * in a time slice of this provider, whose samples are kept alone. The first is not
 * timed. A sample is the time of a batch in nanoseconds times scale. */
static void time_batches(struct node *n, batch_fn *run, size_t bytes, int count, double scale)
{
	clear_samples();
	begin_slice(n);
	run(n, bytes, count);
	struct deadline end = deadline_in(n->opt->slice);
	while (agree(n, passed(end) ? 0 : count)) {
		uint64_t t0 = ticks();
		run(n, bytes, count);
		sample((double)(ticks() - t0) * tick_ns() * scale);
	}
	end_slice(n);
}

/* single_trips is a batch of round trips each of which is a sample. */
static void single_trips(struct node *n, size_t bytes)
{
	for (int i = 0; i < 1000; i++) {
		uint64_t t0 = ticks();
		round_trips(n, bytes, 1);
		sample((double)(ticks() - t0) * tick_ns() / 2e3);
	}
}

/* Batches for the median; then single round trips for the tail, because a
 * batch would hide it and the clock's own cost shows in a single one. */
void pingpong(struct node *n, size_t bytes, const char *median, const char *tail)
{
	int batch = bytes > 65536 ? 5 : BATCH;

	meet(n);
	for (int i = 0; i < n->opt->slices; i++) {
		time_batches(n, round_trips, bytes, batch, 0.5e-3 / batch);
		if (n->rank == 0)
			report(median, quantile(0.5));
	}
	if (!tail)
		return;
	clear_samples();
	for (int i = 0; i < n->opt->slices; i++) {
		begin_slice(n);
		struct deadline end = deadline_in(n->opt->slice);
		while (agree(n, passed(end) ? 0 : 1))
			single_trips(n, bytes);
		end_slice(n);
	}
	static const struct {
		const char *name;
		double q;
	} tails[] = { { "99", 0.99 }, { "999", 0.999 }, { "9999", 0.9999 } };
	for (int i = 0; n->rank == 0 && i < 3; i++) {
		char name[64];
		snprintf(name, sizeof(name), "%s_p%s_us", tail, tails[i].name);
		report(name, quantile(tails[i].q));
	}
}

void test_pingpong(struct node *n)
{
	node_open(n, &(struct wish){ .threading = FI_THREAD_DOMAIN });
	node_connect(n);
	post_recv(n, BUFFER_BYTES, 1);
	pingpong(n, 8, "pingpong_8_us", "pingpong_8");
	pingpong(n, 4096, "pingpong_4096_us", NULL);
	pingpong(n, 65536, "pingpong_65536_us", NULL);
	pingpong(n, 1048576, "pingpong_1048576_us", NULL);
}

/* windows sends count windows of messages from rank 0 to rank 1, each answered
 * by an empty message once it has arrived and its receives are posted again. */
static void windows(struct node *n, size_t bytes, int count)
{
	for (int w = 0; w < count; w++) {
		if (n->rank == 0) {
			for (int i = 0; i < WINDOW; i++)
				send_to(n, 1, bytes, 1);
			wait_sent(n);
			wait_received(n, 1);
			post_recv(n, 0, 2);
			continue;
		}
		for (uint64_t posted = 0; posted < WINDOW;) {
			poll_cq(n);
			for (; posted < n->rx_done - n->rx_want; posted++)
				post_recv(n, BUFFER_BYTES, 1);
		}
		n->rx_want += WINDOW;
		send_to(n, 0, 0, 2);
	}
}

void stream_open(struct node *n)
{
	node_open(n, &(struct wish){ .threading = FI_THREAD_DOMAIN });
	node_connect(n);
	if (n->rank == 0)
		post_recv(n, 0, 2);
	else
		for (int i = 0; i < WINDOW; i++)
			post_recv(n, BUFFER_BYTES, 1);
}

/* stream_figures reports per divided by the median time of a message in nanoseconds. */
void stream_figures(struct node *n, size_t bytes, int batch, double per, const char *name)
{
	meet(n);
	for (int i = 0; i < n->opt->slices; i++) {
		time_batches(n, windows, bytes, batch, 1.0 / batch / WINDOW);
		if (n->rank == 0)
			report(name, per / quantile(0.5));
	}
}

/* rate measures messages of 8 bytes on a node that is not open yet, so many
 * windows at a time. */
void rate(struct node *n, int batch, const char *name)
{
	stream_open(n);
	stream_figures(n, 8, batch, 1e3, name);
}

void test_rate(struct node *n)
{
	rate(n, 20, "rate_8_mps");
}

void test_bandwidth(struct node *n)
{
	static const size_t sizes[] = { 65536, 1048576 };

	stream_open(n);
	for (int i = 0; i < 2; i++) {
		char name[32];
		snprintf(name, sizeof(name), "bandwidth_%zu_mbps", sizes[i]);
		stream_figures(n, sizes[i], 1, (double)sizes[i] * 1e3, name);
	}
}

/* An endpoint is bound and knows a peer, but nothing is under way. */
void test_cq_read(struct node *n)
{
	node_open(n, &(struct wish){ .threading = FI_THREAD_DOMAIN });
	node_connect(n);
	if (n->rank == 0) {
		struct fi_cq_tagged_entry e[16];
		struct deadline end = deadline_in(n->opt->seconds);

		clear_samples();
		while (!passed(end)) {
			uint64_t t0 = ticks();
			for (int i = 0; i < 1000; i++)
				if (fi_cq_read(n->cq, e, 16) != -FI_EAGAIN)
					die("fi_cq_read of an idle queue", -FI_EOTHER);
			sample((double)(ticks() - t0) * tick_ns() / 1000);
		}
		report("cq_read_empty_ns", quantile(0.5));
	}
	meet(n);
}
