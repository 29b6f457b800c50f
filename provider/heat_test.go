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
	"github.com/weft-fabric/weft/internal/hot"
)

// TestHeatCounts: a place's owner is told after so many bytes, and again after eight times as many;
// copies that cross a border count for both sides of it, short ones for none.
func TestHeatCounts(t *testing.T) {
	const n = 64 << 10
	h := heat{after: 4 * n}
	asks := func(times int, at, extra uint64) (told []int) {
		for i := range times {
			if got, tell := h.copied(1, 2, at, n, extra); tell {
				told = append(told, i)
				if got < at || got >= at+n {
					t.Errorf("address %#x of a copy at %#x", got, at)
				}
			}
		}
		return told
	}
	if got := asks(100, 0, 0); !slices.Equal(got, []int{3, 35}) {
		t.Errorf("told at copies %d", got)
	}
	if got := asks(10, hugePage-n/2, 0); !slices.Equal(got, []int{7}) { // half of each is in the place that is counted already
		t.Errorf("told at copies across a border %d", got)
	}
	if got := asks(2, 4*hugePage, 2*n); !slices.Equal(got, []int{1}) {
		t.Errorf("told at copies that stand for others %d", got)
	}
	for range 1000 {
		if _, tell := h.copied(1, 2, 8*hugePage, hot.HeatMin-1, 0); tell {
			t.Fatal("short copies count")
		}
	}
	for i := range uint64(3 * heatPlaces) {
		h.copied(1, 3, i*hugePage, n, 0)
	}
	if len(h.places) > heatPlaces {
		t.Errorf("%d places are counted", len(h.places))
	}
	h = heat{}
	if got := asks(1000, 0, 1<<40); got != nil || h.sample() != 1<<64-1 {
		t.Errorf("told at copies %d, though nothing is to be", got)
	}
}

// asked has the memory that is to be moved taken down until the test ends.
func asked(t *testing.T) (pages func() []uint64) {
	var mu sync.Mutex
	var list []uint64
	old := hugePages
	hugePages = &collapser{collapse: func(at uint64) error {
		mu.Lock()
		defer mu.Unlock()
		list = append(list, at)
		return nil
	}}
	t.Cleanup(func() { hugePages = old })
	return func() []uint64 {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(list)
	}
}

// mapped is memory from the kernel that begins with a huge page.
func mapped(t *testing.T, n int) []byte {
	t.Helper()
	b, err := unix.Mmap(-1, 0, n+hugePage, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(b) })
	return b[-addressOfBytes(b)%hugePage:][:n]
}

