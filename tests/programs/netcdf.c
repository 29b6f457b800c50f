// SPDX-License-Identifier: BSD-2-Clause
// PnetCDF: ranks write blocks of one variable together, in two dimensions, and read
// back those of their neighbours. Argument: the file.
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 200, WIDTH = 300 };

static void check(int status, const char *step)
{
	if (status == NC_NOERR)
		return;
	fprintf(stderr, "netcdf: %s: %s\n", step, ncmpi_strerror(status));
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static int value(int rank, int row, int column)
{
	return rank * 1000000 + row * 1000 + column;
}

static void fill(const char *path, int rank, int size, int *block)
{
	MPI_Offset start[2] = { 0, (MPI_Offset)rank * WIDTH }, count[2] = { ROWS, WIDTH };
	int file, dims[2], variable;

	check(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file), "create");
	check(ncmpi_def_dim(file, "row", ROWS, &dims[0]), "def_dim");
	check(ncmpi_def_dim(file, "column", (MPI_Offset)size * WIDTH, &dims[1]), "def_dim");
	check(ncmpi_def_var(file, "grid", NC_INT, 2, dims, &variable), "def_var");
	check(ncmpi_enddef(file), "enddef");
	for (int i = 0; i < ROWS * WIDTH; i++)
		block[i] = value(rank, i / WIDTH, i % WIDTH);
	check(ncmpi_put_vara_int_all(file, variable, start, count, block), "put_vara");
	check(ncmpi_close(file), "close");
}

static int wrong(const char *path, int rank, int size, int *block)
{
	int from = (rank + 1) % size, file, variable, bad = 0;
	MPI_Offset start[2] = { 0, (MPI_Offset)from * WIDTH }, count[2] = { ROWS, WIDTH };

	check(ncmpi_open(MPI_COMM_WORLD, path, NC_NOWRITE, MPI_INFO_NULL, &file), "open");
	check(ncmpi_inq_varid(file, "grid", &variable), "inq_varid");
	check(ncmpi_get_vara_int_all(file, variable, start, count, block), "get_vara");
	check(ncmpi_close(file), "close");
	for (int i = 0; i < ROWS * WIDTH; i++)
		bad += block[i] != value(from, i / WIDTH, i % WIDTH);
	return bad;
}

int main(int argc, char **argv)
{
	int rank, size, bad, all;
	int *block = malloc(sizeof(int) * ROWS * WIDTH);

	if (argc != 2 || !block)
		return 2;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	fill(argv[1], rank, size, block);
	bad = wrong(argv[1], rank, size, block);
	MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf(all ? "netcdf: %d values are wrong\n" : "netcdf: passed on %d ranks\n", all ? all : size);
	MPI_Finalize();
	free(block);
	return all != 0;
}
