/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The MPI's own functions for Fortran. They are behind this library in the order of
 * the search, or, where a library in Fortran was loaded for itself alone (RTLD_LOCAL,
 * as Python does with extensions), in no scope but that library's.
 */
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "fortran.h"

/* The files of the process. */
struct files {
	char **names;
	size_t n;
};

static int add(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct files *f = arg;
	char **names = realloc(f->names, (f->n + 1) * sizeof(*names));

	(void)size;
	if (!names)
		return 1;
	f->names = names;
	names[f->n] = strdup(info->dlpi_name);
	f->n += names[f->n] != NULL;
	return 0;
}

/* Whether a file is what an address is in. */
static bool holds(const char *file, const void *p)
{
	Dl_info at;

	return dladdr(p, &at) && at.dli_fname && !strcmp(at.dli_fname, file);
}

/* The function of a name in a file other than this library, which stays loaded then. */
static void *own_in(const char *file, const char *name)
{
	void *lib, *p;

	if (!*file || holds(file, (void *)add))
		return NULL;
	lib = dlopen(file, RTLD_NOLOAD | RTLD_LAZY);
	if (!lib)
		return NULL;
	p = dlsym(lib, name);
	if (p && holds(file, p))
		return p;
	dlclose(lib);
	return NULL;
}

static void *own_anywhere(const char *name)
{
	struct files f = { 0 };
	void *p = NULL;

	dl_iterate_phdr(add, &f);
	for (size_t i = 0; i < f.n; i++) {
		if (!p)
			p = own_in(f.names[i], name);
		free(f.names[i]);
	}
	free(f.names);
	return p;
}

void *own(_Atomic(void *) *found, const char *name)
{
	void *p = atomic_load_explicit(found, memory_order_relaxed);

	if (p)
		return p;
	p = dlsym(RTLD_NEXT, name);
	if (!p)
		p = own_anywhere(name);
	if (!p) {
		warn("%s: no library of this process has it", name);
		abort();
	}
	atomic_store_explicit(found, p, memory_order_relaxed);
	return p;
}
