// Package keys finds memory regions by the keys by which peers name them ([Table]), and counts the accesses to each, so
// that closing one waits for them ([Gate]).
package keys

import "sync/atomic"

// Table finds the regions, of type M, that peers may access by their keys: a hash table with linear probing. Lookups
// take no lock, because every access of a peer makes one. Changes are control operations, under a lock of the caller's.
// The zero table is empty.
type Table[M any] struct {
	// slots is replaced as a whole when it fills. Stored by Add, read by Find;
	// sequentially consistent.
	slots   atomic.Pointer[[]slot[M]]
	removed Entry[M] // stands in the slots of removed keys
	used    int      // slots that are not empty, including removed ones; under the caller's lock
}

// slot is empty (nil), removed (Table.removed, which has no region), or a key. Written under the caller's lock, read by
// any thread; sequentially consistent.
type slot[M any] struct{ atomic.Pointer[Entry[M]] }

// Entry is a key by which peers name a region. Immutable once it is entered.
type Entry[M any] struct {
	Key    uint64
	Region *M // not nil
}

// hash spreads keys that applications count up (Fibonacci hashing, Knuth,
// The Art of Computer Programming, volume 3, 6.4).
func hash(key uint64, slots int) int {
	return int((key * 0x9E3779B97F4A7C15) >> 32 & uint64(slots-1))
}

// Find returns the region of a key, nil if there is none. Any thread may call it.
func (t *Table[M]) Find(key uint64) *M {
	p := t.slots.Load()
	if p == nil {
		return nil
	}
	slots := *p
	for i := hash(key, len(slots)); ; i = (i + 1) & (len(slots) - 1) {
		k := slots[i].Load()
		if k == nil {
			return nil
		}
		if k.Key == key && k.Region != nil {
			return k.Region
		}
	}
}

// Add enters a key that no other region has.
func (t *Table[M]) Add(k *Entry[M]) {
	if p := t.slots.Load(); p == nil || 2*(t.used+1) > len(*p) {
		t.rebuild()
	}
	if insert(*t.slots.Load(), k) {
		t.used++
	}
}

// insert reports whether it took a slot that was empty.
func insert[M any](slots []slot[M], k *Entry[M]) bool {
	for i := hash(k.Key, len(slots)); ; i = (i + 1) & (len(slots) - 1) {
		if old := slots[i].Load(); old == nil || old.Region == nil {
			slots[i].Store(k)
			return old == nil
		}
	}
}

// All returns the keys.
func (t *Table[M]) All() (live []*Entry[M]) {
	if p := t.slots.Load(); p != nil {
		for i := range *p {
			if k := (*p)[i].Load(); k != nil && k.Region != nil {
				live = append(live, k)
			}
		}
	}
	return live
}

// rebuild moves the keys to a table with room for as many again.
func (t *Table[M]) rebuild() {
	live := t.All()
	size := 16
	for size < 4*(len(live)+1) {
		size *= 2
	}
	slots := make([]slot[M], size)
	for _, k := range live {
		insert(slots, k)
	}
	t.used = len(live)
	t.slots.Store(&slots)
}

// Remove takes a key out; one that is not there is ignored.
func (t *Table[M]) Remove(k *Entry[M]) {
	p := t.slots.Load()
	if p == nil {
		return
	}
	slots := *p
	for i := hash(k.Key, len(slots)); ; i = (i + 1) & (len(slots) - 1) {
		switch slots[i].Load() {
		case nil:
			return
		case k:
			slots[i].Store(&t.removed)
			return
		}
	}
}
