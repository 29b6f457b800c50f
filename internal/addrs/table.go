package addrs

import (
	"math/bits"
	"sync/atomic"
)

// entry is one place of an address table.
type entry struct {
	// seq is odd while an address stands here and even while not; every
	// change adds one. Written by the holder of the table's lock with a
	// store-release, read by any thread with a load-acquire (A1, A2).
	seq uint64
	// name is written only while seq is even, so that no reader of an
	// odd seq before and after has read a mixture. Each word is atomic.
	name packed
}

// load reads the entry. It never waits: when seq changed meanwhile then
// the address was removed at some instant of the call, and none is the answer.
func (e *entry) load() (n packed, set bool) {
	seq := atomic.LoadUint64(&e.seq) // A1: pairs with store
	if seq&1 == 0 {
		return packed{}, false
	}
	for i := range n {
		n[i] = atomic.LoadUint64(&e.name[i])
	}
	return n, atomic.LoadUint64(&e.seq) == seq // A2: pairs with clear
}

// store puts an address at an empty place. Only the table's writer calls it.
func (e *entry) store(n packed) {
	for i := range n {
		atomic.StoreUint64(&e.name[i], n[i])
	}
	atomic.StoreUint64(&e.seq, atomic.LoadUint64(&e.seq)+1)
}

// clear takes the address away. Only the table's writer calls it.
func (e *entry) clear() {
	atomic.StoreUint64(&e.seq, atomic.LoadUint64(&e.seq)+1)
}

// Chunk 0 has firstChunk entries and each one after it as many as all before
// it together, so that entries never move and a small table stays small.
const (
	firstLog2  = 6
	firstChunk = 1 << firstLog2
	chunkCount = 32 - firstLog2 + 1 // indexes below 1<<32
)

// table is an array of addresses that grows. One writer at a time changes it,
// any number of threads read it without a lock.
type table struct {
	// chunks are published by the writer (store-release) when an index in
	// them is used first, and never replaced; readers load-acquire.
	chunks [chunkCount]atomic.Pointer[[]entry]
	// limit is one more than the highest index ever used. Writer's own.
	limit uint64
	// used counts the set entries. Writer's own.
	used uint64
	// free holds the unset indexes below limit, and perhaps others, which
	// are skipped when they come up. Writer's own.
	free minHeap
}

// chunkOf returns the chunk of an index, and the index within it.
func chunkOf(i uint64) (chunk int, offset uint64) {
	chunk = bits.Len64(i >> firstLog2)
	if chunk == 0 {
		return 0, i
	}
	return chunk, i - firstChunk<<(chunk-1)
}

// at returns the entry of an index, or nil where the table has never been used.
func (t *table) at(i uint64) *entry {
	chunk, offset := chunkOf(i)
	if chunk >= chunkCount {
		return nil
	}
	c := t.chunks[chunk].Load()
	if c == nil {
		return nil
	}
	return &(*c)[offset]
}

// load returns the name at an index. Any thread; no lock, no allocation.
func (t *table) load(i uint64) (packed, bool) {
	e := t.at(i)
	if e == nil {
		return packed{}, false
	}
	n, set := e.load()
	return n, set && n != noName
}

// isSet reports whether an index is in use, by a name or noName. Writer only.
func (t *table) isSet(i uint64) bool {
	e := t.at(i)
	return e != nil && atomic.LoadUint64(&e.seq)&1 != 0
}

// next returns the lowest unset index without using it. Writer only.
func (t *table) next() uint64 {
	for len(t.free) > 0 {
		i := uint64(t.free[0])
		if !t.isSet(i) {
			return i
		}
		t.free.pop()
	}
	return t.limit
}

// set puts a name at an unset index. Writer only.
func (t *table) set(i uint64, n packed) {
	for ; t.limit <= i; t.limit++ {
		if t.limit < i {
			t.free.push(uint32(t.limit))
		}
	}
	e := t.at(i)
	if e == nil {
		e = t.grow(i)
	}
	e.store(n)
	t.used++
}

// clear unsets a set index. Writer only.
func (t *table) clear(i uint64) {
	t.at(i).clear()
	t.used--
	t.free.push(uint32(i))
	if uint64(len(t.free)) > 2*t.limit {
		t.collectFree()
	}
}

// grow publishes the chunk of index i.
func (t *table) grow(i uint64) *entry {
	chunk, offset := chunkOf(i)
	size := uint64(firstChunk)
	if chunk > 0 {
		size <<= chunk - 1
	}
	c := make([]entry, size)
	t.chunks[chunk].Store(&c)
	return &c[offset]
}

// collectFree drops the superfluous elements of free. An ascending array is a
// heap.
func (t *table) collectFree() {
	t.free = t.free[:0]
	for i := range t.limit {
		if !t.isSet(i) {
			t.free = append(t.free, uint32(i))
		}
	}
}
