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

# Most of the time programs wait, for peers and limits. So two run at a time where all run, but for refused, which
# limits the user's processes: it is the last, and alone. Those that arguments name run one after another.
at_once=1
if (($# == 0)); then
	at_once=2
	mapfile -t programs < <(printf '%s\n' "${programs[@]}" | grep -vxF refused && echo refused)
fi

# run NUMBER PROGRAM leaves its output, and then its status and time.
run() {
	local start=$SECONDS

	timeout -k 10 "$LIMIT" "$OUT/$2" >"$work/$1.log" 2>&1
	echo "$? $((SECONDS - start))" >"$work/$1.part"
	mv "$work/$1.part" "$work/$1.status"
}

# report NUMBER PROGRAM shows what one has left, and counts.
report() {
	local log=$work/$1.log status seconds line

	read -r status seconds <"$work/$1.status"
	echo "-- $2"
	grep -vE '^[0-9]+ passed, ' "$log"
	line=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tail -n 1)
	if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
		passed=$((passed + BASH_REMATCH[1]))
		failed=$((failed + BASH_REMATCH[2]))
		skipped=$((skipped + BASH_REMATCH[3]))
	else
		echo "not ok - $2 ended with status $status and no closing line"
		failed=$((failed + 1))
	fi
	echo "   $seconds s"
}

# room LIMIT waits until fewer programs than that run, and reports in order those that have ended.
reported=0
room() {
	while (($(jobs -rp | wc -l) >= $1)); do wait -n; done
	while [ -e "$work/$reported.status" ]; do
		report $reported "${programs[reported]}"
		reported=$((reported + 1))
	done
}

[ -n "$given" ] || for_any_user # some programs become another
for number in "${!programs[@]}"; do
	limit=$at_once
	[ "${programs[number]}" != refused ] || limit=1
	room $limit
	run "$number" "${programs[number]}" &
done
room 1
if ((reported != ${#programs[@]})); then
	echo "not ok - ${programs[reported]} left no status"
	failed=$((failed + 1))
fi
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0 && passed > 0))
