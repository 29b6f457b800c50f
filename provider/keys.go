package provider

import (
	"runtime"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
)

// keyTable finds the regions that peers may access by their keys: a hash table
// with linear probing. Lookups take no lock, because every access of a peer
// makes one. Changes are control operations, under mrTable.mu.
type keyTable struct {
	// slots is replaced as a whole when it fills. Stored by add, read by find;
	// sequentially consistent.
	slots atomic.Pointer[[]keySlot]
	used  int // slots that are not empty, including removed ones; mrTable.mu
}

// keySlot is empty (nil), removed (the address of removedKey), or a key.
// Written under mrTable.mu, read by any thread; sequentially consistent.
type keySlot = atomic.Pointer[keyEntry]

// keyEntry is a key by which peers name a region. Immutable once it is entered.
type keyEntry struct {
	key uint64
	mr  *MR
}

var removedKey keyEntry

// hashKey spreads keys that applications count up (Fibonacci hashing, Knuth,
// The Art of Computer Programming, volume 3, 6.4).
func hashKey(key uint64, slots int) int {
	return int((key * 0x9E3779B97F4A7C15) >> 32 & uint64(slots-1))
}

// find returns the region of a key, nil if there is none.
func (t *keyTable) find(key uint64) *MR {
	p := t.slots.Load()
	if p == nil {
		return nil
	}
	slots := *p
	for i := hashKey(key, len(slots)); ; i = (i + 1) & (len(slots) - 1) {
		k := slots[i].Load()
		if k == nil {
			return nil
		}
		if k != &removedKey && k.key == key {
			return k.mr
		}
	}
}

// add enters a key that no other region has. The caller holds mrTable.mu.
func (t *keyTable) add(k *keyEntry) {
	if p := t.slots.Load(); p == nil || 2*(t.used+1) > len(*p) {
		t.rebuild()
	}
	if insertKey(*t.slots.Load(), k) {
		t.used++
	}
}

// insertKey reports whether it took a slot that was empty.
func insertKey(slots []keySlot, k *keyEntry) bool {
	for i := hashKey(k.key, len(slots)); ; i = (i + 1) & (len(slots) - 1) {
		if old := slots[i].Load(); old == nil || old == &removedKey {
			slots[i].Store(k)
			return old == nil
		}
	}
}

// all returns the keys. The caller holds mrTable.mu.
func (t *keyTable) all() (live []*keyEntry) {
	if p := t.slots.Load(); p != nil {
		for i := range *p {
			if k := (*p)[i].Load(); k != nil && k != &removedKey {
				live = append(live, k)
			}
		}
	}
	return live
}

// rebuild moves the keys to a table with room for as many again.
func (t *keyTable) rebuild() {
	live := t.all()
	size := 16
	for size < 4*(len(live)+1) {
		size *= 2
	}
	slots := make([]keySlot, size)
	for _, k := range live {
		insertKey(slots, k)
	}
	t.used = len(live)
	t.slots.Store(&slots)
}

// remove takes a key out. The caller holds mrTable.mu.
func (t *keyTable) remove(k *keyEntry) {
	p := t.slots.Load()
	if p == nil {
		return
	}
	slots := *p
	for i := hashKey(k.key, len(slots)); ; i = (i + 1) & (len(slots) - 1) {
		switch slots[i].Load() {
		case nil:
			return
		case k:
			slots[i].Store(&removedKey)
			return
		}
	}
}

// gate counts the accesses to a region that are under way, so that closing it
// waits for them. The zero gate is open.
type gate struct {
	// n is the number of accesses, plus gateClosed once closing began. Added
	// to by accessing and by closing threads; sequentially consistent.
	n atomic.Int64
}

const gateClosed = -1 << 62

// enter begins an access. False: the region is closed.
func (g *gate) enter() bool {
	if g.n.Add(1) > 0 {
		return true
	}
	g.n.Add(-1)
	return false
}

// leave ends an access.
func (g *gate) leave() { g.n.Add(-1) }

// shut admits no further access and waits for those in progress. They copy a few
// megabytes at most and wait for nothing themselves.
func (g *gate) shut() {
	g.n.Add(gateClosed)
	for g.n.Load() != gateClosed {
		runtime.Gosched()
	}
}

// access finds the region of a key and enters it for a range and rights of
// which the caller is to have all. The caller leaves m.gate afterwards.
// Errors: fi.ENOKEY for an unknown or closed key, fi.EACCES when the rights or
// the range are not the region's.
func (d *Domain) access(key, addr, n, rights uint64) (m *MR, offset uint64, err error) {
	m = d.regions.keys.find(key)
	if m == nil || !m.gate.enter() {
		return nil, 0, fi.ENOKEY
	}
	offset = addr - m.base
	if m.access&rights != rights || offset > m.length || n > m.length-offset {
		m.gate.leave()
		return nil, 0, fi.EACCES
	}
	return m, offset, nil
}

// window appends the pieces of the region from offset to offset+n, which lie
// in it.
func (m *MR) window(to []fi.IOVec, offset, n uint64) []fi.IOVec {
	return window(to, m.parts, offset, n)
}
