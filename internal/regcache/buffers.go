package regcache

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/mem"
)

// Allocation is memory of a device that was allocated in one piece.
type Allocation struct {
	Base, Size uint64 // the address by which segments of operations name the first byte; bytes
	Number     uint64 // memory that is allocated there later has another
}

// has reports whether n bytes at an address lie in the allocation.
func (a *Allocation) has(addr, n uint64) bool {
	return addr-a.Base <= a.Size && n <= a.Size-(addr-a.Base)
}

// Allocations says which memory of devices is where. Any thread may call.
type Allocations interface {
	// At returns the allocation that n bytes at an address lie in. The error says why there is none.
	At(addr, n uint64) (Allocation, error)
	// Number is that of the memory at an address now. False: there is none.
	Number(addr uint64) (uint64, bool)
	// Export returns a dma-buf of an allocation. The caller closes its descriptor.
	Export(a Allocation) (hw.DMABuf, error)
}

// Buffers keeps registrations of memory of other devices, each of a whole allocation. One is found only while its
// memory is the one that was registered: the driver is asked for its number by every Get. Drop comes before memory
// is freed, as a registration keeps it from being given back. Its methods may be called from any thread.
type Buffers struct {
	md   hw.MemoryDomain
	from Allocations
	max  int                              // entries without users
	logf func(format string, args ...any) // about memory that cannot be registered

	// table is the entries by base, none of which is dropped. Replaced under mu, read by any thread; sequentially
	// consistent.
	table atomic.Pointer[[]*Buffer]
	clock atomic.Uint64 // Gets; by any thread, sequentially consistent

	mu   sync.Mutex // taken while some is registered or dropped
	full bool       // the device had no room for the last one that was to be registered; under mu
}

// Buffer is a registration in use, from Get to Put.
type Buffer struct {
	of     Allocation // immutable, as access, memory and err
	access hw.Access
	memory hw.Memory // nil: it cannot be registered, and
	err    error     // why
	// wait is Gets until that is tried again. Taken off by any thread; sequentially consistent.
	wait atomic.Int64
	// users are those between Get and Put, and the table. Added to by Gets while it is not 0, taken off by any thread,
	// the last of which ends the registration; sequentially consistent.
	users atomic.Int64
	used  atomic.Uint64 // clock of the last Get; stored by any thread, sequentially consistent
}

// Memory is the registration.
func (e *Buffer) Memory() hw.Memory { return e.memory }

// registerAgain is how many Gets of memory that could not be registered, for another reason than room, fail before that
// is tried again.
const registerAgain = 4096

