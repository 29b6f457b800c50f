package region

import (
	"math/bits"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
)

// lines are the keys of regions: a hash table with linear probing, whose lines the data plane reads as well, by their
// addresses. A line is used for one key only, so those that read lines take no lock. When half of them are used others
// take the place of all.
type lines[O any] struct {
	table uintptr      // as dataplane.Admit takes it (hot.RegionTableLog); immutable, as the next
	lines []hot.Region // on cache lines
	// regions are those of the lines, by their places. Stored by changes, nil: gone; read by any thread; sequentially
	// consistent.
	regions []atomic.Pointer[Region[O]]
	used    int // lines that are or were live; under Table.mu
}

// newLines returns size lines, a power of two.
func newLines[O any](size int) *lines[O] {
	const line = unsafe.Sizeof(hot.Region{})
	memory := unsafe.Pointer(unsafe.SliceData(make([]hot.Region, size+1)))
	first := unsafe.Add(memory, (line-uintptr(memory)%line)%line)
	return &lines[O]{
		table: uintptr(first) | uintptr(bits.Len(uint(size))-1), lines: unsafe.Slice((*hot.Region)(first), size),
		regions: make([]atomic.Pointer[Region[O]], size),
	}
}

// word is the address of the word with the table.
func (l *lines[O]) word() uintptr { return uintptr(unsafe.Pointer(&l.table)) }

// region is that of a line, nil: it is gone, or line is nil.
func (l *lines[O]) region(line *hot.Region) *Region[O] {
	if line == nil {
		return nil
	}
	return l.regions[line.Number].Load()
}

// add enters a region under a key that no other has; access are its rights (hot.KeyRead and the like). The caller has
// Table.mu, and there is room.
func (l *lines[O]) add(key uint64, r *Region[O], access uint32) {
	size := uint32(len(l.regions))
	i := hot.KeyPlace(key, size)
	for l.lines[i].State != hot.RegionNone {
		i = (i + 1) & (size - 1)
	}
	line := &l.lines[i]
	line.Number, line.Key, line.Base, line.Len = i, key, r.Base, r.Length
	atomic.StoreUint32(&line.Access, access)
	if len(r.Memory.Parts) != 0 {
		line.Addr = uint64(r.Memory.Parts[0].Base)
	}
	l.regions[i].Store(r)
	atomic.StoreUint32(&line.State, hot.RegionLive)
	l.used++
}

// find returns the line of a region's key, nil if the region does not have that.
func (l *lines[O]) find(key uint64, r *Region[O]) *hot.Region {
	line := dataplane.FindRegion(l.word(), key)
	if l.region(line) != r {
		return nil
	}
	return line
}

// all calls f with each line that is live. The caller has Table.mu.
func (l *lines[O]) all(f func(*hot.Region, *Region[O])) {
	for i := range l.regions {
		if r := l.regions[i].Load(); r != nil {
			f(&l.lines[i], r)
		}
	}
}

// rest waits until the data plane reads lines no more, whose place others have taken. nil: nothing.
func (l *lines[O]) rest() {
	if l != nil {
		settle()
		runtime.KeepAlive(l)
	}
}

// settle waits until no thread is at what the data plane does not find any more.
func settle() {
	order.Barrier()
	hot.NewGrace().Wait()
}

// Word returns the address of the word that has the table for the data plane (hot.EP.Regions).
func (t *Table[O]) Word() uintptr {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lines.Load() == nil {
		t.renew()
	}
	return uintptr(unsafe.Pointer(&t.word))
}

// enter gives a region a key that no other has, and returns the lines that others have taken the place of, nil: none
// have. The caller has mu, and gives it back before the lines rest.
func (t *Table[O]) enter(key uint64, r *Region[O]) (old *lines[O]) {
	l := t.lines.Load()
	if l == nil || 2*(l.used+1) > len(l.regions) {
		old, l = l, t.renew()
	}
	l.add(key, r, keyRights(r.Rights))
	return old
}

// renew moves the keys to lines with room for as many again. The caller has mu.
func (t *Table[O]) renew() *lines[O] {
	old, live := t.lines.Load(), 0
	if old != nil {
		old.all(func(*hot.Region, *Region[O]) { live++ })
	}
	size := 64
	for size < 4*(live+1) {
		size *= 2
	}
	l := newLines[O](size)
	if old != nil {
		old.all(func(line *hot.Region, r *Region[O]) { l.add(line.Key, r, line.Access) })
	}
	t.lines.Store(l)
	atomic.StoreUintptr(&t.word, l.table)
	return l
}

// leave takes a key of a region out, if the region has it. The caller has mu.
func (t *Table[O]) leave(key uint64, r *Region[O]) {
	l := t.lines.Load()
	if l == nil {
		return
	}
	if line := l.find(key, r); line != nil {
		atomic.StoreUint32(&line.State, hot.RegionGone)
		l.regions[line.Number].Store(nil)
	}
}

// openDirect has the data plane access a region by a key, if the region has that.
func (t *Table[O]) openDirect(key uint64, r *Region[O]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if line := t.lines.Load().find(key, r); line != nil {
		atomic.OrUint32(&line.Access, hot.KeyDirect)
	}
}

// closeDirect has the data plane leave accesses to a region to the runtime, and waits for those that are under way.
func (t *Table[O]) closeDirect(r *Region[O]) {
	t.mu.Lock()
	for _, key := range []uint64{r.key, r.alias} {
		if line := t.lines.Load().find(key, r); line != nil {
			atomic.AndUint32(&line.Access, ^uint32(hot.KeyDirect))
		}
	}
	t.mu.Unlock()
	settle()
}

// keyRights are the rights of peers as lines have them.
func keyRights(rights uint64) (access uint32) {
	if rights&fi.RemoteRead != 0 {
		access |= hot.KeyRead
	}
	if rights&fi.RemoteWrite != 0 {
		access |= hot.KeyWrite
	}
	return access
}
