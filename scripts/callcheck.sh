#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# callcheck.sh LIBRARY: walks the calls of a built library from the functions of the data plane (cabi/plane.go), of hw/cxi, of
# hw/verbs and that of the self-test, and fails where one needs the Go runtime (internal/direct/callcheck). What
# hot.MatchTransport.Post and Next lead to is called from Go through a register, which no walk follows: they may be set
# in the seam of hw/cxi alone, to functions of that list.
set -euo pipefail
cd "$(dirname "$0")/.."

GO=${GO:-go}
module=$("$GO" list -m)
mapfile -t roots < <(sed -n '/^var plane = /,/}$/p' cabi/plane.go | tr -d '\n\t ' | sed 's/.*direct\.Func{\(.*[^,]\),*}$/\1/' | sed 's/hot\.[A-Za-z]*://g' | tr ',' '\n')
((${#roots[@]} > 0))
# those of hw/cxi that C and the data plane call
mapfile -t driven < <(sed -n '/^var drivenFunctions = /,/}$/p' hw/cxi/driven_unsafe.go | tr -d '\n\t' | sed 's/.*Functions{\(.*\)}$/\1/' | sed 's/[A-Za-z]*: *//g' | tr -d ' ' | tr ',' '\n')
((${#driven[@]} == 7))
sources=(--include='*.go' --exclude='*_test.go' .)
setters=$(grep -rnE '\bMatch\.(Post|Next)\b[^=]*=[^=]' "${sources[@]}" | sed 's/:[0-9]*:[[:space:]]*/: /')
entries=$(grep -rlE '\bdirect\.Entry\b' "${sources[@]}" | LC_ALL=C sort | tr '\n' ' ')
[[ $setters == "./hw/cxi/internal/seam/seam_unsafe.go: p.Match.Post, p.Match.Next = direct.Entry(f.Post), direct.Entry(f.Matched)" &&
	$entries == "./cabi/plane.go ./hw/cxi/internal/seam/seam_unsafe.go ./hw/verbs/internal/ibv/seam_unsafe.go " ]] || {
	printf 'entry points are taken, or those of a hot.MatchTransport set, where that is not checked:\n%s\n%s\n' \
		"$entries" "$setters" >&2
	exit 1
}
# and those of hw/verbs
mapfile -t verbs < <(sed -n '/^var drivenFunctions = /,/}$/p' hw/verbs/internal/transport/driven.go | tr -d '\n\t' | sed 's/.*Functions{\(.*\)}$/\1/' | sed 's/[A-Za-z]*: *//g' | tr -d ' ' | tr ',' '\n')
((${#verbs[@]} == 6))
# the copy that package mem calls through a register
copy=()
[[ $(readelf -h "$1") != *X86-64* ]] || copy=(copyBy)
"$GO" tool objdump "$1" | "$GO" run ./internal/direct/callcheck "${roots[@]/#/$module/internal/}" "${driven[@]/#/$module/hw/cxi.}" "${verbs[@]/#/$module/hw/verbs/internal/transport.}" "$module/internal/direct.probe" "${copy[@]}"
