#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The Wireshark dissector on a capture of weft's traffic between two network namespaces:
# every datagram is weft's, none is malformed, and what it shows is what was sent. Needs root
# and tshark; skipped without.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source-path=SCRIPTDIR source=lib.sh
. tests/clients/lib.sh
# shellcheck source-path=SCRIPTDIR source=net.sh
. tests/clients/net.sh

LIMIT=60
capture=$work/capture.pcap

shark() { timeout $LIMIT tshark -X lua_script:packaging/wireshark/weft.lua -r "$capture" "$@" 2>"$work/errors"; }

# record NAMESPACE INTERFACE COMMAND...: captures there while COMMAND runs.
record() {
	local shark namespace=$1 interface=$2

	shift 2
	rm -f "$capture"
	ip netns exec "$namespace" tshark -q -i "$interface" -f udp -w "$capture" >"$work/tshark" 2>&1 &
	shark=$!
	until grep -q 'Capturing' "$work/tshark" && [ -s "$capture" ]; do
		kill -0 $shark 2>/dev/null || return 1
		sleep 0.1
	done
	"$@"
	sleep 0.5 # for the kernel to hand over the rest
	kill $shark
	wait $shark
	return 0
}

# Messages in the stream, and rendezvous, which the receiver gets.
traffic() {
	local size server

	for size in 64 4096 65536 1048576; do
		ip netns exec "$a" timeout $LIMIT fi_pingpong -p weft -e rdm -m tagged -d eth0 -I 3 -S $size >"$work/server" 2>&1 &
		server=$!
		listening 47592 $server ip netns exec "$a"
		ip netns exec "$b" timeout $LIMIT fi_pingpong -p weft -e rdm -m tagged -d eth0 -I 3 -S $size 10.77.0.1 >"$work/log" 2>&1
		wait $server
	done
}

# Puts and gets at random between interfaces of one process, which a program of the test's impairs.
onesided() {
	(cd hw/udp && ip netns exec "$a" timeout $LIMIT "$work/udp.test" -test.run TestImpairedOneSided >"$work/log" 2>&1)
}

# none NAME FILTER: the capture has no packet that the filter takes.
none() {
	if shark -Y "$2" -c 100000 >"$work/log" && ! [ -s "$work/log" ] && ! grep -qi 'lua' "$work/errors"; then
		ok "$1"
	else
		cat "$work/errors" >>"$work/log"
		not_ok "$1" "$work/log"
	fi
}

clean() {
	none "$1: every datagram is known" 'udp && !weft'
	none "$1: none is malformed" 'weft.bad || _ws.malformed || _ws.lua.error'
}

# some NAME FILTER LEAST
some() {
	local n

	n=$(shark -Y "$2" -T fields -e frame.number | wc -l)
	if ((n >= $3)); then ok "$1: $n"; else not_ok "$1: $n, not $3"; fi
}

# A connection begins with Init, Retry, Init with a cookie, Accept, all of one client's id.
handshake() {
	local n

	n=$(shark -Y 'weft.version' -T fields -e weft.type -e weft.handshake.has_cookie -e weft.handshake.client |
		awk '{ k = $NF; s[k] = s[k] " " $1 ($1 == 1 ? "/" $2 : "") }
			END { for (k in s) if (s[k] ~ /^ 1\/(0|False) 2( .*)? 1\/(1|True)( .*)? 3/) n++; print n + 0 }')
	if ((n >= 4)); then ok "handshakes: $n"; else not_ok "handshakes: $n, not 4"; fi
}

# Numbers of a connection's packets are never used again: trains are parted where their packets are.
numbers() {
	shark -Y 'weft.type == 5' -T fields -E separator=' ' -E aggregator=, -e weft.cid -e weft.number |
		awk '{ n = split($1, c, ","); m = split($2, p, ","); if (n != m) bad++
				for (i = 1; i <= n; i++) { if (seen[c[i] " " p[i]]++) bad++; all++ }; if (n > 1) trains++ }
			END { print all + 0, "packets,", trains + 0, "trains,", bad + 0, "bad"; exit !(all > 100 && trains > 0 && !bad) }' >"$work/log"
	if [ "${PIPESTATUS[1]}" = 0 ]; then ok "packet numbers: $(cat "$work/log")"; else not_ok "packet numbers" "$work/log"; fi
}

if [ "$(id -u)" != 0 ]; then
	skip dissector "network namespaces need root"
elif have dissector tshark && have dissector fi_pingpong; then
	trap down EXIT
	if ! up 2>"$work/log"; then
		skip dissector "no network namespaces here: $(head -n 1 "$work/log")"
	elif ! "${GO:-go}" test -c -o "$work/udp.test" ./hw/udp >"$work/log" 2>&1; then
		not_ok "the tests of hw/udp are built" "$work/log"
	elif ! record "$b" eth0 traffic; then
		skip dissector "tshark cannot capture here: $(tail -n 1 "$work/tshark")"
	else
		clean "messages"
		handshake
		numbers
		some "pieces of the stream" 'weft.frame == 2' 20
		some "acknowledgements" 'weft.frame == 1 && weft.ack.largest' 10
		some "gets" 'weft.frame == 6 && weft.get.length > 65536' 1
		some "their data" 'weft.frame == 7 && weft.length' 10
		some "ends" 'weft.frame == 4 && weft.close.reason == 0' 3 # of four: a capture may miss a packet
		record "$a" lo onesided || not_ok "one-sided traffic" "$work/tshark"
		clean "one-sided"
		some "puts" 'weft.frame == 5 && weft.addr && weft.length' 100
		some "probes of the path" 'weft.frame == 0' 1
	fi
fi
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
