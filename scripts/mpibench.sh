#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# mpibench.sh OUT: builds what "weft bench mpi-alltoall" runs for each MPI whose compiler is here into OUT: fft.openmpi,
# alltoalls.mpich and so on. FFTW's MPI library is Debian's, which is Open MPI's. Environment: MPICC (scripts/mpicc.sh).
set -eu
cd "$(dirname "$0")/.."
# shellcheck source-path=SCRIPTDIR source=mpicc.sh
. scripts/mpicc.sh

out=$1
# skipped PROGRAM says that an MPI cannot build it; the others are built.
skipped() { echo "$1: cannot be built, and is not measured" >&2; }
flags="-std=gnu11 -D_GNU_SOURCE -O2 -Itests/mpi"

for name in openmpi mpich; do
	compiler=$(compiler_of "$name")
	[ -n "$compiler" ] || continue
	# shellcheck disable=SC2086 # flags
	for program in fft alltoalls; do
		"$compiler" $flags -o "$out/$program.$name" "tests/mpi/$program.c" -lm || skipped "$program.$name"
	done
	if [ "$name" = openmpi ] && [ -f /usr/include/fftw3-mpi.h ]; then
		# shellcheck disable=SC2086 # flags
		"$compiler" $flags -o "$out/fftw.$name" tests/programs/fftw.c -lfftw3_mpi -lfftw3 -lm ||
			skipped "fftw.$name"
	fi
done
cp tests/mpi/alltoalls.py "$out/"
