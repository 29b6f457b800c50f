/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Collective operations that libfabric has not, for the groups of
 * fi_join_collective(3), through fi_open_ops (fi_domain(3)) on an endpoint. A
 * program needs this header and nothing to link:
 *
 *	struct weft_coll_ops *coll;
 *
 *	if (!fi_open_ops(&ep->fid, WEFT_COLL_OPS, 0, (void **)&coll, NULL))
 *		coll->alltoallv(ep, &(struct weft_alltoallv){ .size = sizeof(struct weft_alltoallv), ... });
 *
 * Other providers give -FI_ENOSYS.
 */
#ifndef WEFT_COLL_H
#define WEFT_COLL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

/* The name of these operations. What changes in a way that breaks programs gets
 * another name; members are added at the end of the structures only, and their
 * sizes say which there are. */
#define WEFT_COLL_OPS "weft_coll_1"

/* In the place of buf: what result holds is given, and replaced. */
#define WEFT_IN_PLACE ((const void *)-1)

/* An all-to-all of parts of different lengths. The arrays have an entry for each
 * member, in the order of the group's address vector set, and are the caller's again
 * when the call returns; the buffers are when the operation has completed. Counts and
 * displacements are in elements. A count of 0 is allowed, its displacement means
 * nothing. */
struct weft_alltoallv {
	size_t size; /* of this structure, bytes */
	size_t elem; /* bytes of an element, 1 and more */

	const void *buf;		 /* what is given, or WEFT_IN_PLACE */
	void *desc;			 /* as of fi_alltoall */
	const uint64_t *counts, *displs; /* of buf: for each member; not used in place */

	void *result; /* what is got; its parts do not overlap, nor buf */
	void *result_desc;
	const uint64_t *result_counts, *result_displs; /* from each member */

	fi_addr_t coll_addr; /* fi_mc_addr of the group */
	uint64_t flags;	     /* as of fi_alltoall */
	void *context;

	/* Counts the other members whose parts are all in result: each once, and not before its last byte
	 * is there, whatever the transport; a member with a count of 0 counts when the operation begins. Those of
	 * which bytes are missing when it ends with an error count as errors. A counter of completions of the
	 * endpoint's domain, which stays open until all have been counted, or NULL. Threads that read it or wait for it
	 * make progress of the domain's endpoints; it needs no fi_ep_bind. Programs whose size ends before it
	 * have none. */
	struct fid_cntr *arrived;
};

/* What became of a member's part in the last all-to-all, or alltoallv, of a group that went in an order
 * that followed the network and has completed there. Times are in ns since it began at this member, rates
 * in bytes per second; 0: not known. */
struct weft_coll_peer {
	uint64_t first, last;		   /* when the first and the last chunk was sent to this rank */
	uint64_t received;		   /* when all of its slice was here */
	uint64_t chunks, deferrals, began; /* sent; when it gave way to others; when they began with it again */
	uint64_t queue, rate;		   /* delay of its path above the least, and what that delivered */
};

struct weft_coll_report {
	size_t size;		      /* of this structure, bytes: set by the caller, as the next four */
	fi_addr_t coll_addr;	      /* of the group */
	struct weft_coll_peer *peers; /* room for count ranks, or NULL */
	size_t peer_size;	      /* of struct weft_coll_peer, bytes: a multiple of 8 */
	size_t count;

	uint64_t took;			    /* ns */
	uint64_t bound;			    /* ns that the own link alone would have taken */
	uint64_t out, in, received;	    /* bytes to send, to receive, and received */
	uint64_t chunks, forced, deferrals; /* forced: after too long a wait, or not to have the link idle */
	uint64_t credits, invited;	    /* received and given */
	uint64_t relayed, carried, again;   /* own bytes by others, others' by this one, pieces sent again */
	uint64_t forged;		    /* messages that no member sends: dropped */
	uint64_t most;			    /* peers at a time */
	uint64_t out_rate, in_rate;	    /* of the own link */
};

/* What is measured of the path to a peer. Times are in ns. */
struct weft_coll_path {
	size_t size;			    /* of this structure, bytes: set by the caller */
	uint64_t base, smoothed, deviation; /* round-trip times (RFC 6298) */
	uint64_t queue;			    /* smoothed above base */
	uint64_t rate;			    /* bytes per second that the congestion window lets through */
	uint64_t samples, lost;		    /* round-trip times, and packets without an answer */
	uint64_t age;			    /* of the last of them */
};

