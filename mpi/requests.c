/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The functions that complete requests. While operations of this library are
 * pending none of them may sleep in the MPI, so those that wait test in turn with
 * reading weft; else they are the MPI's.
 */
#include "weftmpi.h"

static bool pending(void) { return atomic_load(&requests_pending) != 0; }

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
	while (pending()) {
		int flag = 0, rc;

		groups_progress();
		rc = PMPI_Test(request, &flag, status);
		if (rc || flag)
			return rc;
	}
	return PMPI_Wait(request, status);
}

int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
	while (pending()) {
		int flag = 0, rc;

		groups_progress();
		rc = PMPI_Testany(count, requests, index, &flag, status);
		if (rc || flag)
			return rc;
	}
	return PMPI_Waitany(count, requests, index, status);
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
	while (pending()) {
		int flag = 0, rc;

		groups_progress();
		rc = PMPI_Testall(count, requests, &flag, statuses);
		if (rc || flag)
			return rc;
	}
	return PMPI_Waitall(count, requests, statuses);
}

int MPI_Waitsome(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[])
{
	while (pending()) {
		int rc;

		groups_progress();
		*done = 0;
		rc = PMPI_Testsome(count, requests, done, indices, statuses);
		if (rc || *done)
			return rc;
	}
	return PMPI_Waitsome(count, requests, done, indices, statuses);
}

static void read_weft(void)
{
	if (pending())
		groups_progress();
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
	read_weft();
	return PMPI_Test(request, flag, status);
}

int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
	read_weft();
	return PMPI_Testany(count, requests, index, flag, status);
}

int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
	read_weft();
	return PMPI_Testall(count, requests, flag, statuses);
}

int MPI_Testsome(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[])
{
	read_weft();
	return PMPI_Testsome(count, requests, done, indices, statuses);
}

int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
	read_weft();
	return PMPI_Request_get_status(request, flag, status);
}

int MPI_Start(MPI_Request *request)
{
	int rc;

	return op_start(request, &rc) ? rc : PMPI_Start(request);
}

int MPI_Startall(int count, MPI_Request requests[])
{
	int rc = MPI_SUCCESS;

	for (int i = 0; i < count && !rc; i++)
		rc = MPI_Start(&requests[i]);
	return rc;
}

int MPI_Request_free(MPI_Request *request)
{
	int rc;

	return op_forget(request, &rc) ? rc : PMPI_Request_free(request);
}
