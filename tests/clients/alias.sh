#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# weft under the names of other providers (FI_WEFT_NAME), as the manual page's lines have
# it: what clients find and open is weft, and fi_pingpong and programs of tests/c that ask for
# such a name run.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source-path=SCRIPTDIR source=lib.sh
. tests/clients/lib.sh

LIMIT=60
# Only weft is in this folder.
mkdir "$work/only"
cp build/lib/libweft-fi.so build/lib/libweft-core.so "$work/only/"
export FI_PROVIDER_PATH=@$work/only
version=$(FI_WEFT_NAME=weft timeout $LIMIT fi_info -p weft 2>/dev/null | sed -n 's/ *version: //p' | head -n 1)

# found NAME PROTOCOL FORMAT: what fi_info shows under the name.
found() {
	export FI_WEFT_NAME=$1
	if timeout $LIMIT fi_info -v -p "$1" -t FI_EP_RDM >"$work/log" 2>&1 &&
		grep -q "prov_name: $1\$" "$work/log" && grep -q "prov_version: $version\$" "$work/log" &&
		grep -q "protocol: $2\$" "$work/log" && grep -q "addr_format: $3\$" "$work/log" &&
		! grep -q "prov_name: weft" "$work/log"; then
		ok "fi_info -p $1: version $version, $2, $3"
	else
		not_ok "fi_info -p $1" "$work/log"
	fi
	FI_LOG_LEVEL=info timeout $LIMIT fi_info -p "$1" >"$work/log" 2>&1
	if grep -aq "::weft:core:.*weft $version answers as $1 " "$work/log" && ! grep -aq 'FI_TCP_RING\|not a variable' "$work/log"; then
		ok "the log of $1 says weft"
	else
		not_ok "the log of $1" "$work/log"
	fi
}

# runs NAME PROGRAM TEST: a program of tests/c asks for the name.
runs() {
	if FI_WEFT_NAME=$1 WEFT_TEST_PROV=$1 timeout 120 build/tests/"$2" "$3" >"$work/log" 2>&1 &&
		grep -qE '^[1-9][0-9]* passed, 0 failed' "$work/log"; then
		ok "$2 $3 as $1"
	else
		not_ok "$2 $3 as $1" "$work/log"
	fi
}

make -s -C tests/c OUT="$PWD/build/tests" "$PWD/build/tests/getinfo_names" "$PWD/build/tests/rma_small" || exit 1
while read -r name protocol format; do
	found "$name" "$protocol" "$format"
	runs "$name" getinfo_names round_trip
	runs "$name" rma_small ''
done <<-'END'
	tcp FI_PROTO_XNET FI_SOCKADDR_IN
	tcp;ofi_rxm FI_PROTO_RXM FI_SOCKADDR_IN
	verbs Unknown FI_SOCKADDR_IN
	verbs;ofi_rxm FI_PROTO_RXM FI_SOCKADDR_IN
	sockets FI_PROTO_SOCK_TCP FI_SOCKADDR_IN
	shm FI_PROTO_SHM FI_ADDR_STR
	efa FI_PROTO_EFA FI_ADDR_EFA
	cxi FI_PROTO_CXI FI_ADDR_CXI
END

# Without the @ the built-in provider stays, and no other name is taken.
if FI_WEFT_NAME=tcp FI_PROVIDER_PATH=$work/only timeout $LIMIT fi_info -p tcp 2>&1 | grep -q "version: $version\$"; then
	not_ok "FI_PROVIDER_PATH without @ replaces tcp"
else
	ok "FI_PROVIDER_PATH without @ leaves tcp"
fi
if FI_WEFT_NAME=udp FI_LOG_LEVEL=warn timeout $LIMIT fi_info -p weft >"$work/log" 2>&1; then
	not_ok "FI_WEFT_NAME=udp is taken" "$work/log"
elif grep -aq 'FI_WEFT_NAME="udp".*range: weft, tcp' "$work/log"; then
	ok "FI_WEFT_NAME=udp is refused and logged"
else
	not_ok "FI_WEFT_NAME=udp: no such line" "$work/log"
fi
closing
