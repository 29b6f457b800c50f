// Package regcache keeps registrations of memory, because registering pins
// pages and takes longer than many a transfer.
//
// A registration is kept only while it stands for the pages that the process sees: a [Watch] reports changes, and
// every Get takes them in first. What cannot be watched is registered for one use.
//
// A Get of memory whose addresses stay with their owner ([Watch].Stays) needs no system call while nothing has changed.
// Other addresses may be another mapping's while the thread that has unmapped them is still in the kernel, which only
// the kernel can say.
//
// Memory of other devices has registrations of its own ([Buffers]), which know it by its driver's number.
//
// Threads of C may use registrations that are kept without the Go runtime (package direct): by [Cache.Find] and
// [Cache.Drop], which do nothing where that needs more.
package regcache

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/order"
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
	// Devices says which memory of other devices is where, nil: none is registered.
	Devices Allocations
	// Logf takes one line of text, without a newline, about memory of devices. Default: none.
	Logf func(format string, args ...any)
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
	// buffers are the registrations of memory of other devices, nil: there are none. Immutable.
	buffers *Buffers
	// counts are what Watch.Quiet reads, nil where it is another's: then every Get asks it. Immutable.
	counts *Counts

	// mu is taken by a Get and the like, which take lock, too. That guards the rest, and is given back while memory
	// is registered: threads without the runtime use what is kept meanwhile.
	mu      sync.Mutex
	owners  []*Owner // under mu alone
	lock    order.Lock
	seen    uint64
	changes []Range
	numbers []*Entry // by Entry.number, nil: the number is free
	unused  []uint32 // those numbers
	making  Range    // of the entry that is being registered, and watched already; else empty
	kept    []*Entry // by start, then the longest first; none is dropped
	reach   []uint64 // of each of kept, the greatest end of it and those before it
	last    uint32   // number of that of kept which was found last, noEntry: none
	idle    list     // of kept, unused, the one that was used last at the end
	gone    uint32   // the first of those without a user that are not kept, which take ends; linked by newer
	bytes   uint64   // of idle
	stats   Stats
}

// noEntry is the number of no entry.
const noEntry = 0

// notKept is a count of changes that is none.
const notKept = ^uint64(0)

// Counts are the counts of a watch, by which it is quiet: no change is being taken in (begun and ended agree), and as
// many as a cache has seen are published. Written by the watch, read by any thread; sequentially consistent.
type Counts struct{ Begun, Ended, Published *uint64 }

// list is entries in the order of their last use, by number.
type list struct {
	oldest, newest uint32
	len            int
}

// push puts an entry, which is in no list, to the end of the idle ones. The caller has c.mu.
func (c *Cache) push(e *Entry) {
	l := &c.idle
	e.older, e.newer = l.newest, noEntry
	if l.newest != noEntry {
		c.numbers[l.newest].newer = e.number
	} else {
		l.oldest = e.number
	}
	l.newest = e.number
	l.len++
	c.bytes += e.at.End - e.at.Start
}

// remove takes one out. The caller has c.mu.
func (c *Cache) remove(e *Entry) {
	l := &c.idle
	if e.older != noEntry {
		c.numbers[e.older].newer = e.newer
	} else {
		l.oldest = e.newer
	}
	if e.newer != noEntry {
		c.numbers[e.newer].older = e.older
	} else {
		l.newest = e.older
	}
	e.older, e.newer = noEntry, noEntry
	l.len--
	c.bytes -= e.at.End - e.at.Start
}

// Entry is a registration in use, from Get to Put.
type Entry struct {
	memory hw.Memory
	place  hw.Placed // of memory; zero where the device says none
	at     Range
	access hw.Access
	users  int
	number uint32 // in Cache.numbers
	kept   bool   // in Cache.kept
	stays  bool   // its addresses stay with their owner
	// since is Cache.seen as of the last Get or Find that has found the entry to stand for its pages, notKept: it is
	// for one use. Written under Cache.lock, read by any thread that uses the entry; sequentially consistent.
	since atomic.Uint64
	// in Cache.idle
	older, newer uint32
}

// Memory is the registration. Peers name its bytes by their real addresses.
func (e *Entry) Memory() hw.Memory { return e.memory }

// Number names the entry to [Cache.Drop] and [Cache.PutNumber] while it is in use. It is not 0.
func (e *Entry) Number() uint32 { return e.number }

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
	c := &Cache{md: md, cfg: cfg, numbers: []*Entry{noEntry: nil}}
	if cfg.Devices != nil {
		logf := cfg.Logf
		if logf == nil {
			logf = func(string, ...any) {}
		}
		c.buffers = &Buffers{md: md, from: cfg.Devices, max: cfg.MaxEntries, logf: logf}
	}
	if cfg.Watch != nil {
		c.changes, _ = cfg.Watch.Changes(&c.seen, nil)
		if w, ok := cfg.Watch.(interface{ Counts() Counts }); ok {
			n := w.Counts()
			c.counts = &n
		}
	}
	return c
}