/* An alltoallv that is started again and again. */
struct weft_alltoallv_req;

struct weft_coll_ops {
	size_t size; /* of this structure, bytes */

	/* Begins one. Every member of the group calls it, in the same order as all
	 * other operations of the group; it completes as fi_alltoall does. Returns 0;
	 * -FI_EAGAIN when as many operations as possible are under way; -FI_EINVAL for
	 * a structure that is too small, arrays or buffers that are NULL, an elem of 0,
	 * or what is no group of the endpoint; -FI_EMSGSIZE beyond 2^40 bytes, -FI_EBADFLAGS,
	 * -FI_EOPBADSTATE, -FI_ENOMEM, -FI_EOPNOTSUPP for device memory; -FI_EDOMAIN for a counter of another
	 * domain and -FI_EINVAL for one of bytes. Nothing is
	 * written then. Where a member expects another number of elements than it is sent,
	 * the operation completes with FI_ETRUNC there, and the log names rank and lengths;
	 * so it does at all members that have not completed it by then. */
	ssize_t (*alltoallv)(struct fid_ep *ep, const struct weft_alltoallv *args);

	/* Prepares one that is started any number of times: init sends nothing and returns the
	 * errors of alltoallv but -FI_EAGAIN. The arrays are the caller's again then; the buffers
	 * belong to each operation from its start to its completion, and stay mapped until free: they
	 * may be registered for the members from the first start on. start begins one, as alltoallv
	 * does and with its errors, when the last has completed. free is for a request that is not
	 * under way. A request that was freed, or NULL, gives -FI_EINVAL. */
	int (*alltoallv_init)(struct fid_ep *ep, const struct weft_alltoallv *args, struct weft_alltoallv_req **req);
	ssize_t (*alltoallv_start)(struct weft_alltoallv_req *req);
	int (*alltoallv_free)(struct weft_alltoallv_req *req);

	/* Fills a report, and what was of each rank if peers is not NULL; the own rank's is 0. Returns 0;
	 * -FI_ENODATA before the first such operation, or when peers is not NULL and the next one has failed;
	 * -FI_EAGAIN when peers is not NULL and the next one is under way; -FI_EINVAL for a structure that is too
	 * small, too few peers, or what is no group of the endpoint; -FI_EOPBADSTATE on an endpoint without
	 * collective operations. */
	int (*report)(struct fid_ep *ep, struct weft_coll_report *report);

	/* Fills what is measured of the path to a peer. Returns 0; -FI_ENODATA when nothing is yet;
	 * -FI_EOPNOTSUPP where the transport measures nothing, as on one host; -FI_EINVAL for a structure that
	 * is too small, or an address that is not in the address vector. */
	int (*path)(struct fid_ep *ep, fi_addr_t addr, struct weft_coll_path *path);

	/* With on, says that the calling thread polls the endpoint's queues without a pause until it says
	 * otherwise, with on 0: the progress thread of FI_PROGRESS_AUTO leaves the endpoint alone meanwhile, and
	 * takes over at once afterwards. Where threads outnumber processors that saves the one that polls a rival. Any
	 * number of threads may reserve an endpoint, as often as they say so again. Without automatic progress nothing
	 * changes. Returns 0; -FI_EINVAL for what is no endpoint, and for an endpoint that is given back more often
	 * than it was reserved. Programs check size first: older libraries have no such member. */
	int (*reserve)(struct fid_ep *ep, int on);

	/* Takes the place of an operation of a group that this member cannot begin, as the others would wait for it:
	 * the operation fails with err, 1 and more, at all members that have not completed it, and completes so with
	 * the context here. Those that begin it later get the error, too. Returns 0; -FI_EAGAIN as alltoallv;
	 * -FI_EINVAL for another err or what is no group of the endpoint, -FI_EOPBADSTATE, -FI_ENOMEM. Programs check
	 * size first: older libraries have no such member. */
	ssize_t (*fail)(struct fid_ep *ep, fi_addr_t coll_addr, int err, void *context);
};

#endif
