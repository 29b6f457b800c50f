/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdatomic.h>
#include <stdbool.h>

#include "rma_apply.h"
#include "rma_post.h"

/* What the target becomes; false: it stays. */
static bool result(const struct weft_atomic_job *j, uint64_t cur, uint64_t *next)
{
	uint64_t x = j->operand, c = j->compare;
	bool is_signed = j->datatype == FI_INT32 || j->datatype == FI_INT64;
	int shift = 64 - 8 * (int)j->size;
	/* orders as the datatype does, whatever its size */
	uint64_t flip = is_signed ? 1ull << 63 : 0;
	uint64_t oc = cur << shift ^ flip, ox = x << shift ^ flip, ocmp = c << shift ^ flip;

	*next = x;
	switch (j->op) {
	case FI_MIN:
		return ox < oc;
	case FI_MAX:
		return ox > oc;
	case FI_SUM:
		*next = cur + x;
		return true;
	case FI_PROD:
		*next = cur * x;
		return true;
	case FI_LOR:
		*next = cur || x;
		return true;
	case FI_LAND:
		*next = cur && x;
		return true;
	case FI_BOR:
		*next = cur | x;
		return true;
	case FI_BAND:
		*next = cur & x;
		return true;
	case FI_LXOR:
		*next = !cur != !x;
		return true;
	case FI_BXOR:
		*next = cur ^ x;
		return true;
	case FI_ATOMIC_READ:
		return false;
	case FI_ATOMIC_WRITE:
		return true;
	case FI_CSWAP:
		return c == cur;
	case FI_CSWAP_NE:
		return c != cur;
	case FI_CSWAP_LE:
		return ocmp <= oc;
	case FI_CSWAP_LT:
		return ocmp < oc;
	case FI_CSWAP_GE:
		return ocmp >= oc;
	case FI_CSWAP_GT:
		return ocmp > oc;
	case FI_MSWAP:
		*next = (x & c) | (cur & ~c);
		return true;
	}
	return false;
}

uint64_t weft_atomic_apply(const struct weft_atomic_job *j)
{
	uint64_t next;

	if (j->size == sizeof(uint64_t)) {
		_Atomic uint64_t *p = j->target;
		uint64_t cur;

		if (j->op == FI_SUM)
			return atomic_fetch_add(p, j->operand);
		cur = atomic_load(p);
		while (result(j, cur, &next) && !atomic_compare_exchange_weak(p, &cur, next))
			;
		return cur;
	}
	_Atomic uint32_t *p = j->target;
	uint32_t cur = atomic_load(p);

	while (result(j, cur, &next) && !atomic_compare_exchange_weak(p, &cur, (uint32_t)next))
		;
	return cur;
}
