/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What libweft-fi.so, the loader, and libweft-core.so, the provider with the Go
 * runtime, have of each other. An upgrade may replace the files while a process
 * has loaded the first only, so the core's table begins with a number that changes
 * whenever anything here does.
 */
#ifndef WEFT_LOADER_CORE_H
#define WEFT_LOADER_CORE_H

#include <rdma/fabric.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#define WEFT_CORE_ABI 1u

/* weft's own name. */
#define WEFT_NAME "weft"

/* The core's file name, in the loader's folder, and the symbol of its table. */
#define WEFT_CORE_FILE "libweft-core.so"
#define WEFT_CORE_SYMBOL "weft_core"

/* A libfabric of the process: its functions, and as which provider it knows weft.
 * There may be several, whose structures differ. Every member is set before the
 * core sees it, does not change while it is attached, and is valid until the
 * process ends: the library is not unloaded then. */
struct weft_host {
	struct fi_provider *provider;	  /* what the library has taken in; the variables are its */
	const struct fi_provider *logger; /* provider, or where that has another name one of weft's */
	const char *reported;		  /* what fi_getinfo says: the name of FI_WEFT_NAME, layers separated by ";" */
	uint32_t (*version)(void);
	const char *(*strerror)(int errnum);
	struct fi_info *(*dupinfo)(const struct fi_info *info);
	void (*freeinfo)(struct fi_info *info);
	int (*log_enabled)(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys);
	void (*log)(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
		    const char *func, int line, const char *fmt, ...);
	int (*param_define)(const struct fi_provider *provider, const char *param_name, enum fi_param_type type,
			    const char *help_string_fmt, ...);
	int (*param_get)(struct fi_provider *provider, const char *param_name, void *value);
};

/* What the core exports. Its functions return 0 or a negative errno. */
struct weft_core {
	uint32_t abi; /* WEFT_CORE_ABI */
	int (*getinfo)(struct weft_host *host, uint32_t version, const char *node, const char *service, uint64_t flags,
		       const struct fi_info *hints, struct fi_info **info);
	int (*fabric)(struct weft_host *host, struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
	/* The host ends, and writes no log from now on. */
	void (*detach)(struct weft_host *host);
};

#endif
