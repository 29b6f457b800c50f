#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# All-to-alls whose members are killed with kill -9 (tests/c/fault_exchange.c), between six hosts: network
# namespaces around a switch, with one slow path, so that members relay. Needs root; skipped without.
# WEFT_TEST_KILLS rounds of each test (CI: 1); with "long" as the argument many, under every policy.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source-path=SCRIPTDIR source=lib.sh
. tests/clients/lib.sh

HOSTS=6
# shellcheck source-path=SCRIPTDIR source=star.sh
. tests/clients/star.sh

# kills NAME: every test of the program.
kills() {
	local i hosts=$prefix-0

	for ((i = 1; i < HOSTS; i++)); do
		hosts+=,$prefix-$i
	done
	if WEFT_TEST_NETNS=$hosts FI_WEFT_IFACE=eth0 timeout -k 10 "$LIMIT" build/tests/fault_exchange >"$work/log" 2>&1; then
		ok "all-to-alls with kills between $HOSTS hosts, $1: $(tail -n 1 "$work/log")"
		grep ' rounds: ' "$work/log"
	else
		not_ok "all-to-alls with kills between $HOSTS hosts, $1" "$work/log"
	fi
}

if [ "$(id -u)" != 0 ]; then
	skip "kills between hosts" "network namespaces need root"
elif have "kills between hosts" ip && have "kills between hosts" tc; then
	trap down EXIT
	if ! make -s -C tests/c OUT="$PWD/build/tests" >"$work/log" 2>&1; then
		not_ok "tests/c is built" "$work/log"
	elif ! { star && slow_path 1 2; } 2>"$work/log"; then
		skip "kills between hosts" "no network here: $(head -n 1 "$work/log")"
	elif [ "${1:-}" = long ]; then
		export WEFT_TEST_KILLS=${WEFT_TEST_KILLS:-60} WEFT_TEST_RELAYS=1 WEFT_TEST_SLOW=${WEFT_TEST_SLOW:-30}
		LIMIT=3600
		for policy in adaptive greedy threshold balanced; do
			FI_WEFT_RTT_SCHED_POLICY=$policy kills "policy $policy"
		done
		FI_WEFT_ALLTOALL_ALGORITHM=put kills "puts"
		FI_WEFT_ALLTOALL_ALGORITHM="get" kills "gets"
	else
		export WEFT_TEST_KILLS=${WEFT_TEST_KILLS:-1}
		LIMIT=300
		kills "adaptive"
		FI_WEFT_ALLTOALL_ALGORITHM=put kills "puts"
		FI_WEFT_ALLTOALL_ALGORITHM="get" kills "gets"
	fi
fi
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
