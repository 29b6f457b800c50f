#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The data plane as C calls it: that it needs nothing of the Go runtime, and that both routes into it agree.
set -u
cd "$(dirname "$0")/../.." || exit 1

. tests/clients/lib.sh

LIMIT=300 # seconds for one program

for lib in libweft-core.so libweft.so; do
	if scripts/callcheck.sh "build/lib/$lib" >"$work/log" 2>&1; then
		ok "$lib: $(tail -n 1 "$work/log"), none needs the runtime"
	else
		not_ok "$lib: calls of the data plane need nothing of the runtime" "$work/log"
	fi
done

# The self-test passes where the trampoline exists, and FI_WEFT_DIRECT=no says so in the log.
route() { FI_LOG_LEVEL=info FI_LOG_PROV=weft FI_WEFT_DIRECT=$1 timeout 60 build/tests/msg_basic 2>&1 | grep -c "called through the runtime"; }

if make -s -C tests/c OUT="$PWD/build/tests"; then
	if [ "$(route yes)" = 0 ]; then ok "direct calls pass their self-test"; else not_ok "direct calls pass their self-test"; fi
	if [ "$(route no)" != 0 ]; then ok "FI_WEFT_DIRECT=no is in the log"; else not_ok "FI_WEFT_DIRECT=no is in the log"; fi
	# Every program runs by the direct route in run-c.sh.
	for program in match match_depth match_peek msg_basic msg_order multi_recv selective source trigger cancel row scalable; do
		if FI_WEFT_DIRECT=no timeout $LIMIT "build/tests/$program" >"$work/log" 2>&1; then
			ok "$program through the runtime"
		else
			not_ok "$program through the runtime" "$work/log"
		fi
	done
else
	not_ok "programs of tests/c"
fi

closing
