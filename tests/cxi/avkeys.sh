#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# FI_AV_AUTH_KEY on endpoints of the CXI protocol: tests/c/native_avkeys.c over the model of the NIC, in all three modes
# of matching, built with the headers of a libfabric of 1.20 or later and run over it.
#
#	tests/cxi/avkeys.sh PREFIX
#
# PREFIX has include and lib of that libfabric. weft's provider is that of build/lib. Headers that are older are said to
# be, nothing is run, and the status is 77.
set -euo pipefail
prefix=$(realpath "$1")
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

gcc -O2 -g -std=gnu11 -D_GNU_SOURCE -fPIC -shared -pthread -Wl,-soname,libcxi.so.1 \
	-Wl,--version-script=tests/cassini/libcxi.map tests/cassini/*.c -o "$work/libcxi.so.1"
make -s -C tests/c OUT="$work/c" CFLAGS="-O2 -g -I$prefix/include" \
	LDFLAGS="-L$prefix/lib -Wl,-rpath-link,$work" "$work/c/native_avkeys"
export LD_LIBRARY_PATH="$work:$prefix/lib" FI_PROVIDER_PATH="$PWD/build/lib" WEFT_TEST_PROV=weft
export CASSINI="mode=threaded signals=0 fabric=$$" FI_WEFT_CXI=native FI_WEFT_CXI_HYBRID_UNEXPECTED=2
ran=0
for match in hardware software hybrid; do
	echo "# matched by $match"
	FI_WEFT_CXI_MATCH=$match timeout 120 "$work/c/native_avkeys" | tee "$work/said"
	if grep '# SKIP' "$work/said" | grep -v '# SKIP these headers'; then
		echo "a test was skipped, for which the headers are not the reason" >&2
		exit 1
	fi
	ran=$((ran + $(grep '^ok' "$work/said" | grep -vc '# SKIP' || true)))
done
if [ "$ran" = 0 ]; then
	echo "SKIP all tests: $(grep -m 1 -o 'these headers.*' "$work/said" || echo "the program has none")"
	exit 77
fi
