/* SPDX-License-Identifier: BSD-2-Clause
 *
 * libweft.so is its own host.
 */
//go:build direct

#include <pthread.h>

#include "direct.h"
#include "host.h"
#include "loader/name.h"

uint32_t fi_version(void);
const char *fi_strerror(int errnum);

/* Its version is set when the Go side starts. */
struct fi_provider weft_provider = {
	.fi_version = WEFT_API,
	.name = WEFT_NAME,
	.getinfo = weft_getinfo,
	.fabric = weft_fabric,
};

const char *weft_reported_name = WEFT_NAME;

static struct weft_host host = {
	.provider = &weft_provider,
	.logger = &weft_provider,
	.version = fi_version,
	.strerror = fi_strerror,
	.dupinfo = weft_direct_dupinfo,
	.freeinfo = weft_direct_freeinfo,
	.log_enabled = fi_log_enabled,
	.log = fi_log,
	.param_define = fi_param_define,
	.param_get = fi_param_get,
};

static int defined; /* 0 or a negative errno, written by define */

static void define(void)
{
	char *name = NULL;

	for (size_t i = 0; !defined && i < count_of(weft_params); i++)
		defined = fi_param_define(&weft_provider, weft_params[i].name, FI_PARAM_STRING, "%s",
					  weft_params[i].help);
	if (!defined)
		weft_reported_name = weft_name_of(fi_param_get(&weft_provider, "name", &name) ? NULL : name);
	host.reported = weft_reported_name;
}

/* The variables are there before the Go side asks for them. */
int weft_ready(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, define);
	return defined;
}

int weft_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		 const struct fi_info *hints, struct fi_info **info)
{
	int rc = weft_ready();

	return rc ? rc : weft_getinfo_for(&host, version, node, service, flags, hints, info);
}

int weft_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	int rc = weft_ready();

	return rc ? rc : weft_fabric_for(&host, attr, fabric, context);
}
