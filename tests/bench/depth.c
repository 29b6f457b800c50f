/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The cost of a match while many receives are posted or many messages are
 * unexpected. Every entry has a tag of its own; ten at random are matched at a
 * time and then put back, so that the depth stays.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { PICK = 10, FIRST_TAG = 1000 };

/* pick chooses PICK different tags of depth; of PICK tags in order those are all. */
static void pick(struct shared *s, int depth, bool in_order)
{
	for (int i = 0; i < PICK; i++) {
		if (in_order) {
			s->picks[i] = (uint32_t)i;
			continue;
		}
		bool again;
		do {
			s->picks[i] = (uint32_t)(random() % depth);
			again = false;
			for (int j = 0; j < i; j++)
				again |= s->picks[j] == s->picks[i];
		} while (again);
	}
}

/* say starts step number n->last_turn for the other rank; hear waits for it. */
static void say(struct node *n)
{
	atomic_store(&n->shared->turn, ++n->last_turn);
}

static void hear(struct node *n)
{
	++n->last_turn;
	while (atomic_load(&n->shared->turn) < n->last_turn)
		poll_cq(n);
}

static void send_picks(struct node *n)
{
	for (int i = 0; i < PICK; i++)
		send_to(n, 0, 8, FIRST_TAG + n->shared->picks[i]);
	wait_sent(n);
}

static bool post_all(struct node *n, int depth)
{
	for (int i = 0; i < depth; i++)
		if (!try_post_recv(n, 8, FIRST_TAG + (uint64_t)i))
			return false;
	return true;
}

static void show(const char *kind, int depth)
{
	char name[40];

	snprintf(name, sizeof(name), "%s_%d_ns", kind, depth);
	report(name, quantile(0.5));
}

/* Rank 0 has depth receives posted; rank 1 sends to ten of them and says so;
 * only then rank 0 polls. In order of the receives each message is for the next one. */
static void posted_at(struct node *n, int depth, bool in_order)
{
	struct shared *s = n->shared;

	clear_samples();
	if (n->rank == 0)
		atomic_store(&s->answer, post_all(n, depth));
	meet(n);
	struct deadline end = deadline_in(n->opt->seconds);
	while (atomic_load(&s->answer)) {
		if (n->rank == 1) {
			hear(n);
			if (atomic_load(&s->stop))
				break;
			send_picks(n);
			say(n);
			continue;
		}
		pick(s, depth, in_order);
		atomic_store(&s->stop, passed(end));
		say(n);
		if (atomic_load(&s->stop))
			break;
		++n->last_turn;
		while (atomic_load(&s->turn) < n->last_turn)
			; /* no progress here: matching is what is timed */
		uint64_t t0 = ticks();
		wait_received(n, PICK);
		sample((double)(ticks() - t0) * tick_ns() / PICK);
		for (int i = 0; i < PICK; i++)
			post_recv(n, 8, FIRST_TAG + s->picks[i]);
		poll_cq(n);
	}
	if (n->rank == 0)
		show(in_order ? "posted_in_order" : "posted", depth);
	meet(n);
}

/* drain matches the posted receives of the shallow round. */
static void drain_posted(struct node *n, int depth)
{
	if (n->rank == 1)
		for (int i = 0; i < depth; i++)
			send_to(n, 0, 8, FIRST_TAG + (uint64_t)i);
	else
		wait_received(n, (uint64_t)depth);
	meet(n);
}

static void depth_open(struct node *n, int entries)
{
	node_open(n, &(struct wish){ .threading = FI_THREAD_DOMAIN, .rx_size = (size_t)entries });
	node_connect(n);
	post_recv(n, 8, 1); /* the first message may connect, which needs both sides */
	send_to(n, 1 - n->rank, 8, 1);
	wait_sent(n);
	wait_received(n, 1);
	meet(n);
}

void test_posted(struct node *n)
{
	depth_open(n, n->opt->depth + 2 * PICK);
	posted_at(n, PICK, true);
	drain_posted(n, PICK);
	posted_at(n, PICK, false);
	drain_posted(n, PICK);
	posted_at(n, n->opt->depth, false);
}

/* Rank 1 has sent depth messages that rank 0 holds; rank 0 posts receives for
 * ten of them, then rank 1 sends those again. A message with tag 1 that is
 * received after each batch says that the batch has arrived. */
static void unexpected_at(struct node *n, int depth)
{
	struct shared *s = n->shared;

	clear_samples();
	if (n->rank == 1)
		for (int i = 0; i < depth; i++)
			send_to(n, 0, 8, FIRST_TAG + (uint64_t)i);
	struct deadline end = { 0 };
	for (bool first = true;; first = false) {
		if (n->rank == 1) {
			send_to(n, 0, 8, 1);
			wait_sent(n);
			hear(n);
			if (atomic_load(&s->stop))
				break;
			send_picks(n);
			continue;
		}
		post_recv(n, 8, 1);
		wait_received(n, 1);
		if (first)
			end = deadline_in(n->opt->seconds);
		atomic_store(&s->stop, passed(end));
		pick(s, depth, false);
		if (!atomic_load(&s->stop)) {
			uint64_t t0 = ticks();
			for (int i = 0; i < PICK; i++)
				post_recv(n, 8, FIRST_TAG + s->picks[i]);
			wait_received(n, PICK);
			sample((double)(ticks() - t0) * tick_ns() / PICK);
		}
		say(n);
		if (atomic_load(&s->stop))
			break;
	}
	if (n->rank == 0)
		show("unexpected", depth);
}

void test_unexpected(struct node *n)
{
	depth_open(n, 4 * WINDOW);
	unexpected_at(n, PICK);
	meet(n);
	for (int i = 0; n->rank == 0 && i < PICK; i++) {
		post_recv(n, 8, FIRST_TAG + (uint64_t)i);
		wait_received(n, 1);
	}
	meet(n);
	unexpected_at(n, n->opt->depth);
	meet(n);
}
