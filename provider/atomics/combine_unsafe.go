package atomics

import (
	"unsafe"

	"github.com/weft-fabric/weft/fi"
)

// Combines reports whether an operation can reduce elements of a datatype: it has
// the operands of a collective operation (fi_collective(3)), of which there may
// be any number.
func Combines(d fi.Datatype, op fi.Op) bool {
	return op != fi.OpDiff && op != fi.OpWrite && Valid(Base, d, op)
}

// Combine returns the function that stores a op b at dst, element by element,
// with the arithmetic of Apply but not atomically. dst may be a or b; all have
// the same length, a whole number of elements, and any alignment. Combines
// holds for d and op.
func Combine(d fi.Datatype, op fi.Op) func(dst, a, b []byte) {
	switch d {
	case fi.Int32:
		return quickOf[int32](op, each(d, op))
	case fi.Uint32:
		return quickOf[uint32](op, each(d, op))
	case fi.Int64:
		return quickOf[int64](op, each(d, op))
	case fi.Uint64:
		return quickOf[uint64](op, each(d, op))
	case fi.Float:
		return quickOf[float32](op, each(d, op))
	case fi.Double:
		return quickOf[float64](op, each(d, op))
	case fi.DoubleComplex, fi.Int128, fi.Uint128:
		return eachWide(d, op)
	case fi.LongDouble, fi.LongDoubleComplex:
		return eachExternal(d, op)
	}
	return each(d, op)
}

// each combines elements of up to 8 bytes.
func each(d fi.Datatype, op fi.Op) func(dst, a, b []byte) {
	return func(dst, a, b []byte) {
		size := d.Size()
		to, from, with := pointer(dst), pointer(a), pointer(b)
		for at := 0; at < len(dst); at += size {
			cur := load(unsafe.Add(from, at), size)
			if v, changes := next(op, d, cur, load(unsafe.Add(with, at), size), 0); changes {
				cur = v
			}
			put(unsafe.Add(to, at), size, cur)
		}
	}
}

// eachWide combines elements of 16 bytes.
func eachWide(d fi.Datatype, op fi.Op) func(dst, a, b []byte) {
	return func(dst, a, b []byte) {
		for i := range len(dst) / wideBytes {
			cur := wideOf(pointer(a), i)
			if v, changes := wideNext(op, d, cur, wideOf(pointer(b), i), wide{}); changes {
				cur = v
			}
			*(*wide)(unsafe.Add(pointer(dst), i*wideBytes)) = cur
		}
	}
}

func pointer(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

// quickOf is what reductions mostly are, in a loop without calls, where all
// operands are aligned; otherwise slow.
func quickOf[T int32 | uint32 | int64 | uint64 | float32 | float64](
	op fi.Op, slow func(dst, a, b []byte),
) func(dst, a, b []byte) {
	var loop func(dst, a, b []T)
	switch op {
	case fi.OpSum:
		loop = func(dst, a, b []T) {
			dst, a = dst[:len(b)], a[:len(b)]
			for i, v := range b {
				dst[i] = a[i] + v
			}
		}
	case fi.OpProd:
		loop = func(dst, a, b []T) {
			dst, a = dst[:len(b)], a[:len(b)]
			for i, v := range b {
				dst[i] = a[i] * v
			}
		}
	case fi.OpMin:
		loop = func(dst, a, b []T) {
			dst, a = dst[:len(b)], a[:len(b)]
			for i, v := range b {
				if cur := a[i]; v < cur {
					dst[i] = v
				} else {
					dst[i] = cur
				}
			}
		}
	case fi.OpMax:
		loop = func(dst, a, b []T) {
			dst, a = dst[:len(b)], a[:len(b)]
			for i, v := range b {
				if cur := a[i]; v > cur {
					dst[i] = v
				} else {
					dst[i] = cur
				}
			}
		}
	default:
		return slow
	}
	return func(dst, a, b []byte) {
		var zero T
		size := unsafe.Sizeof(zero)
		x, y, z := uintptr(pointer(dst)), uintptr(pointer(a)), uintptr(pointer(b))
		if (x|y|z)%size != 0 {
			slow(dst, a, b)
			return
		}
		n := uintptr(len(dst)) / size
		loop(unsafe.Slice((*T)(pointer(dst)), n), unsafe.Slice((*T)(pointer(a)), n), unsafe.Slice((*T)(pointer(b)), n))
	}
}

// eachExternal does the same for the C types that Go does not have.
func eachExternal(d fi.Datatype, op fi.Op) func(dst, a, b []byte) {
	size := d.Size()
	return func(dst, a, b []byte) {
		var cur, x, none [32]byte
		for at := 0; at < len(dst); at += size {
			copy(cur[:size], a[at:])
			copy(x[:size], b[at:])
			extended(d, op, unsafe.Pointer(&cur), unsafe.Pointer(&x), unsafe.Pointer(&none))
			copy(dst[at:at+size], cur[:size])
		}
	}
}
