/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEFT_LONGDOUBLE_H
#define WEFT_LONGDOUBLE_H

/* Performs one element of an atomic operation on FI_LONG_DOUBLE or
 * FI_LONG_DOUBLE_COMPLEX. Pointers need no alignment. */
void weft_long_double(int datatype, int op, void *target, const void *operand, const void *compare);

#endif
