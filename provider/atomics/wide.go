package atomics

import (
	"math/bits"

	"github.com/weft-fabric/weft/fi"
)

// wide is a 128-bit integer in memory order.
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

// wideOps are the operations on 128-bit integers.
func wideOps(op fi.Op, bias uint64) function[wide] {
	zero := wide{}
	switch op {
	case fi.OpMin:
		return func(cur, x, _ wide) (wide, bool) { return x, x.less(cur, bias) }
	case fi.OpMax:
		return func(cur, x, _ wide) (wide, bool) { return x, cur.less(x, bias) }
	case fi.OpSum:
		return func(cur, x, _ wide) (wide, bool) { return cur.add(x), true }
	case fi.OpDiff:
		return func(cur, x, _ wide) (wide, bool) { return cur.sub(x), true }
	case fi.OpProd:
		return func(cur, x, _ wide) (wide, bool) { return cur.mul(x), true }
	case fi.OpLOr:
		return func(cur, x, _ wide) (wide, bool) { return wideTruth(cur != zero || x != zero), true }
	case fi.OpLAnd:
		return func(cur, x, _ wide) (wide, bool) { return wideTruth(cur != zero && x != zero), true }
	case fi.OpLXor:
		return func(cur, x, _ wide) (wide, bool) { return wideTruth((cur != zero) != (x != zero)), true }
	case fi.OpBOr:
		return func(cur, x, _ wide) (wide, bool) { return wide{cur.lo | x.lo, cur.hi | x.hi}, true }
	case fi.OpBAnd:
		return func(cur, x, _ wide) (wide, bool) { return wide{cur.lo & x.lo, cur.hi & x.hi}, true }
	case fi.OpBXor:
		return func(cur, x, _ wide) (wide, bool) { return wide{cur.lo ^ x.lo, cur.hi ^ x.hi}, true }
	}
	return wideSwaps(op, bias)
}

// wideSwaps are those that read, write and swap.
func wideSwaps(op fi.Op, bias uint64) function[wide] {
	switch op {
	case fi.OpRead:
		return func(cur, _, _ wide) (wide, bool) { return cur, false }
	case fi.OpWrite:
		return func(_, x, _ wide) (wide, bool) { return x, true }
	case fi.OpCSwap:
		return func(cur, x, c wide) (wide, bool) { return x, c == cur }
	case fi.OpCSwapNE:
		return func(cur, x, c wide) (wide, bool) { return x, c != cur }
	case fi.OpCSwapLE:
		return func(cur, x, c wide) (wide, bool) { return x, !cur.less(c, bias) }
	case fi.OpCSwapLT:
		return func(cur, x, c wide) (wide, bool) { return x, c.less(cur, bias) }
	case fi.OpCSwapGE:
		return func(cur, x, c wide) (wide, bool) { return x, !c.less(cur, bias) }
	case fi.OpCSwapGT:
		return func(cur, x, c wide) (wide, bool) { return x, cur.less(c, bias) }
	case fi.OpMSwap:
		return func(cur, x, c wide) (wide, bool) {
			return wide{x.lo&c.lo | cur.lo&^c.lo, x.hi&c.hi | cur.hi&^c.hi}, true
		}
	}
	return nil
}
