#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# clang-format.sh [fix]: prints which hand-written C files do not have the format of .clang-format; with fix they get it.
# What clang-format.except names is left out: files that are too long with it. Tables in "clang-format off" stay.
# Versions of clang-format differ: without VERSION it exits with 77, and with CLANG_FORMAT=required in the environment
# with 1.
set -eu
cd "$(dirname "$0")/.."

VERSION=14
EXCEPT=scripts/clang-format.except
tool=
for name in clang-format-$VERSION clang-format; do
	if "$name" --version 2>/dev/null | grep -q "version $VERSION\."; then
		tool=$name
		break
	fi
done
if [ -z "$tool" ]; then
	echo "no clang-format of version $VERSION"
	[ "${CLANG_FORMAT:-}" = required ] && exit 1
	exit 77
fi

git ls-files --cached --others --exclude-standard --deduplicate -- '*.c' '*.h' '*.cpp' | grep -v -f "$EXCEPT" |
	while read -r f; do
		if ! [ -f "$f" ] || grep -q 'Code generated .* DO NOT EDIT' "$f"; then
			continue
		elif [ "${1:-}" = fix ]; then
			"$tool" -i "$f"
		else
			"$tool" --dry-run -Werror "$f" >/dev/null 2>&1 || echo "$f: $tool -i $f"
		fi
	done
