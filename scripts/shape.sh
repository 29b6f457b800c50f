#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# shape.sh prints the rows of docs/shape.md's table, with the numbers of today: those of
# packages as tests/lint counts them, those of words by its bounds.
set -eu
cd "$(dirname "$0")/.."

bounds=tests/lint/testdata/bounds.txt
all=$(go test -count=1 -v -run '^TestBounds$' ./tests/lint | sed -n 's/.*shape_test.go:[0-9]*: provider: //p')
shape=${all%%;*}
promoted=${all#*; }
field() { echo " ${2:-$shape}" | sed -n "s/.* \\([0-9]*\\) $1.*/\\1/p"; }
words() { awk -v names="$*" 'BEGIN { for (i = split(names, n, " "); i; i--) want["word." n[i]] } $1 in want { s += $2 } END { print s + 0 }' "$bounds"; }
bound() { awk -v name="$1" '$1 == name { print $2 }' "$bounds"; }
row() { echo "| $1 | $2 | $3 |"; }

sources=$(git ls-files 'provider/*.go' | grep -v -e '_test\.go$' -e '/.*/')
row "\`provider\` without tests and subfolders: files; lines" "119; 23,070" \
	"$(echo "$sources" | wc -l); $(echo "$sources" | xargs cat | wc -l)"
row "the type there with most fields; with most methods (an embedded type is a field)" "105; 336" \
	"$(field fields); $(field methods)"
row "the same with what embedding promotes" "105; 336" \
	"$(field fields "$promoted"); $(field methods "$promoted")"
row "calls there against any order of files" "45 %" "$(field '% of calls') %"
row "tell, told" 843 "$(words tell told)"
row "look" 602 "$(words look)"
row "held" 355 "$(words held)"
row "who" 280 "$(words who)"
row "lane" 279 "$(words lane)"
row "somebody, nobody" 219 "$(words somebody nobody)"
row "announce" 150 "$(words announce)"
row "poster" 74 "$(words poster)"
row "attend" 61 "$(words attend)"
row "keeper" 60 "$(words keeper)"
row "docs/design.md: words" "13,761" "$(wc -w <docs/design.md)"
row "C of \`cabi\` (12,174 with what is generated): hand-written; loader; each operation" "" \
	"$(bound lines.cabi); $(bound lines.cabi/loader); $(bound lines.cabi.operation)"
