#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Processes of one host that share no memory exchange messages over a software model of Slingshot's NIC
# (tests/cassini) and nothing else; what goes wrong without the library, with a service that forbids and with a
# peer that has no NIC is named, or goes over UDP. Needs root; skipped without.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source-path=SCRIPTDIR source=lib.sh
. tests/clients/lib.sh
# shellcheck source-path=SCRIPTDIR source=net.sh
. tests/clients/net.sh
# shellcheck source-path=SCRIPTDIR source=../cxi/alone.sh
. tests/cxi/alone.sh

LIMIT=90
LONG=300 # of a program of tests/c
# The NIC runs on a thread of its own: weft's threads block the signal by which it would run on the ringing one's.
export CASSINI=mode=threaded FI_LOG_LEVEL=warn FI_LOG_PROV=weft

# pair NAME SERVER CLIENT OPTION...: fi_pingpong between two processes with variables of each, data checked. Words of
# SERVER and CLIENT are assignments.
pair() {
	local name=$1 own=$2 other=$3 server status
	shift 3
	mkdir -p "$work/1" "$work/2"
	# shellcheck disable=SC2086 # lists of assignments
	ip netns exec "$a" env FI_WEFT_SHM_DIR="$work/1" $own timeout $LIMIT fi_pingpong -p weft -d eth0 -e rdm -c "$@" >"$work/server" 2>&1 &
	server=$!
	listening 47592 $server ip netns exec "$a" # fi_pingpong's own port
	# shellcheck disable=SC2086
	ip netns exec "$a" env FI_WEFT_SHM_DIR="$work/2" $other timeout $LIMIT fi_pingpong -p weft -d eth0 -e rdm -c "$@" 10.77.0.1 >"$work/log" 2>&1
	status=$?
	wait $server || status=1
	if ((status == 0)) && [ "$(grep -cE '^[0-9]+[km]? ' "$work/log")" -ge 1 ]; then
		ok "$name: $(grep -E '^[0-9]+[km]? ' "$work/log" | head -n 1 | tr -s ' ')"
	else
		not_ok "$name" "$work/log"
		sed 's/^/#   server: /' "$work/server" | tail -n 10
	fi
}

# count COUNTER DIRECTORY: the sum of a counter over the processes that run with a folder.
count() {
	FI_WEFT_SHM_DIR="$work/$2" build/bin/weft export --once 2>/dev/null | awk -v n="^weft_$1_total" '$0 ~ n { s += $NF } END { print s + 0 }'
}

# direct: messages of a running process are sent and taken in by C threads, without the Go runtime.
direct() {
	local with="LD_LIBRARY_PATH=$work FI_WEFT_CXI=yes FI_WEFT_UDP=no" server i n sent=0 eager=0 taken=0 delivered=0

	mkdir -p "$work/1" "$work/2"
	# shellcheck disable=SC2086 # a list of assignments
	ip netns exec "$a" env FI_WEFT_SHM_DIR="$work/1" $with timeout $LIMIT fi_pingpong -p weft -d eth0 -e rdm -I 100000000 -S 64 >"$work/server" 2>&1 &
	server=$!
	listening 47592 $server ip netns exec "$a"
	# shellcheck disable=SC2086
	ip netns exec "$a" env FI_WEFT_SHM_DIR="$work/2" $with timeout $LIMIT fi_pingpong -p weft -d eth0 -e rdm -I 100000000 -S 64 10.77.0.1 >"$work/log" 2>&1 &
	i=$!
	for ((n = 0; n < 100 && taken < 500; n++)); do
		sleep 0.3
		taken=$(count rx_direct 2)
	done
	sent=$(count tx_inline 2) eager=$(count tx_eager 2) delivered=$(count rx_eager 2)
	kill $server $i
	wait $server $i
	if ((taken >= 500 && sent >= 500 && eager <= 10 && delivered <= 10)); then
		ok "messages of C threads that did not enter the runtime: $sent sent, $taken taken in; through Go $eager and $delivered"
	else
		not_ok "messages of C threads: $sent sent, $taken taken in, through Go $eager and $delivered" "$work/log"
	fi
}

# refused NAME PATTERN VARIABLES: an endpoint is not enabled, and a line of the log says why.
refused() {
	local server

	# shellcheck disable=SC2086
	ip netns exec "$a" env $3 timeout $LIMIT fi_pingpong -p weft -d eth0 -e rdm >"$work/server" 2>&1 &
	server=$!
	listening 47592 $server ip netns exec "$a"
	# shellcheck disable=SC2086
	if ip netns exec "$a" env $3 timeout $LIMIT fi_pingpong -p weft -d eth0 -e rdm 10.77.0.1 >"$work/log" 2>&1; then
		not_ok "$1: it works" "$work/log"
	elif grep -q "$2" "$work/log" "$work/server"; then
		ok "$1: $(cat "$work/log" "$work/server" | grep -o "$2.*" | head -n 1)"
	else
		not_ok "$1: the log does not say \"$2\"" "$work/log"
	fi
	wait $server
}

