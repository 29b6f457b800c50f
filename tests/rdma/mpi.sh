#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# mpi.sh FOLDER RANKS PROGRAM...: Open MPI jobs over both virtual machines of
# tests/rdma/vm, RANKS on each: ranks of one machine talk through shared memory,
# others over the RDMA device. A program is one of tests/mpi's, built in FOLDER,
# where rsh is too; onesided runs over Open MPI's osc rdma and btl ofi, and
# collectives under Python. Each prints "PROGRAM: all passed on N ranks".
set -u
folder=$1
each=$2
shift 2
if [ "$NODE" = 1 ]; then
	exec "$folder/rsh" serve "$OWN"
fi
export FI_PROVIDER_PATH=$PWD/build/lib OMPI_MCA_plm_rsh_agent=$folder/rsh
export FI_LOG_LEVEL=warn FI_WEFT_CONNECT_TIMEOUT=60s FI_WEFT_IFACE=$NETDEV

job() {
	timeout "${WEFT_TEST_LIMIT:-200}" mpirun --allow-run-as-root --oversubscribe --host "$OWN:$each,$OTHER:$each" -np $((2 * each)) \
		--mca plm_rsh_no_tree_spawn 1 --mca oob_tcp_if_include "$NETDEV" --mca btl_tcp_if_include "$NETDEV" \
		--mca mpi_yield_when_idle 1 --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include weft \
		-x FI_PROVIDER_PATH -x FI_LOG_LEVEL -x FI_WEFT_CONNECT_TIMEOUT -x FI_WEFT_IFACE -x FI_WEFT_UDP \
		"$@" </dev/null
}

status=0
for program; do
	started=$SECONDS
	case $program in
	onesided)
		job --mca osc rdma --mca btl self,ofi --mca btl_ofi_mode 2 --mca btl_ofi_disable_sep 1 --mca btl_ofi_provider_include weft "$folder/$program"
		;;
	collectives) job /usr/bin/python3 tests/mpi/collectives.py ;;
	*) job "$folder/$program" ;;
	esac || status=1
	echo "$program: $((SECONDS - started)) s"
done
"$folder/rsh" "$OTHER" -end
exit $status