// Get returns a registration of the allocation that n bytes of a device's memory at addr lie in, with at least these
// rights. The caller gives it back with Put, when no operation uses it any more. It takes no lock of the cache where
// there is one, or where registering was tried lately. Errors: as of
// hw.MemoryDomain.Register, and hw.ErrInvalid for what is in no allocation, or in one that its driver does not export.
func (b *Buffers) Get(addr, n uint64, access hw.Access) (*Buffer, error) {
	if b.md.Attr().Caps&hw.MDDMABuf == 0 {
		return nil, hw.ErrNoDMABuf
	}
	if e, err := b.known(b.find(addr, n), addr, access); e != nil || err != nil {
		return e, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.find(addr, n) // another thread may have been faster
	if found, err := b.known(e, addr, access); found != nil || err != nil {
		return found, err
	}
	if e != nil {
		if number, there := b.from.Number(addr); there && number == e.of.Number && e.memory != nil {
			access |= e.access
		}
		b.drop(e)
	}
	return b.register(addr, n, access)
}

// known returns an entry, nil for none, as a Get of an address in it gets it. Nothing: it does not stand for the memory
// there, with these rights.
func (b *Buffers) known(e *Buffer, addr uint64, access hw.Access) (*Buffer, error) {
	if e == nil {
		return nil, nil
	}
	number, there := b.from.Number(addr)
	switch {
	case !there || number != e.of.Number: // it was freed
	case e.memory == nil && e.wait.Add(-1) >= 0:
		return nil, e.err
	case e.memory != nil && e.access&access == access && e.use():
		e.used.Store(b.clock.Add(1))
		return e, nil
	}
	return nil, nil
}

// use counts a user. False: the registration has ended.
func (e *Buffer) use() bool {
	for n := e.users.Load(); n != 0; n = e.users.Load() {
		if e.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
	return false
}

// entries are those of the table.
func (b *Buffers) entries() []*Buffer {
	if t := b.table.Load(); t != nil {
		return *t
	}
	return nil
}

// behind is the place of the first entry behind addr.
func behind(list []*Buffer, addr uint64) int {
	return sort.Search(len(list), func(i int) bool { return list[i].of.Base > addr })
}

// find returns the entry that has n bytes at addr, nil: there is none.
func (b *Buffers) find(addr, n uint64) *Buffer {
	list := b.entries()
	i := behind(list, addr)
	if i == 0 || !list[i-1].of.has(addr, n) {
		return nil
	}
	return list[i-1]
}

// register makes an entry, in the place of those whose memory is gone. The caller has mu.
func (b *Buffers) register(addr, n uint64, access hw.Access) (*Buffer, error) {
	a, err := b.from.At(addr, n)
	if err != nil {
		return nil, fmt.Errorf("regcache: memory of a device at %#x: %w: %w", addr, err, hw.ErrInvalid)
	}
	for _, e := range b.entries() { // as they are now
		if e.of.Base < a.Base+a.Size && a.Base < e.of.Base+e.of.Size {
			b.drop(e)
		}
	}
	e := &Buffer{of: a, access: access}
	e.memory, e.err = b.registered(&a, access)
	for errors.Is(e.err, hw.ErrNoResource) && b.evict() {
		e.memory, e.err = b.registered(&a, access)
	}
	full := errors.Is(e.err, hw.ErrNoResource)
	if e.err != nil && !(full && b.full) {
		b.logf("memory of a device is not registered with %s: %v", b.md.Attr().Device, e.err)
	}
	if b.full = full; full { // there may be room when the next operation has ended
		return nil, e.err
	}
	for len(b.entries()) >= b.max && b.evict() {
		continue
	}
	e.users.Store(2) // the table, and the caller
	e.used.Store(b.clock.Add(1))
	if e.err != nil {
		e.users.Store(1)
		e.wait.Store(registerAgain)
	}
	list := b.entries()
	list = slices.Insert(slices.Clone(list), behind(list, a.Base), e)
	b.table.Store(&list)
	if e.err != nil {
		return nil, e.err
	}
	return e, nil
}

// registered registers an allocation. The caller has mu.
func (b *Buffers) registered(a *Allocation, access hw.Access) (hw.Memory, error) {
	d, err := b.from.Export(*a)
	if err != nil {
		return nil, fmt.Errorf("regcache: export %d bytes at %#x: %w: %w", a.Size, a.Base, err, hw.ErrInvalid)
	}
	defer unix.Close(d.FD)
	return b.md.Register(hw.Region{
		Addr: mem.Pointer(a.Base), Len: int(a.Size), Access: access, Base: a.Base, DMABuf: &d,
	})
}

// evict drops the entry that was used last the longest ago, and has no users. False: there is none. The caller has mu.
func (b *Buffers) evict() bool {
	for {
		var oldest *Buffer
		for _, e := range b.entries() {
			if e.users.Load() == 1 && (oldest == nil || e.used.Load() < oldest.used.Load()) {
				oldest = e
			}
		}
		switch {
		case oldest == nil:
			return false
		case oldest.users.CompareAndSwap(1, 0): // else it is used by now
			b.remove(oldest)
			b.end(oldest)
			return true
		}
	}
}

// remove takes an entry out of the table. The caller has mu.
func (b *Buffers) remove(e *Buffer) {
	list := slices.DeleteFunc(slices.Clone(b.entries()), func(o *Buffer) bool { return o == e })
	b.table.Store(&list)
}

// drop takes an entry out of the table, whose last user ends it. The caller has mu.
func (b *Buffers) drop(e *Buffer) {
	b.remove(e)
	b.Put(e)
}

// end ends a registration without users.
func (b *Buffers) end(e *Buffer) {
	if e.memory == nil {
		return
	}
	if err := e.memory.Close(); err != nil {
		b.logf("%v", err)
	}
}

// Put gives a registration back. It takes no lock of the cache.
func (b *Buffers) Put(e *Buffer) {
	if e.users.Add(-1) == 0 {
		b.end(e)
	}
}

// Drop ends the registration of the allocation that has the byte at addr, or has the last operation that uses it end
// it: the memory may be about to be freed.
func (b *Buffers) Drop(addr uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.find(addr, 1); e != nil {
		b.drop(e)
	}
}

// Close ends all registrations; none is in use.
func (b *Buffers) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.entries() {
		b.drop(e)
	}
}
