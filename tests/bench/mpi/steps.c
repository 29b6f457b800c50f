/* SPDX-License-Identifier: BSD-2-Clause
 *
 * steps FILE BYTES [counted]: calls of MPI between 2 ranks, of which rank 0 has those of one message and of 64 between
 * two breakpoints each, if it is counted, for tests/cxi/instructions.c (tests/bench/mpi/steps.sh). The ranks wait for
 * each other in FILE, which they map, so no call waits for the other rank: what it counts is what it executes.
 */
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define WINDOW 64
#define MOST 65536
#define WARM 300
#define ROUNDS 3

static _Atomic int *turns; /* of each rank, a cache line apart */
static int rank, turn, len;
static bool counted;
static char in[WINDOW][MOST], out[MOST];
static MPI_Request requests[WINDOW];

static void meet(void)
{
	turn++;
	atomic_store(&turns[rank * 16], turn);
	while (atomic_load(&turns[!rank * 16]) < turn)
		sched_yield();
	usleep(1000); /* what was sent is there */
}

static void mark(void)
{
	if (counted)
		__asm__ volatile("int3");
}

static void receive(int n)
{
	for (int i = 0; i < n; i++)
		MPI_Irecv(in[i], len, MPI_BYTE, !rank, 1, MPI_COMM_WORLD, &requests[i]);
}

static void conclude(int n)
{
	if (n == 1)
		MPI_Wait(requests, MPI_STATUS_IGNORE);
	else
		MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
}

static void transmit(int n)
{
	if (n == 1) {
		MPI_Send(out, len, MPI_BYTE, !rank, 1, MPI_COMM_WORLD);
		return;
	}
	for (int i = 0; i < n; i++)
		MPI_Isend(out, len, MPI_BYTE, !rank, 1, MPI_COMM_WORLD, &requests[i]);
	conclude(n);
}

/* Sends n messages, whose receives are posted. */
static void sends(int n)
{
	if (rank)
		receive(n);
	meet();
	mark();
	if (!rank)
		transmit(n);
	mark();
	meet();
	if (rank)
		conclude(n);
	meet();
}

/* Posts n receives, and completes them when their messages are there. */
static void receives(int n)
{
	mark();
	if (!rank)
		receive(n);
	mark();
	meet();
	if (rank)
		transmit(n);
	meet();
	mark();
	if (!rank)
		conclude(n);
	mark();
	meet();
}

/* Keeps n messages as unexpected, while it waits for one that follows them; posts their receives; completes them. */
static void unexpected(int n)
{
	meet();
	if (rank) {
		transmit(n);
		MPI_Send(out, len, MPI_BYTE, !rank, 2, MPI_COMM_WORLD);
	}
	meet();
	mark();
	if (!rank)
		MPI_Recv(in[0], len, MPI_BYTE, !rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	mark();
	mark();
	if (!rank)
		receive(n);
	mark();
	mark();
	if (!rank)
		conclude(n);
	mark();
	meet();
}

int main(int argc, char **argv)
{
	int fd;

	if (argc < 3 || (len = atoi(argv[2])) > MOST || len < 0)
		return 2;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, 4096))
		MPI_Abort(MPI_COMM_WORLD, 1);
	turns = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (turns == MAP_FAILED)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (int i = 0; i < WARM; i++)
		for (int k = 0; k < 2; k++)
			if (rank == k)
				MPI_Send(out, len, MPI_BYTE, !rank, 1, MPI_COMM_WORLD);
			else
				MPI_Recv(in[0], len, MPI_BYTE, !rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int i = 0; i < 3; i++) {
		sends(WINDOW);
		receives(WINDOW);
		unexpected(WINDOW);
	}
	counted = !rank && argc > 3;
	for (int i = 0; i < ROUNDS; i++) {
		sends(1);
		receives(1);
		sends(WINDOW);
		receives(WINDOW);
		unexpected(WINDOW);
	}
	MPI_Finalize();
	return 0;
}
