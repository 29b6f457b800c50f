/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The functions of the library that weft is loaded into. libweft-fi.so finds
 * them in the running process (host_dl.c); libweft.so is its own host.
 */
#ifndef WEFT_HOST_H
#define WEFT_HOST_H

#include <rdma/fabric.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

/* Set once by weft_host_bind, before any other thread can call weft. Every
 * member is set after it succeeded. */
struct weft_host {
	uint32_t (*version)(void);
	const char *(*strerror)(int errnum);
	struct fi_info *(*dupinfo)(const struct fi_info *info);
	void (*freeinfo)(struct fi_info *info);
	int (*log_enabled)(const struct fi_provider *prov, enum fi_log_level level,
			   enum fi_log_subsys subsys);
	void (*log)(const struct fi_provider *prov, enum fi_log_level level,
		    enum fi_log_subsys subsys, const char *func, int line, const char *fmt, ...);
	int (*param_define)(const struct fi_provider *provider, const char *param_name,
			    enum fi_param_type type, const char *help_string_fmt, ...);
	int (*param_get)(struct fi_provider *provider, const char *param_name, void *value);
};

extern struct weft_host weft_host;

/* For Go, which calls no pointers to functions. */
static inline uint32_t weft_host_version(void) { return weft_host.version(); }

/* weft_host_bind fills weft_host. caller is an address inside the library
 * that called weft. It returns 0 or a negative errno. */
int weft_host_bind(void *caller);

/* prov.c */

/* weft's own name. */
#define WEFT_NAME "weft"

/* What the host library takes in. Its name is that of FI_WEFT_NAME, set once by
 * weftGoInit. */
extern struct fi_provider weft_provider;

/* What variables and log lines are called by, whatever the host calls weft. */
extern struct fi_provider weft_self;

/* The name that fi_getinfo reports and fi_fabric takes: layers of providers,
 * separated by semicolons. Set once by weftGoInit. */
extern const char *weft_reported_name;

/* Binds the host, starts the Go side and registers the configuration, once.
 * 0 or a negative errno, the same at every call; in a child of fork, where nothing
 * works, that of weft_fork_refusal. */
int weft_init(void *caller);

/* weft_log writes one line without newline in text through the host. */
void weft_log(int level, int subsys, const char *func, int line, const char *text);
int weft_log_enabled(int level, int subsys);

#endif
