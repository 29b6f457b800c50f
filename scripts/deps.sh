#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Installs the packages that building and testing need and that are missing.
set -eu

packages="gcc make git pkg-config libfabric-dev libfabric-bin openmpi-bin libopenmpi-dev
netpipe-openmpi hpcc scalapack-mpi-test python3-mpi4py shellcheck linuxptp iproute2 tmux"

# hw/verbs: the headers; soft-RoCE in virtual machines, which share this host's
# programs and boot a kernel for x86-64.
packages="$packages libibverbs-dev"
if [ "$(uname -m)" = x86_64 ]; then
	packages="$packages qemu-system-x86 ibverbs-providers iproute2 xz-utils"
fi

if ! command -v go >/dev/null; then
	echo "deps: Go 1.26 or later is not on the path; see https://go.dev/dl/" >&2
	exit 1
fi

if ! command -v dpkg-query >/dev/null; then
	missing=
	for tool in gcc make git pkg-config fi_info fi_pingpong mpicc mpirun NPopenmpi hpcc shellcheck; do
		command -v "$tool" >/dev/null || missing="$missing $tool"
	done
	if [ -n "$missing" ]; then
		echo "deps: not Debian; install what provides:$missing" >&2
		exit 1
	fi
	exit 0
fi

installed() {
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing=
for p in $packages; do
	# pkgconf took pkg-config's place in later releases
	[ "$p" = pkg-config ] && command -v pkg-config >/dev/null && continue
	installed "$p" || missing="$missing $p"
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" != 0 ]; then
	as_root=sudo
	command -v sudo >/dev/null || {
		echo "deps: as root: apt-get install$missing" >&2
		exit 1
	}
fi

echo "deps: installing$missing"
# shellcheck disable=SC2086 # a list of words
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing >/dev/null || {
	$as_root apt-get update -q
	$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing >/dev/null
}
echo "deps: done"
