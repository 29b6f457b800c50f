/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Groups: each has an endpoint of its own, so that threads which use different
 * communicators share nothing, and joins of the same members in another order
 * cannot be taken for each other.
 *
 * The group of a communicator that is freed is closed when a last barrier in weft has
 * completed: until then a member may still need what this one has sent.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rdma/fi_errno.h>

#include "weftmpi.h"

/* How long members wait for each other's join, seconds: all have agreed to join before. */
#define JOIN_TIME 60

#define MAX_ADDRESS 120

/* Completions that are read at once. */
#define BATCH 16

struct hello {
	uint32_t size; /* of the address; 0: this member has no endpoint */
	char address[MAX_ADDRESS];
};

atomic_int requests_pending;

/* Protects the list, and what its members say. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct group *list;
static bool ended;
static int waiters; /* threads in groups_wait */

/* Milliseconds. */
static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Whether all members say yes. */
static bool all_say(MPI_Comm comm, bool yes)
{
	int mine = yes, all = 0;

	return !PMPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm) && all;
}

static int insert(struct group *g, const struct hello *hellos)
{
	struct fi_av_set_attr attr = { .stride = 1 };
	fi_addr_t addr = 0;

	for (int i = 0; i < g->size; i++) {
		if (fi_av_insert(g->port.av, hellos[i].address, 1, &addr, 0, NULL) != 1)
			return -FI_EADDRNOTAVAIL;
		if (!i)
			attr.start_addr = addr;
	}
	attr.end_addr = addr;
	return fi_av_set(g->port.av, &attr, &g->set, NULL);
}

/* Opens an endpoint, and exchanges addresses where all members have one. Returns -FI_ECANCELED where one has not, and
 * why this member could not insert them. */
static int meet(struct group *g, MPI_Comm comm)
{
	struct hello mine = { 0 }, *all = g ? calloc(g->size, sizeof(*all)) : NULL;
	int rc = -FI_ECANCELED;

	mine.size = all ? port_open(&g->port, mine.address, sizeof(mine.address)) : 0;
	if (all_say(comm, mine.size != 0)) {
		rc = PMPI_Allgather(&mine, sizeof(mine), MPI_BYTE, all, sizeof(*all), MPI_BYTE, comm) ? -FI_EIO
												      : insert(g, all);
		if (rc)
			warn("addresses of %d members: %s", g->size, fabric_strerror(-rc));
	}
	free(all);
	return rc;
}

/* How far a member's join is. The least of all says what becomes of the group. */
enum { FAILED, JOINING, JOINED };

/* How far this member's join is; where it has failed *rc says why. */
static int joined(struct group *g, int *rc)
{
	struct fi_eq_err_entry bad = { 0 };
	struct fi_eq_entry e;
	uint32_t event;
	ssize_t n = fi_eq_read(g->port.eq, &event, &e, sizeof(e), 0);

	if (n == -FI_EAVAIL)
		*rc = fi_eq_readerr(g->port.eq, &bad, 0) > 0 ? -bad.err : -FI_EIO;
	else if (n >= 0 && event == FI_JOIN_COMPLETE)
		return JOINED;
	return *rc ? FAILED : JOINING;
}

/* Joins, unless a member cannot: all hear of that beside the joins, as often as it takes. */
static int join(struct group *g, MPI_Comm comm, int rc)
{
	double end = now() + JOIN_TIME * 1e3;
	int mine, least = FAILED;
	fi_addr_t addr;

	if (!rc)
		rc = fi_av_set_addr(g->set, &addr);
	if (!rc)
		rc = fi_join_collective(g->port.ep, addr, g->set, 0, &g->mc, g);
	mine = rc ? FAILED : JOINING;
	do {
		int said = mine, done = 0;
		MPI_Request all;

		if (PMPI_Iallreduce(&said, &least, 1, MPI_INT, MPI_MIN, comm, &all))
			return -FI_EIO;
		while (!done) {
			if (mine == JOINING && (mine = joined(g, &rc)) == JOINING && now() > end) {
				rc = -FI_ETIMEDOUT;
				mine = FAILED;
			}
			progress(g);
			if (PMPI_Test(&all, &done, MPI_STATUS_IGNORE))
				return -FI_EIO;
		}
	} while (least == JOINING);
	if (!rc && least == FAILED)
		rc = -FI_ECANCELED;
	if (rc)
		warn("%d members do not come together: %s", g->size, fabric_strerror(-rc));
	else
		g->addr = fi_mc_addr(g->mc);
	return rc;
}

static void group_close(struct group *g)
{
	if (g->last)
		op_free(g->last);
	if (g->mc)
		fi_close(&g->mc->fid);
	if (g->set)
		fi_close(&g->set->fid);
	port_close(&g->port);
	pthread_mutex_destroy(&g->reading);
	free(g);
}

/* Has weft leave a group to the threads that poll it, or not any longer. The caller has the lock of the list. */
static void reserve(struct group *g, bool on)
{
	if (g->reserved != on)
		port_reserve(&g->port, on);
	g->reserved = on;
}

static void reserve_none(void)
{
	for (struct group *g = list; g; g = g->next)
		reserve(g, false);
}

/* Closes the groups that no member needs. */
static void reap(void)
{
	struct group *done = NULL, **p, *g;

	pthread_mutex_lock(&lock);
	for (p = &list; (g = *p);) {
		if (g->left && !atomic_load(&g->refs) && (!g->last || op_done(g->last))) {
			reserve(g, false);
			*p = g->next;
			g->next = done;
			done = g;
		} else {
			p = &g->next;
		}
	}
	pthread_mutex_unlock(&lock);
	while ((g = done)) {
		done = g->next;
		group_close(g);
	}
}

