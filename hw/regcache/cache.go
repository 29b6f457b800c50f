// Package regcache keeps registrations of memory, because registering pins
// pages and takes longer than many a transfer.
//
// A registration is kept only while it stands for the pages that the process sees: a [Watch] reports changes, and
// every Get takes them in first. What cannot be watched is registered for one use.
//
// A Get of memory whose addresses stay with their owner ([Watch].Stays) needs no system call while nothing has changed.
// Other addresses may be another mapping's while the thread that has unmapped them is still in the kernel, which only
// the kernel can say.
package regcache

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"unsafe"

	"github.com/weft-fabric/weft/hw"
)

// Range is memory from Start to before End.
type Range struct{ Start, End uint64 }

func (r Range) overlaps(o Range) bool { return r.Start < o.End && o.Start < r.End }
func (r Range) has(o Range) bool      { return r.Start <= o.Start && o.End <= r.End }

// Watch reports when the pages behind addresses are others than before; package memwatch has one.
type Watch interface {
	// Cover begins to watch whole pages, all of which are mapped. Covering
	// what is covered does nothing.
	Cover(start, end uint64) error
	// Uncover ends that.
	Uncover(start, end uint64)
	// Changes appends the ranges that have changed since *seen, which it
	// advances: at least those whose change had taken place when it was called.
	// False: everything may have changed.
	Changes(seen *uint64, to []Range) ([]Range, bool)
	// Quiet reports, without a system call, that no change since seen has come to its end when it is called. False:
	// one may have.
	Quiet(seen uint64) bool
	// Stays reports whether whole pages have addresses that no other thread can get from the kernel while their
	// owner gives them back.
	Stays(start, end uint64) bool
	// Fixed reports whether whole pages, which Cover refuses, stay where they are anyway until the process ends.
	Fixed(start, end uint64) bool
}

// Config configures a cache. The zero value of a limit means its default.
type Config struct {
	// Watch is nil where there is none: then nothing is kept.
	Watch Watch
	// MaxEntries bounds the registrations that are kept unused. Default 1024.
	MaxEntries int
	// MaxBytes bounds their memory. Default 1 GiB.
	MaxBytes uint64
	// Private reports whether all of a range, whose pages are pinned, is private
	// anonymous memory. Default: what the kernel shows of it.
	Private func(Range) bool
}

// Stats counts what a cache did.
type Stats struct {
	Hits    uint64 // Gets that found a registration
	Misses  uint64 // Gets that registered
	Dropped uint64 // registrations whose memory has changed
	Passing uint64 // registrations that were made for one use
}

// Cache keeps registrations on one memory domain. Its methods may be called
// from any thread.
type Cache struct {
	md  hw.MemoryDomain
	cfg Config

	// mu guards the rest. A Get takes it once.
	mu      sync.Mutex
	seen    uint64
	changes []Range
	kept    []*Entry // by start, then the longest first; none is dropped
	reach   []uint64 // of each of kept, the greatest end of it and those before it
	last    *Entry   // of kept, which was found last; nil: none
	idle    list     // of kept, unused, the one that was used last at the end
	bytes   uint64   // of idle
	stats   Stats
}

// list is entries in the order of their last use.
type list struct {
	oldest, newest *Entry
	len            int
}

func (l *list) push(e *Entry) {
	e.older, e.newer = l.newest, nil
	if l.newest != nil {
		l.newest.newer = e
	} else {
		l.oldest = e
	}
	l.newest = e
	l.len++
}

func (l *list) remove(e *Entry) {
	if e.older != nil {
		e.older.newer = e.newer
	} else {
		l.oldest = e.newer
	}
	if e.newer != nil {
		e.newer.older = e.older
	} else {
		l.newest = e.older
	}
	e.older, e.newer = nil, nil
	l.len--
}

// Entry is a registration in use, from Get to Put.
type Entry struct {
	memory hw.Memory
	at     Range
	access hw.Access
	users  int
	kept   bool // in Cache.kept
	stays  bool // its addresses stay with their owner
	// in Cache.idle
	older, newer *Entry
}

// Memory is the registration. Peers name its bytes by their real addresses.
func (e *Entry) Memory() hw.Memory { return e.memory }

const page = 4096 // at least: all page sizes are multiples

var pageSize = uint64(max(os.Getpagesize(), page))

// New makes a cache without entries.
func New(md hw.MemoryDomain, cfg Config) *Cache {
	if cfg.MaxEntries == 0 {
		cfg.MaxEntries = 1024
	}
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = 1 << 30
	}
	if cfg.Private == nil {
		cfg.Private = isPrivate
	}
	c := &Cache{md: md, cfg: cfg}
	if cfg.Watch != nil {
		c.changes, _ = cfg.Watch.Changes(&c.seen, nil)
	}
	return c
}

// Get returns a registration of n bytes at addr with at least these rights.
// The caller gives it back with Put, when no operation uses it any more.
// Errors: as of hw.MemoryDomain.Register.
func (c *Cache) Get(addr unsafe.Pointer, n int, access hw.Access) (*Entry, error) {
	start := uint64(uintptr(addr))
	if n < 1 || start+uint64(n) < start {
		return nil, fmt.Errorf("regcache: %d bytes at %#x: %w", n, start, hw.ErrInvalid)
	}
	want := Range{start &^ (pageSize - 1), (start + uint64(n) + pageSize - 1) &^ (pageSize - 1)}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.find(want, access)
	if e == nil || !e.stays || !c.cfg.Watch.Quiet(c.seen) {
		c.catchUp()
		e = c.find(want, access)
	}
	if e != nil {
		c.stats.Hits++
		c.use(e)
		return e, nil
	}
	c.stats.Misses++
	return c.register(want, access)
}

