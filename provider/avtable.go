package provider

import (
	"encoding/binary"
	"math/bits"
	"sync/atomic"

	"github.com/weft-fabric/weft/provider/names"
)

// packedName is an endpoint's name as words, as tables hold it: family (bits 0
// to 7), key (from bit 8), port (from bit 16) and scope (from bit 32) in the first,
// the address in the others.
type packedName [3]uint64

func packName(n names.Name) packedName {
	return packedName{
		uint64(n.Family) | uint64(n.Key)<<8 | uint64(n.Port)<<16 | uint64(n.Scope)<<32,
		binary.LittleEndian.Uint64(n.IP[:8]),
		binary.LittleEndian.Uint64(n.IP[8:]),
	}
}

func (p packedName) unpack() names.Name {
	n := names.Name{Family: uint16(uint8(p[0])), Key: uint8(p[0] >> 8), Port: uint16(p[0] >> 16), Scope: uint32(p[0] >> 32)}
	binary.LittleEndian.PutUint64(n.IP[:8], p[1])
	binary.LittleEndian.PutUint64(n.IP[8:], p[2])
	return n
}

// valid tells whether p names an endpoint. Only what other processes wrote
// needs to be asked.
func (p packedName) valid() bool {
	n := p.unpack()
	if n.Key != 0 {
		return false // address vectors with keys are not shared
	}
	switch n.Family {
	case names.AFInet:
		return n.Scope == 0 && p[1]>>32 == 0 && p[2] == 0 && !n.IsAny() && n.Port != 0
	case names.AFInet6:
		return !n.IsAny() && n.Port != 0
	}
	return false
}

// avEntry is one place of an address table.
type avEntry struct {
	// seq is odd while an address stands here and even while not; every
	// change adds one. Written by the holder of the table's lock with a
	// store-release, read by any thread with a load-acquire (A1, A2).
	seq uint64
	// name is written only while seq is even, so that nobody who finds an
	// odd seq before and after has read a mixture. Each word is atomic.
	name packedName
}

// load reads the entry. It waits for nobody: when seq changed meanwhile then
// the address was removed at some instant of the call, and none is the answer.
func (e *avEntry) load() (n packedName, set bool) {
	seq := atomic.LoadUint64(&e.seq) // A1: pairs with store
	if seq&1 == 0 {
		return packedName{}, false
	}
	for i := range n {
		n[i] = atomic.LoadUint64(&e.name[i])
	}
	return n, atomic.LoadUint64(&e.seq) == seq // A2: pairs with clear
}

// store puts an address at an empty place. Only the table's writer calls it.
func (e *avEntry) store(n packedName) {
	for i := range n {
		atomic.StoreUint64(&e.name[i], n[i])
	}
	atomic.StoreUint64(&e.seq, atomic.LoadUint64(&e.seq)+1)
}

// clear takes the address away. Only the table's writer calls it.
func (e *avEntry) clear() {
	atomic.StoreUint64(&e.seq, atomic.LoadUint64(&e.seq)+1)
}

// Chunk 0 has avFirstChunk entries and each one after it as many as all before
// it together, so that entries never move and a small table stays small.
const (
	avFirstLog2  = 6
	avFirstChunk = 1 << avFirstLog2
	avChunks     = 32 - avFirstLog2 + 1 // indexes below 1<<32
)

// avTable is an array of addresses that grows. One writer at a time changes it,
// any number of threads read it without a lock.
type avTable struct {
	// chunks are published by the writer (store-release) when an index in
	// them is used first, and never replaced; readers load-acquire.
	chunks [avChunks]atomic.Pointer[[]avEntry]
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
	chunk = bits.Len64(i >> avFirstLog2)
	if chunk == 0 {
		return 0, i
	}
	return chunk, i - avFirstChunk<<(chunk-1)
}

// at returns the entry of an index, or nil where the table has never been used.
func (t *avTable) at(i uint64) *avEntry {
	chunk, offset := chunkOf(i)
	if chunk >= avChunks {
		return nil
	}
	c := t.chunks[chunk].Load()
	if c == nil {
		return nil
	}
	return &(*c)[offset]
}

// load returns the name at an index. Any thread; no lock, no allocation.
func (t *avTable) load(i uint64) (packedName, bool) {
	e := t.at(i)
	if e == nil {
		return packedName{}, false
	}
	return e.load()
}

// next returns the lowest unset index without using it. Writer only.
func (t *avTable) next() uint64 {
	for len(t.free) > 0 {
		i := uint64(t.free[0])
		if _, set := t.load(i); !set {
			return i
		}
		t.free.pop()
	}
	return t.limit
}

// set puts a name at an unset index. Writer only.
func (t *avTable) set(i uint64, n packedName) {
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
func (t *avTable) clear(i uint64) {
	t.at(i).clear()
	t.used--
	t.free.push(uint32(i))
	if uint64(len(t.free)) > 2*t.limit {
		t.collectFree()
	}
}

// grow publishes the chunk of index i.
func (t *avTable) grow(i uint64) *avEntry {
	chunk, offset := chunkOf(i)
	size := uint64(avFirstChunk)
	if chunk > 0 {
		size <<= chunk - 1
	}
	c := make([]avEntry, size)
	t.chunks[chunk].Store(&c)
	return &c[offset]
}

// collectFree drops the superfluous elements of free. An ascending array is a
// heap.
func (t *avTable) collectFree() {
	t.free = t.free[:0]
	for i := range t.limit {
		if _, set := t.load(i); !set {
			t.free = append(t.free, uint32(i))
		}
	}
}

// minHeap is a binary heap of numbers, the smallest first (CLRS, chapter
// "Heapsort").
type minHeap []uint32

// push adds a number; numbers may be in the heap several times.
func (h *minHeap) push(x uint32) {
	s := append(*h, x)
	i := len(s) - 1
	for i > 0 {
		up := (i - 1) / 2
		if s[up] <= x {
			break
		}
		s[i] = s[up]
		i = up
	}
	s[i] = x
	*h = s
}

// pop removes the smallest number. The heap must not be empty.
func (h *minHeap) pop() uint32 {
	s := *h
	smallest := s[0]
	x := s[len(s)-1]
	s = s[:len(s)-1]
	i := 0
	for {
		c := 2*i + 1
		if c >= len(s) {
			break
		}
		if c+1 < len(s) && s[c+1] < s[c] {
			c++
		}
		if x <= s[c] {
			break
		}
		s[i] = s[c]
		i = c
	}
	if len(s) > 0 {
		s[i] = x
	}
	*h = s
	return smallest
}
