package regcache

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
)

// sharedDriver has allocations of 64 KiB for several threads: numbers by place, 0: nothing is allocated there.
type sharedDriver [4]atomic.Uint64

func (s *sharedDriver) at(addr uint64) *atomic.Uint64 { return &s[addr>>16&3] }

func (s *sharedDriver) At(addr, _ uint64) (Allocation, error) {
	if n := s.at(addr).Load(); n != 0 {
		return Allocation{addr &^ 0xffff, 1 << 16, n}, nil
	}
	return Allocation{}, errNoMemory
}

func (s *sharedDriver) Number(addr uint64) (uint64, bool) {
	n := s.at(addr).Load()
	return n, n != 0
}

func (s *sharedDriver) Export(a Allocation) (hw.DMABuf, error) {
	fd, err := unix.MemfdCreate("weft-buffers-test", unix.MFD_CLOEXEC)
	return hw.DMABuf{FD: fd, At: a.Base &^ (1 << 63)}, err
}

// sharedDomain counts the registrations that are open, and accuses where one is used or closed that is not.
type sharedDomain struct {
	hw.MemoryDomain
	t          *testing.T
	open, most atomic.Int64
}

func (d *sharedDomain) Attr() hw.MDAttr { return hw.MDAttr{Caps: hw.MDDMABuf, Device: "fake"} }

func (d *sharedDomain) Register(r hw.Region) (hw.Memory, error) {
	if d.open.Add(1) > d.most.Load() {
		d.open.Add(-1)
		return nil, hw.ErrNoResource
	}
	return &sharedMemory{d: d, base: r.Base}, nil
}

type sharedMemory struct {
	hw.Memory
	d      *sharedDomain
	base   uint64
	closed atomic.Bool
}

func (m *sharedMemory) Close() error {
	if m.closed.Swap(true) {
		m.d.t.Error("a registration is closed twice")
	}
	m.d.open.Add(-1)
	return nil
}

// TestBuffersThreads: several threads get and give back memory of devices, for which there is not always room, while
// others free it, and it is allocated anew. What a thread has stays registered, and at the end all is given back.
func TestBuffersThreads(t *testing.T) {
	d, f := &sharedDomain{t: t}, &sharedDriver{}
	d.most.Store(7)
	b := New(d, Config{MaxEntries: 1, Devices: f}).Buffers()
	var number atomic.Uint64
	alloc := func(addr uint64) { f.at(addr).Store(number.Add(1)) }
	for i := range uint64(4) {
		alloc(gpu | i<<16)
	}
	var all sync.WaitGroup
	var found atomic.Int64
	for thread := range 5 {
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(thread), 1))
			for range 50000 {
				addr := gpu | rnd.Uint64N(4)<<16
				if rnd.IntN(100) == 0 {
					b.Drop(addr)
					alloc(addr)
					continue
				}
				e, err := b.Get(addr+8, 8, hw.Access(rnd.IntN(4)))
				if err != nil {
					continue
				}
				m := e.Memory().(*sharedMemory)
				if found.Add(1); m.closed.Load() || m.base != addr {
					t.Errorf("a registration of %#x for %#x, closed %t", m.base, addr, m.closed.Load())
				}
				b.Put(e)
			}
		})
	}
	all.Wait()
	if n := d.open.Load(); n > 1 || found.Load() < 20000 {
		t.Errorf("%d registrations are open, %d were found", n, found.Load())
	}
	if b.Close(); d.open.Load() != 0 {
		t.Errorf("%d registrations are open at the end", d.open.Load())
	}
}

// TestBuffersWithoutLock: memory that is registered is found, and given back, while another thread registers.
func TestBuffersWithoutLock(t *testing.T) {
	b, _, f, _ := buffersOf(8)
	f.alloc(gpu, 0x1000)
	b.Put(b.must(t, gpu, 1, 0))
	b.mu.Lock()
	b.Put(b.must(t, gpu, 1, 0))
	b.mu.Unlock()
}
