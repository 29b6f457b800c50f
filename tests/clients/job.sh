# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Shared by the scripts that run Open MPI over weft (or WEFT_TEST_PROV) on one host.
# Source it after lib.sh.

LIMIT=${WEFT_TEST_LIMIT:-180} # seconds for one program
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
# Waiting ranks yield, and each rank says to the provider that it has taken.
MTL=(--mca mpi_yield_when_idle 1 --mca mtl_ofi_verbose 1
	--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include)
# MPI's one-sided operations by the provider's: Open MPI's osc rdma over its btl ofi.
# shellcheck disable=SC2034,SC2054 # used by those that source it; commas are Open MPI's
ONESIDED=(--mca osc rdma --mca btl self,ofi --mca btl_ofi_mode 2
	--mca btl_ofi_provider_include "$WEFT_TEST_PROV")

# job RANKS COMMAND...: one MPI job over the provider, its input from $input if that
# is set, its output in $work/log. Fails if the job does, or if not every rank has
# taken the provider.
job() {
	local ranks=$1 status took
	shift
	# shellcheck disable=SC2154 # for the caller to set
	timeout -k 10 "$LIMIT" mpirun --allow-run-as-root --oversubscribe \
		"${MTL[@]}" "$WEFT_TEST_PROV" -np "$ranks" "$@" \
		>"$work/log" 2>"$work/errors" <"${input:-/dev/null}"
	status=$?
	took=$(grep -cF "mtl:ofi:prov: $WEFT_TEST_PROV" "$work/errors")
	grep -vF 'mtl:ofi:' "$work/errors" >>"$work/log"
	((status == 0 && took == ranks)) && return
	echo "exit status $status, $took of $ranks ranks took $WEFT_TEST_PROV" >>"$work/log"
	return 1
}
