#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# libweft-mpi: the all-to-all operations of MPI programs over weft, by LD_PRELOAD, with each MPI that
# make build has found: tests/mpi in C and Fortran, mpi4py. Arguments name MPIs.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source-path=SCRIPTDIR source=lib.sh
. tests/clients/lib.sh

LIMIT=${WEFT_TEST_LIMIT:-120} # seconds for one program
WARN=(-std=gnu11 -Wall -Wextra -Werror -D_GNU_SOURCE -pthread -O2 -g)
export FI_WEFT_MPI_ALLTOALL=yes FI_WEFT_MPI_MIN_SIZE=4k FI_LOG_LEVEL=info FI_LOG_PROV=none OPENBLAS_NUM_THREADS=1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# start RANKS COMMAND...: a job with the library that $preload names; only its ranks load it.
start() {
	local ranks=$1

	shift
	case $mpi in
	openmpi)
		timeout -k 10 "$LIMIT" mpirun.openmpi --oversubscribe --mca mpi_yield_when_idle 1 "${options[@]}" \
			-x "LD_PRELOAD=$preload" -np "$ranks" "$@"
		;;
	mpich) timeout -k 10 "$LIMIT" mpiexec.mpich "${options[@]}" -genv LD_PRELOAD "$preload" -n "$ranks" "$@" ;;
	esac >"$work/log" 2>&1 </dev/null
}

# check NAME RANKS COMMAND...: the job passes, as its last line says, and weft has had a part in it.
check() {
	local name="$mpi: $1 on $2 ranks" began=$SECONDS

	shift
	if start "$@" && grep -q "^[a-z0-9]*: all passed on $1 ranks\$" "$work/log" && grep -q "all-to-all is weft's" "$work/log"; then
		ok "$name: $((SECONDS - began)) s"
		sed -n 's/^skipped /# skipped /p' "$work/log"
	else
		not_ok "$name" "$work/log"
	fi
}

build() {
	local p fortran=(-O2)

	[ "$mpi" = mpich ] && WARN+=(-Wno-stringop-overflow) # MPI_STATUSES_IGNORE is an address
	for p in alltoall errors corners loads; do
		"mpicc.$mpi" "${WARN[@]}" -o "$work/$p.$mpi" "tests/mpi/$p.c" 2>"$work/log" || not_ok "$mpi: $p.c is built" "$work/log"
	done
	[ "$mpi" = mpich ] && fortran+=(-fallow-argument-mismatch -w)
	if ! "mpifort.$mpi" "${fortran[@]}" -shared -fPIC -J "$work" -o "$work/loaded.$mpi.so" \
		tests/mpi/loaded.f90 >"$work/log" 2>&1; then
		skip "$mpi: loaded" "$(grep -m 1 -i 'error\|not found' "$work/log")"
	fi
	for p in fortran f08; do
		if ! "mpifort.$mpi" "${fortran[@]}" -J "$work" -o "$work/$p.$mpi" "tests/mpi/$p.f90" >"$work/log" 2>&1; then
			skip "$mpi: $p" "$(grep -m 1 -i 'error\|not found' "$work/log")"
		fi
	done
}

programs() {
	check "all forms" 2 "$work/alltoall.$mpi"
	check "all forms" 4 "$work/alltoall.$mpi"
	check "some forms" 8 "$work/alltoall.$mpi" vector iform comms
	FI_WEFT_RTT_SCHED_ENABLE="yes" FI_WEFT_ALLTOALL_ALGORITHM="put" WEFT_COMMAND=$PWD/build/bin/weft check "persistent forms by puts" 4 "$work/alltoall.$mpi" persistent
	FI_WEFT_RTT_SCHED_ENABLE="yes" FI_WEFT_ALLTOALL_ALGORITHM="get" WEFT_COMMAND=$PWD/build/bin/weft check "persistent forms by gets" 4 "$work/alltoall.$mpi" persistent
	check "threads" 4 "$work/alltoall.$mpi" threads
	FI_WEFT_MPI_MIN_SIZE=0 check "short slices" 2 "$work/alltoall.$mpi" uniform types
	check "counts that differ" 3 "$work/errors.$mpi"
	check "rare calls" 2 "$work/corners.$mpi"
	MALLOC_PERTURB_=165 check "a request that is freed in MPI_Finalize" 2 "$work/corners.$mpi" late
	for p in fortran f08; do
		[ -x "$work/$p.$mpi" ] && check "$p" 3 "$work/$p.$mpi"
	done
	[ -x "$work/loaded.$mpi.so" ] && check "a library in Fortran" 3 "$work/loads.$mpi" "$work/loaded.$mpi.so"
}

