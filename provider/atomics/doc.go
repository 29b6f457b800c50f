// Package atomics performs the operations of fi_atomic(3) on memory of this
// process: every operation and datatype, element by element.
//
// # What is atomic
//
// Elements of up to 8 bytes are changed with the CPU's atomic instructions, so
// the operations are atomic with respect to each other, from any number of
// threads, and to atomic instructions of the application on the same word.
// Longer elements (128-bit integers, complex and long doubles) are changed under
// locks of this package, which a job takes for the pages that it touches: atomic
// with respect to each other, but not to the application's own instructions.
//
// Elements are aligned to their size, complex numbers to that of their parts;
// others are refused, because no instruction changes them atomically.
//
// # Without the runtime
//
// [Valid], [Direct], [Align], [Job.TryLock], [Job.Perform] and [Job.Unlock] need nothing of the Go runtime (package
// direct): the data plane performs with them what peers ask for. [Apply] is all of them together, and waits for locks;
// the C types that Go does not have are for it alone. Switches have fewer than eight cases, because one of more is a
// jump through a table, which the check of direct calls does not follow.
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

// MaxBytes is the most bytes of operands and comparands of one job.
const MaxBytes = 4096

// class is what matters of a datatype for the operations that it has.
type class uint8

const (
	none class = iota
	integer
	float
	complexNumber
)

// Operations that every number has, that need an order, and that need bits: bit 1<<op of each.
const (
	common = 1<<fi.OpSum | 1<<fi.OpProd | 1<<fi.OpDiff | 1<<fi.OpLOr | 1<<fi.OpLAnd | 1<<fi.OpLXor | 1<<fi.OpWrite
	order  = 1<<fi.OpMin | 1<<fi.OpMax
	onBits = 1<<fi.OpBOr | 1<<fi.OpBAnd | 1<<fi.OpBXor

	commonSwaps = 1<<fi.OpCSwap | 1<<fi.OpCSwapNE
	orderSwaps  = 1<<fi.OpCSwapLE | 1<<fi.OpCSwapLT | 1<<fi.OpCSwapGE | 1<<fi.OpCSwapGT
	bitSwaps    = 1 << fi.OpMSwap
)

// operations are those of each kind of call and class.
var operations = [...][complexNumber + 1]uint32{
	Base: {integer: common | order | onBits, float: common | order, complexNumber: common},
	Fetch: {
		integer: common | order | onBits | reads, float: common | order | reads, complexNumber: common | reads,
	},
	Compare: {
		integer: commonSwaps | orderSwaps | bitSwaps, float: commonSwaps | orderSwaps, complexNumber: commonSwaps,
	},
}

const reads = 1 << fi.OpRead

// classes are those of the datatypes.
var classes = [...]class{
	fi.Int8: integer, fi.Uint8: integer, fi.Int16: integer, fi.Uint16: integer, fi.Int32: integer, fi.Uint32: integer,
	fi.Int64: integer, fi.Uint64: integer, fi.Int128: integer, fi.Uint128: integer,
	fi.Float: float, fi.Double: float, fi.Float16: float, fi.BFloat16: float, fi.LongDouble: float,
	fi.FloatComplex: complexNumber, fi.DoubleComplex: complexNumber, fi.LongDoubleComplex: complexNumber,
}

// Valid reports whether an operation exists for a datatype in a kind of call. All three may be any numbers.
func Valid(k Kind, d fi.Datatype, op fi.Op) bool {
	return k <= Compare && op >= 0 && op <= fi.OpDiff && operations[k][classOf(d)]>>uint(op)&1 != 0
}

// Direct reports whether [Job.Perform] is for a datatype: all but the C types that Go does not have.
func Direct(d fi.Datatype) bool { return d != fi.LongDouble && d != fi.LongDoubleComplex }

func classOf(d fi.Datatype) class {
	if d < 0 || int(d) >= len(classes) || !Direct(d) && extended == nil {
		return none
	}
	return classes[d]
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
