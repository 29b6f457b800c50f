package mem

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Growing is an array that may become long, at one address for good. Elements that are not in use yet take address
// space only: no memory, not even where the process has all its pages locked (mlockall), and they may not be accessed.
// Grow is called by one thread at a time; At and Ready by any, also meanwhile.
type Growing[T any] struct {
	all Array[T]
	// ready is how many elements may be accessed. Written by Grow, read by any thread; sequentially consistent.
	ready atomic.Uint32
}

// Reserve takes the address space of n elements, at least 1 and below 2^32, none of them ready. The error wraps
// ErrPointers, ErrSize or the errno of mmap.
func (g *Growing[T]) Reserve(n int) error {
	if n >= 1<<32 {
		return fmt.Errorf("array of %d: %w", n, ErrSize)
	}
	all, err := mapArray[T](n, NoReserve|noAccess)
	if err != nil {
		return err
	}
	g.all = all
	return nil
}

// Len returns the number of elements that there can be.
func (g *Growing[T]) Len() int { return g.all.n }

// Base is the address of the first element.
func (g *Growing[T]) Base() unsafe.Pointer { return g.all.p }

// Ready returns how many elements may be accessed.
func (g *Growing[T]) Ready() uint32 { return g.ready.Load() }

// At returns element i, nil if it is not ready.
func (g *Growing[T]) At(i uint64) *T {
	if i >= uint64(g.ready.Load()) {
		return nil
	}
	return g.all.At(uint32(i))
}

// Grow makes elements ready, zeroed: n of them, and more, so that most calls find them ready. n must be at most Len.
// The error wraps the errno of mprotect (ENOMEM), and nothing has changed then.
func (g *Growing[T]) Grow(n int) error {
	ready := int(g.ready.Load())
	if n <= ready {
		return nil
	}
	size := sizeOf[T]()
	n = min(max(n, 2*ready, pageSize/size), g.all.n)
	from, to := Round(ready*size), Round(n*size)
	if f := fault.Load(); f != nil {
		if err := (*f)(to - from); err != nil {
			return fmt.Errorf("array of %d: %w", n, err)
		}
	}
	if from < to {
		more := unsafe.Slice((*byte)(unsafe.Add(g.all.p, from)), to-from)
		if err := unix.Mprotect(more, unix.PROT_READ|unix.PROT_WRITE); err != nil {
			return fmt.Errorf("array of %d: %w", n, err)
		}
	}
	g.ready.Store(uint32(min(to/size, g.all.n)))
	return nil
}

// Free unmaps the array and leaves it empty. Freeing an empty array does nothing.
func (g *Growing[T]) Free() error {
	g.ready.Store(0)
	return g.all.Free()
}
