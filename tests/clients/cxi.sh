#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Processes of one host that share no memory exchange messages over a software model of Slingshot's NIC
# (tests/cassini) and nothing else; what goes wrong without the library, with a service that forbids and with a
# peer that has no NIC is named, or goes over UDP. Needs root; skipped without.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source-path=SCRIPTDIR source=lib.sh
. tests/clients/lib.sh
# shellcheck source-path=SCRIPTDIR source=net.sh
. tests/clients/net.sh

LIMIT=90
# The NIC runs on a thread of its own: weft's threads block the signal by which it would run on that of who rings.
export CASSINI=mode=threaded FI_LOG_LEVEL=warn FI_LOG_PROV=weft

# pair NAME SERVER CLIENT OPTION...: fi_pingpong between two processes with variables of each, data checked. Words of
# SERVER and CLIENT are assignments.
pair() {
	local name=$1 own=$2 other=$3 server status
	shift 3
	mkdir -p "$work/1" "$work/2"
	# shellcheck disable=SC2086 # lists of assignments
	ip netns exec "$a" env FI_WEFT_SHM_DIR="$work/1" $own timeout $LIMIT fi_pingpong -p weft -d eth0 -e rdm -c "$@" >"$work/server" 2>&1 &
	server=$!
	listening 47592 $server ip netns exec "$a" # fi_pingpong's own port
	# shellcheck disable=SC2086
	ip netns exec "$a" env FI_WEFT_SHM_DIR="$work/2" $other timeout $LIMIT fi_pingpong -p weft -d eth0 -e rdm -c "$@" 10.77.0.1 >"$work/log" 2>&1
	status=$?
	wait $server || status=1
	if ((status == 0)) && [ "$(grep -cE '^[0-9]+[km]? ' "$work/log")" -ge 1 ]; then
		ok "$name: $(grep -E '^[0-9]+[km]? ' "$work/log" | head -n 1 | tr -s ' ')"
	else
		not_ok "$name" "$work/log"
		sed 's/^/#   server: /' "$work/server" | tail -n 10
	fi
}

# refused NAME PATTERN VARIABLES: an endpoint is not enabled, and a line of the log says why.
refused() {
	local server

	# shellcheck disable=SC2086
	ip netns exec "$a" env $3 timeout $LIMIT fi_pingpong -p weft -d eth0 -e rdm >"$work/server" 2>&1 &
	server=$!
	listening 47592 $server ip netns exec "$a"
	# shellcheck disable=SC2086
	if ip netns exec "$a" env $3 timeout $LIMIT fi_pingpong -p weft -d eth0 -e rdm 10.77.0.1 >"$work/log" 2>&1; then
		not_ok "$1: it works" "$work/log"
	elif grep -q "$2" "$work/log" "$work/server"; then
		ok "$1: $(cat "$work/log" "$work/server" | grep -o "$2.*" | head -n 1)"
	else
		not_ok "$1: the log does not say \"$2\"" "$work/log"
	fi
	wait $server
}

main() {
	local with="LD_LIBRARY_PATH=$work FI_WEFT_CXI=yes"

	pair "over CXI alone" "$with FI_WEFT_UDP=no" "$with FI_WEFT_UDP=no" -I 20
	pair "over CXI, beside UDP" "$with" "$with" -I 20 -S 4096
	pair "a peer without a NIC, over UDP" "$with" "FI_WEFT_CXI=no" -I 20 -S 4096
	pair "without libcxi, over UDP" "FI_WEFT_CXI=auto" "FI_WEFT_CXI=auto" -I 20 -S 64
	refused "a NIC is demanded, without libcxi" "libcxi is not installed" "FI_WEFT_CXI=yes"
	refused "a NIC that is not there" "no NIC cxi7 on this host" "$with FI_WEFT_CXI_DEVICE=cxi7"
	refused "a VNI that the service does not have" "service 1 does not have VNI 99" \
		"$with SLINGSHOT_VNIS=99 SLINGSHOT_DEVICES=cxi0 SLINGSHOT_SVC_IDS=1"
}

if [ "$(id -u)" != 0 ]; then
	skip "processes over CXI" "only root makes network namespaces"
elif have "processes over CXI" fi_pingpong; then
	trap down EXIT
	if gcc -O2 -std=gnu11 -D_GNU_SOURCE -fPIC -shared -pthread -Wl,-soname,libcxi.so.1 \
		-Wl,--version-script=tests/cassini/libcxi.map tests/cassini/*.c -o "$work/libcxi.so.1" 2>"$work/log" && up 2>>"$work/log"; then
		main
	else
		not_ok "the model and the network" "$work/log"
	fi
fi
closing
