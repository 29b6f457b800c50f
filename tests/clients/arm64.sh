#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The library for arm64, built here and run under user-mode emulation: the self-test of direct calls, a message by both
# routes into the data plane, and the walk of its calls. Nothing is measured.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source-path=SCRIPTDIR source=lib.sh
. tests/clients/lib.sh

GO=${GO:-go}
CROSS=aarch64-linux-gnu
what="the library for arm64"

have "$what" $CROSS-gcc || { closing; exit 0; }
have "$what" qemu-aarch64 || { closing; exit 0; }

# run DIRECT: one message from libweft.so to itself, the log on standard error.
run() {
	timeout 120 qemu-aarch64 -L "/usr/$CROSS" -E LD_LIBRARY_PATH="$work" -E FI_LOG_LEVEL=info -E FI_WEFT_DIRECT="$1" \
		-E FI_WEFT_SHM_DIR=/dev/shm "$work/hello" >"$work/log" 2>&1 && grep -q "hello over weft" "$work/log"
}

# libfabric's headers are the same for all processors; the C library's own come first.
if make -s lib LIB="$work" CC=$CROSS-gcc GO="env CC=$CROSS-gcc GOARCH=arm64 CGO_ENABLED=1 $GO" >"$work/log" 2>&1 &&
	$CROSS-gcc -O2 -idirafter /usr/include examples/hello.c -o "$work/hello" -L"$work" -lweft >>"$work/log" 2>&1; then
	ok "it is built"
else
	not_ok "it is built" "$work/log"
fi
if run yes && ! grep -q "called through the runtime" "$work/log"; then
	ok "direct calls pass their self-test, and a message is delivered by them"
else
	not_ok "direct calls pass their self-test, and a message is delivered by them" "$work/log"
fi
if run no && grep -q "called through the runtime" "$work/log"; then
	ok "a message is delivered through the runtime"
else
	not_ok "a message is delivered through the runtime" "$work/log"
fi
if scripts/callcheck.sh "$work/libweft.so" >"$work/log" 2>&1; then
	ok "$(tail -n 1 "$work/log"), none needs the runtime"
else
	not_ok "calls of the data plane need nothing of the runtime" "$work/log"
fi

closing
