/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the members of a communicator agree on: at its first all-to-all, by one
 * PMPI_Allreduce, whether weft is wanted and from which size on; and at one of the
 * first operations that are long enough, which all members count alike, whether all
 * have a group. The result is an
 * attribute, which communicators that are made from this one do not inherit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <rdma/fi_errno.h>

#include "weftmpi.h"

/* How many all-to-alls of a communicator that are long enough the MPI carries out before there is a group, unless all
 * members say that they want it. A group takes as long as some all-to-alls save, and many programs have few. */
#define CALLS_BEFORE 3

struct place {
	bool wanted, tried;
	int size, calls; /* calls: that are left of those */
	int64_t min_size;
	struct group *group;
};

static struct place refused; /* where there is no memory for another */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int comm_key = MPI_KEYVAL_INVALID; /* under lock, until it is made */
static MPI_Comm self = MPI_COMM_NULL;
static MPI_Request never = MPI_REQUEST_NULL; /* a receive on self that gets nothing; under lock, as the others */
static int tag_ub = 32767;		     /* the least that an MPI has; written under lock before ready */
static atomic_bool ready; /* written under lock when both are made, read by callers; release and acquire */
static atomic_bool ended; /* written in MPI_Finalize, read by callers, relaxed */

MPI_Comm self_comm(void)
{
	return self;
}

int last_tag(void)
{
	return tag_ub;
}

static int freed(MPI_Comm comm, int key, void *value, void *extra)
{
	struct place *p = value;

	(void)comm;
	(void)key;
	(void)extra;
	if (p->group)
		group_leave(p->group);
	if (p != &refused)
		free(p);
	return MPI_SUCCESS;
}

/* MPI_Finalize deletes the attributes of MPI_COMM_SELF first, while all of the MPI works. */
static int finalized(MPI_Comm comm, int key, void *value, void *extra)
{
	(void)comm;
	(void)key;
	(void)value;
	(void)extra;
	atomic_store_explicit(&ended, true, memory_order_relaxed);
	groups_end();
	PMPI_Cancel(&never);
	PMPI_Wait(&never, MPI_STATUS_IGNORE);
	return MPI_SUCCESS;
}

/* Makes what needs a running MPI. */
static bool prepare(void)
{
	int running = 0, key, *most, found = 0, rc = MPI_SUCCESS;

	if (atomic_load_explicit(&ready, memory_order_acquire))
		return true;
	PMPI_Initialized(&running);
	if (!running)
		return false;
	pthread_mutex_lock(&lock);
	if (comm_key == MPI_KEYVAL_INVALID) {
		rc = PMPI_Comm_split(MPI_COMM_SELF, 0, 0, &self); /* copies no attributes */
		if (!rc)
			rc = PMPI_Comm_set_errhandler(self, MPI_ERRORS_RETURN);
		if (!rc)
			rc = PMPI_Irecv(NULL, 0, MPI_BYTE, 0, NEVER_TAG, self, &never);
		if (!rc)
			rc = PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &found);
		if (!rc && found)
			tag_ub = *most;
		if (!rc)
			rc = PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, finalized, &key, NULL);
		if (!rc)
			rc = PMPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
		if (!rc)
			rc = PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, freed, &comm_key, NULL);
		if (!rc)
			atomic_store_explicit(&ready, true, memory_order_release);
	}
	pthread_mutex_unlock(&lock);
	return rc == MPI_SUCCESS;
}

/* Any thread may ask for the state of a request, and the MPI makes progress then. (MPICH does not when it
 * probes for messages of the process itself.) */
void mpi_progress(void)
{
	int flag;

	PMPI_Request_get_status(never, &flag, MPI_STATUS_IGNORE);
	turn(false);
}

/* A number that processes of one host have in common: of the boot and of the network namespace. */
static int64_t host_number(void)
{
	char id[64] = "";
	struct stat st = { 0 };
	uint64_t h = 14695981039346656037u;
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");

	if (f) {
		if (!fgets(id, sizeof(id), f))
			id[0] = 0;
		fclose(f);
	}
	stat("/proc/self/ns/net", &st);
	for (size_t i = 0; i < sizeof(id); i++)
		h = (h ^ (unsigned char)id[i]) * 1099511628211u;
	h = (h ^ st.st_ino) * 1099511628211u;
	return (int64_t)(h >> 2);
}

