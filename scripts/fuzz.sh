#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Runs every fuzz test for a few seconds (FUZZTIME each).
set -eu
cd "$(dirname "$0")/.."

GO=${GO:-go}
time=${FUZZTIME:-10s}
grep -r '^func Fuzz' --include='*_test.go' . |
	sed 's|/[^/]*_test\.go:func \(Fuzz[A-Za-z0-9_]*\).*| \1|' |
	while read -r dir name; do
		echo "fuzz: $dir $name for $time"
		"$GO" -C "$dir" test -run '^$' -fuzz "^$name\$" -fuzztime "$time" . </dev/null
	done
