#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# each.sh COMMAND... runs commands, each a word with its arguments, one after the other, and fails if one of them did.
status=0
set -f # a word is split at blanks, and nothing else happens to it
for command; do
	# shellcheck disable=SC2086 # it is to be split
	$command || status=1
done
exit $status
