#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# One wire with libfabric's own CXI provider: messages between an endpoint of hw/cxi, or one of weft through libfabric
# (FI_WEFT_CXI=native), and one of that provider, in two processes over the model of the NIC, both ways
# (tests/cxi/interop), in one process, and several of each kind at once; what both offer (tests/cxi/offers.c); a group of
# both (tests/cxi/joins.c); receivers that are closed in flow control (tests/cxi/closes.c); and the tests of weft's that
# need the headers of PREFIX (tests/cxi/avkeys.sh).
#
#	tests/cxi/interop.sh PREFIX [PART]
#
# PART, a word, runs only what has it in its name.
# PREFIX has include and lib of a libfabric with the CXI provider alone, built with the vendor's headers. No script of weft
# builds it. weft's provider is that of build/lib.
set -euo pipefail
prefix=$(realpath "$1") part=${2:-}
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags="-O2 -g -std=gnu11 -D_GNU_SOURCE"
# shellcheck disable=SC2086 # a list of flags
{
	gcc $flags -fPIC -shared -pthread -Wl,-soname,libcxi.so.1 -Wl,--version-script=tests/cassini/libcxi.map \
		tests/cassini/*.c -o "$work/libcxi.so.1"
	gcc $flags -fPIC -shared tests/cassini/sysfs/redirect.c -ldl -o "$work/sysfs.so"
	gcc $flags -Wall -Wextra -pthread -I"$prefix/include" tests/cxi/vendor.c -o "$work/peer" -L"$prefix/lib" \
		-lfabric "$work/libcxi.so.1"
	for program in offers joins closes; do
		gcc $flags -Wall -Wextra -I"$prefix/include" tests/cxi/$program.c -o "$work/$program" -L"$prefix/lib" -lfabric \
			"$work/libcxi.so.1"
	done
}
sh tests/cassini/sysfs/tree.sh "$work/sys" 2
"${GO:-go}" build -o "$work/interop" ./tests/cxi/interop
export LD_LIBRARY_PATH="$work:$prefix/lib"

weft="$work/interop peer"
theirs="LD_PRELOAD=$work/sysfs.so CASSINI_SYSFS=$work/sys" ours="FI_PROVIDER_PATH=$PWD/build/lib FI_WEFT_CXI=native"
vendor="env $theirs $work/peer cxi"
native="env $ours $work/peer weft"
bad=0

# between NAME MODEL [little] A B: the tests between two sides over a model with settings
between() {
	[[ $1 == *"$part"* ]] || return 0
	echo "# $1"
	CASSINI="fabric=$$ $2" timeout 600 "$work/interop" "${@:3}" || bad=1
}

between "hw/cxi and prov/cxi" "" "$weft" "$vendor"
between "hw/cxi and prov/cxi, restricted rendezvous, data got by software" "get=0" "$weft" \
	"env FI_CXI_RDZV_PROTO=alt_read $vendor"
between "hw/cxi of restricted rendezvous and prov/cxi, data got by software, shuffled events" "get=0 shuffle=1" \
	"$weft restricted" "$vendor"
between "hw/cxi of restricted rendezvous and prov/cxi" "" "$weft restricted" "$vendor"
between "hw/cxi and prov/cxi, data got by software, shuffled events" "get=0 shuffle=1" "$weft" "$vendor"
between "hw/cxi and prov/cxi, a NIC of the second generation, shuffled events" "version=2 shuffle=1" "$weft" "$vendor"
between "in one process: prov/cxi and weft's provider" "" one "env $theirs $ours $work/peer cxi weft"
between "in one process: weft's provider and itself" "" one "env $ours $work/peer weft weft"
for program in offers joins closes; do
	[[ $program == *"$part"* ]] || continue
	echo "# $program"
	# shellcheck disable=SC2086 # lists of assignments
	env $theirs $ours "$work/$program" || bad=1
done
if [[ "avkeys" == *"$part"* ]]; then
	echo "# avkeys"
	status=0
	tests/cxi/avkeys.sh "$prefix" || status=$?
	[ "$status" = 0 ] || [ "$status" = 77 ] || bad=1 # 77: skipped, as it says
fi
few="env FI_CXI_OFLOW_BUF_SIZE=40000 FI_CXI_OFLOW_BUF_MIN_POSTED=2 FI_CXI_OFLOW_BUF_MAX_CACHED=2"
between "hw/cxi and prov/cxi, little room: flow control" "" little "$work/interop small" "$few $vendor"
between "hw/cxi and prov/cxi, little room, second generation, shuffled events, data got by software" "version=2 shuffle=1 get=0" \
	little "$work/interop small" "$few $vendor"
between "hw/cxi and itself, little room" "" little "$work/interop small" "$work/interop small"
between "hw/cxi and itself" "" "$weft" "$weft"
between "weft's provider and prov/cxi" "" "$native" "$vendor"
between "weft's provider and prov/cxi, restricted rendezvous, shuffled events" "get=0 shuffle=1" "$native" \
	"env FI_CXI_RDZV_PROTO=alt_read $vendor"
between "weft's provider of restricted rendezvous and prov/cxi" "get=0" "env FI_WEFT_CXI_RDZV_PROTO=alt_read $native" \
	"$vendor"
between "weft's provider and itself, shuffled events" "shuffle=1" "$native" "$native"

# Messages of 64 MiB, and rendezvous from all address contexts, by both protocols.
for setting in "" FI_CXI_RDZV_PROTO=alt_read; do
	between "long: weft's provider and prov/cxi, $setting" "" long "$native" "env $setting $vendor"
	between "long: hw/cxi and prov/cxi, $setting" "get=0" long "$weft" "env $setting $vendor"
done

# Another VNI: neither side's operations reach the other.
other="env SLINGSHOT_VNIS=10 SLINGSHOT_DEVICES=cxi0 SLINGSHOT_SVC_IDS=1"
for side in "$weft" "$native"; do
	between "apart: ${side##*/} in another VNI than prov/cxi" "" apart "$other $side" "$vendor"
	between "apart: prov/cxi in another VNI than ${side##*/}" "" apart "$other $vendor" "$side"
