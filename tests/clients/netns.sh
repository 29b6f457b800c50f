#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Two hosts: network namespaces joined by a virtual cable, in which libfabric's
# fi_pingpong, programs of tests/c, whose ranks take turns on the hosts, and Open MPI's
# jobs run over weft's UDP transport. Needs root; skipped without.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source-path=SCRIPTDIR source=lib.sh
. tests/clients/lib.sh
# shellcheck source-path=SCRIPTDIR source=net.sh
. tests/clients/net.sh

LIMIT=90
# pingpong OPTION...: server and client on different hosts, or where far says, data checked (-c).
far=(ip netns exec "$b")
where="between two hosts"
pingpong() {
	local name="fi_pingpong $* $where" server status

	ip netns exec "$a" timeout $LIMIT fi_pingpong -p "$WEFT_TEST_PROV" -d eth0 "$@" >"$work/server" 2>&1 &
	server=$!
	listening 47592 $server ip netns exec "$a" # fi_pingpong's own port
	"${far[@]}" timeout $LIMIT fi_pingpong -p "$WEFT_TEST_PROV" -d eth0 "$@" 10.77.0.1 >"$work/log" 2>&1
	status=$?
	wait $server || status=1
	if ((status == 0)) && [ "$(grep -cE '^[0-9]+[km]? ' "$work/log")" -ge 1 ]; then
		ok "$name: $(grep -E '^[0-9]+[km]? ' "$work/log" | head -n 1 | tr -s ' ')"
	else
		not_ok "$name" "$work/log"
		sed 's/^/#   server: /' "$work/server" | tail -n 10
	fi
}

# between PROGRAM [HOSTS]: every test of a program of tests/c.
between() {
	if WEFT_TEST_NETNS=${2-$a,$b} timeout $LIMIT "build/tests/$1" >"$work/log" 2>&1; then
		ok "tests/c/$1 $where: $(tail -n 1 "$work/log")"
	else
		not_ok "tests/c/$1 $where" "$work/log"
	fi
}

# Processes are killed while they send, receive and open, and others take their port; the other host
# finds out by a word of the kernel's, whose rate is limited, or by silence, also while it sleeps.
kills() {
	WEFT_TEST_KILLS=10 FI_WEFT_PEER_TIMEOUT=1s between fault_kill
	between fault_restart
}

# Targets close as soon as they have performed what was posted. They have few ports, so that each is
# soon another endpoint's.
closes() {
	local range

	range=$(ip netns exec "$b" sysctl -n net.ipv4.ip_local_port_range)
	ip netns exec "$b" sysctl -qw net.ipv4.ip_local_port_range="40000 40007"
	WEFT_TEST_CLOSES=100 between fault_close
	ip netns exec "$b" sysctl -qw net.ipv4.ip_local_port_range="$range"
}

# Hosts that have addresses of IPv6 only. (fi_pingpong's own connection is of IPv4.)
ipv6() {
	local where="between two hosts, IPv6" program

	if ! ip -n "$a" addr add fd77::1/64 dev eth0 nodad 2>"$work/log" || ! ip -n "$b" addr add fd77::2/64 dev eth0 nodad 2>"$work/log"; then
		skip "two hosts, IPv6" "$(head -n 1 "$work/log")"
		return
	fi
	ip -n "$a" addr del 10.77.0.1/24 dev eth0 && ip -n "$b" addr del 10.77.0.2/24 dev eth0
	for program in msg_basic rma; do
		between $program
	done
	kills
	ip -n "$a" addr add 10.77.0.1/24 dev eth0 && ip -n "$b" addr add 10.77.0.2/24 dev eth0
}

# Containers that have the network of one host, and each its own memory and processes.
containers() {
	local where="between containers of one host" program
	# shellcheck disable=SC2016 # the shell within expands it
	local far=(ip netns exec "$a" unshare --mount --pid --fork --mount-proc sh -c 'mount -t tmpfs none /dev/shm && exec "$@"' sh)
	if "${far[@]}" true 2>"$work/log"; then
		pingpong -e rdm -m tagged -I 500 -S 64 -c
		pingpong -e rdm -m tagged -I 3 -S 1048576 -c
		pingpong -e msg -I 50 -S 64 -c
		pingpong -e dgram -I 50 -S 1024 -c
		for program in msg_basic rma collective scalable token token_gpu token_program notes notes_contexts notes_program; do
			WEFT_TEST_APART=1 between $program "$a,$a"
		done
	else
		skip "containers of one host" "$(head -n 1 "$work/log")"
	fi
}

