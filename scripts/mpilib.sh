#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# mpilib.sh OUT: builds mpi/ for each MPI whose compiler is here into OUT, as
# libweft-mpi-openmpi.so and libweft-mpi-mpich.so. Environment: MPICC (scripts/mpicc.sh); WARN, flags.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source-path=SCRIPTDIR source=mpicc.sh
. scripts/mpicc.sh

out=$1

# build COMPILER NAME: by a map so that only the MPI's names are exported; the same sources
# give the same bytes.
build() {
	# shellcheck disable=SC2086 # flags
	"$1" ${WARN:-} -O2 -g -fPIC -shared -ffile-prefix-map="$PWD"=. -Wl,--build-id=none \
		-Wl,-soname,"libweft-mpi-$2.so" -Wl,--version-script=mpi/exports.map \
		-o "$out/libweft-mpi-$2.so" mpi/*.c -ldl
}

for name in openmpi mpich; do
	rm -f "$out/libweft-mpi-$name.so"
	compiler=$(compiler_of "$name")
	[ -z "$compiler" ] || build "$compiler" "$name"
	[ "$MPICC" = none ] || [ -n "$compiler" ] ||
		echo "no libweft-mpi-$name.so: no mpicc of that MPI is on the path" >&2
done
