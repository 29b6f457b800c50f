/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What libweft-core.so has for libweft-fi.so, which loads it.
 */
//go:build !direct

#include "host.h"

extern const struct weft_core weft_core __attribute__((visibility("default")));

const struct weft_core weft_core = {
	.abi = WEFT_CORE_ABI,
	.getinfo = weft_getinfo_for,
	.fabric = weft_fabric_for,
	.detach = weft_detach,
};
