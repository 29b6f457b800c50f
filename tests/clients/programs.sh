#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Debian's scientific programs over weft, with results that are known: LAMMPS, NWChem,
# GROMACS, OpenCoarrays' tests, MUMPS, HDF5 and PnetCDF through MPI-IO. Each runs through
# shared memory with 2 and 4 ranks, and with 4 ranks that share none and reach each other
# over UDP. Its counters say that weft has carried it. Arguments name programs: lammps,
# nwchem, gromacs, coarrays, mumps, hdf5, netcdf; without them all run.
set -u
cd "$(dirname "$0")/../.." || exit 1
root=$PWD
# shellcheck source-path=SCRIPTDIR source=lib.sh
. tests/clients/lib.sh
# shellcheck source-path=SCRIPTDIR source=job.sh
. tests/clients/job.sh

pages=$work/pages # FI_WEFT_SHM_DIR of the ranks: a folder of each, as WAY says
mkdir "$work/run"
input=

# Starts a rank with the folder of its own, or that of all ranks, which counts.
cat >"$work/rank" <<'END'
#!/bin/sh
FI_WEFT_SHM_DIR=$1/$([ "$2" = udp ] && echo "$OMPI_COMM_WORLD_RANK" || echo all)
export FI_WEFT_SHM_DIR
LD_PRELOAD=$3
export LD_PRELOAD
shift 3
exec "$@"
END
chmod +x "$work/rank"
export WEFT_TEST_COMMAND=$PWD/build/bin/weft WEFT_TEST_COUNTERS=$work/counters

# carried: messages, reads, writes and atomics of all ranks. A rank may have seen another's
# counters, which have grown since.
carried() {
	cat "$work"/counters.* | awk '/^weft_(tx_(inline|bounce|eager|sync|rendezvous)|rma_writes|rma_reads|atomics)_total/ {
			if ($2 > most[$1]) most[$1] = $2
		}
		END { for (m in most) n += most[m]; print n + 0 }'
}

# over_udp: there was a peer with a window, which those of shared memory have not. The gauge is sampled some ten times a
# second, so the program has to run for longer.
over_udp() { grep -qE '^weft_peer_window.* [1-9]' "$work"/counters.*; }

# run NAME WAY RANKS LEAST CHECK COMMAND...: a job in $work/run, WAY shm or udp, of which weft
# carries LEAST messages; CHECK judges its output in $work/log, or the files beside it.
run() {
	local name="$1 on $3 ranks, $2" way=$2 ranks=$3 least=$4 check=$5 status n

	shift 5
	rm -rf "$pages" "$work"/counters.* && mkdir -p "$pages"/all "$pages"/0 "$pages"/1 "$pages"/2 "$pages"/3
	(cd "$work/run" && job "$ranks" "${options[@]}" "$work/rank" "$pages" "$way" "$work/count.so" "$@")
	status=$?
	n=$(carried 2>/dev/null)
	if ((status != 0)) || ! "$check" >>"$work/log" 2>&1; then
		not_ok "$name" "$work/log"
	elif [ "$WEFT_TEST_PROV" = weft ] && ((n < least)); then
		not_ok "$name: weft has carried $n messages, not $least"
	elif [ "$WEFT_TEST_PROV" = weft ] && [ "$way" = udp ] && ! over_udp; then
		not_ok "$name: nothing went over UDP"
	else
		ok "$name: $n messages and operations"
	fi
}

# ways NAME LEAST CHECK COMMAND...
options=()
ways() {
	local name=$1 least=$2 check=$3
	shift 3
	run "$name" shm 2 "$least" "$check" "$@"
	run "$name" shm 4 "$least" "$check" "$@"
	run "$name" udp 4 "$least" "$check" "$@"
}

# near VALUE WANTED TOLERANCE
near() {
	echo "$1, wanted $2 within $3"
	awk -v a="$1" -v b="$2" -v t="$3" 'BEGIN { d = a - b; exit !(a != "" && d <= t && -d <= t) }'
}

# The energies of this melt in LAMMPS's own benchmark and without weft.
melt() {
	near "$(awk '$1 == "0" && NF == 6 { print $3 }' "$work/log")" -6.7733681 1e-7 &&
		near "$(awk '$1 == "0" && NF == 6 { print $5 }' "$work/log")" -2.2744931 1e-7 &&
		near "$(awk '$1 == "100" && NF == 6 { print $5 }' "$work/log")" -2.281301 1e-6 &&
		near "$(awk '$1 == "250" && NF == 6 { print $5 }' "$work/log")" -2.2812174 1e-5
}

lammps() {
	have LAMMPS lmp || return
	ways LAMMPS 1000 melt lmp -in "$root/tests/programs/melt.in" -log none
}

# Hartree-Fock of water near its equilibrium with cc-pVTZ, and the force on an atom.
water() {
	near "$(awk '/Total SCF energy/ { print $5 }' "$work/log")" -76.057127425 1e-7 &&
		near "$(awk '$1 == 2 && $2 == "H" && NF == 8 { print $7 }' "$work/log")" 0.013553 2e-6
}

nwchem() {
	have NWChem nwchem.openmpi || return
	export NWCHEM_BASIS_LIBRARY=/usr/share/nwchem/libraries/
	options=("${ONESIDED[@]}")
	ways NWChem 1000 water nwchem.openmpi "$root/tests/programs/water.nw"
	options=()
}

# Its energies in kJ/mol, which one rank gives; the total is kept.
box() {
	local log=$work/run/md.log total

	near "$(awk '/LJ .*Potential/ { getline; print $4; exit }' "$log")" -9184.25 0.5 || return
	total=$(awk '/Total Energy/ { getline; print $1 }' "$log" | sed '$d') # without their mean
	near "$(head -n 1 <<<"$total")" -7567.6 0.5 && near "$(tail -n 1 <<<"$total")" -7567.6 25 &&
		[ "$(wc -l <<<"$total")" -ge 3 ]
}

