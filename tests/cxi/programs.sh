#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# programs.sh [PROGRAM...]: every program of tests/c, or those that are named, over the software model of Slingshot's NIC and
# nothing else, JOBS (2) at a time. What goes by UDP or through shared memory alone is skipped, with the reason. Needs root.
# Last line: the sum of the tests.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source-path=SCRIPTDIR source=../clients/lib.sh
. tests/clients/lib.sh
# shellcheck source-path=SCRIPTDIR source=../clients/net.sh
. tests/clients/net.sh
# shellcheck source-path=SCRIPTDIR source=alone.sh
. tests/cxi/alone.sh

LIMIT=1800 # seconds for one program, which bounds what hangs: some open ten thousand endpoints
export FI_LOG_LEVEL=warn FI_LOG_PROV=weft WEFT_TEST_SLOW=${WEFT_TEST_SLOW:-4}

# one PROGRAM: leaves its output in logs, and how long it took at its end.
one() {
	local began=$SECONDS

	alone "$work" $LIMIT "$1" >"$work/logs/$1" 2>&1
	echo "status $? after $((SECONDS - began)) s" >>"$work/logs/$1"
}

# report PROGRAM: what came of it.
report() {
	local log=$work/logs/$1 line

	line=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tail -n 1)
	if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
		passed=$((passed + BASH_REMATCH[1]))
		failed=$((failed + BASH_REMATCH[2]))
		skipped=$((skipped + BASH_REMATCH[3]))
	else
		failed=$((failed + 1))
	fi
	echo "-- $1: ${line:-no closing line}, $(tail -n 1 "$log")"
	grep -E '^ok .*# SKIP ' "$log"
	if ! grep -q '^status 0 ' "$log"; then
		grep -vE '^ok |^libfabric:.*<info>|fi_getinfo' "$log" | tail -n 60 | sed 's/^/#   /'
		[[ ${BASH_REMATCH[2]:-0} == 0 && -n $line ]] && failed=$((failed + 1))
	fi
}

main() {
	local program

	if (($# == 0)); then
		mapfile -t programs < <(make -s -C tests/c list)
		set -- "${programs[@]}"
	fi
	mkdir "$work/logs" && for_any_user
	for program; do
		while (($(jobs -r | wc -l) >= ${JOBS:-2})); do wait -n; done
		one "$program" &
	done
	wait
	for program; do report "$program"; done
}

if [ "$(id -u)" != 0 ]; then
	skip "programs over CXI" "only root makes network namespaces"
else
	trap down EXIT
	if make -s -C tests/cassini ../../build/cassini/libcxi.so.1 >"$work/log" 2>&1 && cp build/cassini/libcxi.so.1 "$work" &&
		make -s -C tests/c >>"$work/log" 2>&1 && up 2>>"$work/log"; then
		main "$@"
	else
		not_ok "the model, tests/c and the network" "$work/log"
	fi
fi
closing
