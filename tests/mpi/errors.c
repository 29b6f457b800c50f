/* SPDX-License-Identifier: BSD-2-Clause */
/* Errors of MPI_Alltoallv under libweft-mpi: counts that do not agree, and with the argument "kill" a rank that
 * is killed. The others get errors through their error handler, in each form, and nobody hangs. They end without
 * MPI_Finalize then, to which the lost rank does not come. */
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "check.h"

static int calls;

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
	if (argc < 2 || strcmp(argv[1], "kill"))
		return finish("errors");
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
