#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Measures where weft spends its time in benchmarks, on one host and between two network
# namespaces (as root), and writes cabi/weft.pgo, by which the compiler chooses
# what to inline.
set -eu
cd "$(dirname "$0")/.."

dir=$PWD/build/profile
rm -rf "$dir" && mkdir -p "$dir"
"${GO:-go}" build -trimpath -buildmode=c-shared -tags profile -pgo=off -ldflags "$GO_LDFLAGS" -o "$dir/libweft-core.so" ./cabi
cp build/lib/libweft-fi.so "$dir/" # which loads the library beside it
# The profiler follows goroutines, so the data plane is called through the runtime.
export WEFT_PROFILE="$dir" FI_WEFT_DIRECT=no

run() {
	# A test that its processes do not complete is but noted, and its last profile is cut off.
	build/bin/weft bench --path "$dir" --providers weft --rounds 3 --time 500ms --out "$dir/figures.md" "$@" >"$dir/log" 2>&1 &&
		! grep -q ' over weft failed$' "$dir/log" && return
	cat "$dir/log"
	exit 1
}

run latency rate bandwidth onesided atomics posting depth
# Most of that is the way into Go; what happens behind it has benchmarks of its own.
"${GO:-go}" test -run '^$' -bench . -benchtime 2s -cpuprofile "$dir/dataplane.pprof" -o "$dir/dataplane.test" ./internal/dataplane >"$dir/log"
if [ "$(id -u)" = 0 ]; then
	run net
else
	echo "not root: nothing is measured between network namespaces"
fi
# Calls of endpoints of the CXI protocol, over the stepped model of the NIC: 40 s in each thread mode.
make -s -C tests/cassini OUT="$dir" "$dir/libcxi.so.1"
"${CC:-gcc}" -O2 -std=gnu11 -D_GNU_SOURCE -pthread -o "$dir/calls" tests/cxi/calls.c -lfabric "$dir/libcxi.so.1" -ldl
for mode in safe domain; do
	yes | CASSINI="mode=stepped fabric=-1" LD_LIBRARY_PATH="$dir" FI_PROVIDER_PATH="$dir" FI_WEFT_CXI=native \
		timeout 40 "$dir/calls" weft $mode >"$dir/log" || [ $? = 124 ]
done
# The last piece of a process may be cut off; the others are taken all the same.
find "$dir" -name '*.pprof' -size +0 -print0 | xargs -0 "${GO:-go}" tool pprof -symbolize=none -proto >"$dir/weft.pgo"
mv "$dir/weft.pgo" cabi/weft.pgo
ls -l cabi/weft.pgo
