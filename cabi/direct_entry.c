// SPDX-License-Identifier: BSD-2-Clause

//go:build direct

/* libweft.so as its own host, and the entry points that need no object. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* vasprintf */
#endif
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include "direct.h"

/* Its version is set when the Go side starts. */
static struct fi_provider provider = { .fi_version = WEFT_API, .name = WEFT_NAME };

struct weft_host weft_direct_host = {
	.provider = &provider,
	.logger = &provider,
	.reported = WEFT_NAME,
	.version = fi_version,
	.strerror = fi_strerror,
	.dupinfo = weft_direct_dupinfo,
	.freeinfo = weft_direct_freeinfo,
	.log_enabled = fi_log_enabled,
	.log = fi_log,
	.param_define = fi_param_define,
	.param_get = fi_param_get,
};

WEFT_EXPORT uint32_t fi_version(void)
{
	return WEFT_API;
}

/* The library objects that other libraries name here (the registration cache,
 * the logging sink) do not exist. */
WEFT_EXPORT int fi_open(uint32_t version, const char *name, void *attr, size_t attr_len, uint64_t flags,
			struct fid **fid, void *context)
{
	(void)version, (void)attr, (void)attr_len, (void)flags, (void)context;
	return name && fid ? -FI_ENOSYS : -FI_EINVAL;
}

static const char *const errors[] = {
	[FI_EOTHER - FI_ERRNO_OFFSET] = "Unspecified error",
	[FI_ETOOSMALL - FI_ERRNO_OFFSET] = "Provided buffer is too small",
	[FI_EOPBADSTATE - FI_ERRNO_OFFSET] = "Operation not permitted in current state",
	[FI_EAVAIL - FI_ERRNO_OFFSET] = "Error available",
	[FI_EBADFLAGS - FI_ERRNO_OFFSET] = "Flags not supported",
	[FI_ENOEQ - FI_ERRNO_OFFSET] = "Missing or unavailable event queue",
	[FI_EDOMAIN - FI_ERRNO_OFFSET] = "Invalid resource domain",
	[FI_ENOCQ - FI_ERRNO_OFFSET] = "Missing or unavailable completion queue",
	[FI_ECRC - FI_ERRNO_OFFSET] = "CRC error",
	[FI_ETRUNC - FI_ERRNO_OFFSET] = "Truncation error",
	[FI_ENOKEY - FI_ERRNO_OFFSET] = "Required key not available",
	[FI_ENOAV - FI_ERRNO_OFFSET] = "Missing or unavailable address vector",
	[FI_EOVERRUN - FI_ERRNO_OFFSET] = "Queue has been overrun",
	[FI_ENORX - FI_ERRNO_OFFSET] = "Receiver not ready, no receive buffers available",
	/* Those that came after 1.17: FI_ENOMR and FI_EFIREWALLADDR. */
	[FI_ENORX + 1 - FI_ERRNO_OFFSET] = "Memory registration limit exceeded",
	[FI_ENORX + 2 - FI_ERRNO_OFFSET] = "Address is behind a firewall",
};

WEFT_EXPORT const char *fi_strerror(int errnum)
{
	unsigned int number = errnum < 0 ? -(unsigned int)errnum : (unsigned int)errnum;

	if (number < FI_ERRNO_OFFSET)
		return strerror((int)number);
	number -= FI_ERRNO_OFFSET;
	return errors[number < count_of(errors) ? number : 0];
}

/* ---- fi_tostr ---- */

/* A forked process, which may not call Go, gets empty texts. */
WEFT_EXPORT char *fi_tostr_r(char *buf, size_t len, const void *data, enum fi_type datatype)
{
	if (!buf || !len)
		return NULL;
	buf[0] = 0;
	if (!weft_forked())
		weftGoToStr(buf, len, (void *)data, (int)datatype);
	return buf;
}

WEFT_EXPORT char *fi_tostr(const void *data, enum fi_type datatype)
{
	static char buf[8192]; /* not for several threads, as fi_tostr(3) says */

	return fi_tostr_r(buf, sizeof(buf), data, datatype);
}

/* ---- variables of the environment, declared by a provider or, with none, by the library ---- */

WEFT_EXPORT int fi_param_define(const struct fi_provider *provider, const char *param_name, enum fi_param_type type,
				const char *help_string_fmt, ...)
{
	char *help = NULL;
	va_list args;
	int rc;

	if (weft_forked())
		return weft_fork_refusal();
	if (!param_name || !*param_name || !help_string_fmt || !*help_string_fmt)
		return -FI_EINVAL;
	va_start(args, help_string_fmt);
	rc = vasprintf(&help, help_string_fmt, args);
	va_end(args);
	if (rc < 0)
		return -FI_ENOMEM;
	rc = weftGoParamDefine(provider ? (char *)provider->name : NULL, (char *)param_name, type, help);
	free(help);
	return rc;
}

WEFT_EXPORT int fi_param_get(struct fi_provider *provider, const char *param_name, void *value)
{
	if (weft_forked())
		return weft_fork_refusal();
	if (!param_name || !*param_name || !value)
		return -FI_EINVAL;
	return weftGoParamGet(provider ? (char *)provider->name : NULL, (char *)param_name, value);
}

WEFT_EXPORT int fi_getparams(struct fi_param **params, int *number)
{
	if (weft_forked())
		return weft_fork_refusal();
	return params && number ? weftGoParams(params, number) : -FI_EINVAL;
}

WEFT_EXPORT void fi_freeparams(struct fi_param *params)
{
	for (struct fi_param *p = params; p && p->name; p++) {
		free((char *)p->name);
		free((char *)p->help_string);
		free((char *)p->value);
	}
	free(params);
}
