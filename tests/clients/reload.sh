#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# libfabric is unloaded and loaded again, or is there twice, in one process (tests/c/loaded). The
# second libfabric is that below WEFT_TEST_LIBFABRIC, of another version, or else a copy of the
# system's under another name.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source-path=SCRIPTDIR source=lib.sh
. tests/clients/lib.sh

flags=(-std=gnu11 -Wall -Wextra -Werror -D_GNU_SOURCE -g)
other=${WEFT_TEST_LIBFABRIC:-}
sources=$PWD/tests/c/loaded

# The library under another name: the loader takes it for another one.
second() {
	local library api=1,17 include=()

	if [ -n "$other" ]; then
		library=$(readlink -f "$other/lib/libfabric.so.1")
		include=("-I$other/include")
		grep -q '^#define FI_MAJOR_VERSION 2' "$other/include/rdma/fabric.h" && api=2,0
	else
		library=$(ldd "$work/plug1.so" | awk '/libfabric/ {print $3}')
	fi
	sed 's/libfabric\.so\.1\x00/libfabrix.so.1\x00/g' "$library" >"$work/libfabrix.so.1" &&
		gcc "${flags[@]}" "-DAPI=FI_VERSION($api)" "${include[@]}" -fPIC -shared -o "$work/plug2.so" \
			"$sources/plug.c" "$work/libfabrix.so.1" "-Wl,-rpath,$work"
}

build() {
	gcc "${flags[@]}" -fPIC -shared -o "$work/plug1.so" "$sources/plug.c" -lfabric && second &&
		gcc "${flags[@]}" -o "$work/host" "$sources/host.c" -ldl
}

# steps NAME STEP...
steps() {
	local name=$1
	shift
	if (cd "$work" && timeout 60 ./host "$@") >"$work/log" 2>&1; then ok "$name"; else not_ok "$name" "$work/log"; fi
}

# A process that loses its libfabric has no line of weft's in its log afterwards, and one that
# loads a second has: both hear what they may not have.
logged() {
	if (cd "$work" && FI_WEFT_RING_SLOTS=7 FI_LOG_LEVEL=warn timeout 60 ./host +1 1:inspect) >"$work/log" 2>&1 ||
		! grep -q 'weft.*FI_WEFT_RING_SLOTS="7"' "$work/log"; then
		not_ok "a refusal is in the log" "$work/log"
		return
	fi
	ok "a refusal is in the log"
	(cd "$work" && FI_LOG_LEVEL=info timeout 60 ./host +1 1:use +2 2:use -1 2:use) >"$work/log" 2>&1
	if [ "$(grep -c 'weft.*<info>' "$work/log")" -gt 0 ] && sed -n '/^-1$/,$p' "$work/log" | grep -q '<info>'; then
		ok "the second libfabric writes weft's log"
	else
		not_ok "the second libfabric writes weft's log" "$work/log"
	fi
}

# What a process may not have is an errno and a line of the log, louder for a program that named weft.
refused() {
	(cd "$work" && FI_LOG_LEVEL=warn timeout 60 prlimit --as=300000000 ./host +1 1:inspect) >"$work/log" 2>&1
	if grep -q 'weft.*<warn> the Go runtime cannot start in this process: refused are address space' "$work/log" &&
		grep -q 'provider weft returned -12' "$work/log" && ! grep -q 'fatal error' "$work/log"; then
		ok "what is refused is in the log"
	else
		not_ok "what is refused is in the log" "$work/log"
	fi
}

if ! build >"$work/log" 2>&1; then
	not_ok "build of tests/c/loaded" "$work/log"
	closing
	exit 1
fi
steps "reloaded after fi_getinfo" +1 1:inspect -1 +1 1:inspect -1 +1 1:use -1
steps "reloaded after use" +1 1:use -1 +1 1:use -1 +1 1:use -1
steps "not kept for programs that use another provider" +1 1:use:shm -1 gone +1 1:use:shm -1 gone +1 1:use:shm
steps "kept when weft was used" +1 1:use:shm -1 gone +1 1:use -1 kept +1 1:use -1
steps "two libfabrics in turn" +1 1:use +2 2:use 1:use 2:use 1:inspect 2:inspect
steps "two libfabrics, the other first" +2 2:use +1 1:use 2:use 1:use 2:inspect
steps "the first of two is unloaded" +1 1:use +2 2:use -1 2:use 2:use 2:inspect
steps "the first of two is unloaded, the other first" +2 2:use +1 1:use -2 1:use 1:use
steps "the first of two is unloaded before weft is used" +1 1:use:shm +2 -1 gone 2:use +1 1:use 2:use
steps "unused" +1 +2 -1 -2
logged
refused
closing
