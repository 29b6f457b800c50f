/* SPDX-License-Identifier: BSD-2-Clause */
/* Errors of MPI_Alltoallv under libweft-mpi: counts that do not agree, a rank that cannot begin, and with the argument
 * "kill" a rank that is killed. The others get errors through their error handler, in each form, and nothing hangs.
 * They
 * end without MPI_Finalize then, to which the lost rank does not come. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "check.h"

static int calls, broken;

static void handler(MPI_Comm *comm, int *code, ...)
{
	(void)comm;
	calls += *code != MPI_SUCCESS;
}

static int exchange(const void *buf, int differs, int with_request)
{
	int counts[64], others[64], displs[64];
	static char out[64 * 100000];
	MPI_Request r;
	int rc;

	for (int i = 0; i < size; i++) {
		counts[i] = others[i] = 90000;
		displs[i] = i * 100000;
	}
	if (differs)
		others[0] = 80000;
	if (!with_request)
		return MPI_Alltoallv(buf, counts, displs, MPI_BYTE, out, others, displs, MPI_BYTE, MPI_COMM_WORLD);
	rc = MPI_Ialltoallv(buf, counts, displs, MPI_BYTE, out, others, displs, MPI_BYTE, MPI_COMM_WORLD, &r);
	if (rc == MPI_SUCCESS)
		rc = MPI_Wait(&r, MPI_STATUS_IGNORE);
	return rc;
}

/* Ends the process at any instant of the operations. */
static void *killer(void *arg)
{
	struct timespec t;

	(void)arg;
	clock_gettime(CLOCK_MONOTONIC, &t);
	usleep(t.tv_nsec / 1000 % 20000);
	raise(SIGKILL);
	return NULL;
}

/* The library packs by this one. */
int PMPI_Pack(const void *in, int count, MPI_Datatype type, void *out, int room, int *at, MPI_Comm comm)
{
	typedef int pack(const void *, int, MPI_Datatype, void *, int, int *, MPI_Comm);
	static pack *own;

	if (!own)
		own = (pack *)dlsym(RTLD_NEXT, "PMPI_Pack");
	return broken ? MPI_ERR_TYPE : own(in, count, type, out, room, at, comm);
}

/* One rank cannot pack what it has: in each form all get an error, and the next operation works. */
static void unpacked(void)
{
	static int in[64 * 2000], out[64 * 4000];
	MPI_Datatype holes;
	MPI_Request r;

	MPI_Type_vector(2000, 1, 2, MPI_INT, &holes);
	MPI_Type_commit(&holes);
	for (int form = 0; form < 3; form++) {
		int rc = MPI_SUCCESS, before = calls;

		broken = rank == size - 1;
		if (form == 0) {
			rc = MPI_Alltoall(out, 1, holes, in, 2000, MPI_INT, MPI_COMM_WORLD);
		} else if (form == 1) {
			rc = MPI_Ialltoall(out, 1, holes, in, 2000, MPI_INT, MPI_COMM_WORLD, &r);
			rc = rc ? rc : MPI_Wait(&r, MPI_STATUS_IGNORE);
		} else { /* its own two sides differ */
			rc = MPI_Alltoall(out, 1, holes, in, broken ? 1999 : 2000, MPI_INT, MPI_COMM_WORLD);
		}
		CHECK(rc != MPI_SUCCESS && calls > before);
		broken = 0;
		CHECK_EQ(MPI_Alltoall(out, 1, holes, in, 2000, MPI_INT, MPI_COMM_WORLD), MPI_SUCCESS);
	}
	MPI_Type_free(&holes);
}

int main(int argc, char **argv)
{
	static char in[64 * 100000];
	MPI_Errhandler h;
	pthread_t id;
	int rc, class;

	start(&argc, &argv);
	MPI_Comm_create_errhandler(handler, &h);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, h);
	CHECK_EQ(exchange(in, 0, 0), MPI_SUCCESS);
	for (int form = 0; form < 2; form++) {
		int before = calls;

		rc = exchange(in, rank == 1, form);
		if (rank < 2) {
			CHECK(rc != MPI_SUCCESS && calls > before);
			MPI_Error_class(rc, &class);
			CHECK_EQ(class, MPI_ERR_TRUNCATE);
		}
	}
	CHECK_EQ(exchange(in, 0, 0), MPI_SUCCESS);
	unpacked();
	if (argc < 2 || strcmp(argv[1], "kill"))
		return conclude("errors");
	MPI_Barrier(MPI_COMM_WORLD);
	calls = 0;
	rc = MPI_SUCCESS;
	if (rank == size - 1)
		CHECK(!pthread_create(&id, NULL, killer, NULL));
	for (int i = 0; rank == size - 1 || rc == MPI_SUCCESS; i++)
		rc = exchange(in, 0, i % 2);
	CHECK(rc != MPI_SUCCESS && calls > 0);
	CHECK(exchange(in, 0, 0) != MPI_SUCCESS && exchange(in, 0, 1) != MPI_SUCCESS);
	printf("errors: rank %d got them\n", rank);
	fflush(stdout);
	_exit(0);
}
