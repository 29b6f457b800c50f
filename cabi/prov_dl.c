/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The entry point of libweft-fi.so, called by the libfabric that loads it.
 */
//go:build !direct

#include "host.h"

FI_EXT_INI
{
	return weft_init(__builtin_return_address(0)) ? NULL : &weft_provider;
}
