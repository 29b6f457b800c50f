package atomics

import "github.com/weft-fabric/weft/fi"

// What a number becomes, from what it is (cur), the operand x and the comparand c; false: it stays.

type reals interface {
	float32 | float64
}

type complexes interface {
	complex64 | complex128
}

type numbers interface {
	reals | complexes
}

func truth[T numbers](b bool) T {
	if b {
		return 1
	}
	return 0
}

// computes reports whether an operation makes a value that is neither the operand nor what was there.
func computes(op fi.Op) bool {
	const ops = common &^ (1 << fi.OpWrite)
	return ops>>uint(op)&1 != 0
}

// arithmetic is what every number has of the operations that compute.
func arithmetic[T numbers](op fi.Op, cur, x T) T {
	switch op {
	case fi.OpSum:
		return cur + x
	case fi.OpDiff:
		return cur - x
	case fi.OpProd:
		return cur * x
	case fi.OpLOr:
		return truth[T](cur != 0 || x != 0)
	case fi.OpLAnd:
		return truth[T](cur != 0 && x != 0)
	}
	return truth[T]((cur != 0) != (x != 0)) // OpLXor
}

// exchange is what every number has of the others.
func exchange[T numbers](op fi.Op, cur, x, c T) (T, bool) {
	switch op {
	case fi.OpWrite:
		return x, true
	case fi.OpCSwap:
		return x, c == cur
	case fi.OpCSwapNE:
		return x, c != cur
	}
	return cur, false // OpRead
}

func complexNext[T complexes](op fi.Op, cur, x, c T) (T, bool) {
	if computes(op) {
		return arithmetic(op, cur, x), true
	}
	return exchange(op, cur, x, c)
}

func realNext[T reals](op fi.Op, cur, x, c T) (T, bool) {
	if computes(op) {
		return arithmetic(op, cur, x), true
	}
	switch op {
	case fi.OpMin:
		return x, x < cur
	case fi.OpMax:
		return x, x > cur
	case fi.OpCSwapLE:
		return x, c <= cur
	case fi.OpCSwapLT:
		return x, c < cur
	case fi.OpCSwapGE:
		return x, c >= cur
	case fi.OpCSwapGT:
		return x, c > cur
	}
	return exchange(op, cur, x, c)
}
