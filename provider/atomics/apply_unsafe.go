package atomics

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
)

// Job is an operation on an array.
type Job struct {
	Op       fi.Op
	Datatype fi.Datatype
	Count    int // elements

	Target  unsafe.Pointer // aligned as Align says
	Operand unsafe.Pointer // of Count elements, nil for OpRead; any alignment
	Compare unsafe.Pointer // likewise, for operations of kind Compare
	Result  unsafe.Pointer // what was there before, nil if it is not wanted; any alignment
}

// Apply performs a job that Valid allows. It reports false, and has done
// nothing, when there is no such operation or the target is out of alignment.
func Apply(j *Job) bool {
	if uintptr(j.Target)%uintptr(Align(j.Datatype)) != 0 {
		return false
	}
	switch j.Datatype {
	case fi.Int8:
		return narrow(j, bitwise[int8](j.Op))
	case fi.Uint8:
		return narrow(j, bitwise[uint8](j.Op))
	case fi.Int16:
		return narrow(j, bitwise[int16](j.Op))
	case fi.Uint16:
		return narrow(j, bitwise[uint16](j.Op))
	case fi.Int32, fi.Uint32, fi.Int64, fi.Uint64:
		return integerArray(j)
	case fi.Float:
		return word32(j, ordered[float32](j.Op))
	case fi.Double:
		return word64(j, ordered[float64](j.Op))
	case fi.FloatComplex:
		return word64(j, common[complex64](j.Op))
	case fi.DoubleComplex:
		return locked(j, common[complex128](j.Op))
	case fi.Int128:
		return locked(j, wideOps(j.Op, 1<<63))
	case fi.Uint128:
		return locked(j, wideOps(j.Op, 0))
	case fi.Float16:
		return narrow(j, through(j.Op, fromHalf, toHalf))
	case fi.BFloat16:
		return narrow(j, through(j.Op, fromBrain, toBrain))
	case fi.LongDouble, fi.LongDoubleComplex:
		return external(j)
	}
	return false
}

// element returns element i of an operand array, zero if there is none.
func element[T any](base unsafe.Pointer, i int) (v T) {
	if base != nil {
		n := unsafe.Sizeof(v)
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&v)), n), unsafe.Slice((*byte)(unsafe.Add(base, uintptr(i)*n)), n))
	}
	return v
}

// give stores element i of the result array, if there is one.
func give[T any](base unsafe.Pointer, i int, v T) {
	if base != nil {
		n := unsafe.Sizeof(v)
		copy(unsafe.Slice((*byte)(unsafe.Add(base, uintptr(i)*n)), n), unsafe.Slice((*byte)(unsafe.Pointer(&v)), n))
	}
}

// word64 performs f on 8-byte elements.
func word64[T any](j *Job, f function[T]) bool {
	if f == nil {
		return false
	}
	for i := range j.Count {
		p := (*uint64)(unsafe.Add(j.Target, i*8))
		x, c := element[T](j.Operand, i), element[T](j.Compare, i)
		for {
			bits := atomic.LoadUint64(p)
			cur := *(*T)(unsafe.Pointer(&bits))
			v, store := f(cur, x, c)
			if !store || atomic.CompareAndSwapUint64(p, bits, *(*uint64)(unsafe.Pointer(&v))) {
				give(j.Result, i, cur)
				break
			}
		}
	}
	return true
}

// word32 performs f on 4-byte elements.
func word32[T any](j *Job, f function[T]) bool {
	if f == nil {
		return false
	}
	for i := range j.Count {
		p := (*uint32)(unsafe.Add(j.Target, i*4))
		x, c := element[T](j.Operand, i), element[T](j.Compare, i)
		for {
			bits := atomic.LoadUint32(p)
			cur := *(*T)(unsafe.Pointer(&bits))
			v, store := f(cur, x, c)
			if !store || atomic.CompareAndSwapUint32(p, bits, *(*uint32)(unsafe.Pointer(&v))) {
				give(j.Result, i, cur)
				break
			}
		}
	}
	return true
}

// narrow performs f on elements of 1 or 2 bytes, inside their aligned words of
// four. Little endian.
func narrow[T any](j *Job, f function[T]) bool {
	if f == nil {
		return false
	}
	var zero T
	size := unsafe.Sizeof(zero)
	mask := uint32(1)<<(8*size) - 1
	for i := range j.Count {
		at := unsafe.Add(j.Target, uintptr(i)*size)
		shift := 8 * uint32(uintptr(at)&3)
		p := (*uint32)(unsafe.Add(at, -int(uintptr(at)&3)))
		x, c := element[T](j.Operand, i), element[T](j.Compare, i)
		for {
			old := atomic.LoadUint32(p)
			bits := old >> shift & mask
			cur := *(*T)(unsafe.Pointer(&bits))
			v, store := f(cur, x, c)
			word := uint32(0)
			*(*T)(unsafe.Pointer(&word)) = v
			if !store || atomic.CompareAndSwapUint32(p, old, old&^(mask<<shift)|word<<shift) {
				give(j.Result, i, cur)
				break
			}
		}
	}
	return true
}

// locks order the operations on elements of 16 bytes and more, which Go has no
// instruction for: by their address. They are taken for one element, by threads
// that may not be preempted by Go but by the kernel; a waiter gives way.
var locks [64]struct {
	// taken is set by compare-and-swap (acquire) and given back by store (release).
	taken atomic.Uint32
	_     [60]byte
}

// lock takes the lock of an address.
func lock(p unsafe.Pointer) *atomic.Uint32 {
	l := &locks[uintptr(p)>>4%uintptr(len(locks))].taken
	for !l.CompareAndSwap(0, 1) {
		runtime.Gosched()
	}
	return l
}

// locked performs f on 16-byte elements.
func locked[T any](j *Job, f function[T]) bool {
	if f == nil {
		return false
	}
	for i := range j.Count {
		p := (*T)(unsafe.Add(j.Target, i*16))
		x, c := element[T](j.Operand, i), element[T](j.Compare, i)
		l := lock(unsafe.Pointer(p))
		cur := *p
		if v, store := f(cur, x, c); store {
			*p = v
		}
		l.Store(0)
		give(j.Result, i, cur)
	}
	return true
}

// Extended computes what *cur becomes, for a C type that Go does not have, and
// stores it there. Operand and comparand are zeros where there are none.
type Extended func(d fi.Datatype, op fi.Op, cur, operand, compare unsafe.Pointer)

// extended is set before the first operation and then only read.
var extended Extended

// SetExtended gives the arithmetic of fi.LongDouble and fi.LongDoubleComplex.
// Without it they are not valid. Called once, before anything else here.
func SetExtended(f Extended) { extended = f }

// external performs an operation on a C type of 16 or 32 bytes.
func external(j *Job) bool {
	if extended == nil {
		return false
	}
	size := j.Datatype.Size()
	for i := range j.Count {
		p := unsafe.Add(j.Target, i*size)
		var x, c, was [32]byte
		take(x[:size], j.Operand, i)
		take(c[:size], j.Compare, i)
		l := lock(p)
		take(was[:size], p, 0)
		extended(j.Datatype, j.Op, p, unsafe.Pointer(&x), unsafe.Pointer(&c))
		l.Store(0)
		if j.Result != nil {
			copy(unsafe.Slice((*byte)(unsafe.Add(j.Result, i*size)), size), was[:size])
		}
	}
	return true
}

// take copies element i of an operand array to dst, if there is one.
func take(dst []byte, base unsafe.Pointer, i int) {
	if base != nil {
		copy(dst, unsafe.Slice((*byte)(unsafe.Add(base, i*len(dst))), len(dst)))
	}
}