// Alone has Find, Drop and Undo of a thread that is alone, by a word, take no lock. Nothing else uses the cache
// meanwhile. It is called before the cache is used.
func (c *Cache) Alone(w order.Word) { c.lock.Alone(w) }

// Quiet reports whether no change since seen has come to its end.
func (n *Counts) Quiet(seen uint64) bool {
	begun := atomic.LoadUint64(n.Begun)
	return atomic.LoadUint64(n.Ended) == begun && atomic.LoadUint64(n.Published) == seen
}

// take takes both locks, and ends what threads without the runtime have left to it.
func (c *Cache) take() {
	c.mu.Lock()
	c.lock.Take()
	for c.gone != noEntry {
		e := c.numbers[c.gone]
		c.gone, e.newer = e.newer, noEntry
		c.end(e)
	}
}

func (c *Cache) give() {
	c.lock.Give()
	c.mu.Unlock()
}

// pagesOf are the whole pages of n bytes at an address. False: there are none, or they wrap.
func pagesOf(start, n uint64) (r Range, ok bool) {
	return Range{start &^ (pageSize - 1), (start + n + pageSize - 1) &^ (pageSize - 1)}, n != 0 && start+n >= start
}

// Get returns a registration of n bytes at addr with at least these rights.
// The caller gives it back with Put, when no operation uses it any more.
// Errors: as of hw.MemoryDomain.Register.
func (c *Cache) Get(addr unsafe.Pointer, n int, access hw.Access) (*Entry, error) {
	e, err := c.get(addr, n, access)
	if errors.Is(err, hw.ErrNoResource) && c.ask() {
		return c.get(addr, n, access)
	}
	return e, err
}

