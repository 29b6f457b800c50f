#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# run.sh FOLDER [BACKENDS SECONDS]: the backend's tests, of the programs in a folder: without NIXL's agent, and
# agents of one process, of one host, and of two network namespaces joined by a virtual cable, which need root. With
# backends, as bench takes them: their figures on one host and between the namespaces, each for some seconds.
set -u
cd "$(dirname "$0")/../../.." || exit 1
# shellcheck source-path=SCRIPTDIR/../../../tests/clients source=lib.sh
. tests/clients/lib.sh
# shellcheck source-path=SCRIPTDIR/../../../tests/clients source=net.sh
. tests/clients/net.sh

export NIXL_PLUGIN_DIR=$1
# Everything that is opened is closed in its order, so no fi_close fails.
run() { # WHAT PROGRAM ARGUMENT...
	if timeout 600 "$NIXL_PLUGIN_DIR/$2" "${@:3}" >"$work/log" 2>&1 && ! grep -q 'weft: fi_close' "$work/log"; then
		ok "$1"
	else
		not_ok "$1" "$work/log"
	fi
}

if [ $# = 3 ]; then
	limit=$((120 + 20 * (${3%%.*} + 1))) # of all figures together
	timeout "$limit" "$NIXL_PLUGIN_DIR/bench" "$2" "$3" || exit
	trap down EXIT
	up || exit
	echo
	# UCX's shared memory goes past network namespaces, but not to another host.
	UCX_TLS=tcp,self timeout "$limit" "$NIXL_PLUGIN_DIR/bench" "$2" "$3" "$a" "$b"
	exit
fi
run "the backend by itself" engine
run "agents of one process" check one
run "agents of one host" check host
# By the driver where it and a GPU are, else by its stand-in, which no other program is to find.
libraries=${LD_LIBRARY_PATH:-}
if ! compgen -G '/dev/nvidia[0-9]*' >/dev/null || ! ldconfig -p | grep -q libcuda.so.1; then
	libraries=$PWD/build/tests/fake${libraries:+:$libraries}
fi
LD_LIBRARY_PATH=$libraries run "agents with memory of a GPU" vram
trap down EXIT
if [ "$(id -u)" = 0 ] && up 2>"$work/log"; then
	run "agents of two hosts" check hosts "$a" "$b"
else
	skip "agents of two hosts" "no network namespaces"
fi
closing
