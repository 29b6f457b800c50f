#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Open MPI over weft (or WEFT_TEST_PROV) on 2 and 4 ranks: the programs of
# tests/mpi, NetPIPE, HPC Challenge and the ScaLAPACK test programs, each with
# a time limit and a check of what it printed. Arguments name groups: strict, lines,
# own, onesided, collectives, figures, netpipe, hpcc, scalapack; without them all run.
set -u
cd "$(dirname "$0")/../.." || exit 1
root=$PWD
# shellcheck source-path=SCRIPTDIR source=lib.sh
. tests/clients/lib.sh
# shellcheck source-path=SCRIPTDIR source=hpcc.sh
. tests/clients/hpcc.sh

# shellcheck source-path=SCRIPTDIR source=job.sh
. tests/clients/job.sh

# The lines that docs/mpi.md and weft doctor give, as a reader would run them, on
# the example.
lines() {
	local line

	if ! mpicc -O2 -o "$work/program" examples/ring.c 2>"$work/log"; then
		not_ok "examples/ring.c" "$work/log"
		return
	fi
	line=$(sed -n 's/^    \(mpirun .*\)/\1/p' docs/mpi.md | head -n 1)
	run_line "the line of docs/mpi.md" "$line"
	line=$(build/bin/weft doctor --only mpi | sed -n 's/PROGRAM$/.\/program/; s/^ *-> \(.*mpirun.*\)/\1/p' | head -n 1)
	run_line "the line of weft doctor" "$line"
}

run_line() {
	if [ -n "$2" ] && (cd "$work" && OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
		OMPI_MCA_rmaps_base_oversubscribe=1 timeout -k 10 "$LIMIT" sh -c "$2") >"$work/log" 2>&1 </dev/null; then
		ok "$1: $(tail -n 1 "$work/log")"
	else
		echo "$2" >>"$work/log"
		not_ok "$1" "$work/log"
	fi
}

# The provider is the only way: without it a job must not start at all. That it
# was taken when it is there is job's to check.
strict() {
	local name="a provider that is not there"

	if WEFT_TEST_PROV=no_such_provider job 2 "$work/p2p"; then
		not_ok "$name was replaced" "$work/log"
	elif grep -q 'PML cm cannot be selected' "$work/log"; then
		ok "$name is not replaced"
	else
		not_ok "$name: wrong reason" "$work/log"
	fi
}

own() {
	local program ranks

	for program in p2p probe types mt; do
		for ranks in 2 4; do
			if job "$ranks" "$work/$program" &&
				grep -q "^$program: all passed on $ranks ranks\$" "$work/log"; then
				ok "$program on $ranks ranks"
			else
				not_ok "$program on $ranks ranks" "$work/log"
			fi
		done
	done
}

collectives() {
	local ranks python=/usr/bin/python3

	"$python" -c 'import mpi4py' 2>/dev/null || {
		skip "mpi4py collectives" "mpi4py is not installed"
		return
	}
	for ranks in 2 4; do
		if job "$ranks" "$python" "$root/tests/mpi/collectives.py" &&
			grep -q "^collectives: all passed on $ranks ranks\$" "$work/log"; then
			ok "mpi4py collectives on $ranks ranks"
		else
			not_ok "mpi4py collectives on $ranks ranks" "$work/log"
		fi
	done
}

# figures runs the program of weft bench mpi for an instant and checks every message.
figures() {
	local ranks tests want program=$root/build/bench/mpi_bench

	[ -x "$program" ] || {
		skip "mpi_bench" "no $program; make bench-program builds it"
		return
	}
	while read -r ranks want tests; do
		# shellcheck disable=SC2086 # words
		if job "$ranks" "$program" -k -s 0.001 $tests &&
			[ "$(grep -cE '^mpi_[a-z]+(_[0-9]+)*_(ns|us|mps|mbps) [0-9.e+-]*[1-9]' "$work/log")" = "$want" ]; then
			ok "mpi_bench $tests on $ranks ranks"
		else
			not_ok "mpi_bench $tests on $ranks ranks" "$work/log"
		fi
	done <<-END
		2 19 hop latency stream orders
		2 2 threads
		4 1 pairs
	END
	if job 4 "$program" -s 0.001 latency || job 2 "$program" nothing; then
		not_ok "mpi_bench: a wrong number of ranks, a test that is not there"
	else
		ok "mpi_bench: a wrong number of ranks, a test that is not there"
	fi
}