# programs LABEL LIBRARIES PROGRAM...: every test of some programs of tests/c; tests/cxi/programs.sh runs all.
# LIBRARIES are searched first. PROGRAM may have a word behind it: only the tests that have it in their names.
programs() {
	local label=$1 libraries=$2 program
	shift 2

	for program in "$@"; do
		# shellcheck disable=SC2086 # the program and the word
		if alone "$libraries" $LONG $program >"$work/log" 2>&1; then
			ok "tests/c/$program over CXI alone$label: $(tail -n 1 "$work/log")"
		else
			not_ok "tests/c/$program over CXI alone$label" "$work/log"
		fi
	done
}

# avkeys: tests of endpoints with keys in their address vectors, which need headers of a libfabric that has those.
avkeys() {
	local name="tests/c/native_avkeys with newer headers" status=0

	if [ -z "${WEFT_TEST_LIBFABRIC:-}" ]; then
		skip "$name" "WEFT_TEST_LIBFABRIC names no folder"
		return
	fi
	tests/cxi/avkeys.sh "$WEFT_TEST_LIBFABRIC" >"$work/log" 2>&1 || status=$?
	case $status in
	0) ok "$name, of $WEFT_TEST_LIBFABRIC: $(tail -n 1 "$work/log")" ;;
	77) skip "$name" "$WEFT_TEST_LIBFABRIC: $(tail -n 1 "$work/log")" ;;
	*) not_ok "$name, of $WEFT_TEST_LIBFABRIC" "$work/log" ;;
	esac
}

# elsewhere: faults with which no endpoint, or not every one, has a NIC that it may have but does not need: messages go over UDP.
elsewhere() {
	local kind

	for kind in open_ few_; do
		if LD_LIBRARY_PATH=$work FI_WEFT_CXI_DEVICE=cxi0 FI_WEFT_CXI=auto FI_WEFT_IFACE=eth0 WEFT_TEST_APART=all WEFT_TEST_NETNS=$a,$a \
			timeout $LONG build/tests/nic_faults $kind >"$work/log" 2>&1; then
			ok "over UDP, with a NIC that cannot be had ($kind): $(tail -n 1 "$work/log")"
		else
			not_ok "over UDP, with a NIC that cannot be had ($kind)" "$work/log"
		fi
	done
}