// pagesOf are the huge pages that bytes from to to of memory are on.
func pagesOf(b []byte, from, to int) (pages []uint64) {
	for at := addressOfBytes(b[from:]) &^ (hugePage - 1); at < addressOfBytes(b)+uint64(to); at += hugePage {
		pages = append(pages, at)
	}
	return pages
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

// TestHeatMoves: reads and writes have the memory moved that they copy to and from, the
// initiator's and the target's, and announced messages their sender's.
func TestHeatMoves(t *testing.T) {
	if !hugePagesAllowed() {
		t.Skip("this host has no huge pages of 2 MiB")
	}
	const piece = 256 << 10
	moved := asked(t)
	b := newBench(t, func(c *config.Config) { c.HugeAfter, c.RMALendSize, c.RMAAssistSize = 1<<20, 0, 0 }, rmaHints())
	x, y := b.side(t), b.side(t)
	x.know(y)
	local, remote, sent, received := mapped(t, piece), mapped(t, 8<<20), mapped(t, piece), mapped(t, piece)
	y.region(remote[1<<20:], 1, fi.RemoteRead|fi.RemoteWrite)
	for i := range 8 {
		a := RMAArgs{IOV: iovOf(local), Remote: []fi.RMAIOVec{{Addr: 1 << 20, Len: piece, Key: 1}}, Dest: x.addr[y], Read: i%2 == 0}
		post(t, func() error { return x.ep.RMA(&a) }, x, y)
		settle(t, x, y)
	}
	own, target := pagesOf(local, 0, 1), pagesOf(remote, 1<<20, 3<<20) // all that the region has of the place
	wantMoved(t, moved, own, target)

	for i := range uint64(8) {
		y.recv(RecvArgs{IOV: iovOf(received), Src: fi.AddrUnspec, Context: i}, x)
		x.send(SendArgs{IOV: iovOf(sent), Dest: x.addr[y], Flags: fi.Completion}, y)
		x.completion(y)
		y.completion(x)
	}
	wantMoved(t, moved, own, target, pagesOf(sent, 0, 1))
}

// TestHeatHostile: what is said of memory that nobody may reach moves nothing, and does not keep away what
// is said of other memory after it.
func TestHeatHostile(t *testing.T) {
	if !hugePagesAllowed() {
		t.Skip("this host has no huge pages of 2 MiB")
	}
	moved := asked(t)
	b := newBench(t, func(c *config.Config) { c.HugeAfter = 1 << 20 }, rmaHints())
	x, y := b.side(t), b.side(t)
	x.know(y)
	remote := mapped(t, hugePage)
	y.region(remote, 1, fi.RemoteRead)
	x.send(SendArgs{IOV: iovOf([]byte("hello")), Dest: x.addr[y], Flags: fi.Completion}, y) // connects
	p := x.ep.linkAt(0).path.Load()
	var head [rtsBytes]byte
	for _, bad := range []struct {
		addr uint64
		head []byte
	}{
		{0, bytes.Clone(putWord(head[:], 2))}, {hugePage, bytes.Clone(putWord(head[:], 1))}, {^uint64(0), bytes.Clone(putWord(head[:], 1))},
		{0, head[:7]}, {0, nil}, {0, make([]byte, 16)},
	} {
		if err := p.AMShort(amHeat, bad.addr, bad.head, nil); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		y.ep.Progress()
	}
	if got := moved(); len(got) != 0 {
		t.Errorf("moved %x", got)
	}
	if err := p.AMShort(amHeat, 0, putWord(head[:], 1), nil); err != nil {
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
	if x.ep.copying(offered) {
		t.Error("nothing was copied")
	}
	a := RMAArgs{IOV: iovOf(local), Remote: []fi.RMAIOVec{{Len: uint64(len(local)), Key: 1}}, Dest: x.addr[y]}
	post(t, func() error { return x.ep.RMA(&a) }, x, y)
	settle(t, x, y)
	if !x.ep.copying(offered) {
		t.Error("64 KiB were copied")
	}
	if x.ep.copying(offered) {
		t.Error("nothing was copied since")
	}
	atomic.AddUint64(&x.ep.hot.Copied, offered) // by C
	if !x.ep.copying(offered) {
		t.Error("C has copied 32 KiB")
	}
}

// busy tells whether memory is being moved.
func (c *collapser) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running
}

// TestCollapser: memory that is in use is tried again, what cannot be moved is not, and after many
// attempts in vain none is made any more.
func TestCollapser(t *testing.T) {
	var tries [4]atomic.Int32
	var vain atomic.Bool
	c := &collapser{collapse: func(at uint64) error {
		n := tries[at/hugePage].Add(1)
		switch {
		case vain.Load() || at == 0 && n < 10:
			return unix.EAGAIN
		case at == hugePage:
			return unix.EINVAL
		}
		return nil
	}}
	idle := func() {
		t.Helper()
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if !c.busy() {
				return
			}
		}
		t.Fatal("it goes on and on")
	}
	c.ask(0, 3*hugePage)
	c.ask(hugePage/2, hugePage) // waits already
	idle()
	if a, b, d := tries[0].Load(), tries[1].Load(), tries[2].Load(); a != 10 || b == 0 || b > 2 || d != 1 {
		t.Errorf("%d, %d and %d attempts", a, b, d)
	}
	sparse := &collapser{collapse: func(uint64) error { return errSparse }}
	for range 4 {
		sparse.ask(0, collapseQueue*hugePage)
		for sparse.busy() {
			time.Sleep(time.Millisecond)
		}
	}
	if sparse.vain != 0 {
		t.Errorf("%d attempts at sparse memory count as in vain", sparse.vain)
	}
	vain.Store(true)
	for range 2 * collapseVain / collapseTries {
		c.ask(3*hugePage, 1)
		idle()
	}
	if n := tries[3].Load(); n != collapseVain {
		t.Errorf("%d attempts in vain", n)
	}
}
