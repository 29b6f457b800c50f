#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# apart.sh PROGRAM...: programs of tests/c in one virtual machine of tests/rdma/vm. Their
# ranks share no memory, so nothing but the RDMA device leads from one to the other. PROGRAM may have a word behind it:
# only the tests that have it in their names.
set -u
cd "$(dirname "$0")/../.." || exit 1
export FI_PROVIDER_PATH=$PWD/build/lib WEFT_TEST_PROV=weft WEFT_TEST_APART=1 FI_WEFT_UDP=no FI_WEFT_VERBS=yes
status=0
for program; do
	echo "tests/c/$program"
	# shellcheck disable=SC2086 # the program and the word
	build/tests/$program || status=1
done
exit $status