struct group *group_make(MPI_Comm comm, int size)
{
	struct group *g = calloc(1, sizeof(*g));
	double began = now(), met;
	int rank = 0, rc;

	groups_progress();
	reap();
	if (g) {
		g->size = size;
		g->comm = comm;
		pthread_mutex_init(&g->reading, NULL);
		atomic_init(&g->refs, 1);
	}
	rc = meet(g, comm);
	met = now();
	if (rc == -FI_ECANCELED || join(g, comm, rc)) {
		info("a communicator of %d members: all-to-all is the MPI's", size);
		if (g)
			group_close(g);
		return NULL;
	}
	PMPI_Comm_rank(comm, &rank);
	if (!rank)
		info("a communicator of %d members: all-to-all is weft's; endpoints and addresses took %.1f ms, "
		     "joining %.1f",
		     size, met - began, now() - met);
	pthread_mutex_lock(&lock);
	g->next = list;
	list = g;
	pthread_mutex_unlock(&lock);
	return g;
}

void group_hold(struct group *g)
{
	atomic_fetch_add(&g->refs, 1);
}
void group_release(struct group *g)
{
	atomic_fetch_sub(&g->refs, 1);
}

/* Begins the last barrier, unless a member is lost. Returns whether there is no room for it: so many operations are
 * under way. */
static bool last_waits(struct group *g)
{
	ssize_t rc = -FI_ECONNRESET;

	pthread_mutex_lock(&lock);
	if (!atomic_load_explicit(&g->failed, memory_order_relaxed))
		rc = op_last(g, &g->last);
	if (!rc)
		atomic_fetch_add(&g->pending, 1);
	pthread_mutex_unlock(&lock);
	return rc == -FI_EAGAIN;
}

void group_leave(struct group *g)
{
	bool closed;

	pthread_mutex_lock(&lock);
	closed = ended || g->left;
	if (!closed) {
		g->left = true;
		g->comm = MPI_COMM_NULL;
	}
	pthread_mutex_unlock(&lock);
	if (closed)
		return;
	while (last_waits(g)) {
		progress(g);
	}
	group_release(g);
	reap();
}

/* Reads completions; those of requests are left to the caller, to be ended. */
static int read_group(struct group *g, struct op *requested[BATCH])
{
	struct fi_cq_entry entries[BATCH];
	struct fi_cq_err_entry bad = { 0 };
	struct op *done[BATCH];
	int errors[BATCH] = { 0 }, count = 0;
	ssize_t n;

	if (pthread_mutex_trylock(&g->reading))
		return 0;
	n = fi_cq_read(g->port.cq, entries, BATCH);
	for (ssize_t i = 0; i < n; i++)
		done[i] = entries[i].op_context;
	if (n == -FI_EAVAIL && fi_cq_readerr(g->port.cq, &bad, 0) == 1) {
		done[0] = bad.op_context;
		errors[0] = bad.err;
		n = 1;
		if (bad.err != FI_ETRUNC && bad.err != FI_ECANCELED) /* those are of the operation alone */
			atomic_store_explicit(&g->failed, true, memory_order_relaxed);
	}
	pthread_mutex_unlock(&g->reading);
	/* The owner of an operation without a request may free it, and leave, as soon as it has arrived. */
	for (ssize_t i = 0; i < n; i++) {
		if (op_requested(done[i]))
			requested[count++] = done[i];
		op_arrived(done[i], errors[i]);
	}
	return count;
}

static void end_all(struct op *requested[BATCH], int n)
{
	for (int i = 0; i < n; i++)
		op_end(requested[i]);
}

void group_progress(struct group *g)
{
	struct op *requested[BATCH];

	end_all(requested, read_group(g, requested));
	if (atomic_load_explicit(&requests_pending, memory_order_relaxed))
		groups_progress();
}

void progress(struct group *g)
{
	group_progress(g);
	mpi_progress();
}

void groups_wait(bool on)
{
	pthread_mutex_lock(&lock);
	waiters += on ? 1 : -1;
	if (!waiters)
		reserve_none();
	pthread_mutex_unlock(&lock);
}

void groups_progress(void)
{
	struct op *requested[BATCH];
	int n = 0;

	if (pthread_mutex_trylock(&lock))
		return;
	for (struct group *g = list; g && !n; g = g->next) {
		bool pending = atomic_load_explicit(&g->pending, memory_order_relaxed) > 0;

		reserve(g, pending && waiters);
		if (pending)
			n = read_group(g, requested);
	}
	pthread_mutex_unlock(&lock);
	end_all(requested, n);
}

/* Whether a group waits for its last barrier. Leaves the first that has not begun it. */
static bool waiting(void)
{
	struct group *g;
	bool some = false;

	pthread_mutex_lock(&lock);
	for (g = list; g && g->left; g = g->next)
		some |= g->last && !op_done(g->last);
	pthread_mutex_unlock(&lock);
	if (!g)
		return some;
	group_leave(g);
	return true;
}

void groups_end(void)
{
	struct group *g;

	while (waiting()) {
		groups_progress();
		mpi_progress();
	}
	pthread_mutex_lock(&lock);
	ended = true;
	reserve_none();
	g = list;
	list = NULL;
	pthread_mutex_unlock(&lock);
	ops_end();
	while (g) {
		struct group *next = g->next;

		group_close(g);
		g = next;
	}
	fabric_close();
}
