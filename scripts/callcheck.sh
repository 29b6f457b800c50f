#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# callcheck.sh LIBRARY: walks the calls of a built library from the functions of the data plane (cabi/plane.go) and that
# of the self-test, and fails where one needs the Go runtime (internal/direct/callcheck).
set -euo pipefail
cd "$(dirname "$0")/.."

GO=${GO:-go}
module=$("$GO" list -m)
mapfile -t roots < <(sed -n 's/^var plane = .*direct\.Func{\(.*\)}$/\1/p' cabi/plane.go | tr -d ' ' | tr ',' '\n')
((${#roots[@]} > 0))
"$GO" tool objdump "$1" | "$GO" run ./internal/direct/callcheck "${roots[@]/#/$module/internal/}" "$module/internal/direct.probe"
