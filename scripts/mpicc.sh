# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Shared by the scripts that build for each MPI that is here. MPICC is a compiler that is asked before those on the
# path, "none" for no MPI at all.
MPICC=${MPICC:-mpicc}

# which_mpi COMPILER: openmpi or mpich, nothing for another.
which_mpi() {
	echo '#include <mpi.h>' | "$1" -E -dM -x c - 2>/dev/null |
		sed -n 's/^#define OPEN_MPI .*/openmpi/p; s/^#define MPICH_VERSION .*/mpich/p' | head -n 1
}

# compiler_of MPI: the name of its compiler, nothing if there is none.
compiler_of() {
	[ "$MPICC" = none ] && return
	for compiler in "$MPICC" "mpicc.$1" mpicc; do
		if command -v "$compiler" >/dev/null && [ "$(which_mpi "$compiler")" = "$1" ]; then
			echo "$compiler"
			return
		fi
	done
}
