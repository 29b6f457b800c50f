# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Shared by the scripts that run an MPI program with libweft-mpi and without: on one host and, as root and with Open MPI,
# between eight, which are alike or have one slow path. Source it after lib.sh. A script sets $mpi; $called, what the
# program is; $command, an array; and $output, the file that the program writes beside what it prints, if it does. Its
# functions are right RANKS, which reports whether the program says in $work/log, or in $output, that all is right, and
# figures, which prints what it has measured, in a line or several.

LIMIT=${WEFT_TEST_LIMIT:-180} # seconds for one job
HOSTS=8
# shellcheck source-path=SCRIPTDIR source=star.sh
. tests/clients/star.sh

export FI_LOG_LEVEL=info FI_LOG_PROV=none OPENBLAS_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# job NAME RANKS PRELOAD COMMAND...: the command that starts it and the program; what it prints is right, and weft has
# had a part in it exactly if PRELOAD is not empty. The program loads that, its launcher does not.
# shellcheck disable=SC2154 # the script that sources this sets $mpi and so on
job() {
	local name="$mpi: $called $1 on $2 ranks" ranks=$2 preload=$3 weft

	shift 3
	[ -z "${output:-}" ] || rm -f "$output"
	if ! timeout -k 10 "$LIMIT" "$@" env "LD_PRELOAD=$preload" "${command[@]}" >"$work/log" 2>&1 </dev/null ||
		! right "$ranks"; then
		[ -z "${output:-}" ] || tail -n 15 "$output" >>"$work/log" 2>&1
		not_ok "$name" "$work/log"
		return
	fi
	weft=$(grep -c "all-to-all is weft's" "$work/log")
	if [ -n "$preload" ] && ((weft == 0)) || [ -z "$preload" ] && ((weft != 0)); then
		not_ok "$name: not as weft was asked for" "$work/log"
		return
	fi
	ok "$name: $(figures | paste -sd ';' | sed 's/;/; /g')"
}

# all_passed NAME RANKS: a program of tests/mpi says so.
all_passed() { grep -q "^$1: all passed on $2 ranks\$" "$work/log"; }

# one_host RANKS...
one_host() {
	local ranks

	for ranks in "$@"; do
		case $mpi in
		openmpi) start=(mpirun.openmpi --oversubscribe --mca mpi_yield_when_idle 1 -np "$ranks") ;;
		mpich) start=(mpiexec.mpich -n "$ranks") ;;
		esac
		FI_WEFT_MPI_ALLTOALL=yes job "with weft" "$ranks" "$preload" "${start[@]}"
		job "without" "$ranks" "" "${start[@]}"
	done
}

# hosts NAME: over the kernel's TCP, and weft where it is asked for, between all hosts. MPICH's Hydra does not end well
# in namespaces that share a host's name.
hosts() {
	local list=10.97.0.1 i

	for ((i = 2; i <= HOSTS; i++)); do
		list+=,10.97.0.$i
	done
	# shellcheck disable=SC2054,SC2154 # the commas are options; star.sh has the prefix
	start=(mpirun.openmpi --host "$list" -np "$HOSTS" --mca plm_rsh_agent "$work/rsh" --mca plm_rsh_no_tree_spawn 1
		--mca oob_tcp_if_include eth0 --mca btl_tcp_if_include eth0 --mca mpi_yield_when_idle 1 --mca pml ob1 --mca btl self,tcp
		-x FI_LOG_LEVEL -x FI_LOG_PROV -x FI_WEFT_MPI_ALLTOALL=yes)
	[ -z "${FI_WEFT_MPI_MIN_SIZE:-}" ] || start+=(-x FI_WEFT_MPI_MIN_SIZE)
	job "with weft $1" $HOSTS "$preload" ip netns exec "$prefix-0" "${start[@]}"
	job "without $1" $HOSTS "" ip netns exec "$prefix-0" "${start[@]}"
}

# Runs a command on the host of an address, as ssh does. Open MPI's daemons have files named by the host's name, which
# the namespaces share, so each has a folder of its own.
cat >"$work/rsh" <<END
#!/bin/sh
while [ "\${1#10.97.0.}" = "\$1" ]; do shift; done
number=\$((\${1#10.97.0.} - 1))
shift
mkdir -p "$work/tmp\$number"
TMPDIR=$work/tmp\$number exec ip netns exec "$prefix-\$number" sh -c "\$*"
END
chmod +x "$work/rsh"

# star_up makes the hosts, once. It fails, with a line that says why, where there can be none.
star_up() {
	[ -z "${there:-}" ] || return 0
	if [ "$(id -u)" != 0 ]; then
		skip "between hosts" "network namespaces need root"
		return 1
	elif ! have "between hosts" ip || ! have "between hosts" tc; then
		return 1
	fi
	trap down EXIT
	if ! star 2>"$work/log"; then
		skip "between hosts" "no network here: $(head -n 1 "$work/log")"
		return 1
	fi
	there=1
}

# a_slow_path makes one, once.
a_slow_path() {
	[ "${there:-}" = slow ] || slow_path 1 2 2>"$work/log" && there=slow
}

# preloads sets $preload to the library for $mpi. It fails, with a line that says why, where there is none.
preloads() {
	preload=$PWD/build/lib/libweft-mpi-$mpi.so
	have "$mpi" "mpicc.$mpi" || return 1
	[ -f "$preload" ] && return 0
	skip "$mpi" "make build has not found it"
	return 1
}
