#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What calls of libfabric cost on endpoints of the CXI protocol, weft beside libfabric's own CXI provider, in turns over
# the stepped model of the NIC (tests/cxi/calls.c), in time, and on x86-64 in instructions (tests/cxi/instructions.c).
# Writes the tables between their marks in docs/benchmarks.md.
#
#	tests/cxi/calls.sh PREFIX
#
# PREFIX has include and lib of a libfabric with the CXI provider. ROUNDS: how many of 200 calls each, 200.
set -euo pipefail
prefix=$1 rounds=${ROUNDS:-200}
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
make -s -C tests/cassini OUT="$work" "$work/libcxi.so.1" "$work/libcassini-sysfs.so"
sh tests/cassini/sysfs/tree.sh "$work/sys" 1
gcc -O2 -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -pthread -I"$prefix/include" -o "$work/calls" tests/cxi/calls.c \
	"$prefix/lib/libfabric.so.1" "$work/libcxi.so.1" -ldl
gcc -O2 -o "$work/instructions" tests/cxi/instructions.c
export CASSINI="mode=stepped fabric=-1" FI_LOG_LEVEL=error LD_LIBRARY_PATH="$work:$prefix/lib"
weft=(env FI_PROVIDER_PATH="$PWD/build/lib" FI_WEFT_CXI=native "$work/calls" weft)
cxi=(env LD_PRELOAD="$work/libcassini-sysfs.so" CASSINI_SYSFS="$work/sys" "$work/calls" cxi)

# Six processes, a round of each in turn: weft with one transmit queue and with eight as well. Bash keeps one coprocess
# at a time, so they have pipes by name.
declare -A to from
declare -a bytes queues
for kind in weft-safe cxi-safe weft-domain cxi-domain weft-one weft-eight; do
	mkfifo "$work/$kind.in" "$work/$kind.out"
	case $kind in
	cxi-*) command=("${cxi[@]}" "${kind#*-}") ;;
	weft-one) command=(env FI_WEFT_TX_STRIPES=1 "${weft[@]}" safe) ;;
	weft-eight) command=(env FI_WEFT_TX_STRIPES=8 "${weft[@]}" safe) ;;
	*) command=("${weft[@]}" "${kind#*-}") ;;
	esac
	"${command[@]}" <"$work/$kind.in" >"$work/$kind.out" 2>>"$work/log" &
	exec {in}>"$work/$kind.in" {out}<"$work/$kind.out"
	to[$kind]=$in from[$kind]=$out
done
for ((n = 0; n < rounds; n++)); do
	for kind in "${!to[@]}"; do
		echo >&"${to[$kind]}"
		read -r -u "${from[$kind]}" line || { cat "$work/log"; exit 1; }
		echo "$line" >>"$work/$kind"
	done
done

# quartile FILE COLUMN: the lower one
quartile() { awk -v c="$2" '{ print $c }' "$1" | sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 3) / 4)] }'; }
# divided A B: to two places
divided() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", b ? a / b : 0 }'; }

# row COLUMN WHAT: both providers in both thread modes
row() {
	local cell="| $2 |" mode a b
	for mode in safe domain; do
		a=$(quartile "$work/weft-$mode" "$1") b=$(quartile "$work/cxi-$mode" "$1")
		cell+=" $a | $b | $(divided "$a" "$b") |"
	done
	echo "$cell"
}

# one FIGURE WEFT CXI UNIT
one() { echo "| $1 | $2 | $3 | $(divided "$2" "$3") |"; }

# both FIGURE COLUMN: of FI_THREAD_SAFE
both() { one "$1" "$(quartile "$work/weft-safe" "$2")" "$(quartile "$work/cxi-safe" "$2")"; }

# times FIGURE MODE COLUMN MODE COLUMN: how many times the second the first is
times() {
	local of=() provider
	for provider in weft cxi; do
		of+=("$(divided "$(quartile "$work/$provider-$2" "$3")" "$(quartile "$work/$provider-$4" "$5")")")
	done
	one "$1" "${of[@]}"
}

# memory FIGURE WEFT CXI: with variables of either provider. Keeps what both answer in bytes and queues.
memory() {
	# shellcheck disable=SC2086 # lists of assignments
	read -r "bytes[0]" "queues[0]" < <(env $2 "${weft[@]}" memory 2>>"$work/log")
	# shellcheck disable=SC2086
	read -r "bytes[1]" "queues[1]" < <(env $3 "${cxi[@]}" memory 2>>"$work/log")
	one "$1" "${bytes[@]}"
}

# behind PROVIDER N: the least of five, in software mode
behind() {
	for _ in 1 2 3 4 5; do
		if [ "$1" = weft ]; then
			FI_WEFT_CXI_MATCH=software timeout 60 "${weft[@]}" many "$2" 101000
		else
			FI_CXI_RX_MATCH_MODE=software timeout 60 "${cxi[@]}" many "$2"
		fi
	done 2>>"$work/log" | sort -g | head -n 1
}

# steps MODE COMMAND...: instructions of a call of each kind, the least of what a traced process takes for 20, in three
# runs: receives, sends of three lengths, injected, reads that return a send, a receive, nothing
steps() {
	for _ in 1 2 3; do
		"$work/instructions" "${@:2}" "$1" marked 2>>"$work/log"
	done | awk '
		{
			line = (NR - 1) % 16 + 1
			kind = line % 5 == 1 ? 1 : line % 5 == 2 ? 2 + int(line / 5) : line % 5 ? line % 5 + 3 : 8
			if (line == 16) kind = 5
		}
		!(kind in least) || $1 < least[kind] { least[kind] = $1 }
		END { for (kind = 1; kind <= 8; kind++) printf "%.0f\n", least[kind] / 20 }'
}

