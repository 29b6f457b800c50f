package atomics

import (
	"math"
	"math/bits"

	"github.com/weft-fabric/weft/fi"
)

// wide is an element of 16 bytes in memory order: a 128-bit integer, or the bits of a double complex.
type wide struct{ lo, hi uint64 }

func (a wide) add(b wide) wide {
	lo, carry := bits.Add64(a.lo, b.lo, 0)
	hi, _ := bits.Add64(a.hi, b.hi, carry)
	return wide{lo, hi}
}

func (a wide) sub(b wide) wide {
	lo, borrow := bits.Sub64(a.lo, b.lo, 0)
	hi, _ := bits.Sub64(a.hi, b.hi, borrow)
	return wide{lo, hi}
}

// mul is the low half of the product, for signed and unsigned alike.
func (a wide) mul(b wide) wide {
	hi, lo := bits.Mul64(a.lo, b.lo)
	return wide{lo, hi + a.lo*b.hi + a.hi*b.lo}
}

// less compares unsigned or, if bias is the sign bit, signed.
func (a wide) less(b wide, bias uint64) bool {
	if a.hi != b.hi {
		return a.hi^bias < b.hi^bias
	}
	return a.lo < b.lo
}

func wideTruth(b bool) wide {
	if b {
		return wide{lo: 1}
	}
	return wide{}
}

// wideNext is next of elements of 16 bytes.
func wideNext(op fi.Op, d fi.Datatype, cur, x, c wide) (wide, bool) {
	if d == fi.DoubleComplex {
		v, changes := complexNext(op, cur.complex(), x.complex(), c.complex())
		return wide{math.Float64bits(real(v)), math.Float64bits(imag(v))}, changes
	}
	bias := uint64(0)
	if d == fi.Int128 {
		bias = 1 << 63
	}
	switch op {
	case fi.OpMin:
		return x, x.less(cur, bias)
	case fi.OpMax:
		return x, cur.less(x, bias)
	case fi.OpSum:
		return cur.add(x), true
	case fi.OpDiff:
		return cur.sub(x), true
	case fi.OpProd:
		return cur.mul(x), true
	}
	if op >= fi.OpCSwap {
		return wideSwapped(op, bias, cur, x, c)
	}
	return wideLogic(op, cur, x)
}

func (a wide) complex() complex128 {
	return complex(math.Float64frombits(a.lo), math.Float64frombits(a.hi))
}

// wideLogic is wideNext of logical operations, of those on bits, and of a plain write.
func wideLogic(op fi.Op, cur, x wide) (wide, bool) {
	zero := wide{}
	switch op {
	case fi.OpLOr:
		return wideTruth(cur != zero || x != zero), true
	case fi.OpLAnd:
		return wideTruth(cur != zero && x != zero), true
	case fi.OpLXor:
		return wideTruth((cur != zero) != (x != zero)), true
	case fi.OpBOr:
		return wide{cur.lo | x.lo, cur.hi | x.hi}, true
	case fi.OpBAnd:
		return wide{cur.lo & x.lo, cur.hi & x.hi}, true
	case fi.OpBXor:
		return wide{cur.lo ^ x.lo, cur.hi ^ x.hi}, true
	case fi.OpWrite:
		return x, true
	}
	return cur, false // OpRead
}

// wideSwapped is wideNext of a swap.
func wideSwapped(op fi.Op, bias uint64, cur, x, c wide) (wide, bool) {
	switch op {
	case fi.OpCSwap:
		return x, c == cur
	case fi.OpCSwapNE:
		return x, c != cur
	case fi.OpCSwapLE:
		return x, !cur.less(c, bias)
	case fi.OpCSwapLT:
		return x, c.less(cur, bias)
	case fi.OpCSwapGE:
		return x, !c.less(cur, bias)
	case fi.OpCSwapGT:
		return x, cur.less(c, bias)
	}
	return wide{x.lo&c.lo | cur.lo&^c.lo, x.hi&c.hi | cur.hi&^c.hi}, true // OpMSwap
}
