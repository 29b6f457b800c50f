#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What operations on endpoints of the CXI protocol cost a NIC, weft beside libfabric's own CXI provider, as the
# model counts (tests/cxi/counts.c): doorbells, bytes of command rings and read pointers. Writes the table between
# its marks in docs/benchmarks.md. Nothing is timed.
#
#	tests/cxi/counts.sh PREFIX
#
# PREFIX has include and lib of a libfabric with the CXI provider.
set -euo pipefail
prefix=$1
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
make -s -C tests/cassini OUT="$work" "$work/libcxi.so.1" "$work/libcassini-sysfs.so"
sh tests/cassini/sysfs/tree.sh "$work/sys" 1
gcc -O2 -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -pthread -I"$prefix/include" -o "$work/counts" tests/cxi/counts.c \
	"$prefix/lib/libfabric.so.1" "$work/libcxi.so.1" -ldl
export CASSINI="fabric=-1" FI_LOG_LEVEL=error LD_LIBRARY_PATH="$work:$prefix/lib"
env FI_PROVIDER_PATH="$PWD/build/lib" FI_WEFT_CXI=native timeout 60 "$work/counts" weft >"$work/weft"
env LD_PRELOAD="$work/libcassini-sysfs.so" CASSINI_SYSFS="$work/sys" timeout 60 "$work/counts" cxi >"$work/cxi"
{
	echo "| for one operation | weft: doorbells | bytes | pointers | \`prov/cxi\`: doorbells | bytes | pointers |"
	echo "| --- | --- | --- | --- | --- | --- | --- |"
	paste -d' ' <(cut -d' ' -f1-3 "$work/weft") "$work/cxi" | while read -r a b c d e f what; do
		echo "| $what | $a | $b | $c | $d | $e | $f |"
	done
	echo
	echo "\`tests/cxi/counts.sh PREFIX\`, $(date -u +%F)."
} >"$work/table"
sed -i -e "/<!-- begin cxi counts -->/,/<!-- end cxi counts -->/{/<!-- /!d}" \
	-e "/<!-- begin cxi counts -->/r $work/table" docs/benchmarks.md
cat "$work/table"
