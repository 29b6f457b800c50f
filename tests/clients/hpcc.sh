# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Shared by the scripts that run HPC Challenge: its input, and what its output has to say.

# hpcc_input P Q writes a small problem into the current folder, and removes the output of a run before, to which HPC
# Challenge would append.
hpcc_input() {
	rm -f hpccoutf.txt
	cat >hpccinf.txt <<END
HPLinpack benchmark input file
written by tests/clients/hpcc.sh
HPL.out
8
1
400
1
40
0
1
$1
$2
16.0
1
2
1
4
1
2
1
1
1
1
1
1
2
64
0
0
1
8
##### ignored #####
0
1200
0
40
END
}

# hpcc_right FILE [LCG]: whether the output of one run says that all data was right, and says what is wrong otherwise.
# HPC Challenge judges PTRANS and HPL (residuals) and RandomAccess (errors) itself; of MPIFFT it only prints how far the
# transform and its inverse are from the input: about 1e-15, and 0 or less where nothing that is a number was compared.
# RandomAccess passes with errors in up to 1 % of its locations. MPIRandomAccess_LCG has some with eight ranks of any
# MPI, on one host, too; LCG is how many it may have, 0 without.
hpcc_right() {
	awk -v lcg="${2:-0}" '
		/^Begin of / { section = $3 }
		/^Success=1$/ { success++ }
		/PASSED/ { passed++ }
		/Found 0 errors/ { found++ }
		/ 0 tests completed and failed residual checks/ { residuals++ }
		/^MPIFFT_maxErr=/ {
			error = substr($0, index($0, "=") + 1)
			if (error ~ /^[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?$/ && error + 0 > 0 && error + 0 < 1e-10) transforms++
			else wrong("MPIFFT_maxErr is \"" error "\"")
		}
		/^Found [1-9][0-9]* errors/ && !(section == "MPIRandomAccess_LCG" && $2 + 0 <= lcg + 0) { wrong(section ": " $0) }
		/FAILED|\(failed\)|[1-9][0-9]* tests completed and failed/ { wrong($0) }
		function wrong(what) { print FILENAME ": " what; bad++ }
		function want(what, n, found) { if (found < n) wrong("no " what) }
		END {
			if (success != 1) wrong(success + 0 " lines Success=1, for one run")
			want("PASSED", 1, passed)
			want("Found 0 errors", 1, found)
			want("0 failed residual checks of both PTRANS and HPL", 2, residuals)
			want("MPIFFT_maxErr between 0 and 1e-10", 1, transforms)
			exit bad > 0
		}' "$1"
}

# hpcc_doctored FILE: whether hpcc_right refuses the output of a right run in which one thing is wrong. Says what it
# does not refuse. Each line is a script for sed.
hpcc_doctored() {
	local edit doctored=$1.doctored missed=0

	while read -r edit; do
		sed "$edit" "$1" >"$doctored"
		if cmp -s "$1" "$doctored" || hpcc_right "$doctored" >/dev/null; then
			echo "not refused: $edit"
			missed=1
		fi
	done <<-'END'
		s/^MPIFFT_maxErr=.*/MPIFFT_maxErr=-1/
		s/^MPIFFT_maxErr=.*/MPIFFT_maxErr=0/
		s/^MPIFFT_maxErr=.*/MPIFFT_maxErr=nan/
		s/^MPIFFT_maxErr=.*/MPIFFT_maxErr=-nan/
		s/^MPIFFT_maxErr=.*/MPIFFT_maxErr=inf/
		s/^MPIFFT_maxErr=.*/MPIFFT_maxErr=0.34571/
		s/^MPIFFT_maxErr=.*/MPIFFT_maxErr=1.2e-09/
		s/^MPIFFT_maxErr=.*/MPIFFT_maxErr=/
		/^MPIFFT_maxErr=/d
		s/Found 0 errors/Found 12 errors/
		/Found 0 errors/d
		s/ PASSED/ FAILED/
		/PASSED/d
		s/ 0 tests completed and failed/ 10 tests completed and failed/
		/PTRANS/,$s/^ *0 tests completed and failed residual checks\.$//
		s/^Success=1/Success=0/
		/^Success=1/p
		/^Success=1/d
	END
	return "$missed"
}
