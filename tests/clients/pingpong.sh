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
		grep -q 'type: FI_EP_RDM' "$work/log"; then
		ok "fi_info -p $WEFT_TEST_PROV"
	else
		not_ok "fi_info -p $WEFT_TEST_PROV" "$work/log"
	fi
	if timeout $LIMIT fi_info -v -p "$WEFT_TEST_PROV" >"$work/log" 2>&1 &&
		grep -q 'caps:.*FI_TAGGED' "$work/log" && ! grep -q 'Unknown' "$work/log"; then
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

# Every variable of weft is listed with what it means.
variables() {
	local name count

	if [ "$WEFT_TEST_PROV" != weft ]; then
		skip "fi_info -e" "the variables are weft's"
		return
	fi
	timeout $LIMIT fi_info -e >"$work/log" 2>&1
	count=$(grep -ac '^# FI_WEFT_' "$work/log")
	for name in TX_STRIPES MPSC_RING_SIZE SHM_DIR; do
		if grep -aq "^# FI_WEFT_$name: " "$work/log"; then
			ok "fi_info -e lists FI_WEFT_$name"
		else
			not_ok "fi_info -e lists FI_WEFT_$name"
		fi
	done
	if ((count >= 3)) && [ "$(grep -ac '^# FI_WEFT_[A-Z_]*: .*' "$work/log")" = "$count" ]; then
		ok "fi_info -e: $count variables, all typed"
	else
		not_ok "fi_info -e: $count variables" "$work/log"
	fi
	if FI_WEFT_TX_STRIPES=many timeout $LIMIT fi_info -p weft >"$work/log" 2>&1; then
		not_ok "a value that is no number is refused" "$work/log"
	else
		ok "a value that is no number is refused"
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
	local name="fi_pingpong $*" server port=$((40000 + RANDOM % 20000)) status

	timeout $LIMIT fi_pingpong -p "$WEFT_TEST_PROV" -B $port "$@" >"$work/server" 2>&1 &
	server=$!
	sleep 1
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
strerror
if have fi_pingpong fi_pingpong; then
	pingpong -e rdm -m tagged -I 1000 -S 64 -c
	pingpong -e rdm -m tagged -I 100 -S all -c
	pingpong -e rdm -m msg -I 100 -S all -c
	pingpong -e rdm -m tagged -I 100 -S 1048576 -c
fi
closing
