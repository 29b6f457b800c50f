#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# run.sh short|full: tests hw/verbs and the provider over it in virtual machines
# with a real kernel's RDMA stack (soft-RoCE), one and two of them. WEFT_RDMA_ACCEL=kvm has them use
# KVM; otherwise the processor is emulated. WEFT_RDMA_DIR is where the kernel is
# kept, build/rdma by default.
set -u
cd "$(dirname "$0")/../.." || exit 1

GO=${GO:-go}
mode=${1:-full}
dir=${WEFT_RDMA_DIR:-build/rdma}
accel=${WEFT_RDMA_ACCEL:-tcg}
passed=0
failed=0
skipped=0

conclude() {
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" = 0 ]
	exit
}

skip() {
	echo "SKIPPED virtual machines with RDMA: $1"
	skipped=1
	conclude
}

[ "$(uname -m)" = x86_64 ] || skip "they share this host's programs, and their kernel is for x86-64"
for tool in qemu-system-x86_64 rdma ip tc dpkg-deb apt-get xz; do
	PATH=$PATH:/sbin:/usr/sbin command -v "$tool" >/dev/null || skip "$tool is not installed (make deps)"
done
find /usr/lib -name 'librxe-rdmav*.so' 2>/dev/null | grep -q . || skip "ibverbs-providers is not installed (make deps)"

mkdir -p "$dir"
log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT
build() {
	CGO_ENABLED=0 "$GO" build -o "$dir/init" ./tests/rdma/init || return 1
	"$GO" build -o "$dir/vm" ./tests/rdma/vm || return 1
	CGO_ENABLED=0 "$GO" build -o "$dir/rsh" ./tests/rdma/rsh || return 1
	"$GO" test -c -o "$dir/provider.test" ./provider || return 1
	"$GO" test -c -o "$dir/udp.test" ./hw/udp || return 1
	if [ "$mode" = full ] || [ ! -e build/lib/libweft-fi.so ]; then
		make -s lib bin || return 1
	fi
	"$GO" test -c -o "$dir/verbs.test" ./hw/verbs
}
if ! build; then
	failed=1
	conclude
fi
if ! "$dir/vm" -dir "$dir" prepare kernel >"$log/prepare" 2>&1; then
	cat "$log/prepare"
	[ -d "$dir/package" ] || skip "the kernel's package cannot be fetched"
	failed=1
	conclude
fi
echo "virtual machines: $(basename "$dir"/package/boot/vmlinuz-*), accelerator $accel"

# tally NAME STATUS counts the results of a command that wrote those of Go tests, or of tests/c.
tally() {
	local good bad left
	good=$(grep -v '# SKIP' "$log/out" | grep -cE '^(\[[01]\] )? *(--- PASS|ok [0-9])')
	bad=$(grep -cE '^(\[[01]\] )? *(--- FAIL|not ok [0-9])' "$log/out")
	left=$(grep -cE '^(\[[01]\] )? *(--- SKIP|ok [0-9].*# SKIP)' "$log/out")
	if (($2 != 0 && bad == 0)) || ((good == 0)); then
		bad=$((bad + 1))
	fi
	if ((bad > 0)); then
		echo "FAILED $1: exit status $2"
		grep -vE '=== (RUN|PAUSE|CONT|NAME)|--- (PASS|SKIP)|^ok ' "$log/out" | tail -n 80
	fi
	echo "   $good passed, $bad failed, $left skipped there"
	passed=$((passed + good))
	failed=$((failed + bad))
	skipped=$((skipped + left))
}

# machines NAME run|pair SECONDS COMMAND... boots once and runs Go test binaries, one after the other, each a word with its
# arguments.
machines() {
	local name=$1 kind=$2 limit=$3
	shift 3
	echo "-- $name"
	timeout -k 5 $((limit + 30)) "$dir/vm" -dir "$dir" -accel "$accel" -timeout "${limit}s" \
		-env WEFT_TEST_RDMA=1 -env WEFT_TEST_SET_CLOCK=1 -env WEFT_TEST_PAIR="$([ "$kind" = pair ] && echo 1)" "$kind" -- \
		tests/rdma/each.sh "$@" >"$log/out" 2>&1
	tally "$name" $?
}

# tails shows the last lines that each machine said, and those of what runs them.
tails() {
	local of
	for of in '^\[0\]' '^\[1\]' '^[^[]'; do
		grep -v '<warn> fi_getinfo' "$log/out" | grep -E "$of" | tail -n 20
	done
}

# program NAME SECONDS PATTERN [-env NAME=VALUE]... -- COMMAND...: two machines
# run a program over the provider, which must end well and print a line with PATTERN.
program() {
	local name=$1 limit=$2 pattern=$3 status env=()
	shift 3
	while [ "$1" = -env ]; do
		env+=("$1" "$2")
		shift 2
	done
	shift
	echo "-- $name"
	timeout -k 5 $((limit + 30)) "$dir/vm" -dir "$dir" -accel "$accel" -timeout "${limit}s" "${env[@]}" pair -- "$@" >"$log/out" 2>&1
	status=$?
	if ((status == 0)) && grep -qE "$pattern" "$log/out"; then
		echo "   $(grep -E "$pattern" "$log/out" | head -n 1 | tr -s ' ')"
		passed=$((passed + 1))
	else
		echo "FAILED $name: exit status $status"
		tails
		failed=$((failed + 1))
	fi
}

