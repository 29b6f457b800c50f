#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The fabtests of tests/cxi/fabtests, which tests/cxi/oracle.sh runs over libfabric's own CXI provider, over weft's endpoints of
# the CXI protocol (FI_WEFT_CXI=native), between two processes over the model of the NIC. What fails has to be in
# tests/cxi/expected, under weft, with its reason.
#
#	tests/cxi/fabtests.sh PREFIX [PROGRAM]
#
# PREFIX has bin/fi_rdm_pingpong and its like, and a libfabric in lib, which takes weft from build/lib.
set -u
cd "$(dirname "$0")/../.." || exit 2
prefix=$1 only=${2:-}
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ -x "$prefix/bin/fi_rdm_pingpong" ] || { echo "no $prefix/bin/fi_rdm_pingpong" >&2; exit 2; }
make -s -C tests/cassini OUT="$work" "$work/libcxi.so.1" || exit 2
cd "$work" || exit 2
export CASSINI="mode=threaded signals=0 fabric=$$" LD_LIBRARY_PATH="$work:$prefix/lib" FI_LOG_LEVEL=warn FI_PROVIDER=weft \
	FI_PROVIDER_PATH="$root/build/lib" FI_WEFT_CXI=native

# pairs COMMAND...: a fabtest between two processes
pairs() {
	local server

	timeout 60 "$prefix/bin/$1" "${@:2}" >server.log 2>&1 &
	server=$!
	sleep 1
	timeout 60 "$prefix/bin/$1" "${@:2}" 127.0.0.1 >client.log 2>&1
	client=$?
	wait "$server" && [ "$client" = 0 ]
}

total=0 bad=0 listed=0
while read -r -a words; do
	[[ ${words[0]:-#} == "#"* ]] && continue
	[[ ${words[0]} == *"$only"* ]] || continue
	total=$((total + 1))
	reason=$(sed -n "s|^weft ${words[0]}  *||p" "$root/tests/cxi/expected")
	if pairs "${words[0]}" -E -p weft "${words[@]:1}" </dev/null; then
		echo "ok ${words[0]} between two processes"
	elif [ -n "$reason" ]; then
		listed=$((listed + 1))
		echo "expected ${words[0]}: $reason"
	else
		echo "FAILED ${words[0]} between two processes"
		tail -n 3 client.log server.log
		bad=$((bad + 1))
	fi
done <"$root/tests/cxi/fabtests"
echo "$((total - bad - listed)) of $total passed, $listed failed as expected, $bad failed"
[ "$bad" = 0 ]
