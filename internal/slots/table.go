// Package slots has tables of things that are under way, by number.
//
// # Model
//
// Any thread takes a slot for a thing, finds the thing that has one, and gives it up, without a lock. Nothing is
// allocated but for a slot beyond those that were in use at a time.
//
// # Why it holds
//
//   - A slot is one thing's from Take to Give. A user whose thing may have given its slot up finds another there, or
//     none, and compares.
//   - Slots that are free are a stack, whose top also counts how often it was changed. A thread that takes the top has
//     read which slot is below it (S1); if that slot was taken and given back meanwhile, below another one, the count
//     differs, and the exchange fails (S0).
//   - A slot below used has memory: it is made before used grows (S2), and stays until the collector has it with
//     the table.
package slots

import (
	"math/bits"
	"sync/atomic"
)

// Max is how many slots a table has: at least as many as an endpoint may have operations under way.
const Max = 1 << 20

const (
	first  = 16
	chunks = 17 // first << (chunks-1) = Max
)

// Table has slots. The zero Table is empty.
type Table[T any] struct {
	// free is the top of the stack in its low half, a slot and 1, 0 for none; above, how often it was changed. Written
	// and read by any thread, sequentially consistent, as what follows.
	free atomic.Uint64
	used atomic.Uint32 // slots that were in use at a time; grows
	// chunks have first, then each as many as all before it together. Set once each, nil before.
	chunks [chunks]atomic.Pointer[[]slot[T]]
}

type slot[T any] struct {
	it    atomic.Pointer[T] // nil: it is free. Written by the thread that has the slot, read by any
	below atomic.Uint32     // the next of the stack, as free's low half; written by the thread that gives, read by any
}

// chunkOf is the chunk of a slot. Its place there is what is left of the number by the chunk's length, a power of two.
func chunkOf(n uint32) int { return bits.Len32(n / first) }

// slot returns one that is below used.
func (t *Table[T]) slot(n uint32) *slot[T] {
	chunk := *t.chunks[chunkOf(n)].Load()
	return &chunk[n&uint32(len(chunk)-1)]
}

// Take gives a thing a slot, below Max. False: all are taken.
func (t *Table[T]) Take(it *T) (n uint32, ok bool) {
	if n, ok = t.pop(); !ok {
		if n, ok = t.more(); !ok {
			n, ok = t.pop() // one may have been given back between the two
		}
	}
	if ok {
		t.slot(n).it.Store(it)
	}
	return n, ok
}

// pop takes a slot off the stack. False: it is empty.
func (t *Table[T]) pop() (n uint32, ok bool) {
	for {
		top := t.free.Load()
		if uint32(top) == 0 {
			return 0, false
		}
		n = uint32(top) - 1
		below := t.slot(n).below.Load()                                // S1
		if t.free.CompareAndSwap(top, (top>>32+1)<<32|uint64(below)) { // S0
			return n, true
		}
	}
}

// more takes a slot that was not in use before.
func (t *Table[T]) more() (n uint32, ok bool) {
	for n = t.used.Load(); n < Max; n = t.used.Load() {
		if at := &t.chunks[chunkOf(n)]; at.Load() == nil {
			chunk := make([]slot[T], max(first, first<<chunkOf(n)>>1))
			at.CompareAndSwap(nil, &chunk)
		}
		if t.used.CompareAndSwap(n, n+1) { // S2
			return n, true
		}
	}
	return 0, false
}

// Give frees a slot that is taken.
func (t *Table[T]) Give(n uint32) {
	s := t.slot(n)
	s.it.Store(nil)
	for {
		top := t.free.Load()
		s.below.Store(uint32(top))
		if t.free.CompareAndSwap(top, (top>>32+1)<<32|uint64(n+1)) { // S0
			return
		}
	}
}

// At returns what has a slot, nil: it is free, or there is none.
func (t *Table[T]) At(n uint64) *T {
	if n >= uint64(t.used.Load()) {
		return nil
	}
	return t.slot(uint32(n)).it.Load()
}

// Each calls f with every thing that has a slot meanwhile, as long as it returns true.
func (t *Table[T]) Each(f func(*T) bool) {
	for n := range uint64(t.used.Load()) {
		if it := t.At(n); it != nil && !f(it) {
			return
		}
	}
}
