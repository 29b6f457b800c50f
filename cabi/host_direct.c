/* SPDX-License-Identifier: BSD-2-Clause
 *
 * libweft.so is its own host.
 */
//go:build direct

#include "direct.h"
#include "host.h"

uint32_t fi_version(void);
const char *fi_strerror(int errnum);

struct weft_host weft_host = {
	.version = fi_version,
	.strerror = fi_strerror,
	.dupinfo = weft_direct_dupinfo,
	.freeinfo = weft_direct_freeinfo,
	.log_enabled = fi_log_enabled,
	.log = fi_log,
	.param_define = fi_param_define,
	.param_get = fi_param_get,
};

int weft_host_bind(void *caller)
{
	(void)caller;
	return 0;
}
