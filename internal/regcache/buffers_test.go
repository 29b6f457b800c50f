package regcache

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
)

// bufferDomain is a fakeDomain that takes dma-bufs, or refuses with an error.
type bufferDomain struct {
	fakeDomain
	none  bool // no dma-bufs
	err   error
	rooms []hw.Region
}

func (d *bufferDomain) Attr() hw.MDAttr {
	if d.none {
		return hw.MDAttr{}
	}
	return hw.MDAttr{Caps: hw.MDDMABuf, Device: "fake"}
}

func (d *bufferDomain) Register(r hw.Region) (hw.Memory, error) {
	if d.err != nil {
		return nil, d.err
	}
	if r.DMABuf == nil || r.DMABuf.At != r.Base&^(1<<63) {
		return nil, hw.ErrInvalid
	}
	d.rooms = append(d.rooms, r)
	return d.fakeDomain.Register(r)
}

// fakeDriver has allocations by their first address.
type fakeDriver struct {
	list   map[uint64]Allocation
	last   uint64
	fails  error // of Export
	opened []int
}

var errNoMemory = errors.New("nothing is there")

func (f *fakeDriver) alloc(base, size uint64) {
	f.last++
	f.list[base] = Allocation{base, size, f.last}
}

func (f *fakeDriver) At(addr, n uint64) (Allocation, error) {
	for _, a := range f.list {
		if a.has(addr, n) {
			return a, nil
		}
	}
	return Allocation{}, errNoMemory
}

func (f *fakeDriver) Number(addr uint64) (uint64, bool) {
	a, err := f.At(addr, 1)
	return a.Number, err == nil
}

func (f *fakeDriver) Export(a Allocation) (hw.DMABuf, error) {
	if f.fails != nil {
		return hw.DMABuf{FD: -1}, f.fails
	}
	fd, err := unix.MemfdCreate("weft-buffers-test", unix.MFD_CLOEXEC)
	f.opened = append(f.opened, fd)
	return hw.DMABuf{FD: fd, At: a.Base &^ (1 << 63)}, err
}

const gpu = 1 << 63

func buffersOf(most int) (*Buffers, *bufferDomain, *fakeDriver, *[]string) {
	d, f, lines := &bufferDomain{}, &fakeDriver{list: map[uint64]Allocation{}}, new([]string)
	d.room = 1 << 20
	c := New(d, Config{MaxEntries: most, Devices: f, Logf: func(format string, a ...any) {
		*lines = append(*lines, fmt.Sprintf(format, a...))
	}})
	return c.Buffers(), d, f, lines
}

func (b *Buffers) must(t *testing.T, addr, n uint64, access hw.Access) *Buffer {
	t.Helper()
	e, err := b.Get(addr, n, access)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestBuffers: memory of devices is registered once for each allocation, with the rights that were asked for.
func TestBuffers(t *testing.T) {
	b, d, f, _ := buffersOf(8)
	f.alloc(gpu|0x10000, 0x10000)
	f.alloc(gpu|0x20000, 0x1000)
	x := b.must(t, gpu|0x10010, 16, 0)
	y := b.must(t, gpu|0x1ffff, 1, 0)
	z := b.must(t, gpu|0x20000, 0x1000, hw.LocalWrite)
	if x != y || x == z || d.made != 2 || d.rooms[0].Len != 0x10000 || d.rooms[1].Access != hw.LocalWrite {
		t.Errorf("%d registrations, %+v", d.made, d.rooms)
	}
	b.Put(x)
	b.Put(y)
	if d.open != 2 {
		t.Errorf("%d are open", d.open)
	}
	w := b.must(t, gpu|0x10000, 1, hw.LocalWrite) // a right more
	if d.made != 3 || d.open != 2 || d.rooms[2].Access != hw.LocalWrite {
		t.Errorf("%d registrations, %d are open, %+v", d.made, d.open, d.rooms[2])
	}
	b.Put(w)
	b.Put(z)
	for _, fd := range f.opened {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
			t.Errorf("descriptor %d is left open", fd)
		}
	}
	for _, c := range []struct{ addr, n uint64 }{{gpu | 0x20000, 0x1001}, {gpu | 0x30000, 1}, {gpu | 0x1fff0, 0x11}} {
		if _, err := b.Get(c.addr, c.n, 0); !errors.Is(err, hw.ErrInvalid) {
			t.Errorf("%d bytes at %#x: %v", c.n, c.addr, err)
		}
	}
	b.Close()
	if d.open != 0 {
		t.Errorf("%d are open", d.open)
	}
}

