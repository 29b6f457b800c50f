// Package regcache keeps registrations of memory, because registering pins
// pages and takes longer than many a transfer.
//
// A registration is kept only while it stands for the pages that the process sees: a [Watch] reports changes, and
// every Get asks it first. What cannot be watched is registered for one use.
package regcache

import (
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

	// mu guards the rest. A Get takes it once, beside a system call; transfers
	// that are short enough to care are copied and need no registration.
	mu      sync.Mutex
	seen    uint64
	changes []Range
	kept    []*Entry // by start, then the longest first; none is dropped
	idle    []*Entry // of kept, unused, the one that was used last at the end
	bytes   uint64   // of idle
	stats   Stats
}

// Entry is a registration in use, from Get to Put.
type Entry struct {
	memory hw.Memory
	at     Range
	access hw.Access
	users  int
	kept   bool // in Cache.kept
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
	c.catchUp()
	if e := c.find(want, access); e != nil {
		c.stats.Hits++
		c.use(e)
		return e, nil
	}
	c.stats.Misses++
	return c.register(want, access)
}

// find returns the kept entry that has a range. The caller has c.mu.
func (c *Cache) find(want Range, access hw.Access) *Entry {
	for _, e := range c.kept {
		if e.at.Start > want.Start {
			break
		}
		if e.at.has(want) && e.access&access == access {
			return e
		}
	}
	return nil
}

// use takes an entry out of the idle ones. The caller has c.mu.
func (c *Cache) use(e *Entry) {
	if e.users++; e.users == 1 {
		c.idle = slices.DeleteFunc(c.idle, func(o *Entry) bool { return o == e })
		c.bytes -= e.at.End - e.at.Start
	}
}

// register makes an entry and keeps it if it can be watched. The watch begins
// before the pages are pinned, so no change is missed. The caller has c.mu.
func (c *Cache) register(want Range, access hw.Access) (*Entry, error) {
	watched := c.cfg.Watch != nil && c.cfg.Watch.Cover(want.Start, want.End) == nil
	r := hw.Region{Addr: pointerAt(want.Start), Len: int(want.End - want.Start), Access: access, Base: want.Start}
	m, err := c.md.Register(r)
	for errors.Is(err, hw.ErrNoResource) && len(c.idle) > 0 {
		c.evict(c.idle[0])
		m, err = c.md.Register(r)
	}
	e := &Entry{memory: m, at: want, access: access, users: 1}
	if err == nil && watched && c.cfg.Private(want) && !c.changed(want) {
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
		if a.at.Start != b.at.Start {
			return compare(a.at.Start, b.at.Start)
		}
		return compare(b.at.End, a.at.End)
	})
	c.kept = slices.Insert(c.kept, at, e)
}

func compare(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// evict takes an entry out of the cache. One in use is closed by its last Put.
// The caller has c.mu.
func (c *Cache) evict(e *Entry) {
	e.kept = false
	c.kept = slices.DeleteFunc(c.kept, func(o *Entry) bool { return o == e })
	c.uncover(e.at)
	if e.users == 0 {
		c.idle = slices.DeleteFunc(c.idle, func(o *Entry) bool { return o == e })
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
	c.idle = append(c.idle, e)
	c.bytes += e.at.End - e.at.Start
	for len(c.idle) > c.cfg.MaxEntries || c.bytes > c.cfg.MaxBytes {
		c.evict(c.idle[0])
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
