#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs fabtests of an installed libfabric 2.x over weft, on a host of its own:
# runfabtests.sh ends every process called fi_* that it finds. As root.
#
#	tests/fabtests/run.sh PREFIX SETS [OPTION...]
#
# PREFIX is where libfabric and fabtests are installed, SETS and the options are
# runfabtests.sh's: unit,functional,standard,complex,multinode,threaded.
#
# The sets run twice: C calls the data plane directly, and then through the Go
# runtime (FI_WEFT_DIRECT=no); ROUTES=yes or no names one of both. Every test has
# to end alike by both. Status 1: they differ, or a test failed.
set -euo pipefail
cd "$(dirname "$0")/../.."
prefix=$1 sets=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
config=$PWD/tests/fabtests
export LD_LIBRARY_PATH=$prefix/lib PATH=$prefix/bin:$PATH
export FI_PROVIDER_PATH=${FI_PROVIDER_PATH:-$PWD/build/lib}
cd "$work"
mkdir run
status=0

# ends OUTPUT prints the name of each test and how it ended.
ends() { awk '$1 == "-" && $2 == "name:" { sub(/^- name: */, ""); name = $0 } $1 == "result:" { print name ": " $2 }' "$1"; }

read -ra routes <<<"${ROUTES:-yes no}"
for direct in "${routes[@]}"; do
	echo "# FI_WEFT_DIRECT=$direct"
	# shellcheck disable=SC2016 # the inner shell's arguments
	FI_WEFT_DIRECT=$direct unshare -p -f -n -m --mount-proc bash -c '
		ip link set lo up && mount -t tmpfs -o size=4g weft /dev/shm && cd run &&
			exec runfabtests.sh -v -t "$@" weft
	' runfabtests "$sets" -f "$config/weft.exclude" -u "$config/weft.ubertest" "$@" | tee "$direct.out" || status=1
	ends "$direct.out" >"$direct.ends"
	[ -s "$direct.ends" ] || status=1
done
if ((${#routes[@]} == 2)); then
	if diff "${routes[0]}.ends" "${routes[1]}.ends"; then
		echo "# $(wc -l <"${routes[0]}.ends") tests end alike by both routes"
	else
		echo "# tests end differently by the two routes"
		status=1
	fi
fi
exit $status
