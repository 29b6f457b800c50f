#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""All common collectives through mpi4py, with every value checked.

Run under mpirun, with the names of tests or for all; the last line of rank 0 is "collectives: all passed on N ranks".
"""

import sys
from array import array

from mpi4py import MPI

SIZES = (1, 7, 1000, 70000)  # elements per rank: every algorithm and protocol switch


def check(got, want, what):
    """Ends the job with a message when two values differ."""
    if got != want:
        text = f"[{MPI.COMM_WORLD.rank}] {what}: got {str(got)[:80]}, want {str(want)[:80]}"
        print(text, file=sys.stderr, flush=True)
        MPI.COMM_WORLD.Abort(1)


def ints(n, fill=0):
    """n 64-bit integers."""
    return array("q", [fill]) * n


def block(rank, n, salt=0):
    """What rank contributes: n integers that no other rank or salt has."""
    return array("q", range(rank * 1000003 + salt * 17, rank * 1000003 + salt * 17 + n))


def test_bcast(comm):
    for n in SIZES:
        for root in range(comm.size):
            buf = block(root, n) if comm.rank == root else ints(n)
            comm.Bcast(buf, root)
            check(buf, block(root, n), "Bcast")


def test_gather_scatter(comm):
    for n in SIZES:
        every = array("q")
        for r in range(comm.size):
            every += block(r, n)
        for root in range(comm.size):
            here = comm.rank == root
            got = ints(n * comm.size) if here else None
            comm.Gather(block(comm.rank, n), got, root)
            if here:
                check(got, every, "Gather")
            mine = ints(n)
            comm.Scatter(every if here else None, mine, root)
            check(mine, block(comm.rank, n), "Scatter")
        got = ints(n * comm.size)
        comm.Allgather(block(comm.rank, n), got)
        check(got, every, "Allgather")


def counts_of(size, n):
    """Uneven counts with a zero in between, and their displacements."""
    counts = [(n * (r + 1) // size if r != 1 else 0) for r in range(size)]
    displs = [sum(counts[:r]) for r in range(size)]
    return counts, displs


def test_uneven(comm):
    for n in SIZES:
        counts, displs = counts_of(comm.size, n)
        every = array("q")
        for r in range(comm.size):
            every += block(r, counts[r])
        mine = block(comm.rank, counts[comm.rank])
        root = comm.size - 1
        here = comm.rank == root
        got = ints(len(every))
        spec = [got, counts, displs, MPI.INT64_T]
        comm.Gatherv(mine, spec if here else None, root)
        if here:
            check(got, every, "Gatherv")
        got = ints(len(every))
        comm.Allgatherv(mine, [got, counts, displs, MPI.INT64_T])
        check(got, every, "Allgatherv")
        part = ints(counts[comm.rank])
        comm.Scatterv([every, counts, displs, MPI.INT64_T] if here else None, part, root)
        check(part, mine, "Scatterv")


def test_alltoall(comm):
    for n in SIZES:
        out = array("q")
        want = array("q")
        for r in range(comm.size):
            out += block(comm.rank, n, r)
            want += block(r, n, comm.rank)
        got = ints(n * comm.size)
        comm.Alltoall(out, got)
        check(got, want, "Alltoall")
        test_alltoallv(comm, n)


def test_alltoallv(comm, n):
    def count(src, dst):
        return (n * (src + 1)) // (dst + 1) % (n + 1)

    out, want = array("q"), array("q")
    scounts = [count(comm.rank, r) for r in range(comm.size)]
    rcounts = [count(r, comm.rank) for r in range(comm.size)]
    sdispls = [sum(scounts[:r]) for r in range(comm.size)]
    rdispls = [sum(rcounts[:r]) for r in range(comm.size)]
    for r in range(comm.size):
        out += block(comm.rank, scounts[r], r)
        want += block(r, rcounts[r], comm.rank)
    got = ints(sum(rcounts))
    comm.Alltoallv([out, scounts, sdispls, MPI.INT64_T], [got, rcounts, rdispls, MPI.INT64_T])
    check(got, want, "Alltoallv")
    got = ints(sum(rcounts))
    types = [MPI.INT64_T] * comm.size
    comm.Alltoallw([out, (scounts, [8 * d for d in sdispls]), types],
                   [got, (rcounts, [8 * d for d in rdispls]), types])
    check(got, want, "Alltoallw")


def rows_of(size, n):
    """What each rank contributes to a reduction."""
    return [array("q", [r + i % 13 + 1 for i in range(n)]) for r in range(size)]


def reduced(rows, function=sum):
    """The element-wise reduction of these rows."""
    return array("q", [function(column) for column in zip(*rows)])


def fold(values, f):
    result = values[0]
    for v in values[1:]:
        result = f(result, v)
    return result


def prod(values):
    return fold(values, lambda a, b: a * b)


OPS = (
    (MPI.SUM, sum), (MPI.MAX, max), (MPI.MIN, min), (MPI.PROD, prod),
    (MPI.BAND, lambda v: fold(v, lambda a, b: a & b)),
    (MPI.BOR, lambda v: fold(v, lambda a, b: a | b)),
    (MPI.BXOR, lambda v: fold(v, lambda a, b: a ^ b)),
)


def test_reduce(comm):
    for n in SIZES:
        rows = rows_of(comm.size, n)
        for op, function in OPS if n < 2000 else OPS[:2]:
            want = reduced(rows, function)
            mine = array("q", rows[comm.rank])
            root = n % comm.size
            got = ints(n)
            comm.Reduce(mine, got if comm.rank == root else None, op, root)
            if comm.rank == root:
                check(got, want, "Reduce")
            got = ints(n)
            comm.Allreduce(mine, got, op)
            check(got, want, "Allreduce")
            comm.Allreduce(MPI.IN_PLACE, mine, op)
            check(mine, want, "Allreduce in place")


def test_reduce_scatter(comm):
    for n in SIZES:
        rows = rows_of(comm.size, n * comm.size)
        want = reduced(rows)
        mine = rows[comm.rank]
        got = ints(n)
        comm.Reduce_scatter_block(mine, got, MPI.SUM)
        check(got, want[comm.rank * n:(comm.rank + 1) * n], "Reduce_scatter_block")
        counts, displs = counts_of(comm.size, n)
        rows = rows_of(comm.size, sum(counts))
        want = reduced(rows)
        got = ints(counts[comm.rank])
        comm.Reduce_scatter(rows[comm.rank], got, counts, MPI.SUM)
        at = displs[comm.rank]
        check(got, want[at:at + counts[comm.rank]], "Reduce_scatter")


def test_scan(comm):
    for n in SIZES:
        rows = rows_of(comm.size, n)
        mine, got = rows[comm.rank], ints(n)
        comm.Scan(mine, got, MPI.SUM)
        check(got, reduced(rows[:comm.rank + 1]), "Scan")
        got = ints(n, -1)
        comm.Exscan(mine, got, MPI.SUM)
        if comm.rank:
            check(got, reduced(rows[:comm.rank]), "Exscan")


def test_nonblocking(comm):
    """Many at once, completed in another order than they were started."""
    requests, checks, kept = [], [], []
    for k, n in enumerate(SIZES * 2):
        root = k % comm.size
        b = block(root, n, k) if comm.rank == root else ints(n)
        requests.append(comm.Ibcast(b, root))
        checks.append((b, block(root, n, k), "Ibcast"))
        rows = rows_of(comm.size, n)
        want = reduced(rows)
        got = ints(n)
        requests.append(comm.Iallreduce(rows[comm.rank], got, MPI.SUM))
        checks.append((got, want, "Iallreduce"))
        out = ints(n * comm.size, comm.rank)
        kept += [rows, out]  # until the requests are done
        inn = ints(n * comm.size)
        requests.append(comm.Ialltoall(out, inn))
        want = array("q", [i // n for i in range(n * comm.size)])
        checks.append((inn, want, "Ialltoall"))
        requests.append(comm.Ibarrier())
    MPI.Request.Waitall(requests[::-1])
    for got, want, what in checks:
        check(got, want, what)


def test_objects(comm):
    """The pickled forms: sizes that differ from rank to rank."""
    thing = {"rank": comm.rank, "data": "x" * (comm.rank * 5000)}
    everyone = [{"rank": r, "data": "x" * (r * 5000)} for r in range(comm.size)]
    check(comm.bcast(thing if comm.rank == 0 else None, 0), everyone[0], "bcast")
    check(comm.gather(thing, comm.size - 1),
          everyone if comm.rank == comm.size - 1 else None, "gather")
    check(comm.allgather(thing), everyone, "allgather")
    check(comm.scatter(everyone if comm.rank == 0 else None, 0), thing, "scatter")
    check(comm.alltoall([(comm.rank, r) for r in range(comm.size)]),
          [(r, comm.rank) for r in range(comm.size)], "alltoall")
    check(comm.allreduce(comm.rank + 1, MPI.PROD), prod(range(1, comm.size + 1)), "allreduce")
    check(comm.allreduce((comm.rank, -comm.rank), MPI.MAXLOC), (comm.size - 1, 1 - comm.size),
          "maxloc")


def test_user_op(comm):
    """An operation of our own, which does not commute."""
    def compose(a, b, _datatype):
        x, y = array("q", bytes(a)), array("q", bytes(b))
        for i in range(0, len(x), 2):  # (p, q) after (r, s): affine maps modulo a prime
            p, q, r, s = x[i], x[i + 1], y[i], y[i + 1]
            y[i], y[i + 1] = p * r % 1009, (q * r + s) % 1009
        b[:] = y.tobytes()

    op = MPI.Op.Create(compose, commute=False)
    mine = array("q", [comm.rank + 2, comm.rank + 3] * 50)
    got = ints(100)
    comm.Allreduce([mine, MPI.INT64_T], [got, MPI.INT64_T], op)
    p, q = 2, 3
    for r in range(1, comm.size):
        p, q = p * (r + 2) % 1009, (q * (r + 2) + r + 3) % 1009
    check(got, array("q", [p, q] * 50), "user operation")
    op.Free()


def test_neighbors(comm):
    """Neighbourhood collectives on a ring."""
    ring = comm.Create_cart([comm.size], periods=[True])
    left, right = ring.Shift(0, 1)
    for n in SIZES:
        got = ints(2 * n)
        ring.Neighbor_allgather(block(ring.rank, n), got)
        check(got, block(left, n) + block(right, n), "Neighbor_allgather")
    ring.Free()


TESTS = (test_bcast, test_gather_scatter, test_uneven, test_alltoall, test_reduce,
         test_reduce_scatter, test_scan, test_nonblocking, test_objects, test_user_op,
         test_neighbors)


def main():
    world = MPI.COMM_WORLD
    backwards = world.Split(0, world.size - world.rank)  # the ranks in reverse order
    halves = world.Split(world.rank % 2, world.rank)
    for test in TESTS:
        if sys.argv[1:] and test.__name__ not in sys.argv[1:]:
            continue
        for comm in (world, backwards, halves):
            if test is not test_neighbors or comm.size > 2:
                test(comm)
        world.Barrier()
        if world.rank == 0:
            print("passed", test.__name__, flush=True)
    backwards.Free()
    halves.Free()
    if world.rank == 0:
        print(f"collectives: all passed on {world.size} ranks", flush=True)


if __name__ == "__main__":
    main()
