package mem

import (
	"errors"
	"fmt"
	"math/bits"
)

// Buffer classes are powers of two from 1<<minClass to 1<<maxClass bytes.
const (
	minClass = 6  // 64 B
	maxClass = 20 // 1 MiB
	nClasses = maxClass - minClass + 1
)

// MaxShared is the longest buffer, in bytes, that is no mapping of its own.
const MaxShared = 1 << maxClass

// Spans are what a pool maps. Buffers of up to 1<<smallClass bytes share spans of smallSpan bytes, larger ones up to
// 1<<mediumClass share spans of mediumSpan bytes; each still larger buffer has a span of its own. A shared span loses
// one buffer, or spanHeader bytes if that is more, to its header: 1/16 at the upper end of each range.
const (
	smallClass  = 12
	smallSpan   = 64 << 10
	mediumClass = 16
	mediumSpan  = 1 << 20
)

// span is the header at the start of every span. Spans start at a multiple of their size (single ones: of a page).
type span struct {
	next, prev uint64 // neighbours in the pool's list of spans with a free buffer, 0: none
	free       uint64 // first of the list of buffers put back, linked through their first 8 bytes, 0: none
	fresh      uint64 // address of the first buffer that was never used
	end        uint64 // address past the last buffer
	live       uint64 // buffers handed out
	bytes      uint64 // size of the mapping
	slot       uint64 // its place in the pool's table of spans
}

// Pool hands out byte buffers off the Go heap, for data of known size and short life: unexpected
// messages, above all. Get and Put take constant time except where they map or unmap. One owner at a time.
//
// Spans in which nothing is in use are kept up to the watermark given to NewPool; beyond it they are unmapped.
type Pool struct {
	avail  [nClasses]uint64 // per class, first span that has a free buffer
	keep   int              // watermark: most bytes of idle spans
	idle   int              // bytes of spans in which no buffer is in use
	used   int              // bytes handed out, by class size
	mapped int              // bytes of all spans
	large  int              // bytes handed out directly from Map
	spans  []uint64         // all spans, for Close; changes only when a span is mapped or unmapped
}

// NewPool returns an empty pool that keeps up to keep bytes of unused memory. It maps nothing until the first Get.
func NewPool(keep int) *Pool { return &Pool{keep: keep} }

// class returns the class of buffers of n bytes, 1 <= n <= 1<<maxClass, counted from 0.
func class(n int) int { return max(bits.Len(uint(n-1)), minClass) - minClass }

// PoolBytes is how much of a pool's memory a buffer of n bytes takes, n >= 1.
func PoolBytes(n int) int {
	if n > 1<<maxClass {
		return Round(n)
	}
	return 1 << ((uint(class(n)) + minClass) & 63)
}

// spanSize returns the size of the spans of class c, 0 if each buffer has its own.
func spanSize(c int) int {
	switch {
	case c <= smallClass-minClass:
		return smallSpan
	case c <= mediumClass-minClass:
		return mediumSpan
	}
	return 0
}

// Get returns the address of a buffer of at least n bytes, n >= 1, aligned to 64 bytes (see Bytes to access it). Its
// content is unspecified. It is the caller's until Put with the same n. The error wraps ErrSize or the errno of mmap
// (ENOMEM); a failed Get changes nothing.
func (p *Pool) Get(n int) (addr uint64, err error) {
	if n <= 0 || n > 1<<maxClass {
		return p.getLarge(n)
	}
	if c := class(n); p.avail[c] == 0 {
		if err := p.grow(c); err != nil {
			return 0, err
		}
	}
	return p.TryGet(n), nil
}

// TryGet is Get without mapping memory: it returns 0 when the pool has to grow. It needs nothing of the runtime.
func (p *Pool) TryGet(n int) (addr uint64) {
	if n <= 0 || n > 1<<maxClass {
		return 0
	}
	c := uint(class(n)) % nClasses
	if p.avail[c] == 0 {
		return 0
	}
	at := p.avail[c]
	s := spanAt(at)
	if s.live == 0 {
		p.idle -= int(s.bytes)
	}
	size := uint64(1) << (c + minClass)
	if addr = s.free; addr != 0 {
		s.free = *wordAt(addr)
	} else {
		addr = s.fresh
		s.fresh += size
	}
	s.live++
	if s.free == 0 && s.fresh == s.end {
		p.unlink(int(c), s)
	}
	p.used += int(size)
	return addr
}

// Put takes back a buffer from Get(n). addr and n must be as they were there; they are not checked.
func (p *Pool) Put(addr uint64, n int) {
	if n > 1<<maxClass {
		p.putLarge(addr, n)
		return
	}
	p.TryPut(addr, n)
	p.Reclaim()
}

