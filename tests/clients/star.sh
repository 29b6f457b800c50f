# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Shared by the scripts that need several hosts: $HOSTS network namespaces around a switch, each with 10.97.0.1 and so
# on, and a link of WEFT_TEST_MBIT. Source it after lib.sh with HOSTS set, as root; down takes the hosts away.

mbit=${WEFT_TEST_MBIT:-100} slow=${WEFT_TEST_SLOW_MBIT:-5}
prefix=weft-star-$$

# shellcheck disable=SC2154 # lib.sh has made it
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

star() {
	local i

	for ((i = 0; i <= HOSTS; i++)); do
		ip netns add "$prefix-$i" && ip -n "$prefix-$i" link set lo up || return
	done
	ip -n "$prefix-$HOSTS" link add bridge type bridge && ip -n "$prefix-$HOSTS" link set bridge up || return
	for ((i = 0; i < HOSTS; i++)); do
		cable $i eth0 "port$i" "$mbit" && ip -n "$prefix-$i" addr add "10.97.0.$((i + 1))/24" dev eth0 || return
	done
}

# slow_path FROM TO: what a host sends to another has a slow cable of its own, as far as that the host answers for its
# address there.
slow_path() {
	local mac from=$prefix-$1

	cable "$1" eth1 "side$1" "$slow" || return
	ip netns exec "$from" sysctl -qw net.ipv4.conf.eth1.arp_ignore=8 net.ipv4.conf.eth0.rp_filter=0 \
		net.ipv4.conf.all.rp_filter=0 || return
	mac=$(ip netns exec "$prefix-$2" cat /sys/class/net/eth0/address) || return
	ip -n "$from" neigh replace "10.97.0.$(($2 + 1))" lladdr "$mac" dev eth1 nud permanent &&
		ip -n "$from" route replace "10.97.0.$(($2 + 1))/32" dev eth1 src "10.97.0.$(($1 + 1))"
}
