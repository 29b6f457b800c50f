#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# wire.sh WIRE ROUNDS LATENCY RATE BANDWIDTH: runs wire over weft and over
# libfabric's verbs;ofi_rxm in turn between two virtual machines of
# tests/rdma/vm, nothing but the RDMA device between them.
set -u
wire=$1 rounds=$2
shift 2
export FI_PROVIDER_PATH=$PWD/build/lib FI_WEFT_UDP=no
# rxm makes completion queues for as many peers, by default more than the device has room for.
export FI_UNIVERSE_SIZE=2
for round in $(seq "$rounds"); do
	for provider in weft "verbs;ofi_rxm"; do
		timeout 90 "$wire" "$provider" "$@" 2>&1 | sed "s/^/$round $provider /"
	done
done
