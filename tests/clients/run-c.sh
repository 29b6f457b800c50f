#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Builds and runs every program of tests/c over weft, or over WEFT_TEST_PROV.
# Arguments name programs; without them all run. Last line: the sum.
# With WEFT_TEST_CUDA=stand-in all find the driver of tests/c/fake as CUDA's, which ends a process that uses memory of a
# GPU wrongly; without it those alone do that use such memory.
set -u
cd "$(dirname "$0")/../.." || exit 1

OUT=$PWD/build/tests
LIMIT=${WEFT_TEST_LIMIT:-900} # seconds for one program
given=${FI_PROVIDER_PATH:-}
# shellcheck source-path=SCRIPTDIR source=lib.sh
. tests/clients/lib.sh

make -s -C tests/c OUT="$OUT" || {
	echo "0 passed, 1 failed, 0 skipped"
	exit 1
}
if (($# > 0)); then
	programs=("$@")
else
	mapfile -t programs < <(make -s -C tests/c list)
fi

if [ "${WEFT_TEST_CUDA-}" = stand-in ]; then
	export WEFT_TEST_GPU=fake LD_LIBRARY_PATH=$OUT/fake${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi

log=$work/log
[ -n "$given" ] || for_any_user # some programs become another
for program in "${programs[@]}"; do
	echo "-- $program"
	start=$SECONDS
	timeout -k 10 "$LIMIT" "$OUT/$program" >"$log" 2>&1
	status=$?
	grep -vE '^[0-9]+ passed, ' "$log"
	line=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tail -n 1)
	if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
		passed=$((passed + BASH_REMATCH[1]))
		failed=$((failed + BASH_REMATCH[2]))
		skipped=$((skipped + BASH_REMATCH[3]))
	else
		echo "not ok - $program ended with status $status and no closing line"
		failed=$((failed + 1))
	fi
	echo "   $((SECONDS - start)) s"
done
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0 && passed > 0))
