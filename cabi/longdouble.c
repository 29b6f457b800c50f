/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Arithmetic of the datatypes that Go does not have: long double and its
 * complex numbers. Package provider/atomics calls it under a lock.
 */
#include <complex.h>
#include <string.h>

#include "goapi.h"

/* FI_DIFF of libfabric 2.x. */
#define WEFT_DIFF 19

/* clang-format off */

/* What becomes of a value by an operation that both datatypes have. */
#define EITHER_TYPE                                    \
	case FI_SUM: return cur + x;                   \
	case FI_PROD: return cur * x;                  \
	case WEFT_DIFF: return cur - x;                \
	case FI_LOR: return cur != 0 || x != 0;        \
	case FI_LAND: return cur != 0 && x != 0;       \
	case FI_LXOR: return (cur != 0) != (x != 0);   \
	case FI_ATOMIC_WRITE: return x;                \
	case FI_CSWAP: return c == cur ? x : cur;      \
	case FI_CSWAP_NE: return c != cur ? x : cur;   \
	default: return cur /* FI_ATOMIC_READ */

static long double next_real(int op, long double cur, long double x, long double c)
{
	switch (op) {
	case FI_MIN: return x < cur ? x : cur;
	case FI_MAX: return x > cur ? x : cur;
	case FI_CSWAP_LE: return c <= cur ? x : cur;
	case FI_CSWAP_LT: return c < cur ? x : cur;
	case FI_CSWAP_GE: return c >= cur ? x : cur;
	case FI_CSWAP_GT: return c > cur ? x : cur;
	EITHER_TYPE;
	}
}

static long double complex next_complex(int op, long double complex cur, long double complex x, long double complex c)
{
	switch (op) {
	EITHER_TYPE;
	}
}

/* clang-format on */

/* Reading leaves the value untouched. */
#define APPLY(type, next) \
	do { \
		type cur, x, c; \
		memcpy(&cur, target, sizeof(cur)); \
		memcpy(&x, operand, sizeof(x)); \
		memcpy(&c, compare, sizeof(c)); \
		cur = next(op, cur, x, c); \
		memcpy(target, &cur, sizeof(cur)); \
	} while (0)

void weft_long_double(int datatype, int op, void *target, const void *operand, const void *compare)
{
	if (op == FI_ATOMIC_READ)
		return;
	if (datatype == FI_LONG_DOUBLE)
		APPLY(long double, next_real);
	else
		APPLY(long double complex, next_complex);
}
