/* SPDX-License-Identifier: BSD-2-Clause
 *
 * An MPI program that says whether messages arrive whole: a token goes round
 * the ranks with messages of every size from 1 byte to 1 MiB, then all ranks
 * add up their numbers.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* fill writes the bytes that belong to a round; check counts the wrong ones. */
static void fill(unsigned char *buf, int bytes, int round)
{
	for (int i = 0; i < bytes; i++)
		buf[i] = (unsigned char)(i * 31 + round);
}

static int check(const unsigned char *buf, int bytes, int round)
{
	int wrong = 0;

	for (int i = 0; i < bytes; i++)
		wrong += buf[i] != (unsigned char)(i * 31 + round);
	return wrong;
}

int main(int argc, char **argv)
{
	enum { MAX = 1 << 20 };
	int rank, ranks, wrong = 0, sum = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	unsigned char *buf = malloc(MAX);
	if (!buf)
		MPI_Abort(MPI_COMM_WORLD, 1);

	for (int bytes = 1, round = 0; bytes <= MAX; bytes *= 2, round++) {
		int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
		if (rank == 0) {
			fill(buf, bytes, round);
			MPI_Send(buf, bytes, MPI_BYTE, next, round, MPI_COMM_WORLD);
		}
		MPI_Recv(buf, bytes, MPI_BYTE, last, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		wrong += check(buf, bytes, round);
		if (rank != 0)
			MPI_Send(buf, bytes, MPI_BYTE, next, round, MPI_COMM_WORLD);
	}
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	wrong += sum != ranks * (ranks - 1) / 2;
	MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d ranks, messages of 1 byte to 1 MiB: %s\n", ranks, wrong ? "WRONG DATA" : "all data correct");
	free(buf);
	MPI_Finalize();
	return wrong != 0;
}
