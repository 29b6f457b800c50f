package region

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
)

// Table has a domain's regions. Find and Access take no lock; the other methods are control operations, but Translate.
// Any thread may call each. The zero Table is empty.
type Table[O any] struct {
	mu sync.Mutex
	// lines are the keys of those that peers may access. Replaced as a whole when they fill, under mu; read by any
	// thread; sequentially consistent.
	lines atomic.Pointer[lines[O]]
	word  uintptr // the same for the data plane, which reads it (Word); stored behind lines, sequentially consistent
	last  uint64  // descriptor given out last

	// special are the open regions of device memory, by descriptor. The lock is taken for reading by transfers that
	// name such a descriptor, for writing by control operations.
	specialMu sync.RWMutex
	special   map[uint64]*Region[O]
}

// DescSpecial is set in descriptors of regions of device memory. C reads it (WEFT_DESC_SPECIAL in cabi/objects.h);
// other descriptors mean nothing.
const DescSpecial = 1

// Find returns the region of a key, nil if there is none.
func (t *Table[O]) Find(key uint64) *Region[O] {
	l := t.lines.Load()
	if l == nil {
		return nil
	}
	return l.region(dataplane.FindRegion(l.word(), key))
}

// Enter finds the region of a key and enters its gate, which the caller leaves afterwards. nil: there is none, or it is
// closed.
func (t *Table[O]) Enter(key uint64) *Region[O] {
	r := t.Find(key)
	if r == nil || !r.Gate.Enter() {
		return nil
	}
	return r
}

// Access finds the region of a key and enters its gate for a range and rights of which the caller is to have all, by
// the check that the data plane makes (dataplane.Admit). The caller leaves the gate afterwards. offset is where in the
// region addr is. Errors: fi.ENOKEY for an unknown or closed key, fi.EACCES when the rights or the range are not the
// region's. A key that is being closed gives fi.EACCES for such rights, too, until its line is taken out.
func (t *Table[O]) Access(key, addr, n, rights uint64) (r *Region[O], offset uint64, err error) {
	l := t.lines.Load()
	if l == nil {
		return nil, 0, fi.ENOKEY
	}
	line, _, refusal := dataplane.Admit(l.word(), key, addr, n, keyRights(rights))
	if refusal != fi.Success {
		return nil, 0, refusal
	}
	if r = l.region(line); r == nil || !r.Gate.Enter() {
		return nil, 0, fi.ENOKEY
	}
	return r, addr - r.Base, nil
}

// Translate makes the addresses of a vector those of the regions that descs name, of which there are as many.
// Descriptors that no region of device memory has are passed over. Errors: fi.EINVAL for a region that is closed, or
// does not have the range.
func (t *Table[O]) Translate(iov []fi.IOVec, descs []uint64) error {
	for i := range iov {
		if i >= len(descs) || descs[i]&DescSpecial == 0 {
			continue
		}
		t.specialMu.RLock()
		r := t.special[descs[i]]
		t.specialMu.RUnlock()
		if r == nil {
			return fmt.Errorf("descriptor %#x: %w", descs[i], fi.EINVAL)
		}
		addr, ok := r.Memory.Translate(uint64(iov[i].Base), iov[i].Len)
		if !ok {
			return fmt.Errorf("%d bytes at %#x are not in the region of the descriptor: %w", iov[i].Len,
				iov[i].Base, fi.EINVAL)
		}
		iov[i].Base = uintptr(addr)
	}
	return nil
}

// Describe gives a region its descriptor, by which Translate finds it until Remove.
func (t *Table[O]) Describe(r *Region[O]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last += 2
	r.desc = t.last
	if r.OnDevice() {
		r.desc |= DescSpecial
		t.specialMu.Lock()
		defer t.specialMu.Unlock()
		if t.special == nil {
			t.special = map[uint64]*Region[O]{}
		}
		t.special[r.desc] = r
	}
}

// Add enters a region that peers may access, under a key or with random under one that the table chooses, and returns
// the key. One that peers may not access gets a key that means nothing. Errors: fi.EKEYREJECTED for fi.KeyNotAvail, and
// fi.ENOKEY for a key that another region has.
func (t *Table[O]) Add(r *Region[O], key uint64, random bool) (uint64, error) {
	key, old, err := t.add(r, key, random)
	old.rest()
	return key, err
}

func (t *Table[O]) add(r *Region[O], key uint64, random bool) (_ uint64, old *lines[O], err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if random {
		key = t.unusedKey()
	}
	switch {
	case !r.Remote():
		return key, nil, nil
	case key == fi.KeyNotAvail:
		return 0, nil, fi.EKEYREJECTED
	case t.Find(key) != nil:
		return 0, nil, fi.ENOKEY
	}
	r.table, r.key = t, key
	return key, t.enter(key, r), nil
}

// Alias returns the second key of a region that has been added, a random one, and whether this call has given it that.
// fi.ENOKEY: the region's keys are expired.
func (t *Table[O]) Alias(r *Region[O]) (key uint64, fresh bool, err error) {
	key, fresh, old, err := t.alias(r)
	old.rest()
	return key, fresh, err
}

func (t *Table[O]) alias(r *Region[O]) (key uint64, fresh bool, old *lines[O], err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Find(r.key) != r {
		return 0, false, nil, fmt.Errorf("the region's key is spent: %w", fi.ENOKEY)
	}
	if !r.aliased {
		r.alias, r.aliased, fresh = t.unusedKey(), true, true
		old = t.enter(r.alias, r)
	}
	return r.alias, fresh, old, nil
}

// Expire ends the keys of a region that stays open.
func (t *Table[O]) Expire(r *Region[O]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropKeys(r)
}

// Remove takes out a region, whose descriptor is then no more and whose keys, if it has any.
func (t *Table[O]) Remove(r *Region[O]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropKeys(r)
	if r.OnDevice() {
		t.specialMu.Lock()
		defer t.specialMu.Unlock()
		delete(t.special, r.desc)
	}
}

// dropKeys takes a region's keys out. The caller has mu.
func (t *Table[O]) dropKeys(r *Region[O]) {
	t.leave(r.key, r)
	if r.aliased {
		t.leave(r.alias, r)
	}
}

// All returns the owners of the regions that peers may access.
func (t *Table[O]) All() (list []*O) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.lines.Load(); l != nil {
		l.all(func(line *hot.Region, r *Region[O]) {
			if line.Key == r.key {
				list = append(list, r.Owner)
			}
		})
	}
	return list
}

// unusedKey returns a random key that no region has. The caller has mu.
func (t *Table[O]) unusedKey() uint64 {
	for {
		var b [8]byte
		rand.Read(b[:]) // never fails
		key := binary.LittleEndian.Uint64(b[:])
		if key != fi.KeyNotAvail && t.Find(key) == nil {
			return key
		}
	}
}
