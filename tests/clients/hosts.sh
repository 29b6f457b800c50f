#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs in Java, Python and Go as hosts of the provider (tests/hosts): each with threads, and
# with signals, garbage collection and faults of its own runtime meanwhile. Two of a language
# exchange messages, then one of each, through shared memory and over UDP; every byte is checked.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source-path=SCRIPTDIR source=lib.sh
. tests/clients/lib.sh

LIMIT=${WEFT_TEST_LIMIT:-120}
CFLAGS=(-std=gnu11 -Wall -Wextra -Werror -D_GNU_SOURCE -O2 -fPIC)
languages=()

build_python() {
	gcc "${CFLAGS[@]}" -shared -o "$work/libhost.so" tests/hosts/host.c -lfabric && /usr/bin/python3 --version
}

build_go() { "${GO:-go}" build -o "$work/gohost" ./tests/hosts; }

build_java() {
	local home

	home=$(dirname "$(dirname "$(readlink -f "$(command -v javac)")")")
	gcc "${CFLAGS[@]}" -I"$home/include" -I"$home/include/linux" -shared -o "$work/libjni.so" \
		tests/hosts/java/jni.c tests/hosts/host.c -lfabric && javac -d "$work" tests/hosts/java/Host.java
}

build() {
	command -v "$2" >/dev/null || {
		skip "$1" "$2 is not installed"
		return
	}
	if "build_$1" >"$work/log" 2>&1; then
		languages+=("$1")
	else
		not_ok "$1: its program is built" "$work/log"
	fi
}

# With its checks the JVM checks now and then whether its signal handlers are as it left them.
start_java() { java -Xcheck:jni -Xmx200m -cp "$work" Host "$work/libjni.so" "$@"; }
start_python() { /usr/bin/python3 tests/hosts/host.py "$work/libhost.so" "$@"; }
start_go() { "$work/gohost" "$@"; }

# meet WAY LANGUAGE...: one program each, that exchange messages through shm or over udp.
meet() {
	local name="$*" way=$1 rank=0 status=0 language pids=()

	shift
	rm -rf "$work/names" "$work/shm" "$work"/out.*
	mkdir -p "$work/names"
	for language in "$@"; do
		(
			FI_WEFT_SHM_DIR=$work/shm/$([ "$way" = udp ] && echo $rank || echo all)
			export FI_WEFT_SHM_DIR
			mkdir -p "$FI_WEFT_SHM_DIR"
			export -f "start_$language"
			export work
			exec timeout -k 5 "$LIMIT" bash -c '"start_$@"' - "$language" "$WEFT_TEST_PROV" "$work/names" $rank $#
		) >"$work/out.$rank" 2>&1 &
		pids+=($!)
		rank=$((rank + 1))
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || status=$?
	done
	cat "$work"/out.* >"$work/log"
	if grep -q 'Handler was modified' "$work/log"; then
		not_ok "$name: the JVM's signal handlers are left alone" "$work/log"
	elif ((status == 0)) && [ "$(grep -c ': passed as' "$work/log")" = $# ]; then
		ok "$name"
	else
		echo "status $status" >>"$work/log"
		not_ok "$name" "$work/log"
	fi
}

build python /usr/bin/python3
build go "${GO:-go}"
build java javac
for language in "${languages[@]}"; do
	meet shm "$language" "$language"
	meet udp "$language" "$language"
done
if ((${#languages[@]} > 1)); then
	meet shm "${languages[@]}"
	meet udp "${languages[@]}"
fi
closing
