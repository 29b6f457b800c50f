package peers

import (
	"iter"
	"slices"
	"sync"
	"sync/atomic"
)

// Use counts the threads that use an element of a [Table], so that it is not removed meanwhile. The zero Use is of an
// element that is not used. Any thread may call its methods.
type Use struct {
	// users counts the threads; retired is added when the element is removed. Changed by any thread; sequentially
	// consistent.
	users atomic.Int32
}

// retired in Use.users: a thread that would use the element releases it again.
const retired = -1 << 30

// Hold keeps the element from being removed, until Release. It reports false if it is removed.
func (u *Use) Hold() bool {
	if u.users.Add(1) > 0 {
		return true
	}
	u.users.Add(-1)
	return false
}

// Release takes back a Hold.
func (u *Use) Release() { u.users.Add(-1) }

// Retire takes the element out of use if no thread holds it, and idle reports true then. A thread that holds it has
// more than that lead to it before it lets go, which idle sees, or leaves nothing behind.
func (u *Use) Retire(idle func() bool) bool {
	if !u.users.CompareAndSwap(0, retired) {
		return false
	}
	if !idle() {
		u.users.Add(-retired)
		return false
	}
	return true
}

// used is the Use of an element.
func (u *Use) used() *Use { return u }

// Element is a pointer to a structure that has a [Use].
type Element[L any] interface {
	*L
	used() *Use
}

// Table has what an endpoint knows of its peers, an element for each interface of a peer, by numbers, which are used
// again, and by addresses. Any thread reads it and adds to it; one thread at a time sweeps it. Init comes first.
type Table[L any, P Element[L]] struct {
	// list is by number, nil where there is none, and replaced as a whole. Stored under mu, read by any thread;
	// sequentially consistent.
	list atomic.Pointer[[]P]
	// made counts the elements ever made. Added to under mu, read by any thread; sequentially consistent.
	made atomic.Uint64

	mu        sync.Mutex // not on the way of a send to a known peer
	numbers   map[Address]uint32
	free      []uint32 // numbers
	keptCount int      // by the last sweep
}

// Init makes the table an empty one.
func (t *Table[L, P]) Init() {
	t.numbers, t.free, t.keptCount = map[Address]uint32{}, nil, 0
	t.list.Store(&[]P{})
}

// At returns the element of a number that has been used, nil if there is none now.
func (t *Table[L, P]) At(number uint32) P { return (*t.list.Load())[number] }

// All are the elements that there are when it is called.
func (t *Table[L, P]) All() iter.Seq[P] {
	list := *t.list.Load()
	return func(yield func(P) bool) {
		for _, l := range list {
			if l != nil && !yield(l) {
				return
			}
		}
	}
}

// Made is how many elements were ever made.
func (t *Table[L, P]) Made() uint64 { return t.made.Load() }

// Find returns the element of an address, nil if there is none.
func (t *Table[L, P]) Find(a Address) P {
	t.mu.Lock()
	defer t.mu.Unlock()
	if number, ok := t.numbers[a]; ok {
		return t.At(number)
	}
	return nil
}

// Hold returns the element of an address and holds it for the caller, which releases it. If there is none create makes
// it, for a number, with the table locked.
func (t *Table[L, P]) Hold(a Address, create func(number uint32) P) P {
	t.mu.Lock()
	defer t.mu.Unlock()
	var l P
	if number, ok := t.numbers[a]; ok {
		l = t.At(number)
	} else {
		l = t.add(a, create)
	}
	l.used().users.Add(1) // while the table is locked what it has is not retired
	return l
}

// add makes an element. The caller has mu.
func (t *Table[L, P]) add(a Address, create func(number uint32) P) P {
	list := *t.list.Load()
	var l P
	var number uint32
	if n := len(t.free); n != 0 {
		number, t.free = t.free[n-1], t.free[:n-1]
		l = create(number)
		list = slices.Clone(list)
		list[number] = l
	} else {
		number = uint32(len(list))
		l = create(number)
		list = append(list[:number:number], l)
	}
	t.list.Store(&list)
	t.numbers[a] = number
	t.made.Add(1)
	return l
}

// Due reports whether there are many more elements than after the last Sweep.
func (t *Table[L, P]) Due() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.numbers) >= t.keptCount*2+slack
}

// Sweep removes the elements that retire has retired: it is called for each, with the table locked, and reports whether
// it has.
func (t *Table[L, P]) Sweep(retire func(P) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := slices.Clone(*t.list.Load())
	for a, number := range t.numbers {
		if retire(list[number]) {
			delete(t.numbers, a)
			list[number] = nil
			t.free = append(t.free, number)
		}
	}
	t.list.Store(&list)
	t.keptCount = len(t.numbers)
}
