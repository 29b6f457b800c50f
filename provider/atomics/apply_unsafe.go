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
	Count    int // elements, of MaxBytes at most

	Target  unsafe.Pointer // aligned as Align says
	Operand unsafe.Pointer // of Count elements, nil for OpRead; any alignment
	Compare unsafe.Pointer // likewise, for operations of kind Compare
	Result  unsafe.Pointer // what was there before, nil if it is not wanted; any alignment
}

// Apply performs a job that Valid allows. It reports false, and has done
// nothing, when there is no such operation, the target is out of alignment or too long.
func Apply(j *Job) bool {
	known := Valid(Fetch, j.Datatype, j.Op) || Valid(Compare, j.Datatype, j.Op)
	if !known || uintptr(j.Target)%uintptr(Align(j.Datatype)) != 0 || j.Count*j.Datatype.Size() > MaxBytes {
		return false
	}
	for !j.TryLock() {
		runtime.Gosched()
	}
	if Direct(j.Datatype) {
		j.Perform()
	} else {
		external(j)
	}
	j.Unlock()
	return true
}

// Perform performs a job between TryLock and Unlock: one that Valid allows, for whose datatype it is (Direct), and
// whose target is aligned.
func (j *Job) Perform() {
	size := j.Datatype.Size()
	if size == wideBytes {
		for i := range j.Count {
			wideElement(j, i)
		}
		return
	}
	for i := range j.Count {
		at := i * size
		x, c := element(j.Operand, at, size), element(j.Compare, at, size)
		before := Element(j.Op, j.Datatype, unsafe.Add(j.Target, at), x, c)
		if j.Result != nil {
			put(unsafe.Add(j.Result, at), size, before)
		}
	}
}

// element is the element at an offset of an array, zero if there is no array.
func element(base unsafe.Pointer, at, size int) uint64 {
	if base == nil {
		return 0
	}
	return load(unsafe.Add(base, at), size)
}

// load reads an element of up to 8 bytes, at any alignment.
func load(p unsafe.Pointer, size int) uint64 {
	switch size {
	case 1:
		return uint64(*(*uint8)(p))
	case 2:
		return uint64(*(*uint16)(p))
	case 4:
		return uint64(*(*uint32)(p))
	}
	return *(*uint64)(p)
}

// put writes one: the low bytes of v.
func put(p unsafe.Pointer, size int, v uint64) {
	switch size {
	case 1:
		*(*uint8)(p) = uint8(v)
	case 2:
		*(*uint16)(p) = uint16(v)
	case 4:
		*(*uint32)(p) = uint32(v)
	default:
		*(*uint64)(p) = v
	}
}

// locks order the operations on elements of 16 bytes and more, which Go has no instruction for: by the pages of their
// targets. They are taken for one job, by threads that may not be preempted by Go but by the kernel.
var locks [64]struct {
	// taken is set by compare-and-swap (acquire) and given back by store (release).
	taken atomic.Uint32
	_     [60]byte
}

// pageOf is the number of the lock of an address.
func pageOf(at uintptr) uintptr { return at / MaxBytes % uintptr(len(locks)) }

// pages are the locks of a job, one or two.
func (j *Job) pages() (first, last uintptr) {
	at := uintptr(j.Target)
	return pageOf(at), pageOf(at + uintptr(max(1, j.Count*j.Datatype.Size())) - 1)
}

// TryLock takes what orders a job: nothing, or locks that Unlock gives back. It reports false, and has taken nothing,
// where another thread has one.
func (j *Job) TryLock() bool {
	if j.Datatype.Size() < wideBytes {
		return true
	}
	first, last := j.pages()
	if !locks[first].taken.CompareAndSwap(0, 1) {
		return false
	}
	if first != last && !locks[last].taken.CompareAndSwap(0, 1) {
		locks[first].taken.Store(0)
		return false
	}
	return true
}

// Unlock gives back what TryLock has taken.
func (j *Job) Unlock() {
	if j.Datatype.Size() < wideBytes {
		return
	}
	first, last := j.pages()
	if first != last {
		locks[last].taken.Store(0)
	}
	locks[first].taken.Store(0)
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
func external(j *Job) {
	size := j.Datatype.Size()
	for i := range j.Count {
		p := unsafe.Add(j.Target, i*size)
		var x, c, was [32]byte
		take(x[:size], j.Operand, i)
		take(c[:size], j.Compare, i)
		take(was[:size], p, 0)
		extended(j.Datatype, j.Op, p, unsafe.Pointer(&x), unsafe.Pointer(&c))
		if j.Result != nil {
			copy(unsafe.Slice((*byte)(unsafe.Add(j.Result, i*size)), size), was[:size])
		}
	}
}

// take copies element i of an operand array to dst, if there is one.
func take(dst []byte, base unsafe.Pointer, i int) {
	if base != nil {
		copy(dst, unsafe.Slice((*byte)(unsafe.Add(base, i*len(dst))), len(dst)))
	}
}
