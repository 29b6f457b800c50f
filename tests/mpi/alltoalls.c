/* SPDX-License-Identifier: BSD-2-Clause */
/* What alltoalls.py does with mpi4py: MPI_Alltoall, Alltoallv and Alltoallw in turn with the MPI's own, its PMPI
 * functions, with every byte checked. Arguments: the bytes of a slice, the number of rounds. */
#include "check.h"

enum { FORMS = 3, MOST = 64 };

static const char *names[FORMS] = { "Alltoall", "Alltoallv", "Alltoallw" };
static int slice, counts[MOST], displs[MOST];
static MPI_Datatype types[MOST];
static unsigned char *out, *got;

static int front(int form)
{
	if (form == 0)
		return MPI_Alltoall(out, slice, MPI_BYTE, got, slice, MPI_BYTE, MPI_COMM_WORLD);
	if (form == 1)
		return MPI_Alltoallv(out, counts, displs, MPI_BYTE, got, counts, displs, MPI_BYTE, MPI_COMM_WORLD);
	return MPI_Alltoallw(out, counts, displs, types, got, counts, displs, types, MPI_COMM_WORLD);
}

static int own(int form)
{
	if (form == 0)
		return PMPI_Alltoall(out, slice, MPI_BYTE, got, slice, MPI_BYTE, MPI_COMM_WORLD);
	if (form == 1)
		return PMPI_Alltoallv(out, counts, displs, MPI_BYTE, got, counts, displs, MPI_BYTE, MPI_COMM_WORLD);
	return PMPI_Alltoallw(out, counts, displs, types, got, counts, displs, types, MPI_COMM_WORLD);
}

/* Runs one with new data, and returns the last rank's time in ms. */
static double turn(int form, int number, int (*call)(int form))
{
	double took;

	for (int r = 0; r < size; r++)
		fill(out + displs[r], counts[r], (uint64_t)number << 32 | rank << 16 | r);
	memset(got, 0, displs[size - 1] + counts[size - 1]);
	MPI_Barrier(MPI_COMM_WORLD);
	took = -MPI_Wtime();
	CHECK_EQ(call(form), MPI_SUCCESS);
	took += MPI_Wtime();
	MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	for (int r = 0; r < size; r++)
		verify(got + displs[r], counts[r], (uint64_t)number << 32 | r << 16 | rank);
	return took * 1e3;
}

/* Alike, or half, one and one and a half slices, as many both ways. */
static void lay_out(int form)
{
	for (int r = 0; r < size; r++) {
		types[r] = MPI_BYTE;
		counts[r] = form ? slice * (1 + (rank + r) % 3) / 2 : slice;
		displs[r] = r ? displs[r - 1] + counts[r - 1] : 0;
	}
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	CHECK(argc == 3 && size <= MOST);
	int rounds = atoi(argv[2]);
	double *with = calloc(rounds + 1, sizeof(*with)), *without = calloc(rounds + 1, sizeof(*without));

	slice = atoi(argv[1]);
	CHECK(slice > 0 && slice < 1 << 24 && rounds > 0 && with && without);
	out = malloc(2 * (size_t)slice * size);
	got = malloc(2 * (size_t)slice * size);
	CHECK(out && got);
	for (int form = 0; form < FORMS; form++) {
		lay_out(form);
		for (int i = 0; i <= rounds; i++) {
			with[i] = turn(form, 2 * i, front);
			without[i] = turn(form, 2 * i + 1, own);
		}
		if (rank == 0)
			printf("%s %d: %.1f ms, the MPI's own %.1f ms\n", names[form], slice, median(with + 1, rounds),
			       median(without + 1, rounds));
	}
	free(out);
	free(got);
	free(with);
	free(without);
	return conclude("alltoalls");
}
