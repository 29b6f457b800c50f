#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs that transform by Fourier, with libweft-mpi and without: tests/mpi/fft.c, whose transpositions are
# MPI_Alltoall, under each MPI; FFTW's MPI library (tests/programs/fftw.c), whose planner measures what to transpose by;
# and MPIFFT and PTRANS of HPC Challenge. Data is checked, by the programs or by HPC Challenge itself; times are printed
# and not judged. All of them on one host; "fft.sh hosts", as root and with Open MPI, runs them between eight, which are
# alike and then have one slow path, and takes a quarter of an hour or more.
set -u
cd "$(dirname "$0")/../.." || exit 1
[ "${1:-}" = hosts ] && between=1 || between=
[ -z "$between" ] || export WEFT_TEST_LIMIT=${WEFT_TEST_LIMIT:-900} # HPC Challenge's other parts take minutes there
# shellcheck source-path=SCRIPTDIR source=lib.sh
. tests/clients/lib.sh
# shellcheck source-path=SCRIPTDIR source=hpcc.sh
. tests/clients/hpcc.sh
# shellcheck source-path=SCRIPTDIR source=mpijobs.sh
. tests/clients/mpijobs.sh

# Slices have 4 KiB and more.
export FI_WEFT_MPI_MIN_SIZE=4k
root=$PWD ROUNDS=${WEFT_TEST_ROUNDS:-5}
WARN=(-std=gnu11 -Wall -Wextra -Werror -D_GNU_SOURCE -O2 -Itests/mpi)

# everywhere RANKS SIZE...: runs $command with each size on one host, or between all.
everywhere() {
	local ranks=$1 size program=("${command[@]}") command

	shift
	for size in "$@"; do
		command=("${program[@]}" "$size" "$ROUNDS")
		if [ -z "$between" ]; then
			one_host "$ranks"
		else
			hosts "$where"
		fi
	done
}

# own: n^2 numbers of 16 bytes on p ranks are slices of 16 n^2/p^2.
own() {
	called=fft.c passes=fft command=("$work/fft.$mpi")
	everywhere 2 256
	everywhere 4 512
}

# The planner measures MPI_Alltoall in any case, which is weft's then; the figures say whether it takes it.
fftw() {
	called=FFTW passes=fftw command=("$work/fftw")
	if [ ! -f /usr/include/fftw3-mpi.h ]; then
		skip "FFTW's MPI library" "libfftw3-mpi-dev is not installed"
	elif [ ! -x "$work/fftw" ] &&
		! mpicc.openmpi "${WARN[@]}" -o "$work/fftw" tests/programs/fftw.c -lfftw3_mpi -lfftw3 -lm 2>"$work/log"; then
		not_ok "fftw.c is built" "$work/log"
	else
		everywhere 2 32
	fi
}

# Eight ranks have errors in MPIRandomAccess_LCG without weft, too: HPC Challenge allows 1 % of 131,072 locations.
right() {
	if [ "$called" = "HPC Challenge" ]; then
		hpcc_right "$output" "${between:+1310}" >>"$work/log" 2>&1
	else
		all_passed "$passes" "$1"
	fi
}

figures() {
	if [ "$called" != "HPC Challenge" ]; then
		sed -n 's/^\([0-9]*^[23]\): \(.* ms.*\)/\1 \2/p' "$work/log"
	else
		sed -n 's/^\(MPIFFT_N\|MPIFFT_Gflops\|PTRANS_GBs\)=/\1 /p' "$output"
	fi
}

# The output of a right run with something wrong in it is refused.
doctored() {
	if ! hpcc_right "$output" >/dev/null 2>&1; then
		skip "HPC Challenge: wrong data is refused" "no run was right"
	elif hpcc_doctored "$output" >"$work/log"; then
		ok "HPC Challenge: wrong data is refused"
	else
		not_ok "HPC Challenge: wrong data is refused" "$work/log"
	fi
}

challenge() {
	local output=hpccoutf.txt

	have "HPC Challenge" hpcc || return
	called="HPC Challenge" command=(hpcc)
	mkdir -p "$work/hpcc"
	cd "$work/hpcc" || return
	if [ -z "$between" ]; then
		hpcc_input 1 2
		one_host 2
		doctored
	else
		hpcc_input 2 $((HOSTS / 2))
		hosts "$where"
	fi
	cd "$root" || exit 1
}

build() {
	if [ ! -x "$work/fft.$mpi" ] && ! "mpicc.$mpi" "${WARN[@]}" -o "$work/fft.$mpi" tests/mpi/fft.c -lm 2>"$work/log"; then
		not_ok "$mpi: fft.c is built" "$work/log"
		return 1
	fi
}

# all MPI...
all() {
	local mpi

	for mpi in "$@"; do
		if ! preloads || ! build; then
			continue
		fi
		own
		if [ "$mpi" = openmpi ]; then
			fftw
			challenge
		fi
	done
}

if [ -z "$between" ]; then
	all openmpi mpich
elif star_up; then
	where="between hosts"
	all openmpi
	if a_slow_path; then
		where="with a slow path"
		all openmpi
	else
		not_ok "between hosts: a slow path" "$work/log"
	fi
fi
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
