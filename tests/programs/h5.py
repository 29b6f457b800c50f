# SPDX-License-Identifier: BSD-2-Clause
"""HDF5 through MPI-IO: ranks write columns of one dataset together and read rows.

Argument: the file. Rank 0 prints "h5: passed on N ranks" when all that was read is
what was written.
"""

import sys

import numpy as np
from mpi4py import MPI

import h5py

ROWS, COLUMNS = 96, 5000


def values(rows, columns):
    return rows[:, None] * COLUMNS + columns[None, :]


def main():
    comm = MPI.COMM_WORLD
    rank, size = comm.rank, comm.size
    if not h5py.get_config().mpi:
        sys.exit("h5py is built without MPI")
    with h5py.File(sys.argv[1], "w", driver="mpio", comm=comm) as f:
        grid = f.create_dataset("grid", (ROWS, COLUMNS), dtype="f8")
        with grid.collective:
            grid[:, rank::size] = values(np.arange(ROWS), np.arange(rank, COLUMNS, size))
    comm.Barrier()
    with h5py.File(sys.argv[1], "r", driver="mpio", comm=comm) as f:
        grid = f["grid"]
        with grid.collective:
            read = grid[rank::size, :]
    wrong = int((read != values(np.arange(rank, ROWS, size), np.arange(COLUMNS))).sum())
    wrong = comm.allreduce(wrong)
    total = comm.allreduce(float(read.sum()))
    n = ROWS * COLUMNS
    if wrong or total != n * (n - 1) / 2:
        sys.exit(f"{wrong} wrong values, sum {total}")
    if rank == 0:
        print(f"h5: passed on {size} ranks")


main()