// TestBuffersFreed: memory that was freed is not found, though other memory is at its addresses, and its registration
// ends with the last operation that uses it.
func TestBuffersFreed(t *testing.T) {
	b, d, f, _ := buffersOf(8)
	f.alloc(gpu|0x10000, 0x1000)
	old := b.must(t, gpu|0x10000, 16, 0)
	delete(f.list, gpu|0x10000)
	if _, err := b.Get(gpu|0x10000, 16, 0); !errors.Is(err, hw.ErrInvalid) {
		t.Errorf("freed memory: %v", err)
	}
	f.alloc(gpu|0x10000, 0x1000)
	if e := b.must(t, gpu|0x10000, 16, 0); e == old || d.made != 2 || d.open != 2 {
		t.Errorf("memory in the place of other: %d registrations, %d are open", d.made, d.open)
	} else {
		b.Put(e)
	}
	b.Put(old)
	if d.open != 1 {
		t.Errorf("%d are open", d.open)
	}
	// A larger allocation where there were two.
	f.alloc(gpu|0x11000, 0x1000)
	b.Put(b.must(t, gpu|0x11000, 1, 0))
	f.list = map[uint64]Allocation{}
	f.alloc(gpu|0x10000, 0x4000)
	b.Put(b.must(t, gpu|0x12000, 1, 0))
	if len(b.entries()) != 1 || d.open != 1 {
		t.Errorf("%d entries, %d are open", len(b.entries()), d.open)
	}
}

// TestBuffersDrop: what is to be freed is registered no more, or when the last operation has ended.
func TestBuffersDrop(t *testing.T) {
	b, d, f, _ := buffersOf(8)
	f.alloc(gpu|0x10000, 0x1000)
	e := b.must(t, gpu|0x10000, 1, 0)
	b.Drop(gpu | 0x10000)
	b.Drop(gpu | 0x99000)
	if d.open != 1 {
		t.Error("one in use is closed")
	}
	b.Put(e)
	if d.open != 0 {
		t.Error("one that is dropped stays open")
	}
	b.Put(b.must(t, gpu|0x10000, 1, 0))
	b.Drop(gpu | 0x10000)
	if d.open != 0 {
		t.Error("one without users stays open")
	}
}

// TestBuffersRoom: the number of registrations that are kept is bounded, as is what the device has room for.
func TestBuffersRoom(t *testing.T) {
	b, d, f, lines := buffersOf(3)
	for i := range uint64(6) {
		f.alloc(gpu|i<<16, 0x1000)
		b.Put(b.must(t, gpu|i<<16, 1, 0))
	}
	if d.open != 3 || len(b.entries()) != 3 {
		t.Errorf("%d are open, %d entries", d.open, len(b.entries()))
	}
	d.room = 3
	b.Put(b.must(t, gpu, 1, 0)) // in the place of the oldest
	if d.open != 3 || b.find(gpu|3<<16, 1) != nil {
		t.Errorf("%d are open", d.open)
	}
	var used []*Buffer
	for _, i := range []uint64{0, 4, 5} {
		used = append(used, b.must(t, gpu|i<<16, 1, 0))
	}
	if _, err := b.Get(gpu|1<<16, 1, 0); !errors.Is(err, hw.ErrNoResource) || len(*lines) != 1 {
		t.Errorf("no room: %v, %q", err, *lines)
	}
	b.Put(used[0])
	b.Put(b.must(t, gpu|1<<16, 1, 0)) // as soon as there is room
	for _, e := range used[1:] {
		b.Put(e)
	}
}

// TestBuffersRefused: memory that cannot be registered is not tried each time, and said once.
func TestBuffersRefused(t *testing.T) {
	b, d, f, lines := buffersOf(8)
	f.alloc(gpu|0x10000, 0x1000)
	f.fails = errNoMemory
	for range registerAgain {
		if _, err := b.Get(gpu|0x10000, 1, 0); !errors.Is(err, hw.ErrInvalid) || !errors.Is(err, errNoMemory) {
			t.Fatal(err)
		}
	}
	if len(*lines) != 1 || d.made != 0 {
		t.Errorf("%d registrations, %q", d.made, *lines)
	}
	f.fails = nil
	if _, err := b.Get(gpu|0x10000, 1, 0); err == nil {
		t.Error("it is tried again at once")
	}
	b.Put(b.must(t, gpu|0x10000, 1, 0))
	f.fails = errNoMemory
	for i := range uint64(20) { // those that cannot be registered are bounded, too
		f.alloc(gpu|(i+2)<<16, 0x1000)
		if _, err := b.Get(gpu|(i+2)<<16, 1, 0); !errors.Is(err, errNoMemory) || len(b.entries()) > 8 {
			t.Fatalf("%d entries: %v", len(b.entries()), err)
		}
	}
	d.none = true
	if _, err := b.Get(gpu|0x10000, 1, 0); !errors.Is(err, hw.ErrNoDMABuf) {
		t.Errorf("a device that takes none any more: %v", err)
	}
}

// TestBuffersAllocs: memory that is registered is found without an allocation of this process's.
func TestBuffersAllocs(t *testing.T) {
	b, _, f, _ := buffersOf(8)
	for i := range uint64(5) {
		f.alloc(gpu|i<<16, 0x1000)
		b.Put(b.must(t, gpu|i<<16, 1, 0))
	}
	if n := testing.AllocsPerRun(100, func() { b.Put(b.must(t, gpu|3<<16, 8, 0)) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
