#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What the host does for a message over a NIC of Slingshot, with queues in plain memory: hw/cxi's benchmarks, in short batches,
# of which a busy machine leaves some alone. Writes the table between its marks in docs/benchmarks.md.
# BATCHES: how many of each, 150. As root the batches of two threads have real-time priority, for milliseconds each: else they
# hardly ever run at the same time where other programs run.
# CXI_PREFIX: where a libfabric that has the CXI provider, made with the vendor's headers, is installed. If it is given,
# that provider is measured beside, over the stepped model, in turns (tests/cxi/posts.c, TestBeside), into another table, and
# what operations of both cost a NIC is counted (tests/cxi/counts.sh).
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
GO=${GO:-go}
first=()
if [ "$(id -u)" = 0 ] && chrt -f 1 true 2>/dev/null; then
	first=(chrt -f 1)
fi

"$GO" test -c -o "$work/bench" ./hw/cxi
batches=${BATCHES:-150}
(cd hw/cxi && "$work/bench" -test.run XXX -test.bench Host -test.skip Posters -test.benchtime 2ms -test.count "$batches") >"$work/out"
(cd hw/cxi && "${first[@]}" "$work/bench" -test.run XXX -test.bench HostPosters -test.benchtime 4ms -test.count "$((batches / 3))") >>"$work/out"

# row NAME WHAT TO_REACH: least, lower quartile and median of the batches.
row() {
	grep "^Benchmark$1-" "$work/out" | awk '{ print $3 }' | sort -n | awk -v what="$2" -v reach="$3" '
		{ v[NR] = $1 }
		END { printf "| %s | %.1f | %.1f | %.1f | %s |\n", what, v[1], v[int((NR + 3) / 4)], v[int((NR + 1) / 2)], reach }'
}

# shellcheck disable=SC2016 # names of benchmarks
{
	echo "| what, ns | least | quartile | median | to reach |"
	echo "| --- | --- | --- | --- | --- |"
	row HostPost 'post, one thread (`HostPost`)' 60
	row HostPosters 'post, two threads with a queue each: elapsed time for a message of either (`HostPosters`)' 'one thread / 1.7'
	row HostSendPath 'post by the route of C threads, but for the trampoline (`HostSendPath`)' 60
	row HostPoll 'event of 16 bytes (`HostPoll`)' 30
	row HostLook 'the same by the route of C threads (`HostLook`)' 30
	row HostPollEmpty 'poll of an event queue that is empty (`HostPollEmpty`)' 10
	row HostLookOne 'a call by that route for each event, which the test writes meanwhile (`HostLookOne`)' 30
	row HostWrite 'the writing alone (`HostWrite`)' ''
	row HostLookEmpty 'poll by C threads of all queues of an interface, nothing there, through the transport (`HostLookEmpty`)' 10
	row HostLookEmptyGo 'the same poll by Go, which C enters where something is set (`HostLookEmptyGo`)' ''
	echo
	echo "$("$GO" env GOVERSION), $(nproc) processors, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), load $(cut -d' ' -f1 /proc/loadavg), $batches batches of 2 ms, $(date -u +%F)."
} >"$work/table"
sed -i -e "/<!-- begin cxi host -->/,/<!-- end cxi host -->/{/<!-- /!d}" -e "/<!-- begin cxi host -->/r $work/table" docs/benchmarks.md
cat "$work/table"

prefix=${CXI_PREFIX:-}
if [ -z "$prefix" ]; then
	echo "CXI_PREFIX names no libfabric with the CXI provider: it is not measured beside"
	exit 0
fi
make -s -C tests/cassini OUT="$work" "$work/libcxi.so.1" "$work/libcassini-sysfs.so"
sh tests/cassini/sysfs/tree.sh "$work/sys" 1
gcc -O2 -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -pthread -o "$work/posts" tests/cxi/posts.c "$prefix/lib/libfabric.so.1" "$work/libcxi.so.1" -ldl
export CASSINI="mode=stepped fabric=-1"
beside="env FI_LOG_LEVEL=error CASSINI_SYSFS=$work/sys LD_LIBRARY_PATH=$work:$prefix/lib LD_PRELOAD=$work/libcassini-sysfs.so $work/posts"
(cd hw/cxi && WEFT_TEST_CXI="$work/libcxi.so.1" WEFT_TEST_CXI_BESIDE="$beside 2>/dev/null" "$work/bench" -test.run 'TestBeside$' -test.v) >"$work/out" ||
	{ cat "$work/out"; exit 1; }
{
	echo "| what, ns | \`hw/cxi\`, least | quartile | \`prov/cxi\`, \`FI_THREAD_SAFE\`, least | quartile | \`FI_THREAD_DOMAIN\`, least | quartile |"
	echo "| --- | --- | --- | --- | --- | --- | --- |"
	grep '^| ' "$work/out"
	echo
	echo "$("$GO" env GOVERSION), load $(cut -d' ' -f1 /proc/loadavg), 200 rounds of 200 calls, $(date -u +%F)."
} >"$work/table"
sed -i -e "/<!-- begin cxi beside -->/,/<!-- end cxi beside -->/{/<!-- /!d}" -e "/<!-- begin cxi beside -->/r $work/table" docs/benchmarks.md
cat "$work/table"
tests/cxi/counts.sh "$prefix"
