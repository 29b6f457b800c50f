/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEFT_TESTS_GROUP_H
#define WEFT_TESTS_GROUP_H

#include <rdma/fi_collective.h>

#include "common.h"

/* A group of collective operations, and this process's part in it. */
struct group {
	struct node n;
	struct fid_eq *eq;
	struct fid_av_set *set;
	struct fid_mc *mc;
	fi_addr_t addr;
	size_t size, rank; /* members; this process, size if it is none */
};

/* Opens an endpoint that has collective operations, and notifies it of all ranks; skips the test
 * where there are none. */
void group_open(struct group *g);

/* The same with more capabilities and a mode of memory regions. */
void group_open_with(struct group *g, uint64_t caps, int mr_mode);
/* The same of an endpoint with options. */
void group_open_as(struct group *g, const struct node_opts *opts);
void group_close(struct group *g);

/* Joins the ranks from start on, each stride further. */
void group_join(struct group *g, size_t start, size_t stride);

/* Waits for the event of a join. */
void group_joined(struct group *g, struct fid_mc *mc, void *context);
void group_leave(struct group *g);

/* Joins all ranks, and leaves, after some have closed joins of theirs before these ended. */
void group_withdraw(struct group *g, long rounds);

/* Waits for the completion of context. */
void group_done(struct group *g, void *context);

/* The i-th number that a member gives, and the sum of all members'. */
uint64_t group_given(size_t rank, size_t i);
uint64_t group_sum(size_t size, size_t i);

/* Every operation of count numbers for a member, with the data checked. */
void group_every(struct group *g, size_t root_rank, fi_addr_t root, size_t count);

#endif