/* What members differ in is named by the first of them. */
static void differ(MPI_Comm comm, const char *name, int64_t low, int64_t high, const char *taken)
{
	int rank = 0;

	PMPI_Comm_rank(comm, &rank);
	if (!rank)
		warn("%s differs between the ranks, from %lld to %lld: %s", name, (long long)low, (long long)high,
		     taken);
}

/* Agrees on what every member wants. */
static void agree(struct place *p, MPI_Comm comm, bool able)
{
	const struct settings *s = settings();
	int64_t mode = able ? s->mode : MODE_NO, host = host_number();
	int64_t mine[] = { mode, -mode, s->min_size, -s->min_size, host, -host }, all[6];
	bool apart, always;

	if (PMPI_Allreduce(mine, all, 6, MPI_INT64_T, MPI_MAX, comm) || p == &refused)
		return;
	apart = all[4] != -all[5];
	p->min_size = all[2];
	always = all[0] == MODE_YES && all[1] == -MODE_YES;
	p->wanted = all[0] != MODE_NO && (apart || always);
	p->calls = always ? 0 : CALLS_BEFORE;
	if (all[0] != -all[1])
		differ(comm, "FI_WEFT_MPI_ALLTOALL (0 auto, 1 yes, 2 no)", -all[1], all[0],
		       all[0] == MODE_NO ? "all-to-all is the MPI's" : "auto is used");
	if (all[2] != -all[3])
		differ(comm, "FI_WEFT_MPI_MIN_SIZE", -all[3], all[2], "the larger one is used");
}

static struct place *settle(MPI_Comm comm)
{
	struct place *p;
	int inter = 0;

	p = calloc(1, sizeof(*p));
	if (!p)
		p = &refused;
	PMPI_Comm_test_inter(comm, &inter);
	PMPI_Comm_size(comm, &p->size);
	if (!inter && p->size > 1)
		agree(p, comm, p != &refused && packs_plainly());
	PMPI_Comm_set_attr(comm, comm_key, p);
	return p;
}

struct group *comm_group(MPI_Comm comm, int64_t slice, enum form form)
{
	bool collective = form != FORM_REQUEST;
	struct place *p = NULL;
	int found = 0;

	if (comm == MPI_COMM_NULL || atomic_load_explicit(&ended, memory_order_relaxed) || !prepare())
		return NULL;
	if (PMPI_Comm_get_attr(comm, comm_key, &p, &found))
		return NULL;
	if (!found) {
		if (!collective)
			return NULL;
		p = settle(comm);
	}
	if (!p->wanted || (slice >= 0 && slice < p->min_size))
		return NULL;
	if (!p->tried && form == FORM_BLOCKING && p->calls > 0) {
		p->calls--;
		return NULL;
	}
	if (!p->tried && collective) {
		p->tried = true;
		p->group = group_make(comm, p->size);
	}
	return p->group;
}

static int class_of(int err)
{
	switch (err) {
	case FI_ETRUNC:
		return MPI_ERR_TRUNCATE;
	case FI_ENOMEM:
		return MPI_ERR_NO_MEM;
	case FI_EMSGSIZE:
		return MPI_ERR_COUNT;
	}
	return MPI_ERR_OTHER;
}

static int fails(MPI_Comm comm, int code, const char *what, const char *why)
{
	warn("%s: %s", what, why);
	if (comm != MPI_COMM_NULL)
		PMPI_Comm_call_errhandler(comm, code);
	return code;
}

int comm_error(MPI_Comm comm, int err, const char *what)
{
	return fails(comm, class_of(err), what, fabric_strerror(err));
}

int comm_fails(MPI_Comm comm, int code, const char *what)
{
	char text[MPI_MAX_ERROR_STRING] = "";
	int n;

	PMPI_Error_string(code, text, &n);
	return fails(comm, code, what, text);
}
