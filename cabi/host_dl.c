/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Finding the host library at run time.
 *
 * libfabric's symbols are versioned, one version per layout of struct fi_info.
 * A reference made by linking against libfabric 1.17 would name the version of
 * 1.17's layout (fi_dupinfo@FABRIC_1.3), and in a 2.x host bind to the
 * compatibility function that makes infos of the old layout, while the host
 * goes on to treat what a provider returns as its own, newer and larger one.
 * dlsym without a version gives the default version, which is the host's own
 * layout. It also keeps weft from loading a second libfabric where the host is
 * linked statically or lies outside the search path.
 */
//go:build !direct

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>

#include "host.h"

struct weft_host weft_host;

struct import {
	const char *name;
	void *slot;
};

/* Takes all functions from one library or none. */
static int import_all(void *library)
{
	const struct import imports[] = {
		{ "fi_version", &weft_host.version },
		{ "fi_strerror", &weft_host.strerror },
		{ "fi_dupinfo", &weft_host.dupinfo },
		{ "fi_freeinfo", &weft_host.freeinfo },
		{ "fi_log_enabled", &weft_host.log_enabled },
		{ "fi_log", &weft_host.log },
		{ "fi_param_define", &weft_host.param_define },
		{ "fi_param_get", &weft_host.param_get },
	};
	void *found[count_of(imports)];
	size_t i;

	for (i = 0; i < count_of(imports); i++) {
		found[i] = dlsym(library, imports[i].name);
		if (!found[i])
			return -FI_ENOENT;
	}
	for (i = 0; i < count_of(imports); i++)
		*(void **)imports[i].slot = found[i];
	return 0;
}

static int import_from(const char *file)
{
	void *library = dlopen(file, RTLD_NOLOAD | RTLD_LAZY);
	int rc;

	if (!library)
		return -FI_ENOENT;
	rc = import_all(library);
	dlclose(library); /* the reference was counted, the library stays */
	return rc;
}

/* The library that called is the host, whatever its file is called; after it
 * the usual name, then everything in the program's scope. */
int weft_host_bind(void *caller)
{
	Dl_info where;

	if (caller && dladdr(caller, &where) && where.dli_fname && !import_from(where.dli_fname))
		return 0;
	if (!import_from("libfabric.so.1"))
		return 0;
	return import_all(RTLD_DEFAULT);
}
