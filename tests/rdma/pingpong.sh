#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# pingpong.sh OPTION...: fi_pingpong between two virtual machines of
# tests/rdma/vm, data checked. NODE 0 is the server. WEFT_TEST_WITHOUT names a
# machine that does not use its RDMA device.
set -u
export FI_PROVIDER_PATH=$PWD/build/lib FI_LOG_LEVEL=${FI_LOG_LEVEL:-warn}
limit=60
[ "${WEFT_TEST_WITHOUT-}" = "$NODE" ] && export FI_WEFT_VERBS=no
if [ "$NODE" = 0 ]; then
	exec timeout $limit fi_pingpong -p weft -d "$NETDEV" -e rdm -c "$@"
fi
for _ in $(seq 50); do # until the server listens on its port
	timeout $limit fi_pingpong -p weft -d "$NETDEV" -e rdm -c "$@" "$OTHER" && exit
	sleep 0.2
done
exit 1
