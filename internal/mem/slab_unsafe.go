package mem

import (
	"errors"
	"fmt"
	"reflect"
	"unsafe"
)

// Index geometry: the top bits name the chunk, the rest the object in it. Chunk c holds first<<c objects until a
// chunk has chunkMask+1 of them, so that a few chunks reach any size and the first costs little.
const (
	chunkShift = 26
	chunkMask  = 1<<chunkShift - 1
	maxChunks  = 1 << (32 - chunkShift)
	// firstBytes is the size of the first chunk; only the pages that are used cost memory.
	firstBytes = 64 << 10
)

// slabDrains is how many times a slab of several chunks must become empty before it gives all but the first back.
// Short of that, the next burst is likely to need them again.
const slabDrains = 256

// Slab allocates objects of one type off the Go heap, one at a time, in constant time. Memory grows in chunks and
// is given back when the slab has been empty often enough (see Free), by Trim and by Close. Objects keep their
// address and index until freed. One owner at a time.
//
// A slab of several chunks that became empty starts over at the front of the first, so that what is allocated
// together lies together.
type Slab[T any] struct {
	free   uint32                    // first of the list of freed objects, linked through their first 4 bytes; 0: none
	next   uint32                    // next index that was never used since the slab was empty
	end    uint32                    // end of the chunk that next is in; next == end: go to the next chunk
	n      uint32                    // mapped chunks
	live   int                       // allocated objects
	drains int                       // times the slab became empty since it last grew
	err    error                     // why the last Alloc that failed did so
	chunks [maxChunks]unsafe.Pointer // start of each chunk; nil from n on
}

// NewSlab returns an empty slab. It maps nothing until the first Alloc. T must have at least 4 bytes and hold no Go
// pointers; the error wraps ErrPointers or ErrSize.
func NewSlab[T any]() (*Slab[T], error) {
	if err := checkElem[T](); err != nil {
		return nil, err
	}
	var zero T
	if size := unsafe.Sizeof(zero); size < 4 || size > firstBytes/4 {
		return nil, fmt.Errorf("slab of %s: %d bytes: %w", reflect.TypeFor[T](), size, ErrSize)
	}
	return &Slab[T]{}, nil
}

// Alloc returns an object and its index, which is never 0. The object's content is whatever was there before (zero
// in fresh memory). It returns nil and 0 when memory cannot be mapped (see Err).
func (s *Slab[T]) Alloc() (*T, uint32) {
	if p, i := s.TryAlloc(); i != 0 {
		return p, i
	}
	if s.err = s.grow(); s.err != nil {
		return nil, 0
	}
	return s.carve()
}

// TryAlloc is Alloc without mapping memory: it returns nil and 0 when the slab has to grow. It needs nothing of the
// runtime.
func (s *Slab[T]) TryAlloc() (*T, uint32) {
	if p, i := s.Reuse(); i != 0 {
		return p, i
	}
	if s.next == s.end {
		return nil, 0
	}
	return s.carve()
}

// Reuse is Alloc for the common case that a freed object is there to be used again; it is short enough to be
// inlined. It returns nil and 0 otherwise.
func (s *Slab[T]) Reuse() (p *T, i uint32) {
	if i = s.free; i != 0 {
		p = s.At(i)
		s.free = *(*uint32)(unsafe.Pointer(p))
		s.live++
	}
	return p, i
}

// carve allocates an object of the chunk that next is in, which has room.
func (s *Slab[T]) carve() (*T, uint32) {
	i := s.next
	s.next++
	s.live++
	return s.At(i), i
}

// At returns the object with index i, which must be allocated. i is not checked.
func (s *Slab[T]) At(i uint32) *T {
	var zero T
	return (*T)(unsafe.Add(s.chunks[i>>chunkShift], uintptr(i&chunkMask)*unsafe.Sizeof(zero)))
}

// Index returns the index of an object of this slab, or 0 for a pointer that is none of its objects. It tries
// each chunk, largest first.
func (s *Slab[T]) Index(p *T) uint32 {
	var zero T
	size := unsafe.Sizeof(zero)
	for c := int(s.n) - 1; c >= 0; c-- {
		off := uintptr(unsafe.Pointer(p)) - uintptr(s.chunks[c])
		if off < uintptr(s.objects(uint32(c)))*size && off%size == 0 {
			return uint32(c)<<chunkShift | uint32(off/size)
		}
	}
	return 0
}