done

# Random programs between sides of all kinds at once, each of which begins with more messages to one side than that has
# room for. INTEROP_SEEDS of them, from INTEROP_SEED on, in slices that end within between's time. Five or more fail where
# no message was claimed, none of these discarded or no receive canceled.
programs() {
	local from=${INTEROP_SEED:-1} slice=25 n
	local to=$((from + ${INTEROP_SEEDS:-5}))
	for (( ; from < to; from += n)); do
		n=$((to - from < slice ? to - from : slice))
		between "random: $1" "$2" random "$from" "$n" "${@:3}"
	done
}
small="$work/interop small"
narrow="env FI_WEFT_CXI_OFLOW_BUF_SIZE=65536 FI_WEFT_CXI_OFLOW_BUF_COUNT=2 $native"
programs "weft's provider and prov/cxi" "" "$native" "$vendor"
programs "weft's provider, hw/cxi and two of prov/cxi, shuffled events" "shuffle=1" \
	"$native" "$weft" "$vendor" "$vendor"
programs "little room: weft's provider, hw/cxi and two of prov/cxi, shuffled events" "shuffle=1" \
	"$narrow" "$small" "$few $vendor" "$few $vendor"
programs "little room, restricted rendezvous, second generation" "version=2 get=0" \
	"$narrow" "$small" "$few FI_CXI_RDZV_PROTO=alt_read $vendor"
INTEROP_KEYS=chosen FI_CXI_ENABLE_WRITEDATA=1 programs "chosen keys, writes with data" "" "$native" "$weft" "$vendor"
programs "by software: weft's provider and prov/cxi" "shuffle=1" \
	"env FI_WEFT_CXI_MATCH=software $native" "$vendor" "env FI_CXI_RX_MATCH_MODE=software $vendor"
programs "hybrid: weft's provider and prov/cxi" "shuffle=1" \
	"env FI_WEFT_CXI_MATCH=hybrid FI_WEFT_CXI_HYBRID_UNEXPECTED=2 $native" "$vendor" \
	"env FI_CXI_RX_MATCH_MODE=hybrid $vendor"

# A receiver that has too little of something for what senders of both providers send before its receives come: a run
# for each thing, which fails where the counter of that reason stays 0. Where it has too few list entries for receives,
# some of these come first.
full() { between "full: $1" "$2" full "$3" "$4" "$native" "$vendor"; }
scarce="env 'CASSINI=fabric=$$ les=120' $native"
full "events" "" matched_no_events "env FI_WEFT_CXI_DEFAULT_CQ_SIZE=64 $native"
full "events, by software" "" matched_no_events "env FI_WEFT_CXI_MATCH=software FI_WEFT_CXI_DEFAULT_CQ_SIZE=64 $native"
full "overflow buffers" "" matched_no_buffers "$narrow"
full "overflow buffers, shuffled events, second generation" "shuffle=1 version=2" matched_no_buffers "$narrow"
full "list entries for messages" "" matched_no_entries "$scarce"
full "list entries for receives" "" matched_by_software "$scarce"
full "request buffers" "" matched_no_requests \
	"env FI_WEFT_CXI_MATCH=software FI_WEFT_CXI_REQ_BUF_SIZE=65536 FI_WEFT_CXI_REQ_BUF_COUNT=2 $native"
