# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Shared by the scripts that run HPC Challenge: its input.

# hpcc_input P Q writes a small problem into the current folder.
hpcc_input() {
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
