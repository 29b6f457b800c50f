#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# C threads that call the library under Go's race detector, by callbacks (internal/direct): some programs of tests/c. The
# detector has no room for the data of a shared library, whose addresses are too high; so the library is a part of each
# program, which is linked at low ones. It sees what is on the Go heap and in Go's data (internal/race).
set -u
cd "$(dirname "$0")/../.." || exit 1

. tests/clients/lib.sh

GO=${GO:-go}
LIMIT=600 # seconds for one program; a test that hangs is ended by its own limit (tests/c/common.h)
# Programs, with the tests of each that are run; without any all are.
programs=(threads msg_basic entries match multi_recv rma token)
out=$work/race
what="C threads under the race detector"

have "$what" gcc || { closing; exit 0; }
if [ "$(uname -m)" != x86_64 ]; then
	skip "$what" "programs at low addresses are of x86-64"
	closing
	exit 0
fi

# The library with its own pthread_create and its like, which are not the programs'.
wrapped=(pthread_create pthread_attr_init x_cgo_sigaction x_cgo_mmap x_cgo_munmap)
built() {
	mkdir -p "$out" &&
		"$GO" build -race -trimpath -buildvcs=false -buildmode=c-archive -tags direct,planted -pgo=off \
			-ldflags "-X runtime.godebugDefault=asyncpreemptoff=1,gcshrinkstackoff=1" -o "$out/weft.a" ./cabi &&
		gcc -r -nostdlib -no-pie "${wrapped[@]/#/-Wl,--wrap=}" -Wl,--whole-archive "$out/weft.a" -Wl,--no-whole-archive \
			-o "$out/weft.o" &&
		make -s -C tests/c OUT="$out" CFLAGS="-O2 -g -fno-pie" LDFLAGS="-no-pie -Wl,--version-script=$PWD/cabi/weft.map" \
			LIBS="$out/weft.o -ldl -lresolv" "$@"
}

# clean PROGRAM TEST...: it passes, and the detector finds nothing.
clean() {
	GORACE="halt_on_error=1 exitcode=66" timeout $LIMIT "$out/$1" "${@:2}" >"$work/log" 2>&1 &&
		grep -qE '^[1-9][0-9]* passed, 0 failed' "$work/log" && ! grep -q "DATA RACE" "$work/log"
}

mapfile -t names < <(printf '%s\n' "${programs[@]}" | cut -d' ' -f1)
if ! built "${names[@]/#/$out/}" >"$work/log" 2>&1; then
	not_ok "$what: the programs are built" "$work/log"
	closing
	exit 1
fi
for program in "${programs[@]}"; do
	# shellcheck disable=SC2086 # words
	if clean $program; then
		ok "$program under the race detector"
	else
		not_ok "$program under the race detector" "$work/log"
	fi
done
# With a variable that threads change at once (cabi/planted_unsafe.go).
if ! WEFT_TEST_PLANT=race clean threads senders_2 && grep -q "DATA RACE" "$work/log"; then
	ok "a race is noticed"
else
	not_ok "a race is noticed" "$work/log"
fi

closing