// TryPut is Put that keeps all memory; [Pool.Reclaim] gives it back. It reports false, and has done nothing, for a
// buffer that is a mapping of its own. It needs nothing of the runtime.
func (p *Pool) TryPut(addr uint64, n int) bool {
	if n > 1<<maxClass {
		return false
	}
	c := uint(class(n)) % nClasses
	at := addr - uint64(pageSize)
	if size := spanSize(int(c)); size != 0 {
		at = addr &^ uint64(size-1)
	}
	s := spanAt(at)
	if s.free == 0 && s.fresh == s.end {
		p.link(int(c), at, s)
	}
	*wordAt(addr) = s.free
	s.free = addr
	s.live--
	p.used -= 1 << (c + minClass)
	if s.live == 0 {
		p.idle += int(s.bytes)
	}
	return true
}

// Reclaim unmaps spans in which nothing is in use down to the watermark.
func (p *Pool) Reclaim() {
	if p.idle > p.keep {
		p.trim(p.keep)
	}
}

// link puts a span at the front of its class's list.
func (p *Pool) link(c int, at uint64, s *span) {
	s.prev, s.next = 0, p.avail[c]
	if s.next != 0 {
		spanAt(s.next).prev = at
	}
	p.avail[c] = at
}

// unlink takes a span out of its class's list.
func (p *Pool) unlink(c int, s *span) {
	if s.prev != 0 {
		spanAt(s.prev).next = s.next
	} else {
		p.avail[c] = s.next
	}
	if s.next != 0 {
		spanAt(s.next).prev = s.prev
	}
}

// grow maps a span of class c. It counts as idle until a buffer is taken from it.
func (p *Pool) grow(c int) error {
	bufSize := 1 << (c + minClass)
	bytes, align := spanSize(c), spanSize(c)
	lead := max(bufSize, spanHeader)
	if bytes == 0 {
		bytes, align, lead = pageSize+bufSize, pageSize, pageSize
	}
	b, err := mapAligned(bytes, max(align, pageSize), NoReserve)
	if err != nil {
		return fmt.Errorf("buffer of %d bytes: %w", bufSize, err)
	}
	at := Address(b)
	s := spanAt(at)
	count := uint64(bytes-lead) / uint64(bufSize)
	s.fresh = at + uint64(lead)
	s.end = s.fresh + count*uint64(bufSize)
	s.bytes = uint64(len(b))
	p.link(c, at, s)
	s.slot = uint64(len(p.spans))
	p.spans = append(p.spans, at)
	p.idle += len(b)
	p.mapped += len(b)
	return nil
}

// release unmaps an idle span. If the kernel refuses, the span stays in use.
func (p *Pool) release(c int, at uint64) {
	s := spanAt(at)
	bytes, slot := int(s.bytes), s.slot
	p.unlink(c, s)
	if Unmap(Bytes(at, bytes)) != nil {
		p.link(c, at, s)
		return
	}
	last := len(p.spans) - 1
	if int(slot) != last {
		p.spans[slot] = p.spans[last]
		spanAt(p.spans[slot]).slot = slot
	}
	p.spans = p.spans[:last]
	p.idle -= bytes
	p.mapped -= bytes
}

func (p *Pool) getLarge(n int) (uint64, error) {
	b, err := Map(n, 0)
	if err != nil {
		return 0, fmt.Errorf("buffer of %d bytes: %w", n, err)
	}
	p.large += len(b)
	return Address(b), nil
}

func (p *Pool) putLarge(addr uint64, n int) {
	if Unmap(Bytes(addr, Round(n))) == nil {
		p.large -= Round(n)
	}
}

// Used returns the bytes handed out and not put back, each buffer counted with the size of its class (whole pages
// above the largest class).
func (p *Pool) Used() int { return p.used + p.large }

// Mapped returns the bytes of address space that the pool holds. Only pages that were used cost memory.
func (p *Pool) Mapped() int { return p.mapped + p.large }

// Trim unmaps every span in which nothing is in use, whatever the watermark.
func (p *Pool) Trim() { p.trim(0) }

// trim unmaps spans in which nothing is in use until those left have at most keep bytes.
func (p *Pool) trim(keep int) {
	for c := range p.avail {
		for at := p.avail[c]; at != 0 && p.idle > keep; {
			s := spanAt(at)
			next := s.next
			if s.live == 0 {
				p.release(c, at)
			}
			at = next
		}
	}
}

// Close unmaps everything up to the largest class, in use or not; buffers above it must have been put back before.
// The pool is empty then and may be used again.
func (p *Pool) Close() error {
	var errs []error
	for _, at := range p.spans {
		if err := Unmap(Bytes(at, int(spanAt(at).bytes))); err != nil {
			errs = append(errs, fmt.Errorf("close pool: %w", err))
		}
	}
	*p = Pool{keep: p.keep, large: p.large}
	return errors.Join(errs...)
}