gromacs() {
	local box=/usr/share/gromacs/top/spc216.gro

	have GROMACS gmx_mpi || return
	if [ "$(uname -m)" = x86_64 ] && ! grep -qw rdtscp /proc/cpuinfo; then
		skip GROMACS "it is compiled for processors with rdtscp, which this one does not have"
		return
	fi
	if ! (cd "$work/run" && timeout "$LIMIT" gmx_mpi -quiet grompp -f "$root/tests/programs/water.mdp" -c "$box" \
		-p "$root/tests/programs/water.top" -o water.tpr) >"$work/log" 2>&1; then
		not_ok "GROMACS: its input" "$work/log"
		return
	fi
	ways GROMACS 1000 box gmx_mpi -quiet mdrun -s water.tpr -g md.log -ntomp 1 -pin off -reprod
}

# Tests of Fortran's coarrays that OpenCoarrays' package has built, of every kind: get, put,
# strided, by reference, converting, collective, atomic, events, teams. Not among them is coarray_burgers_pde, whose images
# read each other's parts too early: over Open MPI's own shared memory it fails in three runs of 25.
COARRAYS="alloc_comp_multidim_shape allocatable_p2p_event_post async_comp_alloc_2 atomics co_broadcast_test
	co_max_test co_reduce-factorial co_sum_test coarray_distributed_transpose convert-before-put
	get_array get_convert_nums get_with_vector_index issue-422-send-get register_alloc_vector send_array
	send_convert_nums sendget_convert_nums static_event_post_issue_293 strided_get strided_sendget syncimages
	teams_coarray_sendget teams_subset"

coarray() { grep -qi '^ *Test passed' "$work/log"; }

coarrays() {
	local dir test

	for dir in /usr/lib/*/open-coarrays/openmpi/bin/OpenCoarrays-*-tests; do break; done
	if [ ! -d "$dir" ]; then
		skip OpenCoarrays "libcoarrays-openmpi-dev is not installed"
		return
	fi
	options=("${ONESIDED[@]}")
	for test in $COARRAYS; do
		run "OpenCoarrays $test" shm 4 4 coarray "$dir/$test"
	done
	for test in coarray_distributed_transpose get_array send_array; do
		run "OpenCoarrays $test" udp 4 4 coarray "$dir/$test"
	done
	options=()
}

# A grid of 40 by 40 points, each 4 times itself without its neighbours, and the right-hand
# side of which the solution is 1 everywhere.
grid() {
	awk -v n=40 'BEGIN {
		print n * n; m = 0
		for (i = 0; i < n; i++) for (j = 0; j < n; j++) {
			k = i * n + j + 1; sum[k] = 4; line[m++] = k " " k " 4.0"
			if (i > 0) { line[m++] = k " " k - n " -1.0"; sum[k]-- }
			if (i < n - 1) { line[m++] = k " " k + n " -1.0"; sum[k]-- }
			if (j > 0) { line[m++] = k " " k - 1 " -1.0"; sum[k]-- }
			if (j < n - 1) { line[m++] = k " " k + 1 " -1.0"; sum[k]-- }
		}
		print m
		for (i = 0; i < m; i++) print line[i]
		for (k = 1; k <= n * n; k++) printf "%.1f\n", sum[k]
	}'
}

ones() {
	grep -A 1000 'Solution is' "$work/log" | sed '/Entering/,$d; s/Solution is//' | tr -s ' ' '\n' |
		awk 'NF { n++; if ($1 < 0.9999999999 || $1 > 1.0000000001) bad++ } END { print n, bad + 0; exit !(n == 1600 && !bad) }'
}

mumps() {
	have MUMPS /usr/lib/mumps/dsimpletest || return
	grid >"$work/grid"
	input=$work/grid
	ways MUMPS 20 ones /usr/lib/mumps/dsimpletest
	input=
}

passed_of() { grep -q "^$1: passed on [24] ranks\$" "$work/log"; }
h5_passed() { passed_of h5; }
netcdf_passed() { passed_of netcdf; }

hdf5() {
	if ! OMPI_COMM_WORLD_SIZE=1 /usr/bin/python3 -c 'import h5py._debian_h5py_mpi, mpi4py' 2>"$work/log"; then
		skip HDF5 "python3-h5py-mpi: $(tail -n 1 "$work/log")"
		return
	fi
	ways HDF5 20 h5_passed /usr/bin/python3 "$root/tests/programs/h5.py" "$work/run/grid.h5"
}

netcdf() {
	if [ ! -f /usr/include/pnetcdf.h ]; then
		skip PnetCDF "libpnetcdf-dev is not installed"
	elif mpicc -std=gnu11 -Wall -Wextra -Werror -O2 -o "$work/netcdf" tests/programs/netcdf.c -lpnetcdf 2>"$work/log"; then
		ways PnetCDF 10 netcdf_passed "$work/netcdf" "$work/run/grid.nc"
	else
		not_ok "tests/programs/netcdf.c is built" "$work/log"
	fi
}

if ! have "Open MPI" mpirun || ! have "Open MPI" mpicc; then
	closing
	exit
fi
if ! gcc -std=gnu11 -Wall -Wextra -Werror -D_GNU_SOURCE -O2 -fPIC -shared -o "$work/count.so" tests/programs/count.c 2>"$work/log"; then
	not_ok "tests/programs/count.c is built" "$work/log"
fi
for program in "${@:-lammps nwchem gromacs coarrays mumps hdf5 netcdf}"; do
	for part in $program; do
		"$part"
	done
done
# All may be missing.
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
