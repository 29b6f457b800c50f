/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The C side of libfabric's objects: the fid structures that applications
 * hold, what the hot path needs beside them, and the functions that the C
 * files of this directory share.
 *
 * An object is a fid structure followed by the handle of its Go counterpart
 * (handle.go). Memory is calloc'd when the object is opened and freed when it
 * is closed; fields without a note are set at open and do not change.
 */
#ifndef WEFT_OBJECTS_H
#define WEFT_OBJECTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "../include/weft/hot.h"
#include "tables_gen.h"

/* A place in the list of all objects (fork.c). */
struct weft_link {
	struct weft_link *next;
	struct weft_link *prev;
	struct fid *fid;
};

struct weft_host;

struct weft_fabric_obj {
	struct fid_fabric fid;
	uint64_t handle;
	struct weft_host *host; /* through which it was opened */
	struct weft_link link;
};

struct weft_domain_obj {
	struct fid_domain fid;
	uint64_t handle;
	struct weft_fabric_obj *fabric; /* its api_version is set by the host after open */
	struct weft_link link;
};

/* The wait object of a queue, counter or wait set, as FI_GETWAIT gives it out. */
struct weft_wait_native {
	enum fi_wait_obj kind; /* never FI_WAIT_UNSPEC: what was chosen for it */
	int fd;		       /* -1: none */
	pthread_mutex_t mutex; /* FI_WAIT_MUTEX_COND; taken by waiters and by their wakers */
	pthread_cond_t cond;
};

struct weft_peer_srx;

/* What a queue or counter needs that another provider has imported (peer.c). */
#define WEFT_IMPORT_BATCH 16
struct weft_import;

struct weft_cq_obj {
	struct fid_cq fid;
	struct weft_hot_cq *hot;
	uint64_t handle;
	enum fi_cq_wait_cond wait_cond;
	struct weft_domain_obj *domain;
	struct weft_import *import; /* NULL: the application reads it */
	struct weft_wait_native wait;
	struct weft_link link;
};

struct weft_cntr_obj {
	struct fid_cntr fid;
	struct weft_hot_cntr *hot;
	uint64_t handle;
	struct weft_import *import; /* as of queues */
	struct weft_wait_native wait;
	struct weft_link link;
};

/* The most error data of an event: what a peer rejects a connection with. */
#define WEFT_EQ_ERR_DATA 256

struct weft_eq_obj {
	struct fid_eq fid;
	uint8_t err_data[WEFT_EQ_ERR_DATA]; /* of the error read last; the application serializes that */
	uint64_t handle;
	uint32_t api_version; /* of the fabric, which may be closed before */
	struct weft_wait_native wait;
	struct weft_link link;
};

struct weft_wait_obj {
	struct fid_wait fid;
	uint64_t handle;
	struct weft_wait_native wait;
	struct weft_link link;
};

/* An endpoint, an alias of one, a scalable endpoint, one of its transmit or
 * receive contexts, or a shared receive context: fid.fid.fclass says which. */
struct weft_ep_obj {
	struct fid_ep fid;
	struct weft_hot_ep *hot; /* NULL for shared receive contexts */
	struct weft_hot_rx *rx;	 /* set by FI_ENABLE; NULL before and without receive side */
	bool deaf;		 /* enabled, with nothing that receives could complete on */
	uint64_t tx_op_flags;	 /* flags of calls that take none; changed by FI_SETOPSFLAG only */
	uint64_t rx_op_flags;
	uint64_t handle;
	struct weft_ep_obj *origin;	/* an alias's endpoint, which outlives it; else NULL */
	struct weft_ep_obj *aliases;	/* of this endpoint, each the head of the rest; under weft_objects_lock */
	struct weft_peer_srx *imported; /* of a shared receive context: its owner's, else NULL */
	struct weft_link link;
};

/* FI_CLASS_PROFILE of 2.0, and struct fid_profile. */
#define WEFT_CLASS_PROFILE (FI_CLASS_PEER_AV_SET + 2)

struct weft_fid_profile {
	struct fid fid;
	struct weft_ops_profile *ops;
};

/* Objects of which C needs no more than which they are. */
#define WEFT_PLAIN_OBJ(name, type) \
	struct name { \
		type fid; \
		uint64_t handle; \
		struct weft_link link; \
	}

WEFT_PLAIN_OBJ(weft_av_obj, struct fid_av);
WEFT_PLAIN_OBJ(weft_av_set_obj, struct fid_av_set);
WEFT_PLAIN_OBJ(weft_mc_obj, struct fid_mc);
WEFT_PLAIN_OBJ(weft_mr_obj, struct fid_mr);
WEFT_PLAIN_OBJ(weft_poll_obj, struct fid_poll);
WEFT_PLAIN_OBJ(weft_pep_obj, struct fid_pep);
WEFT_PLAIN_OBJ(weft_profile_obj, struct weft_fid_profile);
WEFT_PLAIN_OBJ(weft_stx_obj, struct fid_stx);
/* Not in the list of all objects: nothing can be called on it. Handle 0: answered. */
WEFT_PLAIN_OBJ(weft_connreq_obj, struct fid);

