#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The data plane as C calls it: that both routes into it agree. That it needs nothing of the Go runtime is lint's to check.
set -u
cd "$(dirname "$0")/../.." || exit 1

. tests/clients/lib.sh

LIMIT=300 # seconds for one program

# The self-test passes where the trampoline exists, and FI_WEFT_DIRECT=no says so in the log.
route() { FI_LOG_LEVEL=info FI_LOG_PROV=weft FI_WEFT_DIRECT=$1 timeout 60 build/tests/msg_basic 2>&1 | grep -c "called through the runtime"; }

if make -s -C tests/c OUT="$PWD/build/tests"; then
	if [ "$(route yes)" = 0 ]; then ok "direct calls pass their self-test"; else not_ok "direct calls pass their self-test"; fi
	if [ "$(route no)" != 0 ]; then ok "FI_WEFT_DIRECT=no is in the log"; else not_ok "FI_WEFT_DIRECT=no is in the log"; fi
	# By the direct route every program runs in run-c.sh, with the same tests: what passes there passes here. Left out are those
	# that take longer than what they add: all that end processes, and what asks for no operation; and native*, which need a NIC
	# (tests/clients/cxi.sh). A test that is skipped has not run.
	began=$SECONDS
	for program in bind_late cancel clarified collective conn dgram directed eagain edges entries hmem hmem_short imported later \
		levels lists_steady locked match match_depth match_peek msg_basic msg_cqformat msg_order multi_recv notes \
		notes_program notes_steady objects_cntr objects_cq objects_sep progress progress_rma rma rma_order rma_small \
		rma_steady row scalable selective source steady threads token token_program trigger trywait; do
		start=$SECONDS
		FI_WEFT_DIRECT=no timeout $LIMIT "build/tests/$program" >"$work/log" 2>&1
		status=$?
		tests=$("build/tests/$program" -l | wc -l)
		skips=$(grep -cE '^ok [0-9]+ .*# SKIP' "$work/log")
		ran=$(($(grep -cE '^ok [0-9]+ - ' "$work/log") - skips))
		if ((status == 0 && tests > 0 && skips == tests)); then
			skip "$program through the runtime" "each of its $tests tests is"
		elif ((status == 0 && tests > 0 && ran + skips == tests)); then
			ok "$program through the runtime: $ran tests, $skips skipped, $((SECONDS - start)) s"
		else
			not_ok "$program through the runtime: $ran of $tests tests" "$work/log"
		fi
	done
	echo "   through the runtime: $((SECONDS - began)) s"

	# That the comparison of the routes fails where they come apart, and the count of entries where there are some:
	# with faults planted into the library (cabi/planted_unsafe.go).
	if make -s provider-lib LIB="$work/planted" TAGS=planted PGO= >"$work/log" 2>&1; then
		export FI_PROVIDER_PATH=$work/planted
		for fault in data flags length target error; do
			if WEFT_TEST_PLANT=$fault timeout $LIMIT build/tests/routes one_queue >"$work/log" 2>&1 ||
				! grep -q 'line [0-9]*: directly' "$work/log"; then
				not_ok "routes that come apart are noticed: $fault" "$work/log"
			else
				ok "routes that come apart are noticed: $fault"
			fi
		done
		if WEFT_TEST_PLANT=errors_in_go timeout $LIMIT build/tests/steady peek_miss >"$work/log" 2>&1 ||
			! grep -q 'entries into the runtime' "$work/log"; then
			not_ok "errors that are read by the runtime are noticed" "$work/log"
		else
			ok "errors that are read by the runtime are noticed"
		fi
		if WEFT_TEST_PLANT=self_test FI_LOG_LEVEL=warn FI_LOG_PROV=weft timeout 60 build/tests/msg_basic >"$work/log" 2>&1 &&
			grep -q "called through the runtime: the self-test of direct calls failed" "$work/log"; then
			ok "where the self-test fails calls go through the runtime, and the log says so"
		else
			not_ok "where the self-test fails calls go through the runtime, and the log says so" "$work/log"
		fi
	else
		not_ok "a library with planted faults" "$work/log"
	fi
else
	not_ok "programs of tests/c"
fi

closing
