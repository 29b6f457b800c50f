/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The functions that complete requests. While operations of this library are
 * pending none of them may sleep in the MPI, so those that wait ask for the state of
 * requests in turn with reading weft; else they are the MPI's.
 */
#include "weftmpi.h"

static bool pending(void)
{
	return atomic_load(&requests_pending) != 0;
}

/* MPI_Testall would do for the waits for all of a list, but that of MPICH 4.0 fails with persistent
 * requests of collective operations. */
void request_await(MPI_Request request)
{
	int flag = 0, rc = MPI_SUCCESS;

	if (!pending())
		return;
	groups_wait(true);
	while (pending() && !flag && !rc) {
		groups_progress();
		rc = PMPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
		turn(flag || rc);
	}
	groups_wait(false);
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
	request_await(*request);
	return PMPI_Wait(request, status);
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
	for (int i = 0; i < count && pending(); i++)
		request_await(requests[i]);
	return PMPI_Waitall(count, requests, statuses);
}

int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
	int flag = 0, rc = MPI_SUCCESS;

	if (pending()) {
		groups_wait(true);
		while (pending() && !flag && !rc) {
			groups_progress();
			rc = PMPI_Testany(count, requests, index, &flag, status);
			turn(flag || rc);
		}
		groups_wait(false);
		if (rc || flag)
			return rc;
	}
	return PMPI_Waitany(count, requests, index, status);
}

int MPI_Waitsome(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[])
{
	int rc = MPI_SUCCESS;

	if (pending()) {
		groups_wait(true);
		for (*done = 0; pending() && !*done && !rc;) {
			groups_progress();
			rc = PMPI_Testsome(count, requests, done, indices, statuses);
			turn(*done || rc);
		}
		groups_wait(false);
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
