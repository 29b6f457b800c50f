/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The libraries through which applications call weft. libweft-core.so has them from
 * libweft-fi.so, one for each libfabric of the process; libweft.so is its own.
 */
#ifndef WEFT_HOST_H
#define WEFT_HOST_H

#include "loader/core.h"

/* For Go, which calls no pointers to functions. */
static inline uint32_t weft_version_of(const struct weft_host *host)
{
	return host->version();
}

/* prov.c */

/* The provider's functions, for an application that calls through host. */
int weft_getinfo_for(struct weft_host *host, uint32_t version, const char *node, const char *service, uint64_t flags,
		     const struct fi_info *hints, struct fi_info **info);
int weft_fabric_for(struct weft_host *host, struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);

/* weft_attach makes host the one whose log and parameters are used, and starts the Go
 * side once. 0 or a negative errno, the same at every call. */
int weft_attach(struct weft_host *host);

/* weft_detach: a host ends. With the last of them weft does. */
void weft_detach(struct weft_host *host);

/* weft_log writes one line without newline in text through the host that called last.
 * Without any it writes nothing. */
void weft_log(int level, int subsys, const char *func, int line, const char *text);
int weft_log_enabled(int level, int subsys);

/* weft_strerror is the text of a positive error number of libfabric's. */
const char *weft_strerror(int errnum);

/* weft_param_get returns the value of a variable, NULL if it has none. */
char *weft_param_get(const char *name);

#endif
