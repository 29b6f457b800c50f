#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Two hosts (network namespaces) on which the kernel numbers a VPN, a container bridge that has the
# same address on both, and an interface without a cable before the network: jobs that take the
# first answer of fi_getinfo reach each other over the network. Needs root; skipped without.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source-path=SCRIPTDIR source=lib.sh
. tests/clients/lib.sh

LIMIT=60
a=weft-oa-$$ b=weft-ob-$$

# vpn NAMESPACE: a tunnel whose other end stays open and answers nothing, as that of a VPN
# that is not connected.
vpns=()
vpn() {
	ip netns exec "$1" timeout 300 python3 -c '
import fcntl, struct, time
tunnel = open("/dev/net/tun", "r+b", buffering=0)
fcntl.ioctl(tunnel, 0x400454ca, struct.pack("16sH22x", b"vpn0", 0x1001)) # TUNSETIFF, IFF_TUN | IFF_NO_PI
time.sleep(300)' &
	vpns+=($!)
	for ((i = 0; i < 100; i++)); do
		ip -n "$1" link show vpn0 >/dev/null 2>&1 && return
		sleep 0.05
	done
	echo "no tunnel: $1" >&2
	return 1
}

down() {
	((${#vpns[@]} == 0)) || kill "${vpns[@]}" 2>/dev/null
	ip netns del "$a" 2>/dev/null
	ip netns del "$b" 2>/dev/null
	rm -rf "$work"
}

# host NAMESPACE NUMBER: what comes before the network.
host() {
	ip netns add "$1" && ip -n "$1" link set lo up || return
	vpn "$1" && ip -n "$1" addr add "10.8.$2.1/24" dev vpn0 && ip -n "$1" link set vpn0 up || return
	ip -n "$1" link add docker0 type bridge && ip -n "$1" addr add 172.17.0.1/16 dev docker0 || return
	ip -n "$1" link add c0 type veth peer name c1 && ip -n "$1" link set c0 master docker0 || return
	ip -n "$1" link set docker0 up && ip -n "$1" link set c0 up && ip -n "$1" link set c1 up || return
	# The other end of this cable is switched off.
	ip -n "$1" link add aa0 type veth peer name aa1 && ip -n "$1" addr add "10.9.$2.1/24" dev aa0 && ip -n "$1" link set aa0 up
}

up() {
	host "$a" 1 && host "$b" 2 || return
	ip link add "oa$$" type veth peer name "ob$$" || return
	ip link set "oa$$" netns "$a" name eth0 && ip link set "ob$$" netns "$b" name eth0 || return
	ip -n "$a" addr add 10.77.0.1/24 dev eth0 && ip -n "$b" addr add 10.77.0.2/24 dev eth0 || return
	ip -n "$a" link set eth0 up && ip -n "$b" link set eth0 up
}

if [ "$(id -u)" != 0 ] || ! trap down EXIT || ! up 2>"$work/log"; then
	skip "two hosts with more interfaces" "$(head -n 1 "$work/log" 2>/dev/null || echo "not root")"
	closing
	exit
fi

# domains NAMESPACE: those of the answers, in their order.
domains() {
	ip netns exec "$1" timeout $LIMIT fi_info -p weft -t FI_EP_RDM | sed -n 's/ *domain: //p' | tr '\n' ' '
}

first=$(domains "$a")
if [ "$first" = "eth0 docker0 vpn0 lo lo " ] && [ "$(domains "$a")" = "$first" ] && [ "$(domains "$b")" = "$first" ]; then
	ok "order: $first"
else
	not_ok "order: $first, then $(domains "$a"), $(domains "$b")"
fi
if [ "$(FI_WEFT_IFACE=aa0 domains "$a")" = "aa0 " ]; then
	ok "an interface without a carrier that FI_WEFT_IFACE names"
else
	not_ok "an interface without a carrier: $(FI_WEFT_IFACE=aa0 domains "$a")"
fi
ip netns exec "$a" build/bin/weft info >"$work/log" 2>&1
if grep -Eq '^ *2\. *docker0 .*bridge without a wired port' "$work/log" && grep -Eq '^ *aa0 .*no carrier: offered only by name' "$work/log" &&
	grep -Eq '^ *3\. *vpn0 .*tunnel' "$work/log" && grep -Eq '^ *1\. *eth0 .*virtual \(veth\)' "$work/log"; then
	ok "weft info says the order and the reasons"
else
	not_ok "weft info" "$work/log"
fi

make -s -C tests/c OUT="$PWD/build/tests" "$PWD/build/tests/msg_basic" || exit 1
if WEFT_TEST_NETNS=$a,$b timeout $LIMIT build/tests/msg_basic pair >"$work/log" 2>&1; then
	ok "a job on two hosts: $(tail -n 1 "$work/log")"
else
	not_ok "a job on two hosts" "$work/log"
fi
# What this is about: over the bridge, whose address is the other host's own, too, nothing arrives.
if WEFT_TEST_NETNS=$a,$b FI_WEFT_IFACE=docker0 FI_WEFT_CONNECT_TIMEOUT=1s timeout 15 build/tests/msg_basic pair_posted >"$work/log" 2>&1; then
	not_ok "the hosts reach each other over docker0: this test shows nothing" "$work/log"
else
	ok "over docker0 there is no way"
fi
closing
