/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Finding the host library's functions at run time.
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
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <link.h>

#include "loader.h"

/* Takes the functions from one library. false: it does not have all of them. */
static bool import_all(struct weft_host *host, void *library)
{
	const struct {
		const char *name;
		void *slot;
	} imports[] = {
		{ "fi_version", &host->version },	    { "fi_strerror", &host->strerror },
		{ "fi_dupinfo", &host->dupinfo },	    { "fi_freeinfo", &host->freeinfo },
		{ "fi_log_enabled", &host->log_enabled },   { "fi_log", &host->log },
		{ "fi_param_define", &host->param_define }, { "fi_param_get", &host->param_get },
	};
	for (size_t i = 0; i < count_of(imports); i++) {
		*(void **)imports[i].slot = dlsym(library, imports[i].name);
		if (!*(void **)imports[i].slot)
			return false;
	}
	return true;
}

/* A reference on the library that an address lies in, NULL if there is none. */
static void *library_of(const void *addr)
{
	struct link_map *map = NULL;
	Dl_info where;

	if (!dladdr1(addr, &where, (void **)&map, RTLD_DL_LINKMAP) || !map)
		return NULL;
	/* The program itself has no name. */
	return dlopen(map->l_name[0] ? map->l_name : NULL, RTLD_NOLOAD | RTLD_LAZY);
}

/* The same for a reference that is given back: the library that called stays until it calls the provider's cleanup. */
static bool take_from(struct weft_host *host, void *library)
{
	bool all = library && import_all(host, library);

	if (library)
		dlclose(library);
	return all;
}

/* The library that called is the host, whatever its file is called; after it
 * the usual name, then everything in the program's scope. */
const void *weft_host_find(struct weft_host *host, const void *addr)
{
	if (!take_from(host, library_of(addr))) {
		void *library = dlopen("libfabric.so.1", RTLD_NOLOAD | RTLD_LAZY);

		if (!take_from(host, library ? library : dlopen(NULL, RTLD_LAZY)))
			return NULL;
	}
	return (const void *)host->version;
}

int weft_host_hold(const void *library)
{
	void *host = library_of(library), *self = library_of((const void *)weft_host_hold);
	struct link_map *map = self;
	int rc = 0;

	/* The host's reference is not given back. It may be loaded and initialised again, which
	 * RTLD_NODELETE would not stand in the way of, but nothing of it may move. */
	if (!host || !self || !dlopen(map->l_name, RTLD_NOLOAD | RTLD_NODELETE | RTLD_LAZY))
		rc = -FI_ENOENT;
	if (self)
		dlclose(self);
	return rc;
}
