#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# mpi.sh RANKS PROVIDER PROGRAM [ARGUMENT]...
# Runs an MPI program with Open MPI's matching layer on one libfabric provider.
# An unusable provider is an error: no other path between ranks is allowed.
set -eu

ranks=$1
provider=$2
shift 2

set -- --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include "$provider" "$@"
[ "$(id -u)" = 0 ] && set -- --allow-run-as-root "$@"
[ "$ranks" -le "$(nproc)" ] || set -- --oversubscribe "$@"
exec mpirun -n "$ranks" --mca btl_base_warn_component_unused 0 "$@"
