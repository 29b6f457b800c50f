#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# bench.sh [ROUNDS]: weft beside libfabric's verbs;ofi_rxm on the same soft-RoCE
# device in one virtual machine, and between two, written into docs/benchmarks.md.
# tests/rdma/run.sh says what WEFT_RDMA_ACCEL and WEFT_RDMA_DIR are.
set -eu
cd "$(dirname "$0")/../.."

rounds=${1:-5}
GO=${GO:-go}
dir=${WEFT_RDMA_DIR:-build/rdma}
accel=${WEFT_RDMA_ACCEL:-tcg}
out=docs/benchmarks.md
log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT
mkdir -p "$dir"
CGO_ENABLED=0 "$GO" build -o "$dir/init" ./tests/rdma/init
"$GO" build -o "$dir/vm" ./tests/rdma/vm
${CC:-cc} -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra -o "$dir/wire" tests/rdma/wire/wire.c -lfabric
[ -n "${WEFT_RDMA_BUILT-}" ] || make -s lib
load=$(cut -d' ' -f1 /proc/loadavg)

# measure run|pair CPUS BATCHES LATENCY RATE BANDWIDTH: writes the lines of all rounds in one machine or between two.
measure() {
	local how=$1 cpus=$2
	shift 2
	"$dir/vm" -dir "$dir" -accel "$accel" -cpus "$cpus" -timeout $((120 + 420 * rounds))s "$how" -- \
		tests/rdma/wire/wire.sh "$(realpath "$dir/wire")" "$how" "$rounds" "$@" >"$log/$how" || true
}

# Each of two machines has half of the processors: with more the host takes them away at times.
half=$(($(nproc) > 3 ? $(nproc) / 2 : 1))
measure run 2 20 500 5000 10
measure pair "$half" 20 100 300 4

# values run|pair PROVIDER FIGURE: one for each batch that gave one, sorted.
values() { grep -F " $2 $3 " "$log/$1" | awk '{print $NF}' | sort -g; }

# ratios run|pair FIGURE OURS OTHERS: of each batch of one's to the other's that followed it, sorted.
ratios() {
	awk -v figure="$2" -v ours="$3" -v others="$4" '
		$(NF - 1) == figure { n[$(NF - 3), $(NF - 2)]++; value[$(NF - 3), $(NF - 2), n[$(NF - 3), $(NF - 2)]] = $NF; if ($(NF - 3) > last) last = $(NF - 3) }
		END {
			for (r = 1; r <= last; r++)
				for (k = 1; (r, ours, k) in value && (r, others, k) in value; k++)
					print value[r, ours, k] / value[r, others, k]
		}' "$log/$1" | sort -g
}

# row run|pair LABEL FIGURE SIGN LIMIT [OURS OTHERS]
row() {
	local of=$1 ours=${6-weft} others=${7-verbs;ofi_rxm}
	shift
	paste -d' ' <(values "$of" "$ours" "$2" | tr '\n' ',') <(values "$of" "$others" "$2" | tr '\n' ',') \
		<(ratios "$of" "$2" "$ours" "$others" | tr '\n' ',') |
		awk -v label="$1" -v sign="$3" -v limit="$4" '
		function median(s, a, n) { n = split(s, a, ",") - 1; if (n < 1) return ""; return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2 }
		function show(x) { return sprintf(x < 1000 ? "%.3g" : "%.0f", x) }
		function cell(s, a, n) { n = split(s, a, ",") - 1; if (n < 1) return "–"; return show(median(s)) " (" show(a[1]) "–" show(a[n]) ", " n ")" }
		function quartiles(s, a, n) { n = split(s, a, ",") - 1; return sprintf("%.2f x (%.2f–%.2f)", median(s), a[int((n + 3) / 4)], a[int((3 * n + 3) / 4)]) }
		{
			x = median($3)
			ratio = ok = ""
			if (x != "") { ratio = quartiles($3); ok = (sign == "<=" ? x <= limit : x >= limit) ? "yes" : "no" }
			printf "| %s | %s | %s | %s | %s %s x | %s |\n", label, cell($1), cell($2), ratio, sign, limit, ok
		}'
}

# table run|pair
table() {
	echo "| what | weft | verbs;ofi_rxm | ratio | to reach | reached |"
	echo "| --- | --- | --- | --- | --- | --- |"
	row "$1" "8 B tagged ping-pong, half round trip, us" latency_us "<=" 0.9
	row "$1" "8 B tagged message rate, window 64, per s" rate_per_s ">=" 1.2
	row "$1" "1 MiB tagged bandwidth, window 4, MB/s" bandwidth_MB_per_s ">=" 1.0
}

# listed run|pair
listed() {
	echo "| what | list | one write as long | ratio | to reach | reached |"
	echo "| --- | --- | --- | --- | --- | --- |"
	row "$1" "20,000 elements of 4 KiB, scattered on both sides, MB/s" lists_4096_MB_per_s ">=" 0.95 list write
	row "$1" "5,000 elements of 16 KiB" lists_16384_MB_per_s ">=" 0.95 list write
	row "$1" "1,250 elements of 64 KiB" lists_65536_MB_per_s ">=" 0.95 list write
}

{
	echo "<!-- begin soft-RoCE -->"
	echo "## Virtual machines with soft-RoCE, $(date +%F)"
	echo
	echo "\`make bench-rdma\`: weft and libfabric $(fi_info --version | sed -n 's/^libfabric: //p')'s \`verbs;ofi_rxm\`, open at once and in turn, $rounds runs of 20 batches; median (least–most, batches"
	echo "that ended). The ratio is the median (quartiles) of those of batches that followed each other: the processors are near each other or far, at times. $(nproc) processors, $([ "$accel" = kvm ] && echo KVM || echo "emulated"), load average $load at the start."
	echo
	echo "Two processes on one device of one machine with 2 processors. They share no memory, so nothing but the device leads"
	echo "from one to the other:"
	echo
	table run
	echo
	echo "Lists of weft's beside one write, there:"
	echo
	listed run
	echo
	echo "Two machines with $half processor$([ "$half" = 1 ] || echo s) each, joined by a wire:"
	echo
	table pair
	echo
	echo "Lists of weft's beside one write, there:"
	echo
	listed pair
	echo "<!-- end soft-RoCE -->"
} >"$log/section"
# The section stands before what is missed.
awk -v section="$log/section" '
	/<!-- begin soft-RoCE -->/ { skip = 1 }
	/^## What is missed/ { while ((getline line <section) > 0) print line; print "" }
	!skip && !(after && /^$/) { print }
	{ after = 0 }
	/<!-- end soft-RoCE -->/ { skip = 0; after = 1 }' "$out" >"$log/page"
cp "$log/page" "$out"
grep -h -v -E '^(\[1\] )?[0-9]+ [^ ]+ [a-z]+_[A-Za-z_]+ ' "$log/run" "$log/pair" | head -n 20 >&2 || true
cat "$log/section"
