#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs a command in which processes that load libfabric start fast: what its providers for devices that are not here do
# then is most of what tests that start many processes spend. Usage: scripts/lean.sh [--proc] COMMAND...
#
# Libraries of the PSM providers measure the processor's clock for 0.2 and 0.1 s. Others of their names are mounted over
# them, whose functions find no device. The verbs provider reads all of the kernel's symbols, 10 MB; with --proc it gets none, and
# /proc cannot be mounted then by other users. Where mounts may not be made, the command runs as it is.
set -u
cd "$(dirname "$0")/.." || exit 1

proc=
if [ "${1-}" = --proc ]; then
	proc=1
	shift
fi

# without_device REAL BUILT builds a library that has the functions and the variables of another, of the one version that
# its symbols have.
without_device() {
	local dir=${2%/*} symbols version
	symbols=$(nm -D --defined-only "$1") && mkdir -p "$dir" || return
	version=$(sed -n 's/.*@@//p' <<<"$symbols" | head -n 1)
	echo "${version:-ANY} { *; };" >"$2.map"
	awk '{ sub("@@.*", "") } $2 ~ /[TW]/ { print "long " $3 "(void) { return 0; }" } $2 ~ /[BD]/ { print "long " $3 "[64];" }' \
		<<<"$symbols" |
		${CC:-gcc} -w -shared -fPIC -x c ${version:+-Wl,--version-script="$2.map"} -Wl,-soname,"${2##*/}" -o "$2.$$" - &&
		mv "$2.$$" "$2"
}

mounts=()
for name in libinfinipath.so.4 libpsm2.so.2; do
	real=$(ldconfig -p | awk -v name=$name '$1 == name { print $NF; exit }')
	if [ -n "$real" ] && without_device "$real" "$PWD/build/lean/$name"; then
		mounts+=("$PWD/build/lean/$name" "$(readlink -f "$real")")
	fi
done
[ -z "$proc" ] || mounts+=(/dev/null /proc/kallsyms)

# The arguments are what to mount where, --, and the command.
# shellcheck disable=SC2016
inside='while [ "$1" != -- ]; do mount --bind "$1" "$2" && shift 2 || exit 1; done; shift'
if ((${#mounts[@]})) && unshare -m sh -c "$inside" sh "${mounts[@]}" -- 2>/dev/null; then
	exec unshare -m sh -c "$inside"'; exec "$@"' sh "${mounts[@]}" -- "$@"
fi
exec "$@"
