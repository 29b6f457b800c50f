package atomics

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
)

// Integer performs an operation on one integer of 4 or 8 bytes, aligned to its size, by the processor's own atomic
// instructions, and returns what was there before, in its low bytes. Operand and comparand are in the low bytes, too.
// Sequentially consistent. The operation is one that Valid allows for the datatype. It needs nothing of the Go runtime.
func Integer(op fi.Op, d fi.Datatype, target unsafe.Pointer, operand, compare uint64) uint64 {
	if d == fi.Int32 || d == fi.Uint32 {
		p := (*uint32)(target)
		for {
			cur := atomic.LoadUint32(p)
			next, store := integerNext(op, d, uint64(cur), operand, compare)
			if !store || atomic.CompareAndSwapUint32(p, cur, uint32(next)) {
				return uint64(cur)
			}
		}
	}
	p := (*uint64)(target)
	if op == fi.OpSum {
		return atomic.AddUint64(p, operand) - operand
	}
	for {
		cur := atomic.LoadUint64(p)
		next, store := integerNext(op, d, cur, operand, compare)
		if !store || atomic.CompareAndSwapUint64(p, cur, next) {
			return cur
		}
	}
}

// integerNext is what the target becomes; false: it stays. The operations stand in three functions, because a switch of
// more cases is a jump through a table, which the check of direct calls does not follow.
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
	if d == fi.Int32 || d == fi.Uint32 {
		v <<= 32
	}
	if d == fi.Int32 || d == fi.Int64 {
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

// integerArray performs a job on integers of 4 or 8 bytes.
func integerArray(j *Job) bool {
	if j.Op < 0 || j.Op > fi.OpDiff {
		return false
	}
	if j.Datatype == fi.Int32 || j.Datatype == fi.Uint32 {
		for i := range j.Count {
			before := Integer(j.Op, j.Datatype, unsafe.Add(j.Target, i*4), uint64(element[uint32](j.Operand, i)), uint64(element[uint32](j.Compare, i)))
			give(j.Result, i, uint32(before))
		}
		return true
	}
	for i := range j.Count {
		give(j.Result, i, Integer(j.Op, j.Datatype, unsafe.Add(j.Target, i*8), element[uint64](j.Operand, i), element[uint64](j.Compare, i)))
	}
	return true
}