/* The flags that can be defaults of a context (internal/info has the same). */
#define WEFT_TX_OP_FLAGS \
	(FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | \
	 FI_MATCH_COMPLETE)
#define WEFT_RX_OP_FLAGS (FI_COMPLETION | FI_MULTI_RECV)

/* The object around a fid of any class. */
#define WEFT_OBJ(f, type) ((type *)((char *)(f)-offsetof(type, fid)))

/* Set in the descriptors of regions of device memory (region.DescSpecial). */
#define WEFT_DESC_SPECIAL 1u

/* The handle of an object that an application passed to another one's
 * function; 0 if it is NULL or not weft's. */
uint64_t weft_handle_of(const struct fid *fid);

/* ---- fork.c ---- */

extern int weft_forked_flag; /* written once by the child of a fork, before main continues */

/* weft_forked reports whether this process is a fork of the one that opened the
 * objects. It has no Go threads: Go must not be called. */
static inline bool weft_forked(void)
{
	return __builtin_expect(weft_forked_flag, 0);
}

/* What a call in a forked process returns; writes one log line per process. */
int weft_fork_refusal(void);

int weft_fork_init(void);

/* What stands in the tables of a forked process beside refusals. */
const char *weft_forked_straddr(struct fid_av *av, const void *addr, char *buf, size_t *len);
uint64_t weft_forked_cntr_read(struct fid_cntr *cntr);
uint64_t weft_forked_cntr_readerr(struct fid_cntr *cntr);

/* Every object is in a list from open to close, so that a forked process can
 * give it tables that refuse. The lock is never taken on the data path. */
void weft_object_add(struct weft_link *link, struct fid *fid);
void weft_object_remove(struct weft_link *link);
void weft_objects_lock(void);
void weft_objects_unlock(void);

/* ---- ep.c ---- */

struct weft_opened;

/* Enters what the opening of an endpoint or context gave, with the tables of its posting functions. */
void weft_ep_opened(struct weft_ep_obj *o, const struct weft_opened *opened);
int weft_ep_ready(struct fid_ep *ep); /* enables it if it is not; 0 or a negative errno */

/* What later versions append to struct fi_domain_attr, and struct fi_mr_auth_key. */
struct weft_domain_attr_later {
	size_t max_ep_auth_key;	     /* 1.20 */
	uint32_t max_group_id;	     /* 2.0 */
	uint64_t max_cntr_value;     /* 2.5 */
	uint64_t max_err_cntr_value; /* 2.5 */
};

/* Where that is, whatever headers weft is built with. */
static inline struct weft_domain_attr_later *weft_domain_later(const struct fi_domain_attr *attr)
{
	return (void *)((char *)attr + offsetof(struct fi_domain_attr, tclass) + sizeof(size_t));
}

struct weft_mr_auth_key {
	struct fid_av *av;
	fi_addr_t src_addr;
};

/* ---- common.c: what most objects share ---- */

int weft_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context); /* ext.c */
int weft_tostr(const struct fid *fid, char *buf, size_t len);
int weft_no_export_xpu(struct fid *fid, uint64_t flags, void *xpu); /* refuses */

/* What is known about each class (tables_gen.c): the name in fi_tostr, the table that marks weft's objects, NULL
 * where token.c distinguishes them, the size, and where the handle and the link lie; in waiting ones the wait object,
 * too, and in those that can be imported what they need then. Where its objects have which tables, with those of a
 * forked process. */
struct weft_class {
	const char *name;
	struct fi_ops *ops;
	size_t size, handle, link, wait, import;
};
struct weft_place {
	size_t class, at;
	const void *table, *forked;
};
extern const struct weft_class weft_classes[];
extern const struct weft_place weft_places[];
extern const size_t weft_class_count, weft_place_count;

/* Enters an object's tables, but for struct fi_ops. */
void weft_object_tables(struct fid *fid, bool forked);

/* An object of a class with its tables, not yet in the list of all objects; NULL without
 * memory. Transfers of endpoints refuse. weft_object_open ends its opening, whose result is rc: it frees the object, or
 * enters the handle and adds it to the list. Returns rc. weft_object_close closes
 * the Go object, and if that succeeded this one. */
void *weft_object_new(size_t fclass, void *context);
int weft_object_open(void *object, int rc, const struct weft_opened *opened);
int weft_object_close(struct fid *fid);

void weft_wait_destroy(struct weft_wait_native *wait);

/* Sets the wait object of a new object up, before it is opened: kind as the
 * attributes ask for it. 0 or a negative errno. */
int weft_wait_prepare(struct weft_wait_native *wait, enum fi_wait_obj kind);

/* The time of a clock in ns. */
static inline uint64_t weft_clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Gives what is left of a wait of timeout ms that began at start (ms of
 * weft_now); -1 is for ever. */
int64_t weft_now(void);
int weft_time_left(int64_t start, int timeout);

#endif
