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

LIMIT=${WEFT_TEST_LIMIT:-180} # seconds for one job
SLICE=${WEFT_TEST_SLICE:-262144} ROUNDS=${WEFT_TEST_ROUNDS:-5}
HOSTS=8
# shellcheck source-path=SCRIPTDIR source=star.sh
. tests/clients/star.sh

export FI_LOG_LEVEL=info FI_LOG_PROV=none OPENBLAS_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# program sets $command to what runs under the MPI, and $called to what it is.
program() {
	local path="" python=/usr/bin/python3

	called=mpi4py
	[ "$mpi" = mpich ] && path=${WEFT_TEST_MPI4PY_MPICH:-}
	command=(env "PYTHONPATH=$path" "$python" "$PWD/tests/mpi/alltoalls.py")
	if PYTHONPATH=$path timeout 60 "$python" -c 'from mpi4py import MPI; print(MPI.get_vendor()[0])' 2>&1 |
		grep -qix "${mpi/openmpi/open mpi}"; then
		return
	fi
	skip "$mpi: mpi4py" "there is none for this MPI"
	called=alltoalls.c
	command=("$work/alltoalls.$mpi")
	"mpicc.$mpi" -std=gnu11 -D_GNU_SOURCE -O2 -o "${command[0]}" tests/mpi/alltoalls.c 2>"$work/log" ||
		not_ok "$mpi: alltoalls.c is built" "$work/log"
}

# job NAME RANKS PRELOAD COMMAND...: the command that starts it and the program; what it prints is right, and weft has
# had a part in it exactly if PRELOAD is not empty. The program loads that, its launcher does not.
job() {
	local name="$mpi: $called $1 on $2 ranks" ranks=$2 preload=$3 weft

	shift 3
	if ! timeout -k 10 "$LIMIT" "$@" env "LD_PRELOAD=$preload" "${command[@]}" "$SLICE" "$ROUNDS" >"$work/log" 2>&1 </dev/null ||
		! grep -q "^alltoalls: all passed on $ranks ranks\$" "$work/log"; then
		not_ok "$name" "$work/log"
		return
	fi
	weft=$(grep -c "all-to-all is weft's" "$work/log")
	if [ -n "$preload" ] && ((weft == 0)) || [ -z "$preload" ] && ((weft != 0)); then
		not_ok "$name: not as weft was asked for" "$work/log"
		return
	fi
	ok "$name: $(sed -n 's/^\(Alltoall[vw]*\) [0-9]*: \(.*\)/\1 \2/p' "$work/log" | paste -sd ';' | sed 's/;/; /g')"
}

one_host() {
	local ranks

	for ranks in 2 4; do
		case $mpi in
		openmpi) start=(mpirun.openmpi --oversubscribe --mca mpi_yield_when_idle 1 -np "$ranks") ;;
		mpich) start=(mpiexec.mpich -n "$ranks") ;;
		esac
		FI_WEFT_MPI_ALLTOALL=yes job "with weft" $ranks "$preload" "${start[@]}"
		job "without" $ranks "" "${start[@]}"
	done
}

# hosts NAME: over the kernel's TCP, and weft where it is asked for, between all hosts. MPICH's Hydra does not end well
# in namespaces that share a host's name.
hosts() {
	local list=10.97.0.1 i

	for ((i = 2; i <= HOSTS; i++)); do
		list+=,10.97.0.$i
	done
	# shellcheck disable=SC2054 # the commas are options
	start=(mpirun.openmpi --host "$list" -np "$HOSTS" --mca plm_rsh_agent "$work/rsh" --mca plm_rsh_no_tree_spawn 1
		--mca oob_tcp_if_include eth0 --mca btl_tcp_if_include eth0 --mca mpi_yield_when_idle 1 --mca pml ob1 --mca btl self,tcp
		-x FI_LOG_LEVEL -x FI_LOG_PROV)
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

between() {
	if [ "$called" != mpi4py ]; then
		return
	elif [ "$(id -u)" != 0 ]; then
		skip "between hosts" "network namespaces need root"
	elif have "between hosts" ip && have "between hosts" tc; then
		trap down EXIT
		if ! star 2>"$work/log"; then
			skip "between hosts" "no network here: $(head -n 1 "$work/log")"
			return
		fi
		hosts "between hosts"
		if slow_path 1 2 2>"$work/log"; then
			hosts "with a slow path"
		else
			not_ok "between hosts: a slow path" "$work/log"
		fi
	fi
}

[ $# -gt 0 ] || set -- openmpi mpich
for mpi in "$@"; do
	preload=$PWD/build/lib/libweft-mpi-$mpi.so
	if ! have "$mpi" "mpicc.$mpi"; then
		continue
	elif [ ! -f "$preload" ]; then
		skip "$mpi" "make build has not found it"
		continue
	fi
	program
	one_host
	[ "$mpi" != openmpi ] || between
done
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
