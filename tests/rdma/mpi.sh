#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# mpi.sh FOLDER PROGRAM...: Open MPI jobs of 4 ranks over both virtual machines
# of tests/rdma/vm, two on each: ranks of one machine talk through shared memory,
# others over the RDMA device. FOLDER has the programs and rsh.
set -u
folder=$1
shift
if [ "$NODE" = 1 ]; then
	exec "$folder/rsh" serve "$OWN"
fi
status=0
export FI_PROVIDER_PATH=$PWD/build/lib OMPI_MCA_plm_rsh_agent=$folder/rsh
for program; do
	timeout 200 mpirun --allow-run-as-root --oversubscribe --host "$OWN:2,$OTHER:2" -np 4 \
		--mca plm_rsh_no_tree_spawn 1 --mca oob_tcp_if_include "$NETDEV" --mca btl_tcp_if_include "$NETDEV" \
		--mca mpi_yield_when_idle 1 --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include weft \
		-x FI_PROVIDER_PATH -x FI_LOG_LEVEL=warn -x FI_WEFT_CONNECT_TIMEOUT=60s -x FI_WEFT_UDP=no -x FI_WEFT_VERBS=yes -x FI_WEFT_IFACE="$NETDEV" \
		"$folder/$program" </dev/null || status=1
done
"$folder/rsh" "$OTHER" -end
exit $status
