#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The software model of the CXI NIC (tests/cassini) by itself: transfers in each of its modes, command
# rings of any bytes, matching against a plain reference, two processes; plain, and under the sanitizers.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source-path=SCRIPTDIR source=lib.sh
. tests/clients/lib.sh

# A process that is killed leaves no leak report, and the events of a trapped doorbell come from a handler.
export ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS=report_signal_unsafe=0

# checks PROGRAM: each of its tests is one of ours.
checks() {
	local verdict rest

	timeout 300 "build/cassini/$1" >"$work/log" 2>&1
	while read -r verdict rest; do
		case $verdict in
		ok) ok "$1 $rest" ;;
		not) not_ok "$1 ${rest#ok }" "$work/log" ;;
		esac
	done < <(grep -E '^(ok|not ok) ' "$work/log")
	grep -qE '^[0-9]+ passed, [0-9]+ failed, 0 skipped$' "$work/log" || not_ok "$1 ran to its end" "$work/log"
}

# What programs that are linked to the real library ask for is there, under its version.
symbols() {
	local name

	nm -D --defined-only --with-symbol-versions build/cassini/libcxi.so.1 >"$work/symbols"
	for name in cxil_map@@LIBCXI_1.0 cxil_get_svc@@LIBCXI_1.2 cxil_pte_transition_sm@@LIBCXI_1.4 \
		cxil_alloc_trig_cp@@LIBCXI_1.9 cxil_svc_get_netns@@LIBCXI_1.10 cassini_step@@CASSINI_1.0; do
		if grep -q " $name\$" "$work/symbols"; then ok "symbol $name"; else not_ok "symbol $name" "$work/symbols"; fi
	done
}

# The model for arm64, whose trapped stores have a decoder of their own, under user-mode emulation.
arm64() {
	local name

	have "the model on arm64" aarch64-linux-gnu-gcc || return
	have "the model on arm64" qemu-aarch64 || return
	if ! aarch64-linux-gnu-gcc -std=gnu11 -D_GNU_SOURCE -pthread -O1 -static -Itests/cassini -o "$work/check-arm64" tests/cassini/*.c \
		tests/cassini/test/*.c 2>"$work/log"; then
		not_ok "the model is built for arm64" "$work/log"
		return
	fi
	for name in direct stepped counters_direct wait_object ordered shuffled transfers; do
		if timeout 120 qemu-aarch64 "$work/check-arm64" "$name" >"$work/log" 2>&1 && grep -q "^ok $name" "$work/log"; then
			ok "arm64: $name"
		else
			not_ok "arm64: $name" "$work/log"
		fi
	done
}

if make -j2 -C tests/cassini >"$work/build" 2>&1; then
	ok "the model builds"
	symbols
	checks check
	checks check-asan
	checks check-tsan
	arm64
else
	not_ok "the model builds" "$work/build"
fi
closing
