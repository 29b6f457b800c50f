/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What providers exchange when one uses another's queues (fi_peer(3)), in the
 * layout that libfabric has since 2.0. Headers of 1.x have other layouts, or
 * none, so weft has declarations of its own; fi_getinfo offers FI_PEER in
 * hosts from 2.0 on only.
 *
 * Each structure is made by the owner of the object that is imported. Sizes are
 * checked: what is shorter than weft knows is refused.
 */
#ifndef WEFT_PEER_H
#define WEFT_PEER_H

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#include "objects.h"

/* struct fi_cq_err_entry since 1.20; weft keeps the source in a variable of
 * its own, as 1.17's structure has no room for it. */
#if FI_MAJOR_VERSION > 1 || FI_MINOR_VERSION >= 20
struct weft_cq_err_entry {
	union {
		struct fi_cq_err_entry base;
		struct {
			char pad[offsetof(struct fi_cq_err_entry, src_addr)];
			fi_addr_t src_addr;
		};
	};
};
#else
struct weft_cq_err_entry {
	struct fi_cq_err_entry base;
	fi_addr_t src_addr;
};
#endif

struct weft_peer_cq;

struct weft_peer_cq_ops {
	size_t size;
	ssize_t (*write)(struct weft_peer_cq *cq, void *context, uint64_t flags, size_t len, void *buf, uint64_t data,
			 uint64_t tag, fi_addr_t src);
	ssize_t (*writeerr)(struct weft_peer_cq *cq, const struct weft_cq_err_entry *entry);
};

struct weft_peer_cq {
	struct fid fid;
	struct weft_peer_cq_ops *owner_ops;
};

struct weft_peer_cntr;

struct weft_peer_cntr_ops {
	size_t size;
	void (*inc)(struct weft_peer_cntr *cntr);
	void (*incerr)(struct weft_peer_cntr *cntr);
};

struct weft_peer_cntr {
	struct fid fid;
	struct weft_peer_cntr_ops *owner_ops;
};

struct weft_peer_av;

struct weft_peer_av_ops {
	size_t size;
	int (*query)(struct weft_peer_av *av, struct fi_av_attr *attr);
	fi_addr_t (*ep_addr)(struct weft_peer_av *av, struct fid_ep *ep);
};

struct weft_peer_av {
	struct fid fid;
	struct weft_peer_av_ops *owner_ops;
};

struct weft_peer_srx;

/* A receive of the owner's, or a message that has none. */
struct weft_peer_entry {
	struct weft_peer_srx *srx;
	fi_addr_t addr;
	size_t msg_size;
	uint64_t tag;
	uint64_t cq_data;
	uint64_t flags;
	void *context;
	size_t count;
	void **desc;
	void *peer_context; /* weft's: the number of the message */
	void *owner_context;
	struct iovec *iov;
};

struct weft_peer_match {
	fi_addr_t addr;
	size_t msg_size;
	uint64_t tag;
};

struct weft_peer_srx_owner_ops {
	size_t size;
	int (*get_msg)(struct weft_peer_srx *srx, struct weft_peer_match *match, struct weft_peer_entry **entry);
	int (*get_tag)(struct weft_peer_srx *srx, struct weft_peer_match *match, struct weft_peer_entry **entry);
	int (*queue_msg)(struct weft_peer_entry *entry);
	int (*queue_tag)(struct weft_peer_entry *entry);
	void (*foreach_unspec_addr)(struct weft_peer_srx *srx, fi_addr_t (*get_addr)(struct weft_peer_entry *));
	void (*free_entry)(struct weft_peer_entry *entry);
};

struct weft_peer_srx_ops {
	size_t size;
	int (*start_msg)(struct weft_peer_entry *entry);
	int (*start_tag)(struct weft_peer_entry *entry);
	int (*discard_msg)(struct weft_peer_entry *entry);
	int (*discard_tag)(struct weft_peer_entry *entry);
};

struct weft_peer_srx {
	struct fid_ep ep;
	struct weft_peer_srx_owner_ops *owner_ops;
	struct weft_peer_srx_ops *peer_ops;
};

/* The context parameter of the opening of each: a size and the imported object. */
struct weft_peer_context {
	size_t size;
	void *object;
};

/* The imported object of a context parameter, NULL if it is none. */
static inline void *weft_peer_of(void *context)
{
	struct weft_peer_context *c = context;

	return c && c->size >= sizeof(*c) ? c->object : NULL;
}

/* struct weft_import: completions on their way to the owner, or what it got
 * of a counter. Under lock, which only readers of imported objects take. */
struct weft_import {
	pthread_mutex_t lock;
	struct weft_peer_cq *cq;
	struct fi_cq_tagged_entry entries[WEFT_IMPORT_BATCH];
	fi_addr_t src[WEFT_IMPORT_BATCH];
	size_t first, count; /* entries that are read and not handed over */
	bool has_error;
	struct weft_cq_err_entry error;
	char err_data[128];
	struct weft_peer_cntr *cntr;
	uint64_t value, errors; /* that the owner knows of */
};

/* peer.c: make an object that is being opened one that hands everything to its owner, which its
 * context names. */
int weft_peer_cq_import(struct weft_cq_obj *o);
int weft_peer_cntr_import(struct weft_cntr_obj *o);
/* Takes what attributes leave open from the owner's. */
int weft_peer_av_import(struct fi_av_attr *attr, void *context);

/* peersrx.c */
int weft_peer_srx_import(struct weft_ep_obj *o);

/* Called by Go, the first three under the progress lease. Matches and errors as fi_peer(3) has
 * them. weft_peer_inserted has the owner ask for the addresses that it does not know. */
int weft_peer_get(struct weft_peer_srx *srx, int tagged, uint64_t addr, size_t size, uint64_t tag,
		  struct weft_peer_entry **entry);
int weft_peer_queue(struct weft_peer_srx *srx, int tagged, struct weft_peer_entry *entry, uint64_t id, uint64_t data,
		    uint64_t flags);
void weft_peer_free(struct weft_peer_srx *srx, struct weft_peer_entry *entry);
void weft_peer_inserted(struct weft_peer_srx *srx);

/* poll.c: reads an error entry; err_data of base is set as for fi_cq_readerr. */
ssize_t weft_cq_readerr(struct weft_cq_obj *o, struct weft_cq_err_entry *entry);

#endif
