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

# Tests that run programs of others are skipped where these are not to be had.
optional="mpich libmpich-dev gfortran lammps nwchem-openmpi gromacs libcoarrays-openmpi-dev mumps-test python3-h5py-mpi libpnetcdf-dev
libfftw3-mpi-dev libfftw3-dev openjdk-17-jdk-headless tshark rpm gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user ucx-utils"

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

# apt_missing: those of the optional packages that this release has and the machine has not.
apt_missing() {
	for p in $optional; do
		installed "$p" && continue
		if apt-cache policy "$p" | grep -q 'Candidate: [0-9]'; then
			echo "$p"
		else
			echo "deps: no package $p here: tests that need it are skipped" >&2
		fi
	done
}

wanted=
for p in $optional; do
	installed "$p" || wanted="$wanted $p"
done
[ -n "$missing$wanted" ] || exit 0

as_root=
if [ "$(id -u)" != 0 ]; then
	as_root=sudo
	command -v sudo >/dev/null || {
		echo "deps: as root: apt-get install$missing$wanted" >&2
		[ -z "$missing" ]
		exit
	}
fi

install() {
	$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" >/dev/null
}

if [ -n "$missing" ]; then
	echo "deps: installing$missing"
	# shellcheck disable=SC2086 # a list of words
	install $missing || {
		$as_root apt-get update -q
		install $missing
	}
fi
if [ -n "$wanted" ]; then
	[ -n "$(apt-cache search --names-only '^gcc$')" ] || $as_root apt-get update -q || :
	wanted=$(apt_missing)
	# shellcheck disable=SC2086 # a list of words
	if [ -n "$wanted" ]; then
		echo "deps: installing" $wanted
		install $wanted || for p in $wanted; do
			install "$p" || echo "deps: $p is not installed: tests that need it are skipped"
		done
	fi
fi
echo "deps: done"
