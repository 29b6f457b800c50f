#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# mpi4py's Alltoall, Alltoallv and Alltoallw, with libweft-mpi and without, each in turn with the MPI's own
# (tests/mpi/alltoalls.py): on one host, and with Open MPI, as root, between eight, which are alike or have one slow path.
# An MPI without an mpi4py of its own (WEFT_TEST_MPI4PY_MPICH names the folder of MPICH's) runs tests/mpi/alltoalls.c.
# Data is checked; times are printed and not judged. Arguments name MPIs.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source-path=SCRIPTDIR source=lib.sh
. tests/clients/lib.sh

SLICE=${WEFT_TEST_SLICE:-262144} ROUNDS=${WEFT_TEST_ROUNDS:-5}
# shellcheck source-path=SCRIPTDIR source=mpijobs.sh
. tests/clients/mpijobs.sh

# program sets $command to what runs under the MPI, and $called to what it is. Each line of figures has a form's.
program() {
	local path="" python=/usr/bin/python3

	called=mpi4py
	[ "$mpi" = mpich ] && path=${WEFT_TEST_MPI4PY_MPICH:-}
	command=(env "PYTHONPATH=$path" "$python" "$PWD/tests/mpi/alltoalls.py" "$SLICE" "$ROUNDS")
	if PYTHONPATH=$path timeout 60 "$python" -c 'from mpi4py import MPI; print(MPI.get_vendor()[0])' 2>&1 |
		grep -qix "${mpi/openmpi/open mpi}"; then
		return
	fi
	skip "$mpi: mpi4py" "there is none for this MPI"
	called=alltoalls.c
	command=("$work/alltoalls.$mpi" "$SLICE" "$ROUNDS")
	"mpicc.$mpi" -std=gnu11 -D_GNU_SOURCE -O2 -o "${command[0]}" tests/mpi/alltoalls.c 2>"$work/log" ||
		not_ok "$mpi: alltoalls.c is built" "$work/log"
}

right() { all_passed alltoalls "$1"; }

figures() { sed -n 's/^\(Alltoall[vw]*\) [0-9]*: \(.*\)/\1 \2/p' "$work/log"; }

between() {
	if [ "$called" = mpi4py ] && star_up; then
		hosts "between hosts"
		if a_slow_path; then
			hosts "with a slow path"
		else
			not_ok "between hosts: a slow path" "$work/log"
		fi
	fi
}

[ $# -gt 0 ] || set -- openmpi mpich
for mpi in "$@"; do
	preloads || continue
	program
	one_host 2 4
	[ "$mpi" != openmpi ] || between
done
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
