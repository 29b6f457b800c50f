package list

import (
	"math/bits"
	"sync/atomic"
)

// slots are the numbers of operations that are under way. Any thread takes a slot, finds the operation that has one,
// and gives it up, without a lock; nothing is allocated but for a slot beyond those that were in use at a time.
//
// # Why it holds
//
//   - A slot is in the hands of one operation from take to give. Its number is in use that long only, so what at
//     returns for it is that operation: nothing ends an element after its post.
//   - Slots that are free are a stack, whose top also counts how often it was changed. A thread that takes the top has
//     read which slot is below it (S1); if that slot was taken and given back meanwhile, below another one, the count
//     differs, and the exchange fails (S0).
//   - A slot below used has memory: it is made before used grows (S2), and stays until the collector has it with
//     the endpoint.
type slots struct {
	// free is the top of the stack in its low half, a slot and 1, 0 for none; above, how often it was changed. Written
	// and read by any thread, sequentially consistent, as what follows.
	free atomic.Uint64
	used atomic.Uint32 // slots that were in use at a time; grows
	// chunks have firstSlots, then each as many as all before it together. Set once each, nil before.
	chunks [slotChunks]atomic.Pointer[[]slot]
}

type slot struct {
	op    atomic.Pointer[Op] // nil: it is free. Written by the thread that has the slot, read by any
	below atomic.Uint32      // the next of the stack, as free's low half; written by the thread that gives, read by any
}

const (
	firstSlots = 16
	slotChunks = 13 // firstSlots << (slotChunks-1) = maxOps
)

// chunkOf is the chunk of a slot. Its place there is what is left of the number by the chunk's length, a power of two.
func chunkOf(n uint32) int { return bits.Len32(n / firstSlots) }

// slot returns one that is below used.
func (s *slots) slot(n uint32) *slot {
	chunk := *s.chunks[chunkOf(n)].Load()
	return &chunk[n&uint32(len(chunk)-1)]
}

// take gives an operation a slot. False: there are maxOps.
func (s *slots) take(op *Op) (n uint32, ok bool) {
	if n, ok = s.pop(); !ok {
		n, ok = s.more()
	}
	if ok {
		s.slot(n).op.Store(op)
	}
	return n, ok
}

// pop takes a slot off the stack. False: it is empty.
func (s *slots) pop() (n uint32, ok bool) {
	for {
		top := s.free.Load()
		if uint32(top) == 0 {
			return 0, false
		}
		n = uint32(top) - 1
		below := s.slot(n).below.Load()                                // S1
		if s.free.CompareAndSwap(top, (top>>32+1)<<32|uint64(below)) { // S0
			return n, true
		}
	}
}

// more takes a slot that was not in use before.
func (s *slots) more() (n uint32, ok bool) {
	for n = s.used.Load(); n < maxOps; n = s.used.Load() {
		if at := &s.chunks[chunkOf(n)]; at.Load() == nil {
			chunk := make([]slot, max(firstSlots, firstSlots<<chunkOf(n)>>1))
			at.CompareAndSwap(nil, &chunk)
		}
		if s.used.CompareAndSwap(n, n+1) { // S2
			return n, true
		}
	}
	return 0, false
}

// give frees a slot.
func (s *slots) give(n uint32) {
	it := s.slot(n)
	it.op.Store(nil)
	for {
		top := s.free.Load()
		it.below.Store(uint32(top))
		if s.free.CompareAndSwap(top, (top>>32+1)<<32|uint64(n+1)) { // S0
			return
		}
	}
}

// at returns the operation of a slot, nil: it is free, or there is none.
func (s *slots) at(n uint64) *Op {
	if n >= uint64(s.used.Load()) {
		return nil
	}
	return s.slot(uint32(n)).op.Load()
}

// each calls f with every operation that has a slot meanwhile, as long as it returns true.
func (s *slots) each(f func(*Op) bool) {
	for n := range uint64(s.used.Load()) {
		if op := s.at(n); op != nil && !f(op) {
			return
		}
	}
}
