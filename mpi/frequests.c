/* SPDX-License-Identifier: BSD-2-Clause
 *
 * requests.c for Fortran, where its functions do not call C's: all of Open MPI's, where those
 * of module mpi_f08 that test call PMPI's, and those of MPICH's module mpi_f08. Each goes to
 * the MPI's own function for Fortran, which knows what a status is there.
 */
#include "fortran.h"

#define TEXT(s) #s
#define QUOTE(s) TEXT(s)
#define NAME(f) QUOTE(SYMBOL(f))

#define F08(f) mpi_##f##_f08_
#if defined(OPEN_MPI)
#define SYMBOL(f) ompi_##f##_f
#define ALIASES(f, UP, args) NAMES(ompi, mpi, MPI, f, UP, args)
#else
#define SYMBOL(f) F08(f)
#define ALIASES(f, UP, args)
#endif

static bool pending(void)
{
	return atomic_load(&requests_pending) != 0;
}

static void read_weft(void)
{
	if (pending())
		groups_progress();
}

void SYMBOL(wait)(F *request, F *status, F *ierr)
{
	OWN(NAME(wait), (F *, F *, F *));

	request_await(PMPI_Request_f2c(*request));
	next(request, status, ierr);
}
ALIASES(wait, WAIT, (F * request, F *status, F *ierr))

void SYMBOL(waitall)(F *count, F *requests, F *statuses, F *ierr)
{
	OWN(NAME(waitall), (F *, F *, F *, F *));

	for (F i = 0; i < *count && pending(); i++)
		request_await(PMPI_Request_f2c(requests[i]));
	next(count, requests, statuses, ierr);
}
ALIASES(waitall, WAITALL, (F * count, F *requests, F *statuses, F *ierr))

/* Waiting for some: the MPI's own, while nothing is pending; else test, until it says so or fails. */
#define WAIT(f, UP, args, pass, t, test_args, test_pass, ended) \
	void SYMBOL(f) args \
	{ \
		OWN(NAME(f), args); \
\
		while (pending()) { \
			F flag = 0, rc = 0; \
			static _Atomic(void *) found_test; \
			void(*test) test_args = (void(*) test_args)own(&found_test, NAME(t)); \
\
			groups_progress(); \
			test test_pass; \
			if (rc || ended) { \
				if (ierr) \
					*ierr = rc; \
				return; \
			} \
			turn(false); \
		} \
		next pass; \
	} \
	ALIASES(f, UP, args)

WAIT(waitany, WAITANY, (F * count, F *requests, F *index, F *status, F *ierr), (count, requests, index, status, ierr),
     testany, (F *, F *, F *, F *, F *, F *), (count, requests, index, &flag, status, &rc), flag)
WAIT(waitsome, WAITSOME, (F * count, F *requests, F *done, F *indices, F *statuses, F *ierr),
     (count, requests, done, indices, statuses, ierr), testsome, (F *, F *, F *, F *, F *, F *),
     (count, requests, &flag, indices, statuses, &rc), (flag && (*done = flag)))

#define TEST_AS(symbol, args, pass) \
	void symbol args \
	{ \
		OWN(QUOTE(symbol), args); \
\
		read_weft(); \
		next pass; \
	}

#if defined(OPEN_MPI)
#define TEST(f, UP, args, pass) \
	TEST_AS(SYMBOL(f), args, pass) \
	ALIASES(f, UP, args) \
	TEST_AS(F08(f), args, pass)
#else
#define TEST(f, UP, args, pass) TEST_AS(F08(f), args, pass)
#endif

TEST(test, TEST, (F * request, F *flag, F *status, F *ierr), (request, flag, status, ierr))
TEST(testall, TESTALL, (F * count, F *requests, F *flag, F *statuses, F *ierr), (count, requests, flag, statuses, ierr))
TEST(testany, TESTANY, (F * count, F *requests, F *index, F *flag, F *status, F *ierr),
     (count, requests, index, flag, status, ierr))
TEST(testsome, TESTSOME, (F * count, F *requests, F *done, F *indices, F *statuses, F *ierr),
     (count, requests, done, indices, statuses, ierr))
TEST(request_get_status, REQUEST_GET_STATUS, (F * request, F *flag, F *status, F *ierr), (request, flag, status, ierr))

#define PERSISTENT_CALL(f, UP, call) \
	void SYMBOL(f)(F * request, F * ierr) \
	{ \
		MPI_Request r = PMPI_Request_f2c(*request); \
		OWN(NAME(f), (F *, F *)); \
		int rc; \
\
		if (!call(&r, &rc)) { \
			next(request, ierr); \
			return; \
		} \
		*request = PMPI_Request_c2f(r); \
		if (ierr) \
			*ierr = rc; \
	} \
	ALIASES(f, UP, (F * request, F * ierr))

PERSISTENT_CALL(start, START, op_start)
PERSISTENT_CALL(request_free, REQUEST_FREE, op_forget)

void SYMBOL(startall)(F *count, F *requests, F *ierr)
{
	F rc = 0;

	for (F i = 0; i < *count && !rc; i++)
		SYMBOL(start)(&requests[i], &rc);
	if (ierr)
		*ierr = rc;
}
ALIASES(startall, STARTALL, (F * count, F *requests, F *ierr))
