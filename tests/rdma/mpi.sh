#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# mpi.sh FOLDER RANKS PROGRAM...: Open MPI jobs over both virtual machines of
# tests/rdma/vm, RANKS on each: ranks of one machine talk through shared memory,
# others over the RDMA device. A program is one of tests/mpi's, built in FOLDER,
# where rsh is too; onesided runs over Open MPI's osc rdma and btl ofi,
# collectives under Python, and scalable is p2p through scalable endpoints: beside UDP, so the
# device's counters say which of them was used. Each prints "PROGRAM: all passed on N ranks".
set -u -o pipefail
folder=$1
each=$2
shift 2
if [ "$NODE" = 1 ]; then
	exec "$folder/rsh" serve "$OWN"
fi
export FI_PROVIDER_PATH=$PWD/build/lib OMPI_MCA_plm_rsh_agent=$folder/rsh
export FI_LOG_LEVEL=warn FI_WEFT_CONNECT_TIMEOUT=60s FI_WEFT_IFACE=$NETDEV

"$folder/rsh" "$OTHER" true || exit 1 # now it is up: that is none of a job's time

job() {
	timeout "${WEFT_TEST_LIMIT:-200}" mpirun --allow-run-as-root --oversubscribe --host "$OWN:$each,$OTHER:$each" -np $((2 * each)) \
		--mca plm_rsh_no_tree_spawn 1 --mca oob_tcp_if_include "$NETDEV" --mca btl_tcp_if_include "$NETDEV" \
		--mca mpi_yield_when_idle 1 --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include weft \
		-x FI_PROVIDER_PATH -x FI_LOG_LEVEL -x FI_WEFT_CONNECT_TIMEOUT -x FI_WEFT_IFACE -x FI_WEFT_UDP \
		"$@" </dev/null
}

# Packets that the device has sent.
packets() {
	cat /sys/class/infiniband/*/ports/1/hw_counters/sent_pkts
}

scalable() {
	local before

	before=$(packets)
	FI_WEFT_UDP=auto job --mca mtl_ofi_enable_sep 1 --mca mtl_ofi_num_ctxts 4 "$folder/p2p" | sed 's/^p2p: /scalable: /' || return
	before=$(($(packets) - before))
	echo "the device has sent $before packets"
	((before >= 1000))
}

status=0
for program; do
	started=$SECONDS
	case $program in
	onesided)
		job --mca osc rdma --mca btl self,ofi --mca btl_ofi_mode 2 --mca btl_ofi_disable_sep 1 --mca btl_ofi_provider_include weft "$folder/$program"
		;;
	scalable) scalable ;;
	collectives) job /usr/bin/python3 tests/mpi/collectives.py ;;
	*) job "$folder/$program" ;;
	esac || status=1
	echo "$program: $((SECONDS - started)) s"
done
"$folder/rsh" "$OTHER" -end
exit $status
