package provider

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/internal/pages"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// asked has the memory that is to be moved taken down until the test ends.
func asked(t *testing.T) (moved func() []uint64) {
	var mu sync.Mutex
	var list []uint64
	old := pages.Background
	pages.Background = pages.NewMover(func(at uint64) error {
		mu.Lock()
		defer mu.Unlock()
		list = append(list, at)
		return nil
	})
	t.Cleanup(func() { pages.Background = old })
	return func() []uint64 {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(list)
	}
}

// mapped is memory from the kernel that begins with a huge page.
func mapped(t *testing.T, n int) []byte {
	t.Helper()
	b, err := unix.Mmap(-1, 0, n+pages.Size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(b) })
	return b[-mem.Address(b)%pages.Size:][:n]
}

// pagesOf are the huge pages that bytes from to to of memory are on.
func pagesOf(b []byte, from, to int) (list []uint64) {
	for at := mem.Address(b[from:]) &^ (pages.Size - 1); at < mem.Address(b)+uint64(to); at += pages.Size {
		list = append(list, at)
	}
	return list
}

// wantMoved waits until exactly those pages have been moved.
func wantMoved(t *testing.T, moved func() []uint64, want ...[]uint64) {
	t.Helper()
	all := slices.Sorted(slices.Values(slices.Concat(want...)))
	var got []uint64
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if got = slices.Compact(slices.Sorted(slices.Values(moved()))); slices.Equal(got, all) {
			return
		}
	}
	t.Fatalf("moved %x, want %x", got, all)
}

// TestAccessesMove: reads and writes have the memory moved that they copy to and from, the
// initiator's and the target's, and rendezvous messages their sender's.
func TestAccessesMove(t *testing.T) {
	if !pages.Allowed() {
		t.Skip("this host has no huge pages of 2 MiB")
	}
	const piece = 256 << 10
	moved := asked(t)
	b := newBench(t, func(c *config.Config) { c.HugeAfter, c.RMADelegateSize, c.RMAAssistSize = 1<<20, 0, 0 },
		rmaHints())
	x, y := b.side(t), b.side(t)
	x.know(y)
	local, remote, sent, received := mapped(t, piece), mapped(t, 8<<20), mapped(t, piece), mapped(t, piece)
	y.region(remote[1<<20:], 1, fi.RemoteRead|fi.RemoteWrite)
	for i := range 8 {
		a := RMAArgs{IOV: iovOf(local), Remote: []fi.RMAIOVec{{Addr: 1 << 20, Len: piece, Key: 1}}, Dest: x.addr[y],
			Read: i%2 == 0}
		post(t, func() error { return x.ep.RMA(&a) }, x, y)
		settle(t, x, y)
	}
	own, target := pagesOf(local, 0, 1), pagesOf(remote, 1<<20, 3<<20) // all that the region has of the place
	wantMoved(t, moved, own, target)

	for i := range x.ep.base.hot.RTSBytesMax/piece + 1 {
		y.recv(RecvArgs{IOV: iovOf(received), Src: fi.AddrUnspec, Context: i}, x)
		x.send(SendArgs{IOV: iovOf(sent), Dest: x.addr[y], Flags: fi.Completion}, y)
		x.completion(y)
		y.completion(x)
	}
	wantMoved(t, moved, own, target, pagesOf(sent, 0, 1))
}

// TestAccessesLists: so do lists, of pieces that are too short to count by themselves, shared with the target or not.
func TestAccessesLists(t *testing.T) {
	if !pages.Allowed() {
		t.Skip("this host has no huge pages of 2 MiB")
	}
	const piece = 16 << 10
	for name, assist := range map[string]int{"alone": 0, "shared": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			moved := asked(t)
			huge := func(c *config.Config) { c.HugeAfter, c.RMAAssistSize = 1<<20, assist }
			b := newBench(t, huge, rmaHints())
			x, y := b.side(t), b.side(t)
			local, remote := mapped(t, 4<<20), mapped(t, 8<<20)
			to := x.opens(y.token(y.region(remote[1<<20:], 1, fi.RemoteRead|fi.RemoteWrite)))
			l := x.list(scattered(local, remote[1<<20:5<<20], to, piece))
			for i := range uint64(16) {
				post(t, func() error { return l.Post(&ListArgs{Read: i%2 == 0, Context: i}) }, x, y)
				settle(t, x, y)
			}
			for range 100 {
				y.ep.Progress()
			}
			wantMoved(t, moved, pagesOf(local, 0, 4<<20), pagesOf(remote, 1<<20, 5<<20))
		})
	}
}

// TestAccessesHostile: what is said of memory that nothing may reach moves nothing, and does not keep away what
// is said of other memory after it.
func TestAccessesHostile(t *testing.T) {
	if !pages.Allowed() {
		t.Skip("this host has no huge pages of 2 MiB")
	}
	moved := asked(t)
	b := newBench(t, func(c *config.Config) { c.HugeAfter = 1 << 20 }, rmaHints())
	x, y := b.side(t), b.side(t)
	x.know(y)
	remote := mapped(t, pages.Size)
	y.region(remote, 1, fi.RemoteRead)
	x.send(SendArgs{IOV: iovOf([]byte("hello")), Dest: x.addr[y], Flags: fi.Completion}, y) // connects
	p := x.ep.base.links.At(0).Path()
	var head [wire.RTSBytes]byte
	for _, bad := range []struct {
		addr uint64
		head []byte
	}{
		{0, bytes.Clone(wire.PutWord(head[:], 2))}, {pages.Size, bytes.Clone(wire.PutWord(head[:], 1))},
		{^uint64(0), bytes.Clone(wire.PutWord(head[:], 1))},
		{0, head[:7]}, {0, nil}, {0, make([]byte, 16)},
	} {
		if err := p.AMShort(wire.AMAccessed, bad.addr, bad.head, nil); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		y.ep.Progress()
	}
	if got := moved(); len(got) != 0 {
		t.Errorf("moved %x", got)
	}
	if err := p.AMShort(wire.AMAccessed, 0, wire.PutWord(head[:], 1), nil); err != nil {
		t.Fatal(err)
	}
	y.ep.Progress()
	wantMoved(t, moved, pagesOf(remote, 0, 1)) // pages are moved in turn, so nothing else was asked for
}

// TestCopying: a target that has itself copied as much since the last offer takes no share of the next.
func TestCopying(t *testing.T) {
	x, y := shareBench(t)
	memory := make([]byte, 64<<10)
	y.region(memory, 1, fi.RemoteWrite)
	local := make([]byte, len(memory))
	const offered = 32 << 10
	if leasedOf(x.ep).copying(offered) {
		t.Error("nothing was copied")
	}
	a := RMAArgs{IOV: iovOf(local), Remote: []fi.RMAIOVec{{Len: uint64(len(local)), Key: 1}}, Dest: x.addr[y]}
	post(t, func() error { return x.ep.RMA(&a) }, x, y)
	settle(t, x, y)
	if !leasedOf(x.ep).copying(offered) {
		t.Error("64 KiB were copied")
	}
	if leasedOf(x.ep).copying(offered) {
		t.Error("nothing was copied since")
	}
	atomic.AddUint64(&x.ep.base.hot.Copied, offered) // by C
	if !leasedOf(x.ep).copying(offered) {
		t.Error("C has copied 32 KiB")
	}
}
