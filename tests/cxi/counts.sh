#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What operations on endpoints of the CXI protocol cost a NIC, weft beside libfabric's own CXI provider, as the
# model counts (tests/cxi/counts.c): doorbells, bytes of command rings and read pointers. Writes the table between
# its marks in docs/benchmarks.md. No call is timed. Behind it, how often and how long the application's thread sleeps in
# calls while two senders and their receiver recover from flow control (tests/cxi/recovery.c), the longest of five runs.
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
for program in counts recovery; do
	gcc -O2 -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -pthread -I"$prefix/include" -o "$work/$program" \
		tests/cxi/$program.c "$prefix/lib/libfabric.so.1" "$work/libcxi.so.1" -ldl
done
export CASSINI="fabric=-1" FI_LOG_LEVEL=error LD_LIBRARY_PATH="$work:$prefix/lib"
weft=(env FI_PROVIDER_PATH="$PWD/build/lib" FI_WEFT_CXI=native FI_WEFT_CXI_OFLOW_BUF_COUNT=2)
cxi=(env LD_PRELOAD="$work/libcassini-sysfs.so" CASSINI_SYSFS="$work/sys" FI_CXI_OFLOW_BUF_MIN_POSTED=2)
"${weft[@]}" timeout 60 "$work/counts" weft >"$work/weft"
"${cxi[@]}" timeout 60 "$work/counts" cxi >"$work/cxi"
weft+=(FI_WEFT_CXI_OFLOW_BUF_SIZE=320000) cxi+=(FI_CXI_OFLOW_BUF_SIZE=320000 FI_CXI_OFLOW_BUF_MAX_CACHED=2)
# sleeps COMMAND...: how often, how long, and of how many messages that were dropped
sleeps() {
	for _ in 1 2 3 4 5; do
		"$@"
	done | sort -n -k 2 -k 1 | tail -n 1 | cut -d' ' -f1-3
}
read -r of_weft time_weft dropped <<<"$(sleeps "${weft[@]}" timeout 60 "$work/recovery" weft)"
read -r of_cxi time_cxi _ <<<"$(sleeps "${cxi[@]}" timeout 60 "$work/recovery" cxi)"
{
	echo "| for one operation | weft: doorbells | bytes | pointers | \`prov/cxi\`: doorbells | bytes | pointers |"
	echo "| --- | --- | --- | --- | --- | --- | --- |"
	paste -d' ' <(cut -d' ' -f1-3 "$work/weft") "$work/cxi" | while read -r a b c d e f what; do
		echo "| $what | $a | $b | $c | $d | $e | $f |"
	done
	echo
	echo "| while $dropped dropped messages of two senders are sent again | weft | \`prov/cxi\` | to reach |"
	echo "| --- | --- | --- | --- |"
	echo "| times that the application's thread sleeps in calls | $of_weft | $of_cxi | 0 |"
	echo "| microseconds in which it neither runs nor waits for a processor | $time_weft | $time_cxi | 0 |"
	echo
	echo "\`tests/cxi/counts.sh PREFIX\`, load $(cut -d' ' -f1 /proc/loadavg), $(date -u +%F)."
} >"$work/table"
sed -i -e "/<!-- begin cxi counts -->/,/<!-- end cxi counts -->/{/<!-- /!d}" \
	-e "/<!-- begin cxi counts -->/r $work/table" docs/benchmarks.md
cat "$work/table"
