package atomics

import "math"

// The 16-bit floats are computed in float32 and rounded to nearest, ties to
// even (IEEE 754-2008, 4.3.1). For sums and products of two numbers that is
// the correctly rounded result, because float32 has more than twice their
// precision plus two bits.

// fromHalf converts an IEEE 754 binary16.
func fromHalf(h uint16) float32 {
	sign, exp, frac := uint32(h&0x8000)<<16, uint32(h>>10&0x1F), uint32(h&0x3FF)
	switch exp {
	case 0:
		v := float32(frac) / (1 << 24)
		return math.Float32frombits(math.Float32bits(v) | sign)
	case 0x1F:
		return math.Float32frombits(sign | 0x7F800000 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}

// toHalf rounds to an IEEE 754 binary16.
func toHalf(f float32) uint16 {
	bits := math.Float32bits(f)
	sign, abs := uint16(bits>>16&0x8000), bits&0x7FFFFFFF
	switch {
	case abs > 0x7F800000: // a NaN stays one, quiet
		return sign | 0x7E00
	case abs >= 0x477FF000: // rounds to more than 65504
		return sign | 0x7C00
	case abs < 0x38800000: // subnormal: in units of 2^-24
		return sign | uint16(math.RoundToEven(float64(math.Float32frombits(abs))*(1<<24)))
	}
	return sign | uint16((abs-112<<23+0xFFF+abs>>13&1)>>13)
}

// fromBrain converts a bfloat16.
func fromBrain(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// toBrain rounds to a bfloat16.
func toBrain(f float32) uint16 {
	bits := math.Float32bits(f)
	if bits&0x7FFFFFFF > 0x7F800000 {
		return uint16(bits>>16) | 0x40
	}
	return uint16((bits + 0x7FFF + bits>>16&1) >> 16)
}