# Long operations in many segments, with probes meanwhile.
segments() {
	export FI_WEFT_RTT_SEGMENT_SIZE=32k FI_WEFT_MIN_SEGMENT_SIZE=16k FI_WEFT_INITIAL_CWND=2
	export FI_WEFT_RTT_PROBE_ENABLE=yes FI_WEFT_RTT_PROBE_STARTUP_DELAY=0 FI_WEFT_RTT_PROBE_INTERVAL=0.01
	pingpong -e rdm -m tagged -I 10 -S 1048576 -c
	unset FI_WEFT_RTT_SEGMENT_SIZE FI_WEFT_MIN_SEGMENT_SIZE FI_WEFT_INITIAL_CWND
	unset FI_WEFT_RTT_PROBE_ENABLE FI_WEFT_RTT_PROBE_STARTUP_DELAY FI_WEFT_RTT_PROBE_INTERVAL
}

# job NAME COMMAND...: an Open MPI job of $each ranks on each host. The daemon on the second is
# started by $work/rsh.
each=1
job() {
	local name=$1 ranks=$((2 * each)) took

	shift
	if ip netns exec "$a" timeout $LIMIT mpirun --allow-run-as-root --oversubscribe --host "10.77.0.1:$each,10.77.0.2:$each" -np "$ranks" \
		--mca plm_rsh_agent "$work/rsh" --mca oob_tcp_if_include eth0 --mca btl_tcp_if_include eth0 --mca mpi_yield_when_idle 1 \
		--mca mtl_ofi_verbose 1 --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include "$WEFT_TEST_PROV" -x FI_PROVIDER_PATH \
		"$@" >"$work/log" 2>&1 </dev/null && took=$(grep -cF "mtl:ofi:prov: $WEFT_TEST_PROV" "$work/log") && ((took == ranks)); then
		ok "Open MPI between two hosts: $name, $ranks ranks"
	else
		not_ok "Open MPI between two hosts: $name" "$work/log"
	fi
}

mpi() {
	local sep=(--mca mtl_ofi_enable_sep 1 --mca mtl_ofi_num_ctxts 4) program

	have "Open MPI between two hosts" mpirun && have "Open MPI between two hosts" mpicc || return
	printf '#!/bin/sh\nshift # the host\nexec ip netns exec %s sh -c "$*"\n' "$b" >"$work/rsh"
	chmod +x "$work/rsh"
	if ! make -s -C tests/mpi OUT="$work" >"$work/log" 2>&1; then
		not_ok "tests/mpi is built" "$work/log"
		return
	fi
	for program in p2p types; do
		job "$program" "$work/$program"
	done
	each=2 job p2p "$work/p2p" # beside each other and between hosts
	for program in p2p mt; do
		job "$program through scalable endpoints" "${sep[@]}" "$work/$program"
	done
	job "onesided" --mca osc rdma --mca btl self,ofi --mca btl_ofi_mode 2 --mca btl_ofi_provider_include "$WEFT_TEST_PROV" "$work/onesided"
	alltoall
}

# MPI over the kernel's TCP, and its all-to-all over weft, because the ranks are on two hosts.
alltoall() {
	local preload=$PWD/build/lib/libweft-mpi-openmpi.so

	if ip netns exec "$a" timeout $LIMIT mpirun --allow-run-as-root --oversubscribe --host 10.77.0.1:2,10.77.0.2:2 -np 4 \
		--mca plm_rsh_agent "$work/rsh" --mca oob_tcp_if_include eth0 --mca btl_tcp_if_include eth0 --mca mpi_yield_when_idle 1 \
		--mca pml ob1 --mca btl self,tcp -x "LD_PRELOAD=$preload" -x FI_WEFT_MPI_MIN_SIZE=4k -x FI_WEFT_MPI_ALLTOALL=yes -x FI_LOG_LEVEL=info -x FI_LOG_PROV=none \
		"$work/alltoall" vector uniform types iform older >"$work/log" 2>&1 </dev/null && grep -q "all-to-all is weft's" "$work/log"; then
		ok "all-to-all of Open MPI between two hosts, 4 ranks"
	else
		not_ok "all-to-all of Open MPI between two hosts" "$work/log"
	fi
	few 3 0
	few 4 1
}

