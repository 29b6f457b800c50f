/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Time slices, which several providers take in turn.
 *
 * A machine whose speed changes from one second to the next makes the ratio of
 * two programs that run one after the other a matter of luck. Of slices of
 * SLICE_MS milliseconds every provider has one in the same state of the machine.
 * Another one begins each time, so that none always follows the same one.
 */
#include "bench.h"

static void pass_edges(struct node *n, int count)
{
	for (int i = 0; n->opt->provider_count > 1 && i < count; i++)
		pthread_barrier_wait(n->edge);
}

/* place is where this rank's provider comes this time. */
static int place(const struct node *n)
{
	return (n->provider + n->turns) % n->opt->provider_count;
}

/* begin_slice returns when the slice of this rank's provider has begun. */
void begin_slice(struct node *n)
{
	pass_edges(n, place(n) + 1);
}

/* end_slice returns when all providers have had theirs. */
void end_slice(struct node *n)
{
	pass_edges(n, n->opt->provider_count - place(n));
	n->turns++;
}
