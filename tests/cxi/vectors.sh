#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# vectors.sh PREFIX > hw/cxi/internal/nic/testdata/vectors: what libfabric's own CXI provider, built with the vendor's headers,
# puts into the queues of the model for named calls, and the events that it takes (vectors.c). PREFIX has include and lib of a
# libfabric with that provider.
set -euo pipefail
prefix=$1
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags="-O2 -g -std=gnu11 -D_GNU_SOURCE"
# shellcheck disable=SC2086 # a list of flags
{
	gcc $flags -fPIC -shared -pthread -Wl,-soname,libcxi.so.1 -Wl,--version-script=tests/cassini/libcxi.map \
		tests/cassini/*.c -o "$work/libcxi.so.1"
	gcc $flags -fPIC -shared tests/cassini/sysfs/redirect.c -ldl -o "$work/sysfs.so"
	gcc $flags -Wall -Wextra -rdynamic -I"$prefix/include" tests/cxi/vectors.c -o "$work/vectors" -L"$prefix/lib" -lfabric \
		"$work/libcxi.so.1" -ldl
}
sh tests/cassini/sysfs/tree.sh "$work/sys" 2
echo "# Written by tests/cxi/vectors.sh on $(date -u +%F): calls of libfabric's CXI provider, what is known of them, and what they put"
echo "# into its queues (command QUEUE BYTES) and took (event QUEUE BYTES)."
# calls MODEL NAME ASSIGNMENT...: the calls of NAME, with settings of the model and of the provider
calls() {
	env "${@:3}" CASSINI="nid=74565 $1" CASSINI_SYSFS="$work/sys" LD_LIBRARY_PATH="$work:$prefix/lib" \
		LD_PRELOAD="$work/sysfs.so" timeout 60 "$work/vectors" "$2"
}
calls "" hardware
calls get=0 alt_read FI_CXI_RDZV_PROTO=alt_read
calls "" flow FI_CXI_OFLOW_BUF_SIZE=40000 FI_CXI_OFLOW_BUF_MIN_POSTED=2 FI_CXI_OFLOW_BUF_MAX_CACHED=2
calls "" writedata FI_CXI_ENABLE_WRITEDATA=1
calls "" software FI_CXI_RX_MATCH_MODE=software
