package cq

import (
	"sync"

	"github.com/weft-fabric/weft/internal/mem"
)

// overflow holds completions that found their ring full, first in, first out, in a
// circle of memory off the Go heap that doubles when it is full. A large one is
// given back when it is empty.
//
// mu is not on the data path: it is taken only from the moment a completion
// finds its ring full until the list is empty again.
type overflow struct {
	mu    sync.Mutex
	array mem.Array[kept]
	ring  []kept // all of array, or heap memory when there was none off the heap
	head  int    // index of the first in ring
	n     int
}

// keepRing is the largest empty circle that is kept, in entries.
const keepRing = 1024

type kept struct {
	entry Entry
	mark  uint32
	to    uint32 // the ring that it goes to
	post  bool   // it is of an operation that completed when it was posted
}

// append puts a completion at the end. The caller holds mu.
func (o *overflow) append(k kept) {
	if o.n == len(o.ring) {
		o.grow()
	}
	o.ring[(o.head+o.n)%len(o.ring)] = k
	o.n++
}

func (o *overflow) grow() {
	size := max(64, 2*len(o.ring))
	old, oldRing := o.array, o.ring
	a, err := mem.NewArray[kept](size)
	ring := a.Slice()
	if err != nil {
		ring = make([]kept, size) // a completion must not be lost
	}
	k := copy(ring, oldRing[o.head:])
	copy(ring[k:], oldRing[:o.head])
	o.array, o.ring, o.head = a, ring, 0
	_ = old.Free() // what cannot be unmapped stays mapped, unused
}

// first returns the oldest completion; the caller holds mu and n is not 0.
func (o *overflow) first() *kept { return &o.ring[o.head] }

// drop removes it.
func (o *overflow) drop() {
	o.head = (o.head + 1) % len(o.ring)
	if o.n--; o.n == 0 && len(o.ring) > keepRing {
		o.free()
	}
}

func (o *overflow) free() {
	_ = o.array.Free() // as in grow
	o.ring, o.head, o.n = nil, 0, 0
}
