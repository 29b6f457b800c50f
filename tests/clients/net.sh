# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Shared by the scripts that need two hosts: network namespaces $a and $b, joined by a
# virtual cable, with the addresses 10.77.0.1 and 10.77.0.2 on eth0. Source it after lib.sh.

a=weft-a-$$ b=weft-b-$$

# shellcheck disable=SC2154 # lib.sh has made it
down() {
	ip netns del "$a" 2>/dev/null
	ip netns del "$b" 2>/dev/null
	rm -rf "$work"
}

up() {
	ip netns add "$a" && ip netns add "$b" || return
	ip link add "va$$" type veth peer name "vb$$" || return
	ip link set "va$$" netns "$a" name eth0 && ip link set "vb$$" netns "$b" name eth0 || return
	ip -n "$a" addr add 10.77.0.1/24 dev eth0 && ip -n "$b" addr add 10.77.0.2/24 dev eth0 || return
	for ns in "$a" "$b"; do
		ip -n "$ns" link set eth0 up && ip -n "$ns" link set lo up || return
	done
}