# A rank that is killed. MPICH's Hydra ends the whole job.
killed() {
	options=(--enable-recovery)
	start 4 "$work/errors.$mpi" kill
	options=()
	if [ "$(grep -c '^errors: rank [0-2] got them' "$work/log")" = 3 ]; then
		ok "$mpi: a rank that is killed"
	else
		not_ok "$mpi: a rank that is killed" "$work/log"
	fi
}

# refused NAME WHAT VARIABLE...: the program is right without weft, and the line says why.
refused() {
	local name="$mpi: $1" what=$2

	shift 2
	if start 2 env "$@" "$work/alltoall.$mpi" uniform vector && grep -q '^alltoall: all passed' "$work/log" &&
		! grep -q "all-to-all is weft's" "$work/log" && grep -qF "$what" "$work/log"; then
		ok "$name"
	else
		not_ok "$name" "$work/log"
	fi
}

# What decides: the variables, which must agree, and where the ranks are.
decisions() {
	refused "FI_WEFT_MPI_ALLTOALL=no" "passed uniform" FI_WEFT_MPI_ALLTOALL=no
	refused "auto on one host" "passed uniform" FI_WEFT_MPI_ALLTOALL=auto
	refused "without libweft" "libweft.so.0: cannot open" "LD_PRELOAD=$work/libweft-mpi-$mpi.so"
	# shellcheck disable=SC2016 # for the shell of each rank
	local differ='[ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}" = 0 ] || export FI_WEFT_MPI_ALLTOALL=no FI_WEFT_MPI_MIN_SIZE=1k; exec "$0" uniform vector'
	if start 2 sh -c "$differ" "$work/alltoall.$mpi" && grep -q '^alltoall: all passed' "$work/log" &&
		grep -q 'FI_WEFT_MPI_ALLTOALL (.*) differs between the ranks, from 1 to 2' "$work/log" &&
		grep -q 'FI_WEFT_MPI_MIN_SIZE differs between the ranks, from 1024 to 4096' "$work/log"; then
		ok "$mpi: ranks that want other things"
	else
		not_ok "$mpi: ranks that want other things" "$work/log"
	fi
	if start 2 env FI_WEFT_MPI_MIN_SIZE=12x "$work/alltoall.$mpi" vector; grep -q 'FI_WEFT_MPI_MIN_SIZE=12x: not a size' "$work/log"; then
		ok "$mpi: a value that is none"
	else
		not_ok "$mpi: a value that is none" "$work/log"
	fi
}

# Ranks whose variables differ do not join; all use the MPI, long before their time for a join is over.
apart() {
	local name="$mpi: a rank with another algorithm" began=$SECONDS

	# shellcheck disable=SC2016 # for the shell of each rank
	if start 3 sh -c '[ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}" != 1 ] || export FI_WEFT_ALLTOALL_ALGORITHM=put; exec "$0" vector' \
		"$work/alltoall.$mpi" && grep -q '^alltoall: all passed' "$work/log" && [ $((SECONDS - began)) -lt 45 ] &&
		[ "$(grep -c '3 members do not come together: Invalid argument' "$work/log")" -ge 3 ]; then
		ok "$name"
	else
		not_ok "$name" "$work/log"
	fi
}

# The MPI itself over weft, too: its provider and the library are both in the process.
both() {
	options=(--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include weft)
	check "over weft" 2 "$work/alltoall.$mpi" vector iform older
	options=()
}

python() {
	/usr/bin/python3 -c 'import mpi4py' 2>/dev/null || {
		skip "mpi4py" "it is not installed"
		return
	}
	check "mpi4py" 2 /usr/bin/python3 "$PWD/tests/mpi/collectives.py" test_alltoall
}

options=()
[ $# -gt 0 ] || set -- openmpi mpich
for mpi in "$@"; do
	preload=$PWD/build/lib/libweft-mpi-$mpi.so
	if [ ! -f "$preload" ]; then
		skip "$mpi" "make build has not found it"
		continue
	fi
	cp "$preload" "$work/"
	build
	programs
	decisions
	apart
	if [ "$mpi" = openmpi ]; then
		killed
		both
		python
	fi
done
closing
