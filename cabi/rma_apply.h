/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Atomic operations on one integer of 4 or 8 bytes, by the processor's own
 * atomic instructions: coherent with the application's and with package
 * provider/atomics, which has all other datatypes and all vectors.
 */
#ifndef WEFT_RMA_APPLY_H
#define WEFT_RMA_APPLY_H

#include <stdint.h>

/* The integers are in the low bytes. op and datatype are libfabric's, valid by
 * weft_atomic_size; target is aligned to size. */
struct weft_atomic_job {
	void *target;
	uint64_t operand;
	uint64_t compare;
	uint32_t size;
	uint8_t op;
	uint8_t datatype;
};

/* Performs the operation and returns what was there before. Sequentially consistent. */
uint64_t weft_atomic_apply(const struct weft_atomic_job *job);

#endif
