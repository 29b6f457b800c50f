#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Runs every fuzz test for a few seconds (FUZZTIME each).
set -eu
cd "$(dirname "$0")/.."

GO=${GO:-go}
time=${FUZZTIME:-10s}
for package in $("$GO" list ./...); do
	for name in $("$GO" test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
		echo "fuzz: $package $name for $time"
		"$GO" test -run '^$' -fuzz "^$name\$" -fuzztime "$time" "$package"
	done
done
