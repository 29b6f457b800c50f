#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# clang-format.sh [add]: prints which of the files in clang-format.list do not have the format of .clang-format; with
# add lists what has it now. Files are added, never taken away. Versions of clang-format differ, so another one than
# VERSION checks nothing; with CLANG_FORMAT=required in the environment its absence is an error.
set -eu
cd "$(dirname "$0")/.."

VERSION=14
LIST=scripts/clang-format.list
if ! clang-format --version 2>/dev/null | grep -q "version $VERSION\."; then
	[ "${CLANG_FORMAT:-}" = required ] || exit 0
	echo "no clang-format of version $VERSION"
	exit 1
fi

formatted() {
	clang-format --dry-run -Werror "$1" >/dev/null 2>&1
}

if [ "${1:-}" = add ]; then
	git ls-files -- '*.c' '*.h' '*.cpp' | while read -r f; do
		if ! grep -q 'Code generated .* DO NOT EDIT' "$f" && formatted "$f"; then
			echo "$f"
		fi
	done | sort -u - "$LIST" >"$LIST.new"
	mv "$LIST.new" "$LIST"
	exit
fi
while read -r f; do
	formatted "$f" || echo "$f: clang-format -i $f"
done <"$LIST"