# apart SECONDS [-env NAME=VALUE]... -- PROGRAM...: one machine runs programs of tests/c whose ranks share no memory.
apart() {
	local limit=$1 env=()
	shift
	while [ "$1" = -env ]; do
		env+=("$1" "$2")
		shift 2
	done
	shift
	echo "-- tests/c over the device: ${env[*]} $*"
	if ! make -s -C tests/c OUT="$PWD/build/tests"; then
		failed=$((failed + 1))
		return
	fi
	timeout -k 5 $((limit + 30)) "$dir/vm" -dir "$dir" -accel "$accel" -cpus 2 -timeout "${limit}s" "${env[@]}" run -- \
		tests/rdma/apart.sh "$@" >"$log/out" 2>&1
	tally "tests/c over the device" $?
}

# absent TOOL: skips what needs it and is not installed.
absent() {
	command -v "$1" >/dev/null && return 1
	echo "-- SKIPPED: $1 is not installed"
	skipped=$((skipped + 1))
}

# Nothing but the device, which is used without being asked for, leads from one
# machine to the other.
only=(-env FI_WEFT_UDP=no)
result='^\[1\] [0-9]+[km]? '

pingpongs() {
	absent fi_pingpong && return
	program "fi_pingpong over the device" 100 "$result" "${only[@]}" -- tests/rdma/pingpong.sh -m tagged -I 20 -S 65536
	[ "$mode" = full ] || return
	program "fi_pingpong, short messages" 100 "$result" "${only[@]}" -- tests/rdma/pingpong.sh -m tagged -I 500 -S 64
	program "fi_pingpong, short messages, without Go" 100 '^\[[01]\] [0-9]+ messages delivered by C' "${only[@]}" \
		-- tests/rdma/direct.sh 100 -m tagged -I 1500 -S 64
	program "fi_pingpong, long messages" 100 "$result" "${only[@]}" -- tests/rdma/pingpong.sh -m msg -I 5 -S 1048576
	program "fi_pingpong, one machine without the device: UDP" 100 "$result" -env WEFT_TEST_WITHOUT=1 \
		-- tests/rdma/pingpong.sh -m tagged -I 20 -S 4096
}

# Open MPI over both machines. A program's tests are in tests/mpi. The first machine waits for the other
# one before (tests/rdma/rsh), which is not in a job's limit.
jobs() {
	local each=$1 limit=$2 program
	shift 2
	absent mpicc && return
	absent mpirun && return
	if ! make -s -C tests/mpi OUT="$(realpath "$dir")"; then
		failed=$((failed + 1))
		return
	fi
	for program; do
		if [ "$program" = collectives ] && ! /usr/bin/python3 -c 'import mpi4py' 2>/dev/null; then
			echo "-- SKIPPED: mpi4py is not installed"
			skipped=$((skipped + 1))
			continue
		fi
		program "Open MPI: $program, $each ranks on each machine" $((limit + 180)) "$program: all passed on $((2 * each)) ranks" \
			"${only[@]}" -env WEFT_TEST_LIMIT="$limit" -- tests/rdma/mpi.sh "$(realpath "$dir")" "$each" "$program"
	done
}

pingpongs
clock="$dir/udp.test -test.v -test.run TestClockSet"
exchange="$dir/provider.test -test.v -test.run TestExchangeClockSet"
helped="$dir/provider.test -test.v -test.run TestHelped -test.timeout 100s"
pairs="$dir/provider.test -test.v -test.run"
conformance="$dir/verbs.test -test.v -test.timeout"
traffic="$dir/verbs.test -test.v -test.run"
if [ "$mode" = short ]; then
	apart 330 -- row quiet 'token_gpu by_device' 'alltoallv put_persistent'
	apart 200 -env WEFT_TEST_DMABUF=1 -- 'token_gpu by_device' token_dmabuf
	jobs 1 240 types
	machines "one machine: its clock is set, senders that help, conformance" run 470 "$clock" "$exchange" "$helped" "$conformance 290s -test.short"
	machines "two machines: the device reads and writes; traffic, one of them killed" pair 400 \
		"$pairs TestPairRMA|TestPairList\$ -test.timeout 200s" \
		"$traffic TestPair\$|TestPairZ -test.timeout 140s"
else
	apart 700 -- row quiet levels msg_basic msg_order rma_order selective source 'token_gpu by_device'
	apart 500 -- 'alltoallv put' 'alltoallv get'
	# By a stand-in for ibv_reg_dmabuf_mr (tests/c/fake/dmabuf.c) memory of the made-up GPU goes by the device.
	for how in '' refuse full; do
		apart 200 -env WEFT_TEST_DMABUF=1 ${how:+-env WEFT_FAKE_DMABUF=$how} -- 'token_gpu by_device' token_dmabuf
	done
	jobs 2 400 p2p types
	jobs 1 400 collectives onesided scalable
	machines "one machine: its clock is set, senders that help, conformance and faults" run 1170 "$clock" "$exchange" "$helped" "$conformance 990s"
	machines "two machines: the device reads and writes; traffic and lists, loss, delay, port down, one killed" pair 940 \
		"$pairs TestPair -test.timeout 340s" \
		"$traffic TestPair -test.timeout 590s"
fi
conclude
