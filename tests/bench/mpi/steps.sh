#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# steps.sh BYTES MPIRUN...: instructions of calls of MPI with messages of so many bytes, by single steps. MPIRUN is the
# launcher with its options, but -n. Rows: MPI_Send; MPI_Irecv; the MPI_Wait that delivers; then of 64 messages each:
# MPI_Isend and MPI_Waitall, MPI_Irecv, the MPI_Waitall that delivers; and where they are unexpected, the MPI_Recv of one
# behind them, MPI_Irecv, MPI_Waitall. Columns: instructions, those that are atomic; of the round that took least.
#
#	steps.sh 8 mpirun --mca pml ob1 --mca btl self,vader
set -eu
cd "$(dirname "$0")/../../.."

bytes=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
${MPICC:-mpicc} -std=gnu11 -D_GNU_SOURCE -O2 -o "$work/steps" tests/bench/mpi/steps.c
${CC:-gcc} -O2 -o "$work/instructions" tests/cxi/instructions.c
"$@" -n 1 "$work/instructions" "$work/steps" "$work/turns" "$bytes" counted : -n 1 "$work/steps" "$work/turns" "$bytes" |
	awk 'BEGIN { split("MPI_Send;MPI_Irecv;MPI_Wait;64 sent;64 posted;64 delivered;64 kept;64 then posted;64 then delivered", what, ";") }
		{ k = (NR - 1) % 9 + 1; if (!(k in n) || $1 < n[k]) { n[k] = $1; a[k] = $2 } }
		END { for (k = 1; k <= 9; k++) { d = k > 3 ? 64 : 1; printf "%-17s %6.0f %4.1f\n", what[k], n[k] / d, a[k] / d } }'
