// SPDX-License-Identifier: BSD-2-Clause
// Preloaded into the ranks of an MPI job, whatever language they are in: before a rank
// finalizes MPI, "weft export" writes the counters of FI_WEFT_SHM_DIR to a file of the rank's,
// WEFT_TEST_COUNTERS.RANK.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static int finalize(const char *name)
{
	static int counted;
	int (*next)(void) = (int (*)(void))dlsym(RTLD_NEXT, name);
	const char *weft = getenv("WEFT_TEST_COMMAND"), *to = getenv("WEFT_TEST_COUNTERS");
	const char *rank = getenv("OMPI_COMM_WORLD_RANK"), *dir = getenv("FI_WEFT_SHM_DIR");
	char line[4096];

	if (!counted && weft && to && rank && dir) {
		counted = 1;
		snprintf(line, sizeof(line), "'%s' export --once --dir '%s' >'%s.%s'", weft, dir, to, rank);
		unsetenv("LD_PRELOAD");
		if (system(line) != 0)
			fprintf(stderr, "count: failed: %s\n", line);
	}
	return next();
}

int MPI_Finalize(void)
{
	return finalize("MPI_Finalize");
}

// Fortran's mpi_finalize calls it.
int PMPI_Finalize(void)
{
	return finalize("PMPI_Finalize");
}
