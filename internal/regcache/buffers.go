package regcache

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"

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

	mu    sync.Mutex // taken by each operation with memory of a device, and while some is registered
	list  []*Buffer  // by base; none is dropped
	clock uint64     // Gets
	full  bool       // the device had no room for the last one that was to be registered
}

// Buffer is a registration in use, from Get to Put. Its fields but memory belong to Buffers.mu.
type Buffer struct {
	of     Allocation
	access hw.Access
	memory hw.Memory // immutable; nil: it cannot be registered, and
	err    error     // why
	wait   int       // Gets until that is tried again
	users  int
	used   uint64 // clock of the last Get
	kept   bool   // in the list
}

// Memory is the registration.
func (e *Buffer) Memory() hw.Memory { return e.memory }

// registerAgain is how many Gets of memory that could not be registered, for another reason than room, fail before that
// is tried again.
const registerAgain = 4096

// Get returns a registration of the allocation that n bytes of a device's memory at addr lie in, with at least these
// rights. The caller gives it back with Put, when no operation uses it any more. Errors: as of
// hw.MemoryDomain.Register, and hw.ErrInvalid for what is in no allocation, or in one that its driver does not export.
func (b *Buffers) Get(addr, n uint64, access hw.Access) (*Buffer, error) {
	if b.md.Attr().Caps&hw.MDDMABuf == 0 {
		return nil, hw.ErrNoDMABuf
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clock++
	e := b.find(addr, n)
	if e == nil {
		return b.register(addr, n, access)
	}
	number, there := b.from.Number(addr)
	switch {
	case !there || number != e.of.Number: // it was freed
	case e.memory == nil && e.wait > 0:
		e.wait--
		return nil, e.err
	case e.memory != nil && e.access&access == access:
		return b.use(e), nil
	default:
		access |= e.access
	}
	b.drop(e)
	return b.register(addr, n, access)
}

// use counts a user. The caller has mu.
func (b *Buffers) use(e *Buffer) *Buffer {
	e.users++
	e.used = b.clock
	return e
}

// behind is the place of the first entry behind addr. The caller has mu.
func (b *Buffers) behind(addr uint64) int {
	return sort.Search(len(b.list), func(i int) bool { return b.list[i].of.Base > addr })
}

// find returns the entry that has n bytes at addr, nil: there is none. The caller has mu.
func (b *Buffers) find(addr, n uint64) *Buffer {
	i := b.behind(addr)
	if i == 0 || !b.list[i-1].of.has(addr, n) {
		return nil
	}
	return b.list[i-1]
}

// register makes an entry, in the place of those whose memory is gone. The caller has mu.
func (b *Buffers) register(addr, n uint64, access hw.Access) (*Buffer, error) {
	a, err := b.from.At(addr, n)
	if err != nil {
		return nil, fmt.Errorf("regcache: memory of a device at %#x: %w: %w", addr, err, hw.ErrInvalid)
	}
	for _, e := range slices.Clone(b.list) {
		if e.of.Base < a.Base+a.Size && a.Base < e.of.Base+e.of.Size {
			b.drop(e)
		}
	}
	e := &Buffer{of: a, access: access, kept: true}
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
	for len(b.list) >= b.max && b.evict() {
		continue
	}
	b.list = slices.Insert(b.list, b.behind(a.Base), e)
	if e.err != nil {
		e.wait, e.used = registerAgain, b.clock
		return nil, e.err
	}
	return b.use(e), nil
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
	var oldest *Buffer
	for _, e := range b.list {
		if e.users == 0 && (oldest == nil || e.used < oldest.used) {
			oldest = e
		}
	}
	if oldest != nil {
		b.drop(oldest)
	}
	return oldest != nil
}

// drop takes an entry out of the list. One in use is closed by its last Put. The caller has mu.
func (b *Buffers) drop(e *Buffer) {
	e.kept = false
	b.list = slices.DeleteFunc(b.list, func(o *Buffer) bool { return o == e })
	if e.users == 0 {
		b.end(e)
	}
}

// end ends a registration without users. The caller has mu.
func (b *Buffers) end(e *Buffer) {
	if e.memory == nil {
		return
	}
	if err := e.memory.Close(); err != nil {
		b.logf("%v", err)
	}
}

// Put gives a registration back.
func (b *Buffers) Put(e *Buffer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.users--; e.users == 0 && !e.kept {
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
	for len(b.list) != 0 {
		b.drop(b.list[0])
	}
}
