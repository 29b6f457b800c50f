#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# libfabric's own programs, as Debian ships them, over weft (or WEFT_TEST_PROV):
# fi_info, fi_info -e, fi_strerror and fi_pingpong.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source-path=SCRIPTDIR source=lib.sh
. tests/clients/lib.sh

LIMIT=60

info() {
	have fi_info fi_info || return
	if timeout $LIMIT fi_info -p "$WEFT_TEST_PROV" >"$work/log" 2>&1 &&
		grep -q "^provider: $WEFT_TEST_PROV\$" "$work/log" &&
		grep -m 1 'type:' "$work/log" | grep -q 'FI_EP_RDM' && # what clients without a wish take
		grep -q 'type: FI_EP_MSG' "$work/log" && grep -q 'type: FI_EP_DGRAM' "$work/log"; then
		ok "fi_info -p $WEFT_TEST_PROV"
	else
		not_ok "fi_info -p $WEFT_TEST_PROV" "$work/log"
	fi
	if timeout $LIMIT fi_info -v -p "$WEFT_TEST_PROV" >"$work/log" 2>&1 &&
		grep -q 'caps:.*FI_TAGGED' "$work/log" && ! grep -v ' protocol: Unknown' "$work/log" | grep -q 'Unknown'; then
		ok "fi_info -v"
	else
		not_ok "fi_info -v" "$work/log"
	fi
	if timeout $LIMIT fi_info -l >"$work/log" 2>&1 &&
		grep -q "^${WEFT_TEST_PROV##*;}:" "$work/log"; then
		ok "fi_info -l"
	else
		not_ok "fi_info -l" "$work/log"
	fi
}

# The variables that the manual page has, which is made from weft's own table.
documented() {
	grep -oE 'FI_WEFT_[A-Z_]+' docs/fi_weft.7 | sort -u
}

# Every variable of weft is listed with what it means, and no other.
variables() {
	if [ "$WEFT_TEST_PROV" != weft ]; then
		skip "fi_info -e" "the variables are weft's"
		return
	fi
	timeout $LIMIT fi_info -e >"$work/log" 2>&1
	sed -n 's/^# \(FI_WEFT_[A-Z_]*\): .*/\1/p' "$work/log" | sort >"$work/listed"
	documented >"$work/documented"
	if [ -s "$work/documented" ] && diff "$work/documented" "$work/listed" >"$work/diff"; then
		ok "fi_info -e lists all $(wc -l <"$work/listed") variables"
	else
		not_ok "fi_info -e: documented (<) and listed (>) variables differ" "$work/diff"
	fi
}

# refused VARIABLE VALUE: fi_info fails and logs variable, value and range.
refused() {
	local name="$1=$2 is refused and logged"

	if [ "$WEFT_TEST_PROV" != weft ]; then
		skip "$name" "the variables are weft's"
		return
	fi
	if env "$1=$2" FI_LOG_LEVEL=warn timeout $LIMIT fi_info -p weft >"$work/log" 2>&1; then
		not_ok "$name: fi_info succeeds" "$work/log"
	elif grep -aq "weft.*$1.*$2.*range: .* to " "$work/log"; then
		ok "$name"
	else
		not_ok "$name: no such line" "$work/log"
	fi
}

strerror() {
	have fi_strerror fi_strerror || return
	if fi_strerror 265 2>&1 | grep -qi 'trunc' && fi_strerror 11 2>&1 | grep -qi 'unavailable'; then
		ok "fi_strerror"
	else
		not_ok "fi_strerror"
	fi
}

# pingpong NAME OPTION...: server and client on this host, data checked (-c).
pingpong() {
	# The port is none that the kernel gives to others' connections.
	local name="fi_pingpong $*" server port=$((10000 + RANDOM % 20000)) status

	timeout $LIMIT fi_pingpong -p "$WEFT_TEST_PROV" -B $port "$@" >"$work/server" 2>&1 &
	server=$!
	listening $port $server
	timeout $LIMIT fi_pingpong -p "$WEFT_TEST_PROV" -P $port "$@" 127.0.0.1 >"$work/log" 2>&1
	status=$?
	wait $server || status=1
	if ((status == 0)) && grep -q 'MB/sec' "$work/log" &&
		[ "$(grep -cE '^[0-9]+[km]? ' "$work/log")" -ge 1 ]; then
		ok "$name: $(grep -E '^[0-9]+[km]? ' "$work/log" | head -n 1 | tr -s ' ')"
	else
		not_ok "$name" "$work/log"
		sed 's/^/#   server: /' "$work/server" | tail -n 10
	fi
}

info
variables
refused FI_WEFT_RING_SLOTS abc
refused FI_WEFT_TX_STRIPES 100000
strerror
if have fi_pingpong fi_pingpong; then
	pingpong -e rdm -m tagged -I 1000 -S 64 -c
	pingpong -e rdm -m tagged -I 100 -S all -c
	pingpong -e rdm -m msg -I 100 -S all -c
	pingpong -e rdm -m tagged -I 100 -S 1048576 -c
	pingpong -e msg -I 1000 -S 64 -c
	pingpong -e msg -I 100 -S all -c
	pingpong -e dgram -I 1000 -S 64 -c
fi
closing
