/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Atomic operations, of every type that the NIC knows.
 */
#include <complex.h>
#include "nic.h"

unsigned int atomic_size(unsigned int type)
{
	static const uint8_t sizes[] = { 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16, 16 };

	return type < sizeof sizes ? sizes[type] : 0;
}

/* COMMON are the operations that every type has which can be compared. */
#define COMMON \
	case AMO_MIN: \
		r = b < a ? b : a; \
		break; \
	case AMO_MAX: \
		r = b > a ? b : a; \
		break; \
	case AMO_SUM: \
		r = a + b; \
		break; \
	case AMO_SWAP: \
		r = b; \
		break; \
	case AMO_CSWAP: \
		if (condition(cswap, c == a, c < a, c <= a)) \
			r = b; \
		break;

#define INTEGER(name, type) \
	static bool name(unsigned int op, unsigned int cswap, void *at, const void *op1, const void *op2) \
	{ \
		type a, b, c, r; \
		memcpy(&a, at, sizeof a); \
		memcpy(&b, op1, sizeof b); \
		memcpy(&c, op2, sizeof c); \
		r = a; \
		switch (op) { \
			COMMON \
		case AMO_LOR: \
			r = a || b; \
			break; \
		case AMO_LAND: \
			r = a && b; \
			break; \
		case AMO_LXOR: \
			r = !a != !b; \
			break; \
		case AMO_BOR: \
			r = a | b; \
			break; \
		case AMO_BAND: \
			r = a & b; \
			break; \
		case AMO_BXOR: \
			r = a ^ b; \
			break; \
		case AMO_AXOR: \
			r = (type)((a & ~c) ^ b); \
			break; \
		default: \
			return false; \
		} \
		memcpy(at, &r, sizeof r); \
		return true; \
	}

#define REAL(name, type) \
	static bool name(unsigned int op, unsigned int cswap, void *at, const void *op1, const void *op2) \
	{ \
		type a, b, c, r; \
		memcpy(&a, at, sizeof a); \
		memcpy(&b, op1, sizeof b); \
		memcpy(&c, op2, sizeof c); \
		r = a; \
		switch (op) { \
			COMMON \
		default: \
			return false; \
		} \
		memcpy(at, &r, sizeof r); \
		return true; \
	}

#define COMPLEX(name, type) \
	static bool name(unsigned int op, unsigned int cswap, void *at, const void *op1, const void *op2) \
	{ \
		type a, b, c, r; \
		memcpy(&a, at, sizeof a); \
		memcpy(&b, op1, sizeof b); \
		memcpy(&c, op2, sizeof c); \
		r = a; \
		switch (op) { \
		case AMO_SUM: \
			r = a + b; \
			break; \
		case AMO_SWAP: \
			r = b; \
			break; \
		case AMO_CSWAP: \
			if (cswap > CSWAP_NE) \
				return false; \
			if (condition(cswap, c == a, false, false)) \
				r = b; \
			break; \
		default: \
			return false; \
		} \
		memcpy(at, &r, sizeof r); \
		return true; \
	}

/* condition decides a compare and swap from how the compared operand stands to the value in memory. */
static bool condition(unsigned int cswap, bool equal, bool less, bool less_or_equal)
{
	switch (cswap) {
	case CSWAP_EQ:
		return equal;
	case CSWAP_NE:
		return !equal;
	case CSWAP_LE:
		return less_or_equal;
	case CSWAP_LT:
		return less;
	case CSWAP_GE:
		return !less;
	default:
		return !less_or_equal;
	}
}

INTEGER(on_i8, int8_t)
INTEGER(on_u8, uint8_t)
INTEGER(on_i16, int16_t)
INTEGER(on_u16, uint16_t)
INTEGER(on_i32, int32_t)
INTEGER(on_u32, uint32_t)
INTEGER(on_i64, int64_t)
INTEGER(on_u64, uint64_t)
INTEGER(on_u128, unsigned __int128)
REAL(on_float, float)
REAL(on_double, double)
COMPLEX(on_float_complex, float complex)
COMPLEX(on_double_complex, double complex)

/* atomic_apply performs an atomic at memory that is there; result gets the value that was. */
uint8_t atomic_apply(const struct request *rq, void *at, uint64_t result[2])
{
	static bool (*const types[])(unsigned int, unsigned int, void *, const void *, const void *) = {
		on_i8,	 on_u8,	 on_i16,   on_u16,	     on_i32,	on_u32,
		on_i64,	 on_u64, on_float, on_float_complex, on_double, on_double_complex,
		on_u128,
	};
	unsigned int size = atomic_size(rq->amo_type);
	uint64_t value[2] = {};

	if (!size || rq->cswap > CSWAP_GT)
		return RC_AMO_INVALID_OP;
	if ((uint64_t)at % (size > 8 && rq->amo_type != AMO_TYPE_U128 ? 8 : size))
		return RC_AMO_ALIGN;
	if (!door_copy(value, at, size))
		return RC_NO_TRANSLATION;
	memcpy(result, value, sizeof value);
	if (!types[rq->amo_type](rq->amo, rq->cswap, value, rq->op1, rq->op2))
		return RC_AMO_INVALID_OP;
	return door_copy(at, value, size) ? RC_OK : RC_NO_TRANSLATION;
}
