/* SPDX-License-Identifier: BSD-2-Clause */
/* Some MPI_Alltoall of long slices on one communicator, whose data is checked. Argument: how many. */
#include "check.h"

#define SLICE 65536

int main(int argc, char **argv)
{
	start(&argc, &argv);
	CHECK(argc == 2);
	int count = atoi(argv[1]);
	unsigned char *in = malloc((size_t)size * SLICE), *out = malloc((size_t)size * SLICE);
	CHECK(in && out);
	for (int i = 0; i < count; i++) {
		for (int r = 0; r < size; r++)
			fill(in + (size_t)r * SLICE, SLICE, i + rank * 1000 + r);
		CHECK(!MPI_Alltoall(in, SLICE, MPI_BYTE, out, SLICE, MPI_BYTE, MPI_COMM_WORLD));
		for (int r = 0; r < size; r++)
			verify(out + (size_t)r * SLICE, SLICE, i + r * 1000 + rank);
	}
	free(in);
	free(out);
	return conclude("few");
}
