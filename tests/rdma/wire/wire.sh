#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# wire.sh WIRE run|pair ROUNDS BATCHES LATENCY RATE BANDWIDTH: runs wire over weft and
# libfabric's verbs;ofi_rxm, nothing but the RDMA device between its two
# processes: in one virtual machine of tests/rdma/vm, whose processes share no
# memory then, or in two. Then it does with weft's lists of 80 MB in elements of 4, 16 and 64 KiB, a batch for ten of
# the others.
set -u
wire=$1 how=$2 rounds=$3
shift 3
export FI_PROVIDER_PATH=$PWD/build/lib FI_WEFT_UDP=no
# rxm makes completion queues for as many peers, by default more than the device has room for.
export FI_UNIVERSE_SIZE=2
own=$(mktemp -d)

# both ARGUMENT...: both processes, or the one of this machine.
both() {
	if [ "$how" = pair ]; then
		timeout "${limit-90}" "$wire" "$@"
		return
	fi
	OTHER=$OWN NODE=0 timeout "${limit-90}" "$wire" "$@" &
	OTHER=$OWN NODE=1 FI_WEFT_SHM_DIR=$own timeout "${limit-90}" "$wire" "$@"
	wait
}

for round in $(seq "$rounds"); do
	both "$@" weft "verbs;ofi_rxm" 2>&1 | sed "s/^/$round /"
	for bytes in 4096 16384 65536; do
		limit=300 both $((($1 + 9) / 10)) $((20000 * 4096 / bytes)) "$bytes" 2>&1 | sed "s/^/$round /"
	done
done
