// Package atomics performs the operations of fi_atomic(3) on memory of this
// process: every operation and datatype, element by element.
//
// # What is atomic
//
// Elements of up to 8 bytes are changed with the CPU's atomic instructions, so
// the operations are atomic with respect to each other, from any number of
// threads, and to atomic instructions of the application on the same word.
// Longer elements (128-bit integers, complex and long doubles) are changed under a
// lock of this package that is chosen by address: atomic with respect to each
// other, but not to the application's own instructions.
//
// Elements are aligned to their size, complex numbers to that of their parts;
// others are refused, because no instruction changes them atomically.
package atomics

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
)

// Kind says what an operation takes and gives.
type Kind uint8

// Kinds of operations (fi_atomic(3)).
const (
	Base    Kind = hot.AtomicPlain   // fi_atomic: changes the target
	Fetch   Kind = hot.AtomicFetch   // fi_fetch_atomic: and returns what was there
	Compare Kind = hot.AtomicCompare // fi_compare_atomic: and compares first
)

// Valid reports whether an operation exists for a datatype in a kind of call.
func Valid(k Kind, d fi.Datatype, op fi.Op) bool {
	c := classOf(d)
	if c == none {
		return false
	}
	switch op {
	case fi.OpSum, fi.OpProd, fi.OpDiff, fi.OpLOr, fi.OpLAnd, fi.OpLXor, fi.OpWrite:
		return k != Compare
	case fi.OpRead:
		return k == Fetch
	case fi.OpMin, fi.OpMax:
		return k != Compare && c != complexNumber
	case fi.OpBOr, fi.OpBAnd, fi.OpBXor:
		return k != Compare && c == integer
	case fi.OpCSwap, fi.OpCSwapNE:
		return k == Compare
	case fi.OpCSwapLE, fi.OpCSwapLT, fi.OpCSwapGE, fi.OpCSwapGT:
		return k == Compare && c != complexNumber
	case fi.OpMSwap:
		return k == Compare && c == integer
	}
	return false
}

// class is what matters of a datatype for the operations that it has.
type class uint8

const (
	none class = iota
	integer
	float
	complexNumber
)

func classOf(d fi.Datatype) class {
	switch d {
	case fi.Int8, fi.Uint8, fi.Int16, fi.Uint16, fi.Int32, fi.Uint32, fi.Int64, fi.Uint64, fi.Int128, fi.Uint128:
		return integer
	case fi.Float, fi.Double, fi.Float16, fi.BFloat16:
		return float
	case fi.FloatComplex, fi.DoubleComplex:
		return complexNumber
	case fi.LongDouble:
		if extended != nil {
			return float
		}
	case fi.LongDoubleComplex:
		if extended != nil {
			return complexNumber
		}
	}
	return none
}

// Align is the alignment in bytes that elements of a datatype must have.
func Align(d fi.Datatype) int {
	switch d {
	case fi.FloatComplex, fi.DoubleComplex:
		return 8
	case fi.Int128, fi.Uint128, fi.LongDouble, fi.LongDoubleComplex:
		return 16
	}
	return max(1, d.Size())
}
