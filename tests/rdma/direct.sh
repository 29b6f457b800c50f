#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# direct.sh LEAST OPTION...: pingpong.sh, in which C delivers at least so many
# messages on each machine without entering Go, as the running process's counters
# say.
set -u
cd "$(dirname "$0")/../.." || exit 1
least=$1 most=0
shift
tests/rdma/pingpong.sh "$@" &
while kill -0 $! 2>/dev/null; do
	now=$(build/bin/weft export --once 2>/dev/null | awk '/^weft_rx_direct_total/ { n += $NF } END { print n + 0 }')
	((now > most)) && most=$now
	sleep 1
done
wait $! || exit
echo "$most messages delivered by C"
((most >= least))
