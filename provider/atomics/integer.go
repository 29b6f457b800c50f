package atomics

import "github.com/weft-fabric/weft/fi"

// integerNext is next of integers.
func integerNext(op fi.Op, d fi.Datatype, cur, x, c uint64) (uint64, bool) {
	switch op {
	case fi.OpSum:
		return cur + x, true
	case fi.OpDiff:
		return cur - x, true
	case fi.OpProd:
		return cur * x, true
	case fi.OpBOr:
		return cur | x, true
	case fi.OpBAnd:
		return cur & x, true
	case fi.OpBXor:
		return cur ^ x, true
	case fi.OpMSwap:
		return x&c | cur&^c, true
	}
	if op >= fi.OpCSwap {
		return integerSwapped(op, d, cur, x, c)
	}
	return integerChosen(op, d, cur, x)
}

// integerChosen is integerNext of a choice between values, and of logical operations.
func integerChosen(op fi.Op, d fi.Datatype, cur, x uint64) (uint64, bool) {
	a, b, zero := rank(d, cur), rank(d, x), rank(d, 0)
	switch op {
	case fi.OpMin:
		return x, b < a
	case fi.OpMax:
		return x, b > a
	case fi.OpLOr:
		return bit(a != zero || b != zero), true
	case fi.OpLAnd:
		return bit(a != zero && b != zero), true
	case fi.OpLXor:
		return bit((a != zero) != (b != zero)), true
	case fi.OpWrite:
		return x, true
	}
	return cur, false // OpRead
}

// integerSwapped is integerNext of a swap under a condition.
func integerSwapped(op fi.Op, d fi.Datatype, cur, x, c uint64) (uint64, bool) {
	a, b := rank(d, cur), rank(d, c)
	switch op {
	case fi.OpCSwap:
		return x, b == a
	case fi.OpCSwapNE:
		return x, b != a
	case fi.OpCSwapLE:
		return x, b <= a
	case fi.OpCSwapLT:
		return x, b < a
	case fi.OpCSwapGE:
		return x, b >= a
	case fi.OpCSwapGT:
		return x, b > a
	}
	return cur, false
}

// rank orders the values of a datatype as unsigned integers.
func rank(d fi.Datatype, v uint64) uint64 {
	v <<= (64 - 8*uint(d.Size())) & 63
	if d == fi.Int8 || d == fi.Int16 || d == fi.Int32 || d == fi.Int64 {
		v ^= 1 << 63
	}
	return v
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