// Free takes back the object with index i. Its first 4 bytes are overwritten. i must be allocated and is not checked.
func (s *Slab[T]) Free(i uint32) {
	s.Put(i)
	s.Reclaim()
}

// Put is Free that keeps all memory; [Slab.Reclaim] gives it back. It needs nothing of the runtime.
func (s *Slab[T]) Put(i uint32) {
	*(*uint32)(unsafe.Pointer(s.At(i))) = s.free
	s.free = i
	s.live--
	if s.live == 0 && s.n > 1 {
		s.restart()
	}
}

// restart makes an empty slab allocate from its front again.
func (s *Slab[T]) restart() {
	s.free = 0
	s.enter(0)
	s.drains++
}

// Reclaim gives all chunks but the first back if the slab is empty and has been so often.
func (s *Slab[T]) Reclaim() {
	if s.drains >= slabDrains {
		_ = s.Trim() // what could not be unmapped is kept and used
	}
}

// Err returns why the last Alloc that found no free object failed, nil if it did not. It wraps the errno of mmap, or
// ErrSize when all indexes are in use.
func (s *Slab[T]) Err() error { return s.err }

// grow makes the next chunk available, mapping it if need be.
func (s *Slab[T]) grow() error {
	c := uint32(0)
	if s.end != 0 {
		c = (s.end-1)>>chunkShift + 1
	}
	if c >= maxChunks-1 { // the last chunk is not used: its end would not fit an index
		return fmt.Errorf("slab: %w", ErrSize)
	}
	if c == s.n {
		if err := s.mapChunk(c); err != nil {
			return err
		}
	}
	s.enter(c)
	return nil
}

func (s *Slab[T]) mapChunk(c uint32) error {
	var zero T
	bytes := int(s.objects(c)) * int(unsafe.Sizeof(zero))
	flags := NoReserve
	if bytes >= HugeSize {
		flags |= Huge
	}
	b, err := Map(bytes, flags)
	if err != nil {
		return fmt.Errorf("slab chunk %d: %w", c, err)
	}
	s.chunks[c] = unsafe.Pointer(unsafe.SliceData(b))
	s.n = c + 1
	s.drains = 0
	return nil
}

// enter makes chunk c, which is mapped and holds no object, the one to allocate from.
func (s *Slab[T]) enter(c uint32) {
	s.next = c << chunkShift
	s.end = s.next + s.objects(c)
	if c == 0 {
		s.next = 1 // index 0 means none
	}
}

// objects returns how many objects chunk c has room for.
func (s *Slab[T]) objects(c uint32) uint32 {
	var zero T
	first := uint64(firstBytes / unsafe.Sizeof(zero))
	return uint32(min(first<<min(c, chunkShift), chunkMask))
}

// Live returns the number of allocated objects.
func (s *Slab[T]) Live() int { return s.live }

// Mapped returns the bytes of address space that the slab holds. Only pages that were used cost memory.
func (s *Slab[T]) Mapped() int {
	n := 0
	for c := range s.n {
		n += len(s.chunk(c))
	}
	return n
}

// chunk views the whole mapping of chunk c.
func (s *Slab[T]) chunk(c uint32) []byte {
	var zero T
	return unsafe.Slice((*byte)(s.chunks[c]), Round(int(s.objects(c))*int(unsafe.Sizeof(zero))))
}

// Trim gives all chunks but the first back if no object is allocated, and does nothing otherwise.
func (s *Slab[T]) Trim() error {
	if s.live != 0 || s.n <= 1 {
		return nil
	}
	err := s.unmapFrom(1)
	s.free = 0
	s.enter(0)
	s.drains = 0
	return err
}

// unmapFrom unmaps the chunks from c on, last first. On failure the chunks that are left stay usable.
func (s *Slab[T]) unmapFrom(c uint32) error {
	for s.n > c {
		if err := Unmap(s.chunk(s.n - 1)); err != nil {
			return fmt.Errorf("slab chunk %d: %w", s.n-1, err)
		}
		s.n--
		s.chunks[s.n] = nil
	}
	return nil
}

// Close unmaps everything. All objects are gone; the slab is empty and may be used again.
func (s *Slab[T]) Close() error {
	err := s.unmapFrom(0)
	if err != nil {
		err = errors.Join(errors.New("close slab"), err)
	}
	*s = Slab[T]{chunks: s.chunks, n: s.n}
	return err
}
