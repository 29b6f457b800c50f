/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Operations. One with a request is, for the MPI, a receive of no bytes from this
 * process itself; the library sends that message when weft has completed the
 * operation. So each function of the MPI that completes requests takes it as its
 * own, among others and in every language; requests.c only sees to it that weft is
 * read meanwhile. A message of one byte, which is too long, says that it failed.
 */
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "weftmpi.h"

/* Polls of weft for each of the MPI's. */
#define POLLS 8

struct op {
	struct group *group; /* NULL: it was closed, in MPI_Finalize; of a persistent one */
	int size;	     /* members */
	const char *name;
	enum form form;
	bool uniform, in_place;
	struct side in, out;
	int tag;
	MPI_Request request;		 /* of a persistent one: the handle that the program has */
	struct weft_alltoallv_req *kept; /* of a persistent one, from its first start on: it keeps registrations */
	struct op *next;		 /* persistent ones; under the lock */
	int err;			 /* before done */
	atomic_bool done; /* written by the reader of the completion (release), read by the owner (acquire) */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	int *list;	       /* those that are free */
	int n;		       /* how many are */
	int64_t end;	       /* all are below; 0: there are none yet */
} tags;			       /* under the lock */
static struct op *persistent;  /* under the lock */
static atomic_int persistents; /* how many; written under the lock, read by callers, relaxed */

/* Has twice as many tags, as far as the MPI has them. */
static void tags_grow(void)
{
	int64_t end = tags.end ? 2 * tags.end : 1024, most = (int64_t)last_tag() + 1;
	int *list;

	if (end > most)
		end = most;
	list = realloc(tags.list, end * sizeof(*list));
	if (!list)
		return;
	tags.list = list;
	for (int64_t t = tags.end ? tags.end : SELF_TAGS; t < end; t++)
		tags.list[tags.n++] = (int)t;
	tags.end = end;
}

static int tag_take(void)
{
	int tag;

	pthread_mutex_lock(&lock);
	if (!tags.n)
		tags_grow();
	tag = tags.n ? tags.list[--tags.n] : -1;
	pthread_mutex_unlock(&lock);
	return tag;
}

static void tag_give(int tag)
{
	pthread_mutex_lock(&lock);
	tags.list[tags.n++] = tag;
	pthread_mutex_unlock(&lock);
}

bool op_done(struct op *o)
{
	return atomic_load_explicit(&o->done, memory_order_acquire);
}
bool op_requested(struct op *o)
{
	return o->form != FORM_BLOCKING;
}

void op_arrived(struct op *o, int err)
{
	o->err = err;
	atomic_store_explicit(&o->done, true, memory_order_release);
}

/* Gives back what weft keeps of a persistent one. */
static void keep_none(struct op *o)
{
	if (o->kept)
		o->group->port.coll->alltoallv_free(o->kept);
	o->kept = NULL;
}

void op_free(struct op *o)
{
	keep_none(o);
	side_free(&o->in, o->size);
	side_free(&o->out, o->size);
	free(o);
}

void ops_end(void)
{
	pthread_mutex_lock(&lock);
	for (struct op *o = persistent; o; o = o->next) {
		keep_none(o);
		o->group = NULL;
	}
	pthread_mutex_unlock(&lock);
}

/* Starts a persistent one. */
static ssize_t start(struct op *o, const struct weft_alltoallv *v)
{
	struct port *p = &o->group->port;
	ssize_t rc = o->kept ? 0 : p->coll->alltoallv_init(p->ep, v, &o->kept);

	return rc ? rc : p->coll->alltoallv_start(o->kept);
}

