# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Shared by the scripts that run programs over CXI alone. Source it after lib.sh and net.sh.

# alone LIBRARIES LIMIT PROGRAM [WORD]: a program of tests/c, within so many seconds, or its tests that have the word in
# their names. Its ranks are on one host, share no memory, and may not use UDP: what leads from one to the other is the
# model of the NIC, a thread in each, on a fabric of their own: a PID that one program gives back another may take, and
# what was sent to the first arrives at the second. LIBRARIES are searched first, and have libcxi.so.1.
alone() {
	local libraries=$1 limit=$2
	shift 2
	# shellcheck disable=SC2154 # net.sh has made the host
	LD_LIBRARY_PATH=$libraries CASSINI="mode=threaded signals=0 fabric=$BASHPID" FI_WEFT_CXI=yes FI_WEFT_UDP=no FI_WEFT_IFACE=eth0 WEFT_TEST_APART=all \
		WEFT_TEST_NETNS=$a,$a timeout -k 10 "$limit" "build/tests/$1" "${@:2}"
}
