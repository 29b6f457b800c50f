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
mbit=${WEFT_TEST_MBIT:-100} slow=${WEFT_TEST_SLOW_MBIT:-5}
prefix=weft-kills-$$

down() {
	local i

	for ((i = 0; i <= HOSTS; i++)); do
		ip netns del "$prefix-$i" 2>/dev/null
	done
	rm -rf "$work"
}

# cable HOST INTERFACE PORT RATE: what leaves the host through its interface goes into the switch, which
# is the last namespace; both sides send at a rate.
cable() {
	local host=$prefix-$1 sw=$prefix-$HOSTS

	ip -n "$host" link add "$2" type veth peer name "$3" netns "$sw" &&
		ip -n "$host" link set "$2" up gso_max_segs 1 && ip -n "$sw" link set "$3" up master bridge &&
		tc -n "$sw" qdisc replace dev "$3" root tbf rate "$4mbit" burst 16kb limit 262144 &&
		tc -n "$host" qdisc replace dev "$2" root tbf rate "$4mbit" burst 16kb limit 262144
}

# star: the hosts have 10.97.0.1 and so on. What host 1 sends to host 2 has a slow cable of its own,
# as far as that the host answers for its address there.
star() {
	local i mac from=$prefix-1

	for ((i = 0; i <= HOSTS; i++)); do
		ip netns add "$prefix-$i" && ip -n "$prefix-$i" link set lo up || return
	done
	ip -n "$prefix-$HOSTS" link add bridge type bridge && ip -n "$prefix-$HOSTS" link set bridge up || return
	for ((i = 0; i < HOSTS; i++)); do
		cable $i eth0 "port$i" "$mbit" && ip -n "$prefix-$i" addr add "10.97.0.$((i + 1))/24" dev eth0 || return
	done
	cable 1 eth1 side "$slow" || return
	ip netns exec "$from" sysctl -qw net.ipv4.conf.eth1.arp_ignore=8 net.ipv4.conf.eth0.rp_filter=0 \
		net.ipv4.conf.all.rp_filter=0 || return
	mac=$(ip netns exec "$prefix-2" cat /sys/class/net/eth0/address) || return
	ip -n "$from" neigh replace 10.97.0.3 lladdr "$mac" dev eth1 nud permanent &&
		ip -n "$from" route replace 10.97.0.3/32 dev eth1 src 10.97.0.2
}

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
	elif ! star 2>"$work/log"; then
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
