#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs of tests/c that use no memory of a GPU, where there is a CUDA driver all the same: the stand-in of
# tests/c/fake, which ends a process that uses it wrongly. `WEFT_TEST_CUDA=stand-in tests/clients/run-c.sh` runs all so.
# Then what `weft bench token` measures of a GPU, over that driver.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source-path=SCRIPTDIR source=lib.sh
. tests/clients/lib.sh

log=$work/log
WEFT_TEST_CUDA=stand-in tests/clients/run-c.sh ep_opts mr_modes objects_mr msg_basic rma token notes >"$log" 2>&1
sed '$d' "$log"
if [[ $(tail -n 1 "$log") =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
	passed=${BASH_REMATCH[1]} failed=${BASH_REMATCH[2]} skipped=${BASH_REMATCH[3]}
else
	not_ok "programs where there is a CUDA driver" "$log"
fi

name="lists of a GPU's memory are measured"
program=build/bench/weft_bench
measure() { # PROVIDER: what is measured of a GPU
	LD_LIBRARY_PATH=build/tests/fake${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
		timeout 60 "$program" -p "$1" -s 0.1 gpu >"$log" 2>&1
}
if [ ! -x "$program" ]; then
	skip "$name" "no $program; make bench-program builds it"
elif measure weft &&
	grep -q '^gpu_devices 1$' "$log" &&
	[ "$(grep -cE '^gpu_(gpu|host)(_copy)?_[0-9]+_mbps |^gpu_map_(first|again)_us ' "$log")" = 14 ]; then
	ok "$name"
else
	not_ok "$name" "$log"
fi
name="nothing is measured of a provider without memory of GPUs"
if [ ! -x "$program" ]; then
	skip "$name" "no $program; make bench-program builds it"
elif measure tcp && [ ! -s "$log" ]; then
	ok "$name"
else
	not_ok "$name" "$log"
fi
closing
