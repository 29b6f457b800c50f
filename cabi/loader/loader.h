/* SPDX-License-Identifier: BSD-2-Clause
 *
 * libweft-fi.so is what every libfabric loads on whose host weft is installed,
 * whether its program wants weft or not. So it does next to nothing: it registers
 * the provider and its variables, refuses hints that weft never meets, and loads
 * libweft-core.so, and with it the Go runtime with its threads, signal handlers and
 * memory, at the first fi_getinfo or fi_fabric that remains.
 *
 * wanted.c  which hints are refused without the core
 * host.c    the functions of a libfabric
 * trial.c   whether the Go runtime could start
 * start.c   loading the core
 */
#ifndef WEFT_LOADER_H
#define WEFT_LOADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "core.h"
#include "table_gen.h"

/* One line of the log of a host, which puts the function's name in front. */
#define WEFT_LOG(host, level, ...) \
	do { \
		if ((host)->log_enabled((host)->logger, level, FI_LOG_CORE)) \
			(host)->log((host)->logger, level, FI_LOG_CORE, __func__, __LINE__, __VA_ARGS__); \
	} while (0)

/* The uppermost layer of a name, by which libfabric finds it. */
static inline const char *weft_top_of(const char *name)
{
	const char *last = strrchr(name, ';');

	return last ? last + 1 : name;
}

/* weft_host_find fills the functions of host from the library that addr lies in, or
 * else from the libfabric that the process can see. It returns what weft_host_hold
 * takes and what distinguishes libraries, NULL if there is none. */
const void *weft_host_find(struct weft_host *host, const void *addr);

/* weft_host_hold keeps a library that weft_host_find returned, and the loader, from
 * being unloaded until the process ends. 0 or a negative errno. */
int weft_host_hold(const void *library);

/* weft_unwanted reports whether weft meets no hints like these, and logs why. flags
 * and version are those of fi_getinfo. */
bool weft_unwanted(const struct weft_host *host, uint32_t version, uint64_t flags, const struct fi_info *hints);

/* weft_named reports whether hints name weft, and not only admit it. */
bool weft_named(const struct weft_host *host, const struct fi_info *hints);

/* weft_trial finds out by doing the like whether this process may have what the Go runtime
 * takes when it starts and ends the process without: address space, memory, threads,
 * descriptors, calls of the kernel. It leaves everything as it was. It returns 0, or a
 * negative errno with what was refused in *what. */
int weft_trial(const char **what);

/* weft_core_load returns the core in *core, which it loads once for the process. It
 * returns 0, or a negative errno with a line of the log at level. The caller holds the
 * loader's lock. */
int weft_core_load(const struct weft_host *host, enum fi_log_level level, const struct weft_core **core);

#endif
