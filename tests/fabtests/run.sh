#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs fabtests of an installed libfabric 2.x over weft, on a host of its own:
# runfabtests.sh ends every process called fi_* that it finds. As root.
#
#	tests/fabtests/run.sh PREFIX SETS [OPTION...]
#
# PREFIX is where libfabric and fabtests are installed, SETS and the options are
# runfabtests.sh's: unit,functional,standard,complex,multinode,threaded.
set -eu
cd "$(dirname "$0")/../.."
prefix=$1 sets=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
config=$PWD/tests/fabtests
export LD_LIBRARY_PATH=$prefix/lib PATH=$prefix/bin:$PATH
export FI_PROVIDER_PATH=${FI_PROVIDER_PATH:-$PWD/build/lib}
cd "$work"
# shellcheck disable=SC2016 # the inner shell's arguments
unshare -p -f -n -m --mount-proc bash -c '
	ip link set lo up && mount -t tmpfs -o size=4g weft /dev/shm &&
		exec runfabtests.sh -v -t "$@" weft
' runfabtests "$sets" -f "$config/weft.exclude" -u "$config/weft.ubertest" "$@"
