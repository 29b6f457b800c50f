/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the functions for Fortran have in common: their names, and the MPI's own
 * functions of these names.
 */
#ifndef WEFT_MPI_FORTRAN_H
#define WEFT_MPI_FORTRAN_H

#include <dlfcn.h>

#include "weftmpi.h"

typedef MPI_Fint F;

/* The names of a function that module mpi_f08 calls o_f_f. */
#define ALIAS(name, target, args) void name args __attribute__((alias(#target)))
#define NAMES(o, m, M, f, UP, args) \
	ALIAS(m##_##f, o##_##f##_f, args); \
	ALIAS(m##_##f##_, o##_##f##_f, args); \
	ALIAS(m##_##f##__, o##_##f##_f, args); \
	ALIAS(M##_##UP, o##_##f##_f, args);

/* The function of a name in the MPI, found once: found is written by any thread with the same, relaxed. */
void *own(_Atomic(void *) *found, const char *name);

#define OWN(name, args) \
	static _Atomic(void *) found; \
	void(*next) args = (void(*) args)own(&found, name)

#endif
