#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The library that profiles itself (build tag profile, for make pgo): processes of a benchmark end as they
# should, and what they have written has functions of weft.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source-path=SCRIPTDIR source=lib.sh
. tests/clients/lib.sh

name="the library that profiles itself"
program=build/bench/weft_bench
if [ ! -x "$program" ]; then
	skip "$name" "no $program; make bench-program builds it"
elif ! "${GO:-go}" build -trimpath -buildvcs=false -pgo="$PWD/cabi/weft.pgo" -buildmode=c-shared -tags profile \
	-o "$work/libweft-core.so" ./cabi >"$work/log" 2>&1; then
	not_ok "$name is built" "$work/log"
else
	cp build/lib/libweft-fi.so "$work/"
	if FI_PROVIDER_PATH=$work WEFT_PROFILE=$work FI_WEFT_DIRECT=no timeout 60 "$program" -p weft -s 1 rate pingpong >"$work/log" 2>&1; then
		ok "$name measures"
	else
		not_ok "$name measures" "$work/log"
	fi
	# The last piece of a process may be cut off.
	find "$work" -name '*.pprof' -size +0 -print0 |
		xargs -0 "${GO:-go}" tool pprof -symbolize=none -nodecount=10000 -top >"$work/top" 2>"$work/log"
	if grep -q 'weft/provider\.' "$work/top"; then
		ok "its profile has functions of weft"
	else
		not_ok "its profile has functions of weft" "$work/log"
	fi
fi

closing
