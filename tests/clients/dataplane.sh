#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The data plane as C calls it: that both routes into it agree. That it needs nothing of the Go runtime is lint's to check.
set -u
cd "$(dirname "$0")/../.." || exit 1

. tests/clients/lib.sh

LIMIT=600 # seconds for one program

# The self-test passes where the trampoline exists, and FI_WEFT_DIRECT=no says so in the log.
route() { FI_LOG_LEVEL=info FI_LOG_PROV=weft FI_WEFT_DIRECT=$1 timeout 60 build/tests/msg_basic 2>&1 | grep -c "called through the runtime"; }

# callbacks PROGRAM runs it through the runtime, and leaves its output, status and time.
callbacks() {
	local start=$SECONDS

	FI_WEFT_DIRECT=no timeout $LIMIT "build/tests/$1" >"$work/$1.log" 2>&1
	echo "$? $((SECONDS - start))" >"$work/$1.status"
}

# judge PROGRAM: all of its tests have run. A test that is skipped has not.
judge() {
	local log=$work/$1.log status seconds tests skips ran

	read -r status seconds <"$work/$1.status"
	tests=$("build/tests/$1" -l | wc -l)
	skips=$(grep -cE '^ok [0-9]+ .*# SKIP' "$log")
	ran=$(($(grep -cE '^ok [0-9]+ - ' "$log") - skips))
	if ((status == 0 && tests > 0 && skips == tests)); then
		skip "$1 through the runtime" "each of its $tests tests is"
	elif ((status == 0 && tests > 0 && ran + skips == tests)); then
		ok "$1 through the runtime: $ran tests, $skips skipped, $seconds s"
	else
		not_ok "$1 through the runtime: $ran of $tests tests" "$log"
	fi
}

if make -s -C tests/c OUT="$PWD/build/tests"; then
	if [ "$(route yes)" = 0 ]; then ok "direct calls pass their self-test"; else not_ok "direct calls pass their self-test"; fi
	if [ "$(route no)" != 0 ]; then ok "FI_WEFT_DIRECT=no is in the log"; else not_ok "FI_WEFT_DIRECT=no is in the log"; fi
	# By the direct route every program runs in run-c.sh, with the same tests: what passes there passes here. Left out are
	# those that post nothing: they ask fi_getinfo only, or open address vectors or event queues only. And those that need
	# a NIC of Slingshot or its model (tests/clients/cxi.sh). Two run at a time, but for refused, which limits the
	# user's processes.
	nothing_posted=(getinfo getinfo_names nic objects_av objects_avshared objects_eq)
	needs_nic=(native native_avkeys native_coll native_keys native_opts native_rma nic_faults)
	mapfile -t programs < <(make -s -C tests/c list | grep -vxF "$(printf '%s\n' "${nothing_posted[@]}" "${needs_nic[@]}")")
	for_any_user # refused becomes another
	began=$SECONDS
	for program in "${programs[@]}"; do
		[ "$program" = refused ] && continue
		while (($(jobs -rp | wc -l) >= 2)); do wait -n; done
		callbacks "$program" &
	done
	wait
	callbacks refused
	for program in "${programs[@]}"; do judge "$program"; done
	echo "   through the runtime: ${#programs[@]} programs, $((SECONDS - began)) s"

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
