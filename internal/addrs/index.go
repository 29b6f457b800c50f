package addrs

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"sync/atomic"
)

// Values of a slot other than an index plus one.
const (
	hashEmpty = 0         // ends a search
	hashDead  = 1<<32 - 1 // was an index: a search goes on
	hashMin   = 1 << 4    // slots of the smallest table
)

// generation is one of the reverse table: open addressing with linear
// probing. Its length never changes.
type generation struct {
	// slots are written by the table's writer (store-release) and read by
	// any thread (load-acquire): a reader of an index finds its entry set, or
	// changed since.
	slots []atomic.Uint32
	shift uint // 64 minus log2 of the number of slots
}

// index finds the lowest index of a name in a table. One writer at a time
// changes it, together with the table; any number of threads search it without
// a lock or an allocation.
//
// A name has one slot, which holds its lowest index. When another index of the
// name takes its place, because it is lower or the lowest is to be removed, the
// writer changes the slot, then counts the move, and only then clears the entry
// of an index that the slot had (M1). A search that found such an entry cleared
// or used again, and therefore nothing, sees the count changed and starts again
// (M2).
type index struct {
	table *table
	seed  maphash.Seed
	// hash is the current generation, never nil after init. Stored by the
	// writer (release), loaded by searches (acquire).
	hash atomic.Pointer[generation]
	// moves counts how often a slot got another index of its name. Stored by
	// the writer after the slot and before any entry is cleared (M1), loaded
	// by searches first and last (M2).
	moves atomic.Uint64
	// taken counts the slots that are not empty. Writer's own.
	taken int
	// twins holds, for names that stand at several indexes, those that are
	// not in the slot, and perhaps others that are skipped when they come
	// up. Writer's own.
	twins map[packed]*minHeap
}

// init prepares the index of t for about count names.
func (x *index) init(t *table, count int) {
	x.table = t
	x.seed = maphash.MakeSeed()
	x.twins = map[packed]*minHeap{}
	x.hash.Store(newGeneration(count))
}

// newGeneration makes a table that is at most half full with count names.
func newGeneration(count int) *generation {
	log2 := uint(bits.Len(uint(max(2*count, hashMin)) - 1))
	return &generation{slots: make([]atomic.Uint32, 1<<log2), shift: 64 - log2}
}

// first returns the slot where the search for a name starts.
func (h *generation) first(seed maphash.Seed, n packed) int {
	return int(maphash.Comparable(seed, n) >> h.shift)
}

// find returns the lowest index of a name. Any thread.
func (x *index) find(n packed) (uint64, bool) {
	for {
		moves := x.moves.Load()
		if i, ok := x.search(n); ok {
			return i, true
		}
		if x.moves.Load() == moves {
			return 0, false
		}
	}
}

// search finds a name in the current generation.
func (x *index) search(n packed) (uint64, bool) {
	h := x.hash.Load()
	mask := len(h.slots) - 1
	for s := h.first(x.seed, n); ; s++ {
		v := h.slots[s&mask].Load()
		if v == hashEmpty {
			return 0, false
		}
		if v == hashDead {
			continue
		}
		i := uint64(v - 1)
		if m, set := x.table.load(i); set && m == n {
			return i, true
		}
	}
}

// add enters index i, whose entry holds n already. Writer only.
func (x *index) add(n packed, i uint64) {
	if 4*(x.taken+1) > 3*len(x.hash.Load().slots) {
		x.rebuild()
	}
	h := x.hash.Load()
	mask := len(h.slots) - 1
	place := -1
	for s := h.first(x.seed, n); ; s++ {
		v := h.slots[s&mask].Load()
		if v == hashEmpty {
			if place < 0 {
				place = s & mask
				x.taken++
			}
			h.slots[place].Store(uint32(i + 1))
			return
		}
		if v == hashDead {
			if place < 0 {
				place = s & mask
			}
			continue
		}
		j := uint64(v - 1)
		if m, set := x.table.load(j); set && m == n {
			x.addTwin(n, max(i, j))
			if i < j {
				h.slots[s&mask].Store(uint32(i + 1))
				x.moves.Add(1)
			}
			return
		}
	}
}

// addTwin remembers an index of a name that has a lower one.
func (x *index) addTwin(n packed, i uint64) {
	t := x.twins[n]
	if t == nil {
		t = &minHeap{}
		x.twins[n] = t
	}
	t.push(uint32(i))
	if uint64(len(*t)) > 2*x.table.used+hashMin {
		x.collectTwins(n, t)
	}
}

// collectTwins drops the superfluous elements. An ascending array is a heap.
func (x *index) collectTwins(n packed, t *minHeap) {
	slices.Sort(*t)
	*t = slices.DeleteFunc(slices.Compact(*t), func(i uint32) bool {
		m, set := x.table.load(uint64(i))
		return !set || m != n
	})
}

// remove takes index i, whose entry still holds n, out. Writer only; the
// caller clears the entry next.
func (x *index) remove(n packed, i uint64) {
	h := x.hash.Load()
	mask := len(h.slots) - 1
	for s := h.first(x.seed, n); ; s++ {
		v := h.slots[s&mask].Load()
		if v == hashEmpty {
			return // i is a twin: it is skipped when it comes up
		}
		if v != uint32(i+1) {
			continue
		}
		if j, ok := x.nextTwin(n, i); ok {
			h.slots[s&mask].Store(uint32(j + 1))
			x.moves.Add(1)
		} else {
			h.slots[s&mask].Store(hashDead)
		}
		return
	}
}

// nextTwin takes the lowest index of n other than i out of the twins.
func (x *index) nextTwin(n packed, i uint64) (uint64, bool) {
	t := x.twins[n]
	if t == nil {
		return 0, false
	}
	for len(*t) > 0 {
		j := uint64(t.pop())
		if m, set := x.table.load(j); set && m == n && j != i {
			return j, true
		}
	}
	delete(x.twins, n)
	return 0, false
}

// rebuild replaces the slots by a generation without dead ones, twice as large
// if need be. Writer only.
func (x *index) rebuild() {
	old := x.hash.Load()
	live := 0
	for s := range old.slots {
		if v := old.slots[s].Load(); v != hashEmpty && v != hashDead {
			live++
		}
	}
	h := newGeneration(live + 1)
	mask := len(h.slots) - 1
	for s := range old.slots {
		v := old.slots[s].Load()
		if v == hashEmpty || v == hashDead {
			continue
		}
		n, _ := x.table.load(uint64(v - 1))
		at := h.first(x.seed, n)
		for h.slots[at&mask].Load() != hashEmpty {
			at++
		}
		h.slots[at&mask].Store(v)
	}
	x.taken = live
	x.hash.Store(h)
}