# native MATCH PROGRAM WORD...: the tests of programs of tests/c that have a word in their names, on endpoints of the CXI
# protocol, with FI_WEFT_CXI_MATCH.
native() {
	local match=$1 route=${FI_WEFT_DIRECT:+, FI_WEFT_DIRECT=$FI_WEFT_DIRECT}
	shift
	while (($# > 1)); do
		# shellcheck disable=SC2086 # no word: all tests
		if LD_LIBRARY_PATH=$work CASSINI="mode=threaded signals=0" FI_WEFT_CXI=native FI_WEFT_CXI_MATCH=$match \
			FI_WEFT_CXI_HYBRID_UNEXPECTED=2 timeout $LONG "build/tests/$1" $2 >"$work/log" 2>&1 &&
			! grep -q '^ok .*# SKIP' "$work/log"; then
			ok "matched by $match$route: tests/c/$1 $2: $(tail -n 1 "$work/log")"
		elif grep -q '# SKIP these headers' "$work/log"; then
			skip "matched by $match$route: tests/c/$1 $2" "the headers of libfabric are too old"
		else
			not_ok "matched by $match$route: tests/c/$1 $2" "$work/log"
		fi
		shift 2
	done
}

# atomics MODE KINDS WANT: whether calls with a thread model read and write memory atomically (WANT 1) or not (0), by
# counting in 20 of each kind, of lines of a round of tests/cxi/calls.c: 1 receives, 2 sends, 3 reads that return sends, 4
# receives, 0 nothing. The least of a kind counts, in up to four runs: some reads enter the runtime, which runs timers.
atomics() {
	: >"$work/counts"
	for _ in 1 2 3 4; do
		CASSINI="mode=stepped fabric=-1" FI_WEFT_CXI=native LD_LIBRARY_PATH=$work timeout $LIMIT "$work/instructions" \
			"$work/calls" weft "$1" marked >>"$work/counts" 2>/dev/null
		awk -v kinds="$2" -v want="$3" '
			BEGIN { for (n = split(kinds, list, ""); n; n--) wanted[list[n]] = 1 }
			{ line = (NR - 1) % 16 + 1; kind = line == 16 ? 2 : line % 5 }
			!(kind in least) || $2 < least[kind] { least[kind] = $2 }
			END {
				for (kind in least) text = text " " kind ":" least[kind]
				for (kind in wanted) bad = bad || !(kind in least) || (least[kind] != 0) != want
				print "of kind" text
				exit bad
			}' "$work/counts" >"$work/log" && return 0
	done
	return 1
}

# alone_counts: posts and reads of a thread that is alone, by the model that the application has asked for, have no atomic
# operation. With FI_THREAD_COMPLETION the registrations of receives are those of several threads.
alone_counts() {
	if [ "$(uname -m)" != x86_64 ]; then
		skip "atomic operations of calls" "they are counted on x86_64 alone"
	elif ! gcc -O2 -std=gnu11 -D_GNU_SOURCE -Wall -pthread -o "$work/calls" tests/cxi/calls.c -lfabric -ldl 2>"$work/log" ||
		! gcc -O2 -o "$work/instructions" tests/cxi/instructions.c 2>"$work/log"; then
		not_ok "the programs that count are built" "$work/log"
	else
		if atomics safe 01234 1; then ok "FI_THREAD_SAFE takes locks: $(cat "$work/log")"; else not_ok "FI_THREAD_SAFE takes locks" "$work/log"; fi
		if atomics domain 01234 0; then ok "FI_THREAD_DOMAIN takes none: $(cat "$work/log")"; else not_ok "FI_THREAD_DOMAIN takes none" "$work/log"; fi
		if atomics completion 023 0; then ok "FI_THREAD_COMPLETION takes none: $(cat "$work/log")"; else not_ok "FI_THREAD_COMPLETION takes none" "$work/log"; fi
	fi
}

# mpich RANKS PROGRAM: a job of the MPICH in the folder MPICH, built for libfabric, whose ranks share no memory and have CXI alone.
# Contexts of scalable endpoints need UDP, so it takes none.
mpich() {
	# shellcheck disable=SC2016 # the rank's shell
	if ip netns exec "$a" env LD_LIBRARY_PATH="$work" FI_PROVIDER=weft MPIR_CVAR_CH4_OFI_ENABLE_SCALABLE_ENDPOINTS=0 FI_WEFT_CXI=yes \
		FI_WEFT_UDP=no FI_WEFT_IFACE=eth0 WORK="$work" timeout $LIMIT "$MPICH/bin/mpiexec" -launcher fork -n "$1" sh -c \
		'd=$WORK/rank$PMI_RANK; mkdir -p "$d" && FI_WEFT_SHM_DIR=$d exec "$0"' "$work/mpich/$2" >"$work/log" 2>&1 </dev/null &&
		grep -q "all passed on $1 ranks" "$work/log"; then
		ok "MPICH over CXI alone: $2 on $1 ranks"
	else
		not_ok "MPICH over CXI alone: $2 on $1 ranks" "$work/log"
	fi
}

# job RANKS PROGRAM: an Open MPI job whose ranks share no memory and have CXI alone.
job() {
	# shellcheck disable=SC2016 # the rank's shell
	if ip netns exec "$a" env LD_LIBRARY_PATH="$work" FI_WEFT_CXI=yes FI_WEFT_UDP=no FI_WEFT_IFACE=eth0 WORK="$work" \
		timeout $LIMIT mpirun --allow-run-as-root --oversubscribe -np "$1" --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include weft \
		--mca mpi_yield_when_idle 1 --mca oob_tcp_if_include lo sh -c \
		'd=$WORK/rank$OMPI_COMM_WORLD_RANK; mkdir -p "$d" && FI_WEFT_SHM_DIR=$d exec "$0"' "$work/$2" >"$work/log" 2>&1 </dev/null &&
		grep -q "all passed on $1 ranks" "$work/log"; then
		ok "Open MPI over CXI alone: $(tail -n 1 "$work/log")"
	else
		not_ok "Open MPI over CXI alone: $2 on $1 ranks" "$work/log"
	fi
}

main() {
	local with="LD_LIBRARY_PATH=$work FI_WEFT_CXI=yes" program

	pair "over CXI alone" "$with FI_WEFT_UDP=no" "$with FI_WEFT_UDP=no" -I 20
	pair "over CXI alone, the longest inline messages" "$with FI_WEFT_UDP=no" "$with FI_WEFT_UDP=no" -I 20 -S 192
	direct
	alone_counts
	pair "with CXI and UDP" "$with" "$with" -I 20 -S 4096
	pair "a peer without a NIC, over UDP" "$with" "FI_WEFT_CXI=no" -I 20 -S 4096
	pair "without libcxi, over UDP" "FI_WEFT_CXI=auto" "FI_WEFT_CXI=auto" -I 20 -S 64
	if have "Open MPI over CXI alone" mpirun; then
		if make -s -C tests/mpi OUT="$work" >"$work/log" 2>&1; then
			job 2 p2p
			job 4 types
		else
			not_ok "tests/mpi are built" "$work/log"
		fi
	fi
	if [ -n "${MPICH:-}" ]; then
		if make -s -C tests/mpi OUT="$work/mpich" MPICC="$MPICH/bin/mpicc" CFLAGS="-O2 -Wno-stringop-overflow" >"$work/log" 2>&1; then
			for program in p2p types onesided probe mt; do
				mpich 2 $program
			done
			mpich 4 types
		else
			not_ok "tests/mpi are built with MPICH" "$work/log"
		fi
	else
		skip "MPICH over CXI alone" "MPICH names no folder"
	fi
	if make -s -C tests/c >"$work/log" 2>&1; then
		programs "" "$work" multi_recv rma alltoallv fault_restart nic_faults "fault_kill silent" directed cancel \
			"token_gpu by_device" "token_faults replaced" \
			"objects_av taken_over" "fault_signals handlers_before" locked ep_opts getinfo_names "levels sender_exits"
		elsewhere
		# Those of alltoallv that count registrations or ask for paths are of weft's other endpoints.
		native hardware alltoallv every alltoallv subset alltoallv differs alltoallv killed alltoallv persistent_long \
			alltoallv arrivals alltoallv refused
		native hardware native "" native_opts "" native_coll "" native_threads "" collective "" native_rma "" native_keys "" multi_recv "" msg_order "" selective "" trywait "" cancel close_pending \
			progress pause progress unexpected progress asleep progress wait progress lifetime progress fork \
			fault_fork "" objects_life "" objects_cq "" \
			trigger chain trigger types trigger cascade trigger many trigger cancel trigger bad trigger without \
			levels transmit_complete levels unmatched \
			match_peek claim match_peek discard match_peek match_complete \
			objects_cntr values objects_cntr wait_ objects_cntr wake_ objects_cntr progress objects_cntr errors \
			source "" cancel pending cancel unknown cancel same_context cancel race cancel prompt native_avkeys "" native_counts "" \
			native_work "" native_more "" native_regions "" native_flow "" native_hints "" \
			match "" threads "" objects_eq writ objects_eq sread objects_eq fd objects_eq strerror
		avkeys
		# Through the runtime: all but the tests that nothing goes through it.
		FI_WEFT_DIRECT=no native hardware native messages native claims native bad native names native sleep native close \
			native symmetric native_keys "" native_rma transfers native_rma atomics native_rma bad native_rma selective \
			native_rma counters native_rma rights native_work "" native_counts "" native_more "" native_regions "" \
			native_flow "" native_hints "" native_threads "" threads "" match ""
		for match in software hybrid; do
			native $match native "" multi_recv "" msg_order "" trigger types trigger cancel cancel close_pending levels unmatched \
				match_peek claim match_peek discard match_peek match_complete match "" threads "" \
				native_work messages native_more messages
		done
		mkdir "$work/instead" && ln -s "$PWD/build/lib/libweft.so" "$work/instead/libfabric.so.1"
		programs ", linked with libweft" "$work/instead:$work" selective msg_cqformat
	else
		not_ok "tests/c are built" "$work/log"
	fi
	refused "a NIC is demanded, without libcxi" "libcxi is not installed" "FI_WEFT_CXI=yes"
	refused "a NIC that is not there" "no NIC cxi7 on this host" "$with FI_WEFT_CXI_DEVICE=cxi7"
	refused "a VNI that the service does not have" "service 1 does not have VNI 99" \
		"$with SLINGSHOT_VNIS=99 SLINGSHOT_DEVICES=cxi0 SLINGSHOT_SVC_IDS=1"
}

if [ "$(id -u)" != 0 ]; then
	skip "processes over CXI" "only root makes network namespaces"
elif have "processes over CXI" fi_pingpong; then
	trap down EXIT
	if make -s -C tests/cassini ../../build/cassini/libcxi.so.1 >"$work/log" 2>&1 && cp build/cassini/libcxi.so.1 "$work" &&
		up 2>>"$work/log"; then
		main
	else
		not_ok "the model and the network" "$work/log"
	fi
fi
closing
