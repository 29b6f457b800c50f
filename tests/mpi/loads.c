/* SPDX-License-Identifier: BSD-2-Clause */
/* A program in C that loads a library in Fortran (loaded.f90) for itself alone, as Python does with extensions: the
 * MPI's functions for Fortran are in no scope that others search. The argument is the library. */
#include <dlfcn.h>

#include "check.h"

int main(int argc, char **argv)
{
	void *lib = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	void (*run)(void);

	if (!lib) {
		fprintf(stderr, "loads LIBRARY: %s\n", argc > 1 ? dlerror() : "which?");
		return 1;
	}
	start(&argc, &argv);
	*(void **)&run = dlsym(lib, "loaded");
	CHECK(run);
	run();
	return conclude("loads");
}