static ssize_t post_once(struct op *o)
{
	struct group *g = o->group;
	struct weft_alltoallv v = {
		.size = sizeof(v),
		.elem = 1,
		.buf = o->in.base,
		.counts = o->in.counts,
		.displs = o->in.displs,
		.result = o->out.base,
		.result_counts = o->out.counts,
		.result_displs = o->out.displs,
		.coll_addr = g->addr,
		.context = o,
	};

	if (o->in_place)
		v.buf = WEFT_IN_PLACE;
	if (o->form == FORM_PERSISTENT)
		return start(o, &v);
	if (o->uniform)
		return fi_alltoall(g->port.ep, o->in.base, o->in.counts[0], NULL, o->out.base, NULL, g->addr, FI_UINT8,
				   0, o);
	return g->port.coll->alltoallv(g->port.ep, &v);
}

/* Has an operation that cannot begin here fail at all members, which would wait for this one. */
static void fail(struct group *g)
{
	struct op o = { .group = g, .form = FORM_BLOCKING };
	ssize_t rc;

	while ((rc = g->port.coll->fail(g->port.ep, g->addr, FI_ECANCELED, &o)) == -FI_EAGAIN) {
		progress(g);
	}
	while (!rc && !op_done(&o)) {
		progress(g);
	}
}

/* Begins the operation. Returns 0 or a libfabric errno. */
static int post(struct op *o)
{
	struct group *g = o->group;
	ssize_t rc;

	if (atomic_load_explicit(&g->failed, memory_order_relaxed))
		return FI_ECONNRESET;
	if (side_pack(o->in_place ? &o->out : &o->in, g->size)) {
		fail(g);
		return FI_EINVAL;
	}
	o->err = 0;
	atomic_store_explicit(&o->done, false, memory_order_relaxed);
	while ((rc = post_once(o)) == -FI_EAGAIN) {
		progress(g);
	}
	if (rc)
		fail(g);
	return (int)-rc;
}

/* Carries a blocking one out. */
static int run(struct op *o)
{
	struct group *g = o->group;
	int err, rc;

	port_reserve(&g->port, true);
	err = post(o);
	if (!err) {
		for (unsigned n = 1; !op_done(o); n++) {
			group_progress(g);
			if (n % POLLS == 0)
				mpi_progress();
		}
		err = o->err;
	}
	port_reserve(&g->port, false);
	if (err)
		rc = comm_error(g->comm, err, o->name);
	else if ((rc = side_unpack(&o->out, g->size)))
		comm_fails(g->comm, rc, o->name);
	op_free(o);
	group_release(g);
	return rc;
}

void op_end(struct op *o)
{
	struct group *g = o->group;
	int tag = o->tag, err = o->err;
	bool again = o->form == FORM_PERSISTENT;
	char late = 0;

	if (!err && side_unpack(&o->out, g->size))
		err = FI_EINVAL;
	if (err)
		comm_error(g->comm, err, o->name);
	atomic_fetch_sub(&g->pending, 1);
	if (!again) {
		op_free(o);
		group_release(g);
	}
	/* A persistent one may be started again, or freed, as soon as the message is there. */
	PMPI_Send(&late, err != 0, MPI_BYTE, 0, tag, self_comm());
	if (!again)
		tag_give(tag);
	atomic_fetch_sub(&requests_pending, 1);
}

/* Begins one with a request. Its receive is posted. What goes wrong is the request's. */
static void begin(struct op *o)
{
	int err;

	atomic_fetch_add(&requests_pending, 1);
	atomic_fetch_add(&o->group->pending, 1);
	err = post(o);
	if (err) {
		op_arrived(o, err);
		op_end(o);
	}
}

static int request(struct op *o, MPI_Request *out)
{
	int rc;

	o->tag = tag_take();
	if (o->tag < 0)
		return MPI_ERR_NO_MEM;
	if (o->form == FORM_REQUEST) {
		rc = PMPI_Irecv(NULL, 0, MPI_BYTE, 0, o->tag, self_comm(), out);
		if (!rc)
			begin(o);
	} else {
		rc = PMPI_Recv_init(NULL, 0, MPI_BYTE, 0, o->tag, self_comm(), out);
		if (!rc) {
			o->request = *out;
			pthread_mutex_lock(&lock);
			o->next = persistent;
			persistent = o;
			atomic_fetch_add(&persistents, 1);
			pthread_mutex_unlock(&lock);
		}
	}
	if (rc)
		tag_give(o->tag);
	return rc;
}

