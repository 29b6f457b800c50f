/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Arithmetic of the datatypes that Go does not have: long double and its
 * complex numbers. Package provider/atomics calls it under a lock.
 */
#include <complex.h>
#include <string.h>

#include "longdouble.h"
#include "rma.h"

#define EITHER_TYPE(T)                                                                             \
	case FI_SUM:                                                                               \
		cur += x;                                                                          \
		break;                                                                             \
	case FI_PROD:                                                                              \
		cur *= x;                                                                          \
		break;                                                                             \
	case WEFT_DIFF:                                                                            \
		cur -= x;                                                                          \
		break;                                                                             \
	case FI_LOR:                                                                               \
		cur = (T)(cur != 0 || x != 0);                                                     \
		break;                                                                             \
	case FI_LAND:                                                                              \
		cur = (T)(cur != 0 && x != 0);                                                     \
		break;                                                                             \
	case FI_LXOR:                                                                              \
		cur = (T)((cur != 0) != (x != 0));                                                 \
		break;                                                                             \
	case FI_ATOMIC_WRITE:                                                                      \
		cur = x;                                                                           \
		break;                                                                             \
	case FI_CSWAP:                                                                             \
		cur = c == cur ? x : cur;                                                          \
		break;                                                                             \
	case FI_CSWAP_NE:                                                                          \
		cur = c != cur ? x : cur;                                                          \
		break

/* FI_DIFF of libfabric 2.x. */
#define WEFT_DIFF 19

static void real(int op, void *target, const void *operand, const void *compare)
{
	long double cur, x, c;

	memcpy(&cur, target, sizeof(cur));
	memcpy(&x, operand, sizeof(x));
	memcpy(&c, compare, sizeof(c));
	switch (op) {
	EITHER_TYPE(long double);
	case FI_MIN:
		cur = x < cur ? x : cur;
		break;
	case FI_MAX:
		cur = x > cur ? x : cur;
		break;
	case FI_CSWAP_LE:
		cur = c <= cur ? x : cur;
		break;
	case FI_CSWAP_LT:
		cur = c < cur ? x : cur;
		break;
	case FI_CSWAP_GE:
		cur = c >= cur ? x : cur;
		break;
	case FI_CSWAP_GT:
		cur = c > cur ? x : cur;
		break;
	default: /* FI_ATOMIC_READ */
		return;
	}
	memcpy(target, &cur, sizeof(cur));
}

static void complex_number(int op, void *target, const void *operand, const void *compare)
{
	long double complex cur, x, c;

	memcpy(&cur, target, sizeof(cur));
	memcpy(&x, operand, sizeof(x));
	memcpy(&c, compare, sizeof(c));
	switch (op) {
	EITHER_TYPE(long double complex);
	default: /* FI_ATOMIC_READ */
		return;
	}
	memcpy(target, &cur, sizeof(cur));
}

void weft_long_double(int datatype, int op, void *target, const void *operand, const void *compare)
{
	if (datatype == FI_LONG_DOUBLE)
		real(op, target, operand, compare);
	else
		complex_number(op, target, operand, compare);
}