// find returns a kept entry that has a range. The caller has c.mu.
func (c *Cache) find(want Range, access hw.Access) *Entry {
	if e := c.last; e != nil && e.at.has(want) && e.access&access == access {
		return e
	}
	at, _ := slices.BinarySearchFunc(c.kept, want.Start, func(e *Entry, start uint64) int {
		if e.at.Start > start {
			return 1
		}
		return -1
	})
	for at--; at >= 0 && c.reach[at] >= want.End; at-- { // only these may reach that far
		if e := c.kept[at]; e.at.has(want) && e.access&access == access {
			c.last = e
			return e
		}
	}
	return nil
}

// use takes an entry out of the idle ones. The caller has c.mu.
func (c *Cache) use(e *Entry) {
	if e.users++; e.users == 1 {
		c.idle.remove(e)
		c.bytes -= e.at.End - e.at.Start
	}
}

// register makes an entry and keeps it if it can be watched. The watch begins
// before the pages are pinned, so no change is missed. The caller has c.mu.
func (c *Cache) register(want Range, access hw.Access) (*Entry, error) {
	w := c.cfg.Watch
	watched := w != nil && (w.Cover(want.Start, want.End) == nil || w.Fixed(want.Start, want.End))
	r := hw.Region{Addr: pointerAt(want.Start), Len: int(want.End - want.Start), Access: access, Base: want.Start}
	m, err := c.md.Register(r)
	for errors.Is(err, hw.ErrNoResource) && c.idle.len > 0 {
		c.evict(c.idle.oldest)
		m, err = c.md.Register(r)
	}
	e := &Entry{memory: m, at: want, access: access, users: 1}
	if err == nil && watched && c.cfg.Private(want) && !c.changed(want) {
		e.stays = w.Stays(want.Start, want.End)
		c.keep(e)
		return e, nil
	}
	if watched {
		c.uncover(want)
	}
	if err != nil {
		return nil, err
	}
	c.stats.Passing++
	return e, nil
}

// changed takes in what has changed and reports whether a range is part of it.
// The caller has c.mu.
func (c *Cache) changed(r Range) bool {
	all := c.catchUp()
	return all || slices.ContainsFunc(c.changes, r.overlaps)
}

// catchUp drops what has changed. True: that is everything. The caller has c.mu.
func (c *Cache) catchUp() bool {
	if c.cfg.Watch == nil {
		return false
	}
	var known bool
	if c.changes, known = c.cfg.Watch.Changes(&c.seen, c.changes[:0]); known && len(c.changes) == 0 {
		return false
	}
	for _, e := range slices.Clone(c.kept) {
		if !known || slices.ContainsFunc(c.changes, e.at.overlaps) {
			c.stats.Dropped++
			c.evict(e)
		}
	}
	return !known
}

// keep enters an entry. The caller has c.mu.
func (c *Cache) keep(e *Entry) {
	e.kept = true
	at, _ := slices.BinarySearchFunc(c.kept, e, func(a, b *Entry) int {
		return cmp.Or(cmp.Compare(a.at.Start, b.at.Start), cmp.Compare(b.at.End, a.at.End))
	})
	c.kept = slices.Insert(c.kept, at, e)
	c.span(at)
}

// span notes how far entries reach, from the first that is another or elsewhere. The caller has c.mu.
func (c *Cache) span(from int) {
	c.reach = c.reach[:from]
	far := uint64(0)
	if from > 0 {
		far = c.reach[from-1]
	}
	for _, e := range c.kept[from:] {
		far = max(far, e.at.End)
		c.reach = append(c.reach, far)
	}
}

// evict takes an entry out of the cache. One in use is closed by its last Put.
// The caller has c.mu.
func (c *Cache) evict(e *Entry) {
	e.kept = false
	if c.last == e {
		c.last = nil
	}
	at := slices.Index(c.kept, e)
	c.kept = slices.Delete(c.kept, at, at+1)
	c.span(at)
	c.uncover(e.at)
	if e.users == 0 {
		c.idle.remove(e)
		c.bytes -= e.at.End - e.at.Start
		_ = e.memory.Close()
	}
}

// uncover stops the watch of what no entry needs. The caller has c.mu.
func (c *Cache) uncover(r Range) {
	for _, e := range c.kept {
		if !e.at.overlaps(r) {
			continue
		}
		if r.Start < e.at.Start {
			c.cfg.Watch.Uncover(r.Start, e.at.Start)
		}
		if r.Start = min(e.at.End, r.End); r.Start == r.End {
			return
		}
	}
	c.cfg.Watch.Uncover(r.Start, r.End)
}

// Put gives a registration back.
func (c *Cache) Put(e *Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.users--; e.users > 0 {
		return
	}
	if !e.kept {
		_ = e.memory.Close()
		return
	}
	c.idle.push(e)
	c.bytes += e.at.End - e.at.Start
	for c.idle.len > c.cfg.MaxEntries || c.bytes > c.cfg.MaxBytes {
		c.evict(c.idle.oldest)
	}
}

// Stats returns the counters.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Close ends the registrations; none is in use.
func (c *Cache) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range slices.Clone(c.kept) {
		c.evict(e)
	}
}
