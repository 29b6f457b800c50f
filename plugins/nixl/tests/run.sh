#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# run.sh FOLDER: the backend's tests, of the programs in a folder: agents of one process, of one host, and of two
# network namespaces joined by a virtual cable, which need root.
set -u
cd "$(dirname "$0")/../../.." || exit 1
# shellcheck source-path=SCRIPTDIR/../../../tests/clients source=lib.sh
. tests/clients/lib.sh
# shellcheck source-path=SCRIPTDIR/../../../tests/clients source=net.sh
. tests/clients/net.sh

export NIXL_PLUGIN_DIR=$1
run() {
	if timeout 300 "$NIXL_PLUGIN_DIR/check" "$@" >"$work/log" 2>&1; then
		ok "agents of $1"
	else
		not_ok "agents of $1" "$work/log"
	fi
}

run one
run host
trap down EXIT
if [ "$(id -u)" = 0 ] && up 2>"$work/log"; then
	run hosts "$a" "$b"
else
	skip "agents of hosts" "no network namespaces"
fi
closing