# NetPIPE once for data integrity and once for its numbers.
netpipe() {
	local checks

	have "NetPIPE" NPopenmpi || return
	if job 2 NPopenmpi -i -u 1048576 -n 20 -o "$work/np"; then
		checks=$(grep -c 'Integrity check passed' "$work/log")
		if ((checks >= 30)) && ! grep -qi 'fail' "$work/log"; then
			ok "NetPIPE integrity of $checks sizes"
		else
			not_ok "NetPIPE integrity" "$work/log"
		fi
	else
		not_ok "NetPIPE integrity" "$work/log"
	fi
	if job 2 NPopenmpi -u 8388608 -n 10 -o "$work/np" &&
		[ "$(grep -c 'Mbps in' "$work/log")" -ge 100 ]; then
		ok "NetPIPE up to 8 MiB: $(grep 'Mbps in' "$work/log" | head -n 1 | tr -s ' ')"
	else
		not_ok "NetPIPE up to 8 MiB" "$work/log"
	fi
}

hpcc_job() {
	local ranks=$1 name="HPC Challenge on $1 ranks" out=hpccoutf.txt

	mkdir -p "$work/hpcc$ranks"
	cd "$work/hpcc$ranks" || return
	hpcc_input "$2" "$3"
	if job "$ranks" hpcc && hpcc_right "$out" >>"$work/log" 2>&1; then
		ok "$name"
	else
		tail -n 15 "$out" >>"$work/log" 2>&1
		not_ok "$name" "$work/log"
	fi
	cd "$root" || exit 1
}

hpcc_all() {
	have "HPC Challenge" hpcc || return
	hpcc_job 2 1 2
	hpcc_job 4 2 2
}

# scalapack_check PROGRAM: all residuals in bounds, by the program's own count.
scalapack_check() {
	case $1 in
	PBLAS/*)
		! grep -q 'FAILED \*\*\*\*\*' "$work/log" &&
			grep -q 'Computational check: .* PASSED' "$work/log" &&
			grep -q 'END OF TESTS\|End of Tests' "$work/log"
		;;
	*)
		grep -Eq '^ *[1-9][0-9]* tests completed and passed' "$work/log" &&
			grep -Eq '^ *0 tests completed and failed' "$work/log"
		;;
	esac
}

# xdllt and xdsep are left out: over Open MPI's own shared memory, too, the first
# hangs and the second fails now and then.
scalapack() {
	local dir program ranks data

	for dir in /usr/lib/*/scalapack/openmpi-tests; do break; done
	if [ ! -d "$dir" ]; then
		skip "ScaLAPACK" "scalapack-mpi-test is not installed"
		return
	fi
	mkdir -p "$work/scalapack"
	for data in /usr/share/scalapack/*.dat /usr/share/scalapack/PBLAS/*.dat; do
		cp "$data" "$work/scalapack/"
	done
	cd "$work/scalapack" || return
	for ranks in 2 4; do
		for program in xdlu xzllt xdqr xdls xdinv xdhrd xdtrd xdbrd xdnep xddblu xdgblu \
			PBLAS/dpb1tst PBLAS/dpb2tst PBLAS/zpb3tst; do
			if job "$ranks" "$dir/$program" && scalapack_check "$program"; then
				ok "ScaLAPACK $program on $ranks ranks"
			else
				not_ok "ScaLAPACK $program on $ranks ranks" "$work/log"
			fi
		done
	done
	blacs "$dir/BLACS"
	cd "$root" || exit 1
}

# The tester of BLACS, scalapack's message layer, in the current folder; some
# of its grids need 4 ranks. The auxiliary tests are off: they end by MPI_Abort.
blacs() {
	cp /usr/share/scalapack/BLACS/*.dat . && sed -i "/Run AUX/s/'T'/'F'/" bt.dat
	if job 4 "$1/xCbtest" && grep -q 'THERE WERE NO FAILURES IN THIS TEST RUN' "$work/log" &&
		! grep -Eq '[1-9][0-9]* FAILED' "$work/log"; then
		ok "BLACS: $(grep -c '0 FAILED' "$work/log") groups of messages on 4 ranks"
	else
		not_ok "BLACS on 4 ranks" "$work/log"
	fi
}

# onesided runs MPI's one-sided communication over the provider's.
onesided() {
	local ranks

	for ranks in 2 4; do
		if job "$ranks" "${ONESIDED[@]}" "$work/onesided" &&
			grep -q "^onesided: all passed on $ranks ranks\$" "$work/log"; then
			ok "one-sided communication on $ranks ranks"
		else
			not_ok "one-sided communication on $ranks ranks" "$work/log"
		fi
	done
}

if ! have "Open MPI" mpirun || ! have "Open MPI" mpicc; then
	closing
	exit
fi
${MAKE:-make} -s -C tests/mpi OUT="$work" || not_ok "build of tests/mpi"

for group in "${@:-strict lines own onesided collectives figures netpipe hpcc_all scalapack}"; do
	for part in $group; do
		[ "$part" = hpcc ] && part=hpcc_all
		"$part"
	done
done
closing
