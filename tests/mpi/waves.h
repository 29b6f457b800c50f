/* SPDX-License-Identifier: BSD-2-Clause */
/* The input of the programs that transform: a sum of plane waves, of which each round has others. */
#ifndef WEFT_TESTS_MPI_WAVES_H
#define WEFT_TESTS_MPI_WAVES_H

#include <stddef.h>

enum { WAVES = 3 };

/* The number of a wave in a dimension of n points. */
static inline ptrdiff_t wave_number(ptrdiff_t n, int round, int wave, int dimension)
{
	return (7 * round + 5 * wave + 3 * dimension + wave * dimension + 1) % n;
}

static inline double height(int round, int wave)
{
	return 1 + wave + 0.25 * (round % 4);
}

#endif
