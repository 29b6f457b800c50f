#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# tree.sh FOLDER [DEVICES]: the files of sysfs that belong to the model's devices, for redirect.c.
set -eu
root=$1
n=${2:-2}

i=0
while [ "$i" -lt "$n" ]; do
	net=$root/net/hsn$i
	mkdir -p "$net" "$root/pci/0000:2$i:00.0" "$root/cxi/cxi$i/device/properties" "$root/cxi/cxi$i/device/telemetry" "$root/cxi_user/cxi$i"
	ln -sfn "../../pci/0000:2$i:00.0" "$net/device"
	echo 3 > "$net/addr_assign_type"
	echo "02:00:00:00:00:1$i" > "$net/address"
	echo up > "$net/operstate"
	echo 1 > "$net/carrier"
	echo 200000 > "$net/speed"
	echo -1 > "$root/cxi/cxi$i/device/properties/amo_remap_to_pcie_fadd"
	i=$((i + 1))
done
