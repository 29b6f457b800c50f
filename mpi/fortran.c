/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Open MPI's functions for Fortran call PMPI functions, so that they need wrappers of
 * their own. (MPICH's call the C functions.) Each has the names of all Fortran
 * compilers, and the one that module mpi_f08 calls. What weft does not do goes to Open
 * MPI's own function with the arguments as they came.
 */
#include "fortran.h"

#if defined(OPEN_MPI)

#include <stdlib.h>

/* ---- constants, which are variables in Fortran, of one of four names ---- */

enum { SPELLINGS = 4 };

static struct {
	void *in_place[SPELLINGS], *bottom[SPELLINGS]; /* their addresses; NULL: the MPI has no such name */
} constants;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_constants(void)
{
	static const char *const in_place[SPELLINGS] = {
		"mpi_fortran_in_place_",
		"mpi_fortran_in_place",
		"mpi_fortran_in_place__",
		"MPI_FORTRAN_IN_PLACE",
	};
	static const char *const bottom[SPELLINGS] = {
		"mpi_fortran_bottom_",
		"mpi_fortran_bottom",
		"mpi_fortran_bottom__",
		"MPI_FORTRAN_BOTTOM",
	};

	for (int i = 0; i < SPELLINGS; i++) {
		constants.in_place[i] = dlsym(RTLD_DEFAULT, in_place[i]);
		constants.bottom[i] = dlsym(RTLD_DEFAULT, bottom[i]);
	}
}

static bool is(void *const found[SPELLINGS], const void *p)
{
	for (int i = 0; i < SPELLINGS; i++)
		if (found[i] == p)
			return true;
	return false;
}

/* The buffer of C's function. One without elements may be null. */
static void *buffer(void *p)
{
	if (!p)
		return NULL;
	pthread_once(&once, find_constants);
	if (is(constants.in_place, p))
		return MPI_IN_PLACE;
	return is(constants.bottom, p) ? MPI_BOTTOM : p;
}

/* ---- all to all ---- */

static void one(struct list *l, void *buf, const F *count, const F *type)
{
	l->buf = buffer(buf);
	if (l->buf == MPI_IN_PLACE)
		return;
	l->count = *count;
	l->type = PMPI_Type_f2c(*type);
}

static void vector(struct list *l, void *buf, const F *counts, const F *displs, const F *type)
{
	l->buf = buffer(buf);
	if (l->buf == MPI_IN_PLACE)
		return;
	l->counts = counts;
	l->displs = displs;
	l->type = PMPI_Type_f2c(*type);
}

/* Types are converted for as many members as the communicator has. */
static void typed(struct list *l, MPI_Comm comm, void *buf, const F *counts, const F *displs, const F *types)
{
	MPI_Datatype *list;
	int n = 0;

	l->buf = buffer(buf);
	l->counts = counts;
	l->displs = displs;
	if (l->buf == MPI_IN_PLACE)
		return;
	PMPI_Comm_size(comm, &n);
	l->types = list = calloc(n, sizeof(*list));
	for (int i = 0; list && i < n; i++)
		list[i] = PMPI_Type_f2c(types[i]);
}

/* Whether calls on a communicator can be weft's. Those on intercommunicators, and where C's and Fortran's integers
 * differ, are the MPI's: their arguments are not read. */
static bool served(MPI_Comm comm)
{
	int inter = 0;

	return sizeof(F) == sizeof(int) && comm != MPI_COMM_NULL && !PMPI_Comm_test_inter(comm, &inter) && !inter;
}

/* Carries a call out, or leaves it. */
static bool take(struct call *c, enum form form, F *request, F *ierr)
{
	MPI_Request r = MPI_REQUEST_NULL;
	int rc;
	bool taken = op_call(c, form, &r, &rc);

	free((void *)c->send.types);
	free((void *)c->recv.types);
	if (taken && request)
		*request = PMPI_Request_c2f(r);
	if (taken && ierr)
		*ierr = rc;
	return taken;
}

#define ONE_ARGS void *sendbuf, F *scount, F *stype, void *recvbuf, F *rcount, F *rtype, F *comm
#define ONE_PASS sendbuf, scount, stype, recvbuf, rcount, rtype, comm
#define ONE_CALL \
	c.uniform = true; \
	one(&c.send, sendbuf, scount, stype); \
	one(&c.recv, recvbuf, rcount, rtype)

#define VECTOR_ARGS \
	void *sendbuf, F *scounts, F *sdispls, F *stype, void *recvbuf, F *rcounts, F *rdispls, F *rtype, F *comm
#define VECTOR_PASS sendbuf, scounts, sdispls, stype, recvbuf, rcounts, rdispls, rtype, comm
#define VECTOR_CALL \
	vector(&c.send, sendbuf, scounts, sdispls, stype); \
	vector(&c.recv, recvbuf, rcounts, rdispls, rtype)

#define TYPES_ARGS \
	void *sendbuf, F *scounts, F *sdispls, F *stypes, void *recvbuf, F *rcounts, F *rdispls, F *rtypes, F *comm
#define TYPES_PASS sendbuf, scounts, sdispls, stypes, recvbuf, rcounts, rdispls, rtypes, comm
#define TYPES_CALL \
	typed(&c.send, c.comm, sendbuf, scounts, sdispls, stypes); \
	typed(&c.recv, c.comm, recvbuf, rcounts, rdispls, rtypes)

#define DEFINE(o, m, M, f, UP, form, request, k, args, pass) \
	void o##_##f##_f args \
	{ \
		struct call c = { .name = #f, .comm = PMPI_Comm_f2c(*comm) }; \
		OWN(#o "_" #f "_f", args); \
\
		if (served(c.comm)) { \
			k##_CALL; \
			if (take(&c, form, request, ierr)) \
				return; \
		} \
		next pass; \
	} \
	NAMES(o, m, M, f, UP, args)

#define BLOCKING(f, UP, k) DEFINE(ompi, mpi, MPI, f, UP, FORM_BLOCKING, NULL, k, (k##_ARGS, F * ierr), (k##_PASS, ierr))
#define REQUEST(f, UP, k) \
	DEFINE(ompi, mpi, MPI, f, UP, FORM_REQUEST, request, k, (k##_ARGS, F * request, F * ierr), \
	       (k##_PASS, request, ierr))
#define PERSISTENT(o, m, M, f, UP, k) \
	DEFINE(o, m, M, f, UP, FORM_PERSISTENT, request, k, (k##_ARGS, F * inf, F * request, F * ierr), \
	       (k##_PASS, inf, request, ierr))

BLOCKING(alltoall, ALLTOALL, ONE)
BLOCKING(alltoallv, ALLTOALLV, VECTOR)
BLOCKING(alltoallw, ALLTOALLW, TYPES)
REQUEST(ialltoall, IALLTOALL, ONE)
REQUEST(ialltoallv, IALLTOALLV, VECTOR)
REQUEST(ialltoallw, IALLTOALLW, TYPES)
#if MPI_VERSION >= 4
PERSISTENT(ompi, mpi, MPI, alltoall_init, ALLTOALL_INIT, ONE)
PERSISTENT(ompi, mpi, MPI, alltoallv_init, ALLTOALLV_INIT, VECTOR)
PERSISTENT(ompi, mpi, MPI, alltoallw_init, ALLTOALLW_INIT, TYPES)
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
PERSISTENT(ompix, mpix, MPIX, alltoall_init, ALLTOALL_INIT, ONE)
PERSISTENT(ompix, mpix, MPIX, alltoallv_init, ALLTOALLV_INIT, VECTOR)
PERSISTENT(ompix, mpix, MPIX, alltoallw_init, ALLTOALLW_INIT, TYPES)
#endif

#endif
