#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs the test-suite of libfabric's own CXI provider and libcxi's own tests over the software model of the NIC in tests/cassini,
# in the settings of tests/cxi/settings, and the fabtests of tests/cxi/fabtests between two processes. What fails has to be in
# tests/cxi/expected, with its reason.
#
#	tests/cxi/oracle.sh PREFIX [SETTING...]
#
# PREFIX is where others' builds are installed, made with the vendor's headers: bin/cxitest, the suite (Criterion), and, if
# they are to run, bin/libcxi_test, the tests of libcxi (Criterion; bound lazily, since the model has not all functions), and
# bin/fi_rdm_pingpong and its like with a libfabric that has the CXI provider alone, in lib. No script of weft builds them. A
# test that fails is run once more by itself, because the suites have time limits of their own.
set -u
cd "$(dirname "$0")/../.." || exit 2
prefix=$1
shift
root=$PWD
work=$(mktemp -d)
pages=$(cat /proc/sys/vm/nr_hugepages)
# libcxi's tests set large pages aside and do not give all back.
restore() {
	rm -rf "$work"
	[ "$pages" = "$(cat /proc/sys/vm/nr_hugepages)" ] || echo "$pages" >/proc/sys/vm/nr_hugepages
}
trap restore EXIT
[ -x "$prefix/bin/cxitest" ] || { echo "no $prefix/bin/cxitest" >&2; exit 2; }

gcc -O2 -g -std=gnu11 -D_GNU_SOURCE -fPIC -shared -pthread -Wl,-soname,libcxi.so.1 \
	-Wl,--version-script=tests/cassini/libcxi.map tests/cassini/*.c -o "$work/libcxi.so.1" &&
	gcc -O2 -std=gnu11 -D_GNU_SOURCE -fPIC -shared tests/cassini/sysfs/redirect.c -ldl -o "$work/sysfs.so" &&
	sh tests/cassini/sysfs/tree.sh "$work/sys" 2 || exit 2
cd "$work" || exit 2

# over MODEL VARIABLES COMMAND...: a command over the model. The suite hands function pointers to its processes, so addresses are
# the same in all (setarch -R). A fabric of its own keeps other programs of this host away.
over() {
	model=$1 variables=$2
	shift 2
	# shellcheck disable=SC2086 # a list of assignments
	env FI_CXI_FC_RECOVERY=1 FI_CXI_ENABLE_TRIG_OP_LIMIT=1 FI_LOG_LEVEL=warn $variables CASSINI="devices=2 fabric=$$ $model" \
		CASSINI_SYSFS="$work/sys" LD_LIBRARY_PATH="$work:$prefix/lib" LD_PRELOAD="$work/sysfs.so" setarch -R "$@"
}

# failures FILE: names of the tests that failed in a TAP file
failures() {
	sed -n 's/^not ok - \([^ ]*\).*/\1/p' "$1" | sort -u
}

total=0 bad=0 listed=0
# suite_in NAME MODEL VARIABLES PROGRAM FILTER: one setting. The tests of another program than cxitest have no time limits of their
# own.
suite_in() {
	name=$1 model=$2 variables=$3 program=$4 filter=$5 suite=$prefix/bin/${4:-cxitest}
	[ -x "$suite" ] || { echo "$name: not run, there is no $suite"; return; }
	over "$model" "$variables" "$suite" -j 1 ${program:+--timeout 20} --filter="$filter" --tap=all.tap >all.log 2>&1
	tested=$(sed -n 's/.*Tested: \([0-9]*\).*/\1/p' all.log | tail -n 1)
	failed=0
	if [ -z "$tested" ]; then
		echo "FAILED $name: the suite has not ended"
		tail -n 5 all.log
		bad=$((bad + 1))
		return
	fi
	for t in $(failures all.tap); do
		over "$model" "$variables" "$suite" -j 1 ${program:+--timeout 20} --filter="${t/:://}" --tap=one.tap >one.log 2>&1
		n=$(grep -c "^not ok" one.tap)
		[ "$n" = 0 ] && continue
		failed=$((failed + n))
		reason=$(sed -n "s|^$name $t  *||p" "$root/tests/cxi/expected")
		if [ -n "$reason" ]; then
			listed=$((listed + n))
			echo "expected $name $t: $reason"
		else
			bad=$((bad + 1))
			echo "FAILED $name $t"
		fi
	done
	total=$((total + tested))
	echo "$name: $((tested - failed)) of $tested"
}

# wanted NAME ARGUMENT...: whether a setting was asked for, as all are without arguments
wanted() { [ $# = 1 ] || [[ " ${*:2} " == *" $1 "* ]]; }

while IFS='|' read -r name model variables program filter; do
	case $name in '' | '#'*) continue ;; esac
	if wanted "$name" "$@"; then
		suite_in "$name" "$model" "$variables" "$program" "$filter"
	fi
done <"$root/tests/cxi/settings"

# pairs COMMAND...: a fabtest between two processes
pairs() {
	over "" "FI_PROVIDER=cxi" timeout 60 "$prefix/bin/$1" "${@:2}" >server.log 2>&1 &
	server=$!
	sleep 1
	over "" "FI_PROVIDER=cxi" timeout 60 "$prefix/bin/$1" "${@:2}" 127.0.0.1 >client.log 2>&1
	client=$?
	wait "$server" && [ "$client" = 0 ]
}

if [ -x "$prefix/bin/fi_rdm_pingpong" ] && wanted fabtests "$@"; then
	while read -r -a words; do
		[[ ${words[0]:-#} == "#"* ]] && continue
		total=$((total + 1))
		reason=$(sed -n "s|^fabtests ${words[0]}  *||p" "$root/tests/cxi/expected")
		if pairs "${words[0]}" -E -p cxi "${words[@]:1}" </dev/null; then
			echo "ok ${words[0]} between two processes"
		elif [ -n "$reason" ]; then
			listed=$((listed + 1))
			echo "expected fabtests ${words[0]}: $reason"
		else
			echo "FAILED ${words[0]} between two processes"
			tail -n 3 client.log server.log
			bad=$((bad + 1))
		fi
	done <"$root/tests/cxi/fabtests"
else
	echo "no fabtests in $prefix/bin, or not asked for"
fi
echo "$((total - bad - listed)) of $total passed, $listed failed as expected, $bad failed"
[ "$bad" = 0 ]
