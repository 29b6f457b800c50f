package stripe

import (
	"fmt"
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/mem"
)

// Table holds the requests of an endpoint that wait for an answer, off the Go
// heap: a fixed number for each stripe. T must hold no Go pointers.
//
// Alloc is called by the holder of the stripe's lease. Free may be called by any thread, once for each request.
// Lookup and Range are for threads that may free, the holder of the progress lease.
//
// A request's id is
//
//	63        32 31       20 19      0
//	+-----------+-----------+--------+
//	|generation |  stripe   | index  |
//	+-----------+-----------+--------+
//
// The generation changes each time the request is used again, so that a late
// or forged answer is recognised. It starts at 1: 0 is no id.
type Table[T any] struct {
	perStripe int
	entries   mem.Array[entry[T]]
	lists     []list
}

const (
	stripeShift = 20
	indexMask   = 1<<stripeShift - 1
	genShift    = 32
)

// entry is a request with its state.
type entry[T any] struct {
	// gen is the generation while the request is in use, with the top bit
	// set while it is free. Written by Alloc (release) and Free (release),
	// read by Lookup (acquire).
	gen  uint32
	next uint32 // index plus one of the next free entry, 0: none
	body T
}

const freeBit = 1 << 31

// list is the free entries of one stripe: a stack that anyone pushes on and only the lease holder pops from. With one
// popper at a time no entry that it has read can leave the stack and come back, which is the ABA case: only a pop
// takes entries off.
type list struct {
	head  uint32 // index plus one; CAS by pushers (release) and the popper (acquire)
	fresh uint32 // entries from here on were never used; the lease holder's
	_     [56]byte
}

// NewTable makes a table of perStripe requests for each of n stripes.
func NewTable[T any](n, perStripe int) (*Table[T], error) {
	if n < 1 || perStripe < 1 || n > 1<<(genShift-stripeShift) || perStripe > indexMask {
		return nil, fmt.Errorf("stripe: table of %d x %d requests: %w", n, perStripe, mem.ErrSize)
	}
	entries, err := mem.NewArray[entry[T]](n * perStripe)
	if err != nil {
		return nil, fmt.Errorf("stripe: table of %d x %d requests: %w", n, perStripe, err)
	}
	return &Table[T]{perStripe: perStripe, entries: entries, lists: make([]list, n)}, nil
}

// Close gives the memory back. The table is not used any more.
func (t *Table[T]) Close() error { return t.entries.Free() }

func (t *Table[T]) at(stripe, index int) *entry[T] {
	return t.entries.At(uint32(stripe*t.perStripe + index))
}

// Alloc takes a request of a stripe whose lease the caller holds. Its content
// is what was there before. It reports false when all are in use.
func (t *Table[T]) Alloc(stripe int) (*T, uint64, bool) {
	l := &t.lists[stripe]
	index, ok := t.pop(stripe, l)
	if !ok {
		if int(l.fresh) == t.perStripe {
			return nil, 0, false
		}
		index = int(l.fresh)
		l.fresh++
	}
	e := t.at(stripe, index)
	gen := (e.gen&^freeBit + 1) &^ freeBit
	if gen == 0 {
		gen = 1
	}
	atomic.StoreUint32(&e.gen, gen)
	return &e.body, uint64(gen)<<genShift | uint64(stripe)<<stripeShift | uint64(index), true
}

func (t *Table[T]) pop(stripe int, l *list) (int, bool) {
	for {
		h := atomic.LoadUint32(&l.head)
		if h == 0 {
			return 0, false
		}
		next := atomic.LoadUint32(&t.at(stripe, int(h-1)).next)
		if atomic.CompareAndSwapUint32(&l.head, h, next) {
			return int(h - 1), true
		}
	}
}

// find returns the entry of an id that is in use.
func (t *Table[T]) find(id uint64) (*entry[T], bool) {
	stripe, index := int(id>>stripeShift)&(1<<(genShift-stripeShift)-1), int(id&indexMask)
	if stripe >= len(t.lists) || index >= t.perStripe {
		return nil, false
	}
	e := t.at(stripe, index)
	gen := uint32(id >> genShift)
	return e, gen != 0 && gen&freeBit == 0 && atomic.LoadUint32(&e.gen) == gen
}

// Lookup returns the request of an id, which may come from a peer: an id that
// is not in use is refused.
func (t *Table[T]) Lookup(id uint64) (*T, bool) {
	e, ok := t.find(id)
	if !ok {
		return nil, false
	}
	return &e.body, true
}

// Index is a request's place among all of the table, from 0.
func (t *Table[T]) Index(id uint64) int {
	stripe, index := int(id>>stripeShift)&(1<<(genShift-stripeShift)-1), int(id&indexMask)
	return stripe*t.perStripe + index
}

// Free gives a request back. A stale id is refused: it returns false.
func (t *Table[T]) Free(id uint64) bool {
	e, ok := t.find(id)
	if !ok || !atomic.CompareAndSwapUint32(&e.gen, uint32(id>>genShift), uint32(id>>genShift)|freeBit) {
		return false
	}
	l := &t.lists[int(id>>stripeShift)&(1<<(genShift-stripeShift)-1)]
	for {
		h := atomic.LoadUint32(&l.head)
		atomic.StoreUint32(&e.next, h)
		if atomic.CompareAndSwapUint32(&l.head, h, uint32(id&indexMask)+1) {
			return true
		}
	}
}

// Range calls f for every request in use. f may free the one it is called for.
// A request that is allocated meanwhile may be missed.
func (t *Table[T]) Range(f func(id uint64, r *T)) {
	for s := range t.lists {
		for i := range t.perStripe {
			e := t.at(s, i)
			gen := atomic.LoadUint32(&e.gen)
			if gen != 0 && gen&freeBit == 0 {
				f(uint64(gen)<<genShift|uint64(s)<<stripeShift|uint64(i), &e.body)
			}
		}
	}
}
