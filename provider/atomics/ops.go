package atomics

import "github.com/weft-fabric/weft/fi"

// function computes what the target becomes, from what it is, the operand and
// the comparand. False: it stays.
type function[T any] func(cur, x, c T) (T, bool)

type integers interface {
	int8 | uint8 | int16 | uint16 | int32 | uint32 | int64 | uint64
}

type reals interface {
	integers | float32 | float64
}

type numbers interface {
	reals | complex64 | complex128
}

func truth[T numbers](b bool) T {
	if b {
		return 1
	}
	return 0
}

// common are the operations that every number has.
func common[T numbers](op fi.Op) function[T] {
	switch op {
	case fi.OpSum:
		return func(cur, x, _ T) (T, bool) { return cur + x, true }
	case fi.OpDiff:
		return func(cur, x, _ T) (T, bool) { return cur - x, true }
	case fi.OpProd:
		return func(cur, x, _ T) (T, bool) { return cur * x, true }
	case fi.OpLOr:
		return func(cur, x, _ T) (T, bool) { return truth[T](cur != 0 || x != 0), true }
	case fi.OpLAnd:
		return func(cur, x, _ T) (T, bool) { return truth[T](cur != 0 && x != 0), true }
	case fi.OpLXor:
		return func(cur, x, _ T) (T, bool) { return truth[T]((cur != 0) != (x != 0)), true }
	case fi.OpRead:
		return func(cur, _, _ T) (T, bool) { return cur, false }
	case fi.OpWrite:
		return func(_, x, _ T) (T, bool) { return x, true }
	case fi.OpCSwap:
		return func(cur, x, c T) (T, bool) { return x, c == cur }
	case fi.OpCSwapNE:
		return func(cur, x, c T) (T, bool) { return x, c != cur }
	}
	return nil
}

// ordered are the operations that need an order.
func ordered[T reals](op fi.Op) function[T] {
	switch op {
	case fi.OpMin:
		return func(cur, x, _ T) (T, bool) { return x, x < cur }
	case fi.OpMax:
		return func(cur, x, _ T) (T, bool) { return x, x > cur }
	case fi.OpCSwapLE:
		return func(cur, x, c T) (T, bool) { return x, c <= cur }
	case fi.OpCSwapLT:
		return func(cur, x, c T) (T, bool) { return x, c < cur }
	case fi.OpCSwapGE:
		return func(cur, x, c T) (T, bool) { return x, c >= cur }
	case fi.OpCSwapGT:
		return func(cur, x, c T) (T, bool) { return x, c > cur }
	}
	return common[T](op)
}

// bitwise are the operations that integers have, all of them.
func bitwise[T integers](op fi.Op) function[T] {
	switch op {
	case fi.OpBOr:
		return func(cur, x, _ T) (T, bool) { return cur | x, true }
	case fi.OpBAnd:
		return func(cur, x, _ T) (T, bool) { return cur & x, true }
	case fi.OpBXor:
		return func(cur, x, _ T) (T, bool) { return cur ^ x, true }
	case fi.OpMSwap:
		return func(cur, x, c T) (T, bool) { return x&c | cur&^c, true }
	}
	return ordered[T](op)
}

// through makes an operation on another representation of numbers: unpack, op,
// pack. What is swapped in or kept keeps its bits.
func through[T comparable, W reals](op fi.Op, unpack func(T) W, pack func(W) T) function[T] {
	f := ordered[W](op)
	if f == nil {
		return nil
	}
	switch op {
	case fi.OpSum, fi.OpDiff, fi.OpProd, fi.OpLOr, fi.OpLAnd, fi.OpLXor:
		return func(cur, x, _ T) (T, bool) {
			v, _ := f(unpack(cur), unpack(x), 0)
			return pack(v), true
		}
	}
	return func(cur, x, c T) (T, bool) {
		_, store := f(unpack(cur), unpack(x), unpack(c))
		return x, store
	}
}
