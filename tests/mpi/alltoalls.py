#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""mpi4py's Alltoall, Alltoallv and Alltoallw, in turn with the MPI's own, with every byte checked.

The MPI's own are its PMPI functions, which no library in front of it takes. Run under mpirun with the bytes of a slice
and the number of rounds; rank 0 prints the medians of the last rank's time for each, and at the end "alltoalls: all
passed on N ranks".
"""

import ctypes
import random
import statistics
import sys

from mpi4py import MPI

WORLD = MPI.COMM_WORLD
LIBRARY = ctypes.CDLL(MPI.__file__)
HANDLE = ctypes.c_void_p if MPI._sizeof(MPI.Datatype) == 8 else ctypes.c_int


def counts_of(form, slice_, rank):
    """The bytes that rank has for each other one: alike, or half, one and one and a half slices."""
    if form == "Alltoall":
        return [slice_] * WORLD.size
    return [slice_ * (1 + (rank + r) % 3) // 2 for r in range(WORLD.size)]


def displs_of(counts):
    return [sum(counts[:r]) for r in range(len(counts))]


def part(form, turn, src, dst, n):
    """What src has for dst in a turn."""
    return random.Random(f"{form} {turn} {src} {dst}").randbytes(n)


def address(buf):
    return ctypes.addressof(ctypes.c_char.from_buffer(buf))


def ints(values):
    return (ctypes.c_int * len(values))(*values)


class Exchange:
    """One form, with its buffers."""

    def __init__(self, form, slice_):
        self.form, self.slice = form, slice_
        # A slice is as long both ways, because the counts are symmetric.
        self.counts = counts_of(form, slice_, WORLD.rank)
        self.displs = displs_of(self.counts)
        self.out, self.got = bytearray(sum(self.counts)), bytearray(sum(self.counts))

    def front(self):
        """Through mpi4py, and what is in front of the MPI."""
        types = [MPI.BYTE] * WORLD.size
        if self.form == "Alltoall":
            WORLD.Alltoall([self.out, MPI.BYTE], [self.got, MPI.BYTE])
        elif self.form == "Alltoallv":
            WORLD.Alltoallv([self.out, self.counts, self.displs, MPI.BYTE],
                            [self.got, self.counts, self.displs, MPI.BYTE])
        else:
            WORLD.Alltoallw([self.out, (self.counts, self.displs), types],
                            [self.got, (self.counts, self.displs), types])

    def own(self):
        """The MPI's own."""
        function = LIBRARY["PMPI_" + self.form]
        comm, byte = HANDLE(MPI._handleof(WORLD)), HANDLE(MPI._handleof(MPI.BYTE))
        out, got = ctypes.c_void_p(address(self.out)), ctypes.c_void_p(address(self.got))
        counts, displs = ints(self.counts), ints(self.displs)
        if self.form == "Alltoall":
            code = function(out, self.slice, byte, got, self.slice, byte, comm)
        elif self.form == "Alltoallv":
            code = function(out, counts, displs, byte, got, counts, displs, byte, comm)
        else:
            types = (HANDLE * WORLD.size)(*[MPI._handleof(MPI.BYTE)] * WORLD.size)
            code = function(out, counts, displs, types, got, counts, displs, types, comm)
        if code != 0:
            sys.exit(f"PMPI_{self.form} returns {code}")

    def turn(self, number, call):
        """Runs one with new data, and returns the last rank's time in ms."""
        for r, (n, at) in enumerate(zip(self.counts, self.displs)):
            self.out[at:at + n] = part(self.form, number, WORLD.rank, r, n)
        self.got[:] = bytes(len(self.got))
        WORLD.Barrier()
        began = MPI.Wtime()
        call()
        took = WORLD.allreduce(MPI.Wtime() - began, MPI.MAX)
        for r, (n, at) in enumerate(zip(self.counts, self.displs)):
            if self.got[at:at + n] != part(self.form, number, r, WORLD.rank, n):
                print(f"[{WORLD.rank}] {self.form}, turn {number}: wrong data of rank {r}", file=sys.stderr, flush=True)
                WORLD.Abort(1)
        return took * 1e3


def main():
    slice_, rounds = int(sys.argv[1]), int(sys.argv[2])
    for form in "Alltoall", "Alltoallv", "Alltoallw":
        exchange, front, own = Exchange(form, slice_), [], []
        for number in range(rounds + 1):
            front.append(exchange.turn(2 * number, exchange.front))
            own.append(exchange.turn(2 * number + 1, exchange.own))
        front, own = statistics.median(front[1:]), statistics.median(own[1:])
        if WORLD.rank == 0:
            print(f"{form} {slice_}: {front:.1f} ms, the MPI's own {own:.1f} ms", flush=True)
    if WORLD.rank == 0:
        print(f"alltoalls: all passed on {WORLD.size} ranks", flush=True)


main()