full "list entries for messages, hybrid" "" matched_soft_unexpected "env FI_WEFT_CXI_MATCH=hybrid $scarce"
full "list entries for receives, hybrid" "" matched_soft_receive "env FI_WEFT_CXI_MATCH=hybrid $scarce"

# Matching by software, on either side or both. With fewer buffers for it than by default (FI_CXI_REQ_BUF_MIN_POSTED=2) the
# provider loses a long message that came before its receive, of itself, too.
soft="env FI_CXI_RX_MATCH_MODE=software"
hybrid="env FI_CXI_RX_MATCH_MODE=hybrid"
between "hw/cxi by software and prov/cxi" "" "$weft software" "$vendor"
between "hw/cxi by software and prov/cxi by software, shuffled events, second generation, data got by software" \
	"shuffle=1 version=2 get=0" "$weft software" "$soft $vendor"
between "hw/cxi and prov/cxi by software, restricted rendezvous" "" "$weft" "$soft FI_CXI_RDZV_PROTO=alt_read $vendor"
between "hw/cxi hybrid and prov/cxi hybrid" "" "$weft hybrid" "$hybrid $vendor"
between "hw/cxi hybrid and prov/cxi hybrid, few list entries, shuffled events" "les=150 shuffle=1" "$weft hybrid" "$hybrid $vendor"
between "hw/cxi by software and prov/cxi by software, little room: flow control" "" \
	little "$work/interop small software" "$soft $few $vendor"
between "hw/cxi hybrid and prov/cxi hybrid, little room, shuffled events" "shuffle=1" \
	little "$work/interop small hybrid" "$hybrid FI_CXI_REQ_BUF_SIZE=200000 FI_CXI_REQ_BUF_MIN_POSTED=2 FI_CXI_REQ_BUF_MAX_CACHED=2 $few $vendor"
between "hw/cxi by software and hw/cxi hybrid, little room" "" little "$work/interop small software" "$work/interop small hybrid"
between "weft's provider by software and prov/cxi" "" "env FI_WEFT_CXI_MATCH=software $native" "$vendor"
between "weft's provider hybrid and prov/cxi hybrid" "" \
	"env FI_WEFT_CXI_MATCH=hybrid FI_WEFT_CXI_HYBRID_UNEXPECTED=2 $native" "$hybrid $vendor"
between "prov/cxi and itself" "" "$vendor" "$vendor"

# Keys that the endpoints choose. prov/cxi has such of regions with an index of their own, and of regions that share one;
# those that it keeps reach all memory of an address context.
keyed() {
	local name=$1 keys=$2
	shift 2
	for side in "$weft" "$native"; do
		INTEROP_KEYS=$keys between "${side##*/} and prov/cxi, $name" "" keys "$side" "env $* $vendor"
	done
}
keyed "kept keys" chosen FI_CXI_OPTIMIZED_MRS=1
keyed "kept keys that share an index" chosen FI_CXI_OPTIMIZED_MRS=0
keyed "chosen keys" chosen FI_CXI_PROV_KEY_CACHE=0
keyed "chosen keys that share an index" chosen FI_CXI_PROV_KEY_CACHE=0 FI_CXI_OPTIMIZED_MRS=0
export FI_CXI_ENABLE_WRITEDATA=1
keyed "chosen keys, writes with data" chosen FI_CXI_ENABLE_WRITEDATA=1
unset FI_CXI_ENABLE_WRITEDATA
keyed "chosen keys, counted" counted FI_CXI_PROV_KEY_CACHE=1
INTEROP_KEYS=counted between "weft's provider and itself, chosen keys, counted" "shuffle=1" keys "$native" "$native"

# Either side is killed, again and again: INTEROP_KILLS times, 300 for a release.
for side in "$weft" "$native"; do
	between "kills of ${side##*/} and of prov/cxi" "" kill "${INTEROP_KILLS:-20}" "$side" "$vendor"
done
between "kills of weft's provider and of hw/cxi" "shuffle=1" kill "${INTEROP_KILLS:-20}" "$native" "$weft"
[ "$bad" = 0 ]