static struct op *op_new(struct group *g, const char *name, enum form form)
{
	struct op *o = calloc(1, sizeof(*o));

	if (o) {
		o->group = g;
		o->size = g->size;
		o->name = name;
		o->form = form;
	}
	return o;
}

/* Lays the buffers out. */
static int build(struct op *o, const struct call *c)
{
	int n = o->group->size, rc;
	bool keep = o->form != FORM_BLOCKING;

	o->in_place = c->send.buf == MPI_IN_PLACE;
	o->uniform = c->uniform && !o->in_place;
	rc = side_build(&o->out, &c->recv, n, keep);
	if (!rc && !o->in_place)
		rc = side_build(&o->in, &c->send, n, keep);
	if (!rc && o->uniform && o->in.counts[0] != o->out.counts[0])
		rc = MPI_ERR_TRUNCATE;
	return rc;
}

bool op_call(const struct call *c, enum form form, MPI_Request *req, int *rc)
{
	int64_t slice = -1, extent;
	struct group *g;
	struct op *o;

	if (c->uniform) {
		if (!list_valid(&c->recv, 1))
			return false;
		slice = c->recv.count ? c->recv.count * type_size(c->recv.type, &extent) : 0;
	}
	g = comm_group(c->comm, slice, form);
	if (!g || !list_valid(&c->recv, g->size) || (c->send.buf != MPI_IN_PLACE && !list_valid(&c->send, g->size)))
		return false;
	group_hold(g);
	o = op_new(g, c->name, form);
	*rc = o ? build(o, c) : MPI_ERR_NO_MEM;
	if (!*rc && form == FORM_BLOCKING) {
		*rc = run(o);
		return true;
	}
	if (!*rc)
		*rc = request(o, req);
	if (*rc) {
		if (form != FORM_PERSISTENT)
			fail(g);
		if (o)
			op_free(o);
		group_release(g);
		comm_fails(c->comm, *rc, c->name);
	}
	return true;
}

ssize_t op_last(struct group *g, struct op **last)
{
	struct op *o = op_new(g, "the last barrier", FORM_BLOCKING);
	ssize_t rc = o ? fi_barrier2(g->port.ep, g->addr, FI_TRANSMIT_COMPLETE | FI_COMPLETION, o) : -FI_ENOMEM;

	if (rc)
		free(o);
	else
		*last = o;
	return rc;
}

/* Finds a persistent one; *back points at it in the list, under the lock. */
static struct op *find(MPI_Request r, struct op ***back)
{
	struct op **p = &persistent;

	while (*p && (*p)->request != r)
		p = &(*p)->next;
	*back = p;
	return *p;
}

static struct op *persistent_of(MPI_Request r, bool remove)
{
	struct op *o, **back;

	if (!atomic_load_explicit(&persistents, memory_order_relaxed))
		return NULL;
	pthread_mutex_lock(&lock);
	o = find(r, &back);
	if (o && remove) {
		*back = o->next;
		atomic_fetch_sub(&persistents, 1);
	}
	pthread_mutex_unlock(&lock);
	return o;
}

bool op_start(MPI_Request *req, int *rc)
{
	struct op *o = persistent_of(*req, false);

	if (!o)
		return false;
	if (!o->group) {
		*rc = comm_error(MPI_COMM_SELF, FI_ESHUTDOWN, o->name);
		return true;
	}
	*rc = PMPI_Start(req);
	if (!*rc)
		begin(o);
	return true;
}

bool op_forget(MPI_Request *req, int *rc)
{
	struct op *o = persistent_of(*req, true);
	struct group *g;

	if (!o)
		return false;
	g = o->group;
	*rc = PMPI_Request_free(req);
	tag_give(o->tag);
	op_free(o);
	if (g)
		group_release(g);
	return true;
}
