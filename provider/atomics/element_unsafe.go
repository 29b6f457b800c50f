package atomics

import (
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
)

// Elements of up to 8 bytes are words: operand, comparand and what was there are in the low bytes of a uint64, the rest
// of which is anything where next and its parts return it, and zero else.

// Element performs an operation on one element of up to 8 bytes, aligned to its size, by the processor's own atomic
// instructions, and returns what was there before. Sequentially consistent. The operation is one that Valid allows for
// the datatype.
func Element(op fi.Op, d fi.Datatype, target unsafe.Pointer, operand, compare uint64) uint64 {
	switch d.Size() {
	case 8:
		return element8(op, d, (*uint64)(target), operand, compare)
	case 4:
		return element4(op, d, (*uint32)(target), operand, compare)
	}
	return narrow(op, d, target, operand, compare)
}

func element8(op fi.Op, d fi.Datatype, p *uint64, x, c uint64) uint64 {
	if op == fi.OpSum && (d == fi.Int64 || d == fi.Uint64) {
		return atomic.AddUint64(p, x) - x
	}
	for {
		cur := atomic.LoadUint64(p)
		v, changes := next(op, d, cur, x, c)
		if !changes || atomic.CompareAndSwapUint64(p, cur, v) {
			return cur
		}
	}
}

func element4(op fi.Op, d fi.Datatype, p *uint32, x, c uint64) uint64 {
	for {
		cur := atomic.LoadUint32(p)
		v, changes := next(op, d, uint64(cur), x, c)
		if !changes || atomic.CompareAndSwapUint32(p, cur, uint32(v)) {
			return uint64(cur)
		}
	}
}

// narrow is Element of 1 or 2 bytes, inside their aligned word of four. Little endian.
func narrow(op fi.Op, d fi.Datatype, target unsafe.Pointer, x, c uint64) uint64 {
	mask := uint32(1)<<(8*uint(d.Size())&31) - 1
	odd := uintptr(target) & 3
	shift := 8 * uint(odd)
	p := (*uint32)(unsafe.Add(target, -int(odd)))
	for {
		word := atomic.LoadUint32(p)
		cur := word >> shift & mask
		v, changes := next(op, d, uint64(cur), x, c)
		if !changes || atomic.CompareAndSwapUint32(p, word, word&^(mask<<shift)|uint32(v)&mask<<shift) {
			return uint64(cur)
		}
	}
}

// next is what an element becomes; false: it stays.
func next(op fi.Op, d fi.Datatype, cur, x, c uint64) (uint64, bool) {
	switch d {
	case fi.Float:
		v, changes := realNext(op, single(cur), single(x), single(c))
		return uint64(math.Float32bits(v)), changes
	case fi.Double:
		v, changes := realNext(op, math.Float64frombits(cur), math.Float64frombits(x), math.Float64frombits(c))
		return math.Float64bits(v), changes
	case fi.FloatComplex:
		v, changes := complexNext(op, pair(cur), pair(x), pair(c))
		return uint64(math.Float32bits(real(v))) | uint64(math.Float32bits(imag(v)))<<32, changes
	case fi.Float16:
		v, changes := realNext(op, fromHalf(uint16(cur)), fromHalf(uint16(x)), fromHalf(uint16(c)))
		if computes(op) {
			return uint64(toHalf(v)), true
		}
		return x, changes // what is swapped in keeps its bits
	case fi.BFloat16:
		v, changes := realNext(op, fromBrain(uint16(cur)), fromBrain(uint16(x)), fromBrain(uint16(c)))
		if computes(op) {
			return uint64(toBrain(v)), true
		}
		return x, changes
	}
	return integerNext(op, d, cur, x, c)
}

func single(bits uint64) float32 { return math.Float32frombits(uint32(bits)) }

func pair(bits uint64) complex64 { return complex(single(bits), single(bits>>32)) }

// wideBytes is the size of the longest elements that Perform is for.
const wideBytes = 16

// wideElement performs an operation on element i of 16 bytes, under its lock.
func wideElement(j *Job, i int) {
	cur := (*wide)(unsafe.Add(j.Target, i*wideBytes))
	was := *cur
	if v, changes := wideNext(j.Op, j.Datatype, was, wideOf(j.Operand, i), wideOf(j.Compare, i)); changes {
		*cur = v
	}
	if j.Result != nil {
		*(*wide)(unsafe.Add(j.Result, i*wideBytes)) = was
	}
}

// wideOf is element i of an array, at any alignment; zero if there is no array.
func wideOf(base unsafe.Pointer, i int) (v wide) {
	if base != nil {
		v = *(*wide)(unsafe.Add(base, i*wideBytes))
	}
	return v
}