# shellcheck disable=SC2016 # names of calls
names=('`fi_trecv` of 1 KiB' '`fi_tsend` of 8 bytes' '`fi_tsend` of 192 bytes' '`fi_tsend` of 1 KiB'
	'`fi_cq_read` that returns a send' '`fi_cq_read` that returns a receive' '`fi_cq_read` that finds nothing')
{
	echo "| ns | weft, \`FI_THREAD_SAFE\` | \`prov/cxi\` | ratio | weft, \`FI_THREAD_DOMAIN\` | \`prov/cxi\` | ratio |"
	echo "| --- | --- | --- | --- | --- | --- | --- |"
	for ((n = 0; n < ${#names[@]}; n++)); do
		row $((n + 1)) "${names[n]}"
	done
	echo
	echo "| | weft | \`prov/cxi\` | ratio |"
	echo "| --- | --- | --- | --- |"
	times "sends of 8 bytes by two threads together, times those of one" safe 2 safe 8
	times "the same, each to a peer of its own" safe 2 safe 16
	times "receives read by two threads together, times those of one" safe 6 safe 9
	times "ends of sends to two peers read by two threads together, times those of one" safe 5 safe 17
	for n in one eight; do
		file=$work/weft-$n
		echo "| receives read by two threads, times those of one; transmit queues: $n |" \
			"$(divided "$(quartile "$file" 6)" "$(quartile "$file" 9)") | | |"
		echo "| ends of sends to two peers read by two threads, times those of one; transmit queues: $n |" \
			"$(divided "$(quartile "$file" 5)" "$(quartile "$file" 17)") | | |"
		echo "| sends of 8 bytes by two threads to a peer each, times those of one; transmit queues: $n |" \
			"$(divided "$(quartile "$file" 2)" "$(quartile "$file" 16)") | | |"
	done
	echo "| \`fi_cq_read\` that finds nothing with eight transmit queues, times that with one |" \
		"$(divided "$(quartile "$work/weft-eight" 7)" "$(quartile "$work/weft-one" 7)") | | |"
	for ((n = 0; n < ${#names[@]}; n++)); do
		times "\`FI_THREAD_SAFE\` by \`FI_THREAD_DOMAIN\`, ${names[n]}" safe $((n + 1)) domain $((n + 1))
	done
	both "commands for a receive" 10
	both "read pointers that the NIC stores, for a receive" 12
	both "commands for a message of 8 bytes" 13
	both "read pointers for it" 15
	for n in 0 1000 100000; do
		one "ns to read a message in software mode, behind $n receives" "$(behind weft $n)" "$(behind cxi $n)"
	done
	memory "bytes in memory that an endpoint adds" "" ""
	small="FI_WEFT_CXI_OFLOW_BUF_SIZE=65536 FI_WEFT_CXI_OFLOW_BUF_COUNT=2"
	few="FI_CXI_OFLOW_BUF_SIZE=65536 FI_CXI_OFLOW_BUF_MIN_POSTED=2"
	memory "the same with two overflow buffers of 64 KiB" "$small" "$few"
	memory "the same with room for 64 events of arrivals" "$small FI_WEFT_CXI_DEFAULT_CQ_SIZE=64" \
		"$few FI_CXI_DEFAULT_CQ_SIZE=64"
	one "of that, event queues" "${queues[@]}"
	one "the rest, without both overflow buffers" $((bytes[0] - queues[0] - 131072)) $((bytes[1] - queues[1] - 131072))
	echo
	model=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1) load=$(cut -d' ' -f1 /proc/loadavg)
	echo "\`tests/cxi/calls.sh PREFIX\`, $("${GO:-go}" env GOVERSION), $(nproc) processors, $model, load $load,"
	echo "lower quartile of $rounds rounds of 200 calls, $(date -u +%F)."
} >"$work/table"
sed -i -e "/<!-- begin cxi calls -->/,/<!-- end cxi calls -->/{/<!-- /!d}" \
	-e "/<!-- begin cxi calls -->/r $work/table" docs/benchmarks.md
cat "$work/table"

[ "$(uname -m)" = x86_64 ] || exit 0
# shellcheck disable=SC2016 # names of calls
{
	echo "| instructions | weft, \`FI_THREAD_SAFE\` | \`prov/cxi\` | ratio | weft, \`FI_THREAD_DOMAIN\` | \`prov/cxi\` | ratio |"
	echo "| --- | --- | --- | --- | --- | --- | --- |"
	paste <(steps safe "${weft[@]}") <(steps safe "${cxi[@]}") <(steps domain "${weft[@]}") <(steps domain "${cxi[@]}") \
		<(printf '%s\n' "${names[@]:0:4}" '`fi_tinject` of 8 bytes' "${names[@]:4}") | while IFS=$'\t' read -r a b c d name; do
		echo "| $name | $a | $b | $(divided "$a" "$b") | $c | $d | $(divided "$c" "$d") |"
	done
	echo
	echo "\`tests/cxi/calls.sh PREFIX\`, $(date -u +%F)."
} >"$work/table"
sed -i -e "/<!-- begin cxi instructions -->/,/<!-- end cxi instructions -->/{/<!-- /!d}" \
	-e "/<!-- begin cxi instructions -->/r $work/table" docs/benchmarks.md
cat "$work/table"
