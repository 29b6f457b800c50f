/* SPDX-License-Identifier: BSD-2-Clause
 *
 * libweft-mpi: the all-to-all operations of an MPI program over weft, in front of
 * any MPI (LD_PRELOAD). One source, compiled once for each MPI.
 *
 * calls.c and fortran.c are the MPI functions, requests.c and frequests.c those that
 * complete requests, own.c finds the MPI's own functions for Fortran; comm.c decides
 * for a communicator, group.c makes its group in weft, fabric.c finds weft; op.c
 * carries an operation out, types.c lays out its data.
 */
#ifndef WEFT_MPI_H
#define WEFT_MPI_H

#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif

#include <rdma/fabric.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include "../include/weft/coll.h"

/* ---- settings.c: variables of the environment, read once ---- */

enum mode { MODE_AUTO, MODE_YES, MODE_NO };

struct settings {
	enum mode mode;
	int64_t min_size; /* bytes of a slice of MPI_Alltoall */
	bool info;	  /* FI_LOG_LEVEL is info or above */
};

const struct settings *settings(void);

/* A line on stderr: of what the user must know, and of what FI_LOG_LEVEL=info shows. */
void warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void info(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- fabric.c: weft itself, opened at the first group ---- */

/* Opens weft once. Returns whether it is there. */
bool fabric_open(void);

/* An endpoint with what belongs to it. All but the pointers is weft's. */
struct port {
	struct fid_ep *ep;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_eq *eq;
	struct weft_coll_ops *coll;
};

/* Closes it. No port is open. */
void fabric_close(void);

/* Opens an endpoint and gives its address, size bytes at most. Returns the length, 0 for
 * a failure, after which the port is closed. */
size_t port_open(struct port *p, void *address, size_t size);
void port_close(struct port *p);

/* Says that the caller polls the port until it says otherwise: weft's progress thread leaves it alone. */
void port_reserve(struct port *p, bool on);

/* The text of a libfabric errno. */
const char *fabric_strerror(int err);

/* ---- group.c: the group of a communicator ---- */

struct op;

struct group {
	int size;
	struct port port;
	struct fid_av_set *set;
	struct fid_mc *mc;
	fi_addr_t addr;
	MPI_Comm comm;		 /* its error handler is called; MPI_COMM_NULL: it is freed */
	pthread_mutex_t reading; /* of port.cq; only tried */
	atomic_bool failed;	 /* a member is lost; written by the reader of an error, read by callers, relaxed */
	atomic_int refs;	 /* the communicator and operations; any thread, acquire and release */
	atomic_int pending;	 /* operations with a request, and the last barrier; any thread, relaxed */
	struct op *last;	 /* the barrier before the group is closed; under the lock of the list */
	bool left;		 /* the communicator is freed; under the lock of the list */
	bool reserved;		 /* its port is, by threads that wait for requests; under the lock of the list */
	struct group *next;	 /* under the lock of the list */
};

/* Makes the group of a communicator: collective over it. NULL at all members or at none. */
struct group *group_make(MPI_Comm comm, int size);

/* The communicator is freed: the group is closed when all members have come here. */
void group_leave(struct group *g);

void group_hold(struct group *g);
void group_release(struct group *g);

/* Ends all groups: MPI_Finalize. */
void groups_end(void);

/* Reads the completions of one group, with those of all that have requests pending. */
void group_progress(struct group *g);
/* The latter alone. */
void groups_progress(void);
/* Says that the caller calls groups_progress until it says otherwise. Any number of threads may. */
void groups_wait(bool on);

/* Requests of any group that have not completed, so that calls which complete requests must read. */
extern atomic_int requests_pending; /* any thread; sequentially consistent */

/* ---- requests.c ---- */

/* Waits until a request is complete, or none of the library's is pending. It stays as it is. */
void request_await(MPI_Request request);

/* ---- comm.c: what is agreed for a communicator ---- */

/* A communicator of this process alone, for messages of the library to itself. */
MPI_Comm self_comm(void);

/* Their tags: of a receive that gets nothing, of elements that are too long for MPI_Pack, and of operations, from
 * the last on. */
enum { NEVER_TAG, WHOLE_TAG, SELF_TAGS };

/* The largest tag, MPI_TAG_UB. */
int last_tag(void);

enum form { FORM_BLOCKING, FORM_REQUEST, FORM_PERSISTENT };

/* The group for an operation, NULL for one that is the MPI's. slice: bytes for each member of
 * MPI_Alltoall, -1 for the other forms. FORM_REQUEST may not wait for the other members, so
 * only a group that exists is used. */
struct group *comm_group(MPI_Comm comm, int64_t slice, enum form form);

/* Gives others of the processor a turn, unless what a caller polls for is there: ranks that wait may share one. */
static inline void turn(bool found)
{
	if (!found)
		sched_yield();
}

/* The MPI's progress, and a turn for others, while a caller waits for weft. */
void mpi_progress(void);
/* That, and the group's. */
void progress(struct group *g);

/* Calls the error handler of a communicator for a libfabric errno, and returns the MPI's code. */
int comm_error(MPI_Comm comm, int err, const char *what);
/* The same for a code of the MPI's. */
int comm_fails(MPI_Comm comm, int code, const char *what);

/* ---- types.c ---- */

/* The buffers of one side of a call, as the MPI function has them. */
struct list {
	const void *buf;
	const void *counts;	   /* of int or MPI_Count; NULL: count is that of all */
	const void *displs;	   /* of int or MPI_Aint; NULL: one after the other */
	const MPI_Datatype *types; /* NULL: type is that of all; else displs are bytes */
	int64_t count;
	MPI_Datatype type;
	bool wide; /* counts are MPI_Count and displs MPI_Aint */
};

/* What one member has or gets. */
struct part {
	char *addr;
	int64_t count;
	MPI_Datatype type;
	bool owned; /* type is a duplicate that this part frees */
};

/* One side of an operation as weft gets it: one buffer with counts and displacements in bytes. */
struct side {
	char *base;   /* the user's memory, or packed */
	char *packed; /* NULL: the user's memory is used as it is */
	uint64_t *counts, *displs;
	struct part *parts;
	int64_t total; /* bytes */
};

/* Bytes of a type; the extent is stored. Negative for one that is too large. */
int64_t type_size(MPI_Datatype type, int64_t *extent);

/* Whether a list can be used at all; the MPI names what is wrong in one that cannot. */
bool list_valid(const struct list *l, int n);

/* Lays a list out for n members. keep: its types are used after the call. Returns an MPI error class. */
int side_build(struct side *s, const struct list *l, int n, bool keep);
int side_pack(struct side *s, int n);
int side_unpack(struct side *s, int n);
void side_free(struct side *s, int n);

/* Whether MPI_Pack gives the plain bytes of the elements in their order. */
bool packs_plainly(void);

/* ---- op.c ---- */

/* A call as the MPI function has it. */
struct call {
	const char *name;
	struct list send, recv;
	bool uniform; /* MPI_Alltoall: all slices are alike */
	MPI_Comm comm;
};

/* Carries a call out, or leaves it to the MPI: false. rc is what the MPI function returns. */
bool op_call(const struct call *c, enum form form, MPI_Request *request, int *rc);

/* The completion of an operation, from the thread that reads it. err is 0 or a libfabric errno. */
void op_arrived(struct op *o, int err);
/* The rest of an operation with a request: without locks, once. */
void op_end(struct op *o);

/* Begins a barrier after which no member needs the group. Returns 0 or a negative libfabric errno. */
ssize_t op_last(struct group *g, struct op **last);
bool op_done(struct op *o);
/* Whether the operation has a request, so that op_end has to be called. */
bool op_requested(struct op *o);
void op_free(struct op *o);

/* Persistent requests. Both return false for a request of the MPI's. */
bool op_start(MPI_Request *request, int *rc);
bool op_forget(MPI_Request *request, int *rc);
/* All groups are about to be closed: those that are left can be freed, and not be started. */
void ops_end(void);

#endif