# few CALLS GROUPS: so many all-to-alls on a communicator have as many groups of weft's.
few() {
	if ip netns exec "$a" timeout $LIMIT mpirun --allow-run-as-root --oversubscribe --host 10.77.0.1:1,10.77.0.2:1 -np 2 \
		--mca plm_rsh_agent "$work/rsh" --mca oob_tcp_if_include eth0 --mca btl_tcp_if_include eth0 --mca mpi_yield_when_idle 1 \
		--mca pml ob1 --mca btl self,tcp -x "LD_PRELOAD=$preload" -x FI_LOG_LEVEL=info -x FI_LOG_PROV=none \
		"$work/few" "$1" >"$work/log" 2>&1 </dev/null && grep -q "^few: all passed" "$work/log" &&
		[ "$(grep -c "all-to-all is weft's" "$work/log")" = "$2" ]; then
		ok "$1 all-to-alls of Open MPI between two hosts: groups of weft's: $2"
	else
		not_ok "$1 all-to-alls of Open MPI between two hosts: groups of weft's: not $2" "$work/log"
	fi
}

# Past the kernel's network stack, where that is possible: a first run says.
xdp() {
	export FI_WEFT_UDP_XDP=auto
	FI_LOG_LEVEL=info FI_LOG_PROV=weft pingpong -e rdm -m tagged -I 500 -S 64 -c
	if ! grep -q 'by AF_XDP' "$work/server"; then
		skip "past the kernel's network stack" "$(grep -m 1 -o 'without AF_XDP.*' "$work/server")"
	else
		pingpong -e rdm -m tagged -I 50 -S 65536 -c
		between msg_basic
		between rma
	fi
	unset FI_WEFT_UDP_XDP
}

# Without the transport another host's address is refused.
off() {
	if ip netns exec "$b" env FI_WEFT_UDP=no timeout $LIMIT \
		fi_pingpong -p "$WEFT_TEST_PROV" -d eth0 -I 10 10.77.0.1 >"$work/log" 2>&1; then
		not_ok "FI_WEFT_UDP=no: another host is reached" "$work/log"
	else
		ok "FI_WEFT_UDP=no: other hosts are not reached"
	fi
}

if [ "$(id -u)" != 0 ]; then
	skip "two hosts" "network namespaces need root"
elif have "two hosts" ip && have "two hosts" fi_pingpong; then
	trap down EXIT
	if up 2>"$work/log"; then
		pingpong -e rdm -m tagged -I 500 -S 64 -c
		pingpong -e rdm -m tagged -I 50 -S 4096 -c
		pingpong -e rdm -m msg -I 20 -S 65536 -c
		pingpong -e rdm -m tagged -I 3 -S 1048576 -c
		segments
		pingpong -e msg -I 50 -S 64 -c
		pingpong -e msg -I 10 -S 65536 -c
		pingpong -e dgram -I 50 -S 1024 -c
		if make -s -C tests/c OUT="$PWD/build/tests"; then
			for program in msg_basic clarified caps bind_late mr_modes match_peek cancel multi_recv levels selective source \
				rma rma_small rma_order progress_rma collective alltoallv trigger authkey scalable token token_close token_gpu token_program notes \
				notes_contexts notes_program; do
				between $program
			done
			closes
			kills
			between fault_sleep # half a minute: not with IPv6, too
			ipv6
		else
			not_ok "tests/c is built"
		fi
		containers
		mpi
		xdp
		off
	else
		skip "two hosts" "no network namespaces here: $(head -n 1 "$work/log")"
	fi
fi
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
