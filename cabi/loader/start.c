/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Loading the core.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader.h"

/* The core's path in the folder of a file. Whether there is one. */
static bool beside(const char *file, char path[PATH_MAX])
{
	const char *slash = strrchr(file, '/');
	int folder = slash ? (int)(slash - file + 1) : 0;
	int n = snprintf(path, PATH_MAX, "%.*s%s", folder, file, WEFT_CORE_FILE);

	return n > 0 && n < PATH_MAX && !access(path, R_OK);
}

/* Finds the core beside the loader, or beside the file that the loader's path is a
 * symbolic link to. On failure path is where it was to be first. */
static bool find(char path[PATH_MAX])
{
	char real[PATH_MAX], other[PATH_MAX];
	Dl_info self;

	if (!dladdr((void *)find, &self) || !self.dli_fname) {
		snprintf(path, PATH_MAX, "%s", WEFT_CORE_FILE);
		return false;
	}
	if (beside(self.dli_fname, path))
		return true;
	if (!realpath(self.dli_fname, real) || !beside(real, other))
		return false;
	memcpy(path, other, sizeof(other));
	return true;
}

int weft_core_load(const struct weft_host *host, enum fi_log_level level, const struct weft_core **core)
{
	static const struct weft_core *loaded; /* under the caller's lock */
	char path[PATH_MAX];
	const char *what;
	void *library;
	int rc;

	*core = loaded;
	if (loaded)
		return 0;
	if (!find(path)) {
		WEFT_LOG(host, level, "there is no %s\n", path);
		return -FI_ENOENT;
	}
	rc = weft_trial(&what);
	if (rc) {
		WEFT_LOG(host, level, "the Go runtime cannot start in this process: refused are %s: %s\n", what,
			 host->strerror(-rc));
		return rc;
	}
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		WEFT_LOG(host, level, "%s\n", dlerror());
		return -FI_EOTHER;
	}
	*core = dlsym(library, WEFT_CORE_SYMBOL);
	if (!*core || (*core)->abi != WEFT_CORE_ABI) {
		WEFT_LOG(host, level, "%s is of another version: restart the program\n", path);
		return -FI_ENOSYS; /* it is never unloaded */
	}
	loaded = *core;
	return 0;
}
