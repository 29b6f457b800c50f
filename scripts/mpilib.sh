#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# mpilib.sh OUT: builds mpi/ for each MPI whose compiler is here into OUT, as
# libweft-mpi-openmpi.so and libweft-mpi-mpich.so. Environment: MPICC, a compiler
# that is asked before those on the path, "none" for no MPI at all; WARN, flags.
set -eu
cd "$(dirname "$0")/.."

out=$1
MPICC=${MPICC:-mpicc}

# which_mpi COMPILER: openmpi or mpich, nothing for another.
which_mpi() {
	echo '#include <mpi.h>' | "$1" -E -dM -x c - 2>/dev/null |
		sed -n 's/^#define OPEN_MPI .*/openmpi/p; s/^#define MPICH_VERSION .*/mpich/p' | head -n 1
}

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
	[ "$MPICC" = none ] && continue
	for compiler in "$MPICC" "mpicc.$name" mpicc; do
		if command -v "$compiler" >/dev/null && [ "$(which_mpi "$compiler")" = "$name" ]; then
			build "$compiler" "$name"
			break
		fi
	done
	[ -f "$out/libweft-mpi-$name.so" ] || echo "no libweft-mpi-$name.so: no mpicc of that MPI is on the path" >&2
done
