#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# libweft.so: its entry points compared with libfabric's (tests/direct), and a
# programs that link nothing else (examples/), after an installation.
set -u
cd "$(dirname "$0")/.." || exit 1

passed=0
failed=0
out=build/tests/direct
CC=${CC:-gcc}
rm -rf "$out"
mkdir -p "$out"

# check NAME COMMAND... runs a command whose output matters only when it fails.
check() {
	name=$1
	shift
	if "$@" >"$out/log" 2>&1; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAILED $name"
		cat "$out/log"
	fi
}

# libweft.so as an installation has it; the provider and this library have
# been built before.
root=$PWD/$out/root
check install "${MAKE:-make}" -s install PREFIX=/usr DESTDIR="$root"
flags() {
	PKG_CONFIG_PATH=$root/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root pkg-config "$@" weft
}
check "weft.pc" flags --exists

# shellcheck disable=SC2046 # words
check "compile the entry points' test" "$CC" -std=gnu11 -Wall -Wextra -Werror -D_GNU_SOURCE -g \
	-fsanitize=address,undefined -o "$out/entry" tests/direct/*.c $(flags --cflags --libs)
check "entry points" env LD_LIBRARY_PATH="$root/usr/lib" timeout 60 "$out/entry"

for example in hello rma wait token alltoallv; do
	# shellcheck disable=SC2046 # words
	check "compile $example" "$CC" -std=gnu11 -Wall -Wextra -Werror -D_GNU_SOURCE -pthread \
		-o "$out/$example" "examples/$example.c" $(flags --cflags --libs)
	check "$example" env LD_LIBRARY_PATH="$root/usr/lib" timeout 60 "$out/$example"
done

follows_the_network() {
	env LD_LIBRARY_PATH="$root/usr/lib" FI_WEFT_RTT_SCHED_ENABLE=yes timeout 60 "$out/alltoallv" >"$out/followed" &&
		[ "$(grep -c 'bytes sent and' "$out/followed")" = 4 ]
}
check "what alltoallv reports" follows_the_network

# shellcheck disable=SC2046 # words
check "compile forked" "$CC" -std=gnu11 -Wall -Wextra -Werror -D_GNU_SOURCE -o "$out/forked" tests/direct/forked/forked.c \
	$(flags --cflags --libs)
says_it_is_forked() {
	env LD_LIBRARY_PATH="$root/usr/lib" timeout 60 "$out/forked" 2>"$out/said" &&
		[ "$(grep -c 'call in a forked process' "$out/said")" = 1 ]
}
check "a fork before the first call" says_it_is_forked

# shellcheck disable=SC2046 # words
check "compile abi" "$CC" -std=gnu11 -Wall -Wextra -Werror -D_GNU_SOURCE -o "$out/abi" tests/direct/abi/abi.c \
	$(flags --cflags --libs)
check "the versions of the entry points" env LD_LIBRARY_PATH="$root/usr/lib" timeout 60 "$out/abi"

# shellcheck disable=SC2046 # words
check "compile tostr" "$CC" -std=gnu11 -Wall -Wextra -Werror -D_GNU_SOURCE -o "$out/tostr" tests/direct/tostr/tostr.c \
	$(flags --cflags --libs)
check "fi_tostr" env LD_LIBRARY_PATH="$root/usr/lib" timeout 60 "$out/tostr"

# A program that was linked with libfabric.
mkdir -p "$out/instead"
ln -s "$root/usr/lib/libweft.so.0" "$out/instead/libfabric.so.1"
check "compile hello with libfabric" "$CC" -std=gnu11 -Wall -Wextra -Werror -D_GNU_SOURCE -pthread \
	-o "$out/hello-libfabric" examples/hello.c -lfabric
check "libweft.so in the place of libfabric" env LD_LIBRARY_PATH="$out/instead" timeout 60 "$out/hello-libfabric"

# Address space that does not do for the Go runtime.
says_what_is_refused() {
	env LD_LIBRARY_PATH="$root/usr/lib" timeout 60 prlimit --as=300000000 "$out/hello" 2>&1 |
		grep -q 'cannot start in this process: refused are address space (RLIMIT_AS)'
}
check "libweft.so says why it cannot start" says_what_is_refused

no_libfabric() {
	! env LD_LIBRARY_PATH="$root/usr/lib" ldd "$out/hello" | grep libfabric
}
check "libweft.so needs no libfabric" no_libfabric

# exports LIBRARY PATTERN: every symbol that it defines matches.
exports() {
	nm -D --defined-only "$1" | awk '{print $3}' | sed 's/@.*//' | grep -Ev "$2" && return 1
	return 0
}
check "exports of libweft.so" exports build/lib/libweft.so '^(fi_[a-z_]+2?|weft_trace|WEFT_[0-9.]+|FABRIC_[0-9.]+)$'
check "exports of libweft-fi.so" exports build/lib/libweft-fi.so '^(fi_prov_ini|WEFT_FI_[0-9.]+)$'
check "exports of libweft-core.so" exports build/lib/libweft-core.so '^(weft_core|weft_trace|WEFT_CORE_[0-9.]+)$'

check uninstall "${MAKE:-make}" -s uninstall PREFIX=/usr DESTDIR="$root"
nothing_left() {
	[ -z "$(find "$root" ! -type d)" ] || find "$root" ! -type d | grep .
	[ -z "$(find "$root" ! -type d)" ]
}
check "nothing is left" nothing_left

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