// get is Get with the room that the device has.
func (c *Cache) get(addr unsafe.Pointer, n int, access hw.Access) (*Entry, error) {
	start := uint64(uintptr(addr))
	want, ok := pagesOf(start, uint64(max(n, 0)))
	if !ok {
		return nil, fmt.Errorf("regcache: %d bytes at %#x: %w", n, start, hw.ErrInvalid)
	}
	c.take()
	defer c.give()
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

// Find is Get of a registration that is kept, of memory whose addresses stay, at a device that says where it has it
// ([hw.Placer]). It returns its number, and where the bytes are for the device; number 0: there is none, or more is to
// be done. It needs nothing of the runtime.
func (c *Cache) Find(start, n uint64, access hw.Access) (number uint32, at hw.Placed) {
	want, ok := pagesOf(start, n)
	if !ok || c.counts == nil || !c.lock.Try() {
		return noEntry, at
	}
	e := c.find(want, access)
	if e != nil && e.stays && e.place.Valid && c.counts.Quiet(c.seen) {
		c.stats.Hits++
		c.use(e)
		number, at = e.number, e.place
		at.At += start - at.Addr
		at.Addr = start
	}
	c.lock.Give()
	return number, at
}

// Drop is Put of an entry by its number. False: the runtime has to do that (PutNumber). It needs nothing of it.
func (c *Cache) Drop(number uint32) bool {
	if !c.lock.Try() {
		return false
	}
	e := c.numbers[number]
	size := e.at.End - e.at.Start
	ok := e.users > 1 || e.kept && c.idle.len < c.cfg.MaxEntries && c.bytes+size <= c.cfg.MaxBytes
	if ok {
		c.leave(e)
	}
	c.lock.Give()
	return ok
}

// Undo takes a Find back, whose number nothing has used. False: the lock is another thread's. It needs nothing of the
// runtime. What is idle may be more than its bounds until the next Put.
func (c *Cache) Undo(number uint32) bool {
	if !c.lock.Try() {
		return false
	}
	c.leave(c.numbers[number])
	c.lock.Give()
	return true
}

// leave ends a use of an entry. That of one that is kept no longer is for take to end. The caller has c.lock.
func (c *Cache) leave(e *Entry) {
	if e.users--; e.users > 0 {
		return
	}
	if e.kept {
		c.push(e)
		return
	}
	e.newer, c.gone = c.gone, e.number
}

// find returns a kept entry that has a range. The caller has c.mu.
func (c *Cache) find(want Range, access hw.Access) *Entry {
	if c.last != noEntry {
		if e := c.numbers[c.last]; e.at.has(want) && e.access&access == access {
			return e
		}
	}
	at, end := 0, len(c.kept) // the first entry behind want.Start is in between, or at end
	for at < end {
		if m := int(uint(at+end) / 2); c.kept[m].at.Start > want.Start {
			end = m
		} else {
			at = m + 1
		}
	}
	for at--; at >= 0 && c.reach[at] >= want.End; at-- { // only these may reach that far
		if e := c.kept[at]; e.at.has(want) && e.access&access == access {
			c.last = e.number
			return e
		}
	}
	return nil
}

// use takes an entry out of the idle ones, which has not changed. The caller has c.mu.
func (c *Cache) use(e *Entry) {
	if e.since.Load() != c.seen { // a store waits for those before it
		e.since.Store(c.seen)
	}
	if e.users++; e.users == 1 {
		c.remove(e)
	}
}

// enter gives an entry a number. The caller has c.mu.
func (c *Cache) enter(e *Entry) {
	if last := len(c.unused) - 1; last >= 0 {
		e.number, c.unused = c.unused[last], c.unused[:last]
		c.numbers[e.number] = e
		return
	}
	e.number = uint32(len(c.numbers))
	c.numbers = append(c.numbers, e)
}

// end ends an entry that has no users and is not kept. The caller has c.mu.
func (c *Cache) end(e *Entry) {
	c.numbers[e.number] = nil
	c.unused = append(c.unused, e.number)
	_ = e.memory.Close()
}

// register makes an entry and keeps it if it can be watched. The watch begins
// before the pages are pinned, so no change is missed. The caller has c.mu.
func (c *Cache) register(want Range, access hw.Access) (*Entry, error) {
	w := c.cfg.Watch
	watched := w != nil && (w.Cover(want.Start, want.End) == nil || w.Fixed(want.Start, want.End))
	c.making = want
	r := hw.Region{Addr: mem.Pointer(want.Start), Len: int(want.End - want.Start), Access: access, Base: want.Start}
	m, err := c.registered(r)
	for errors.Is(err, hw.ErrNoResource) && c.idle.len > 0 {
		c.evict(c.numbers[c.idle.oldest])
		m, err = c.registered(r)
	}
	e := &Entry{memory: m, at: want, access: access, users: 1}
	e.since.Store(notKept)
	if err == nil {
		if p, ok := m.(hw.Placer); ok {
			e.place = p.Place()
		}
		c.enter(e)
	}
	kept := err == nil && watched && c.cfg.Private(want) && !c.changed(want)
	if kept {
		e.stays = w.Stays(want.Start, want.End)
		e.since.Store(c.seen)
		c.keep(e)
	}
	c.making = Range{}
	if kept {
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

// registered registers memory, without lock. The caller has c.mu.
func (c *Cache) registered(r hw.Region) (hw.Memory, error) {
	c.lock.Give()
	defer c.lock.Take()
	return c.md.Register(r)
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
	if c.last == e.number {
		c.last = noEntry
	}
	at := slices.Index(c.kept, e)
	c.kept = slices.Delete(c.kept, at, at+1)
	c.span(at)
	c.uncover(e.at)
	if e.users == 0 {
		c.remove(e)
		c.end(e)
	}
}

// uncover stops the watch of what no entry needs, nor one that is being made. The caller has c.mu.
func (c *Cache) uncover(r Range) {
	if m := c.making; m.overlaps(r) {
		if r.Start < m.Start {
			c.uncover(Range{r.Start, m.Start})
		}
		if m.End < r.End {
			c.uncover(Range{m.End, r.End})
		}
		return
	}
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
func (c *Cache) Put(e *Entry) { c.PutNumber(e.number) }

// PutNumber is Put of an entry by its number.
func (c *Cache) PutNumber(number uint32) {
	c.take()
	defer c.give()
	e := c.numbers[number]
	if e.users--; e.users > 0 {
		return
	}
	if !e.kept {
		c.end(e)
		return
	}
	c.push(e)
	for c.idle.len > c.cfg.MaxEntries || c.bytes > c.cfg.MaxBytes {
		c.evict(c.numbers[c.idle.oldest])
	}
}

// Stats returns the counters.
func (c *Cache) Stats() Stats {
	c.take()
	defer c.give()
	return c.stats
}

// Buffers are the registrations of memory of other devices, nil: there are none.
func (c *Cache) Buffers() *Buffers { return c.buffers }

// Close ends the registrations; none is in use.
func (c *Cache) Close() {
	if c.buffers != nil {
		c.buffers.Close()
	}
	c.take()
	defer c.give()
	for _, e := range slices.Clone(c.kept) {
		c.evict(e)
	}
}
