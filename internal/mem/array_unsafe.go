package mem

import (
	"fmt"
	"unsafe"
)

// Array is a fixed number of elements in one off-heap mapping. The zero Array has no elements and no memory.
// It has one owner at a time. Copies of an Array name the same memory.
type Array[T any] struct {
	p unsafe.Pointer // first element
	n int            // elements
}

// NewArray maps an array of n zeroed elements; n must be at least 1. Arrays of HugeSize bytes and more ask for huge
// pages. The error wraps ErrPointers, ErrSize or the errno of mmap.
func NewArray[T any](n int) (Array[T], error) { return newArray[T](n, Huge) }

// NewSparseArray is NewArray of which few elements are used: each takes the page that it is on, never a huge one.
func NewSparseArray[T any](n int) (Array[T], error) { return newArray[T](n, 0) }

// newArray maps an array; large is what it asks for beyond NoReserve if it has HugeSize bytes or more.
func newArray[T any](n int, large Flags) (Array[T], error) {
	if n <= maxMap/max(sizeOf[T](), 1) && n*sizeOf[T]() < HugeSize {
		large = 0
	}
	return mapArray[T](n, NoReserve|large)
}

// mapArray maps an array.
func mapArray[T any](n int, flags Flags) (Array[T], error) {
	if err := checkElem[T](); err != nil {
		return Array[T]{}, err
	}
	size := sizeOf[T]()
	if n <= 0 || n > maxMap/size {
		return Array[T]{}, fmt.Errorf("array of %d: %w", n, ErrSize)
	}
	b, err := Map(n*size, flags)
	if err != nil {
		return Array[T]{}, fmt.Errorf("array of %d: %w", n, err)
	}
	return Array[T]{unsafe.Pointer(unsafe.SliceData(b)), n}, nil
}

// sizeOf is the bytes of an element. There is no variable, which of a large type would be on the Go heap.
func sizeOf[T any]() int { return int(unsafe.Sizeof(*(*T)(nil))) }

// Len returns the number of elements.
func (a Array[T]) Len() int { return a.n }

// At returns element i. i is not checked: it must be less than Len.
func (a *Array[T]) At(i uint32) *T {
	return (*T)(unsafe.Add(a.p, int(i)*sizeOf[T]()))
}

// Slice views all elements as a slice, valid until Free.
func (a Array[T]) Slice() []T { return unsafe.Slice((*T)(a.p), a.n) }

// Free unmaps the array and leaves it empty. Freeing an empty array does nothing.
func (a *Array[T]) Free() error {
	if a.n == 0 {
		return nil
	}
	b := unsafe.Slice((*byte)(a.p), Round(a.n*sizeOf[T]()))
	*a = Array[T]{}
	return Unmap(b)
}
