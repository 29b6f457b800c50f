package provider

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/backends"
)

// page reads this process's page of counters in the directory of a bench.
func page(t *testing.T, dir string) *stats.Snapshot {
	t.Helper()
	list, err := stats.List(dir, 0, true)
	if err != nil || len(list) != 1 {
		t.Fatalf("pages in %s: %v, %v", dir, list, err)
	}
	s, err := stats.Read(list[0])
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// housekeep runs the timers of a side, as polls do.
func (s *side) housekeep() {
	s.ep.base.rx.acquire()
	s.ep.base.rx.Leased().Housekeeping()
	leasedOf(s.ep).rx.give()
}

// of returns the counters of one side, by name.
func of(t *testing.T, p *stats.Snapshot, s *side) func(name string) uint64 {
	t.Helper()
	for _, e := range p.Endpoints {
		if strings.HasSuffix(s.ep.base.name.String(), "//"+e.Name) {
			return func(name string) uint64 {
				one := stats.Snapshot{Endpoints: []stats.EndpointSnapshot{e}}
				return one.Value(name)
			}
		}
	}
	t.Fatalf("%s is not on the page", s.ep.base.name)
	return nil
}

// TestCounters sends known messages and compares every count with them.
func TestCounters(t *testing.T) {
	dir := t.TempDir()
	bench := newBench(t, func(c *config.Config) { c.SHMDir, c.AssistSize = dir, 0 }, nil)
	a, b := bench.side(t), bench.side(t)
	a.know(b)
	b.know(a)
	swap(t, a, b, 0, true)
	swap(t, a, b, 0, false)
	swap(t, a, b, fi.DeliveryComplete, true)
	a.housekeep()
	b.housekeep()
	var eager, long, eagerBytes, longBytes uint64
	for _, n := range sizes {
		if n <= backends.SHMEager(config.Default()) {
			eager, eagerBytes = eager+1, eagerBytes+uint64(n)
		} else {
			long, longBytes = long+1, longBytes+uint64(n)
		}
	}
	p := page(t, dir)
	tx, rx := of(t, p, a), of(t, p, b)
	got := tx("tx_sync") + tx("tx_rendezvous") // of the third exchange, and the long ones of the others
	// by the runtime, of which the first is one, and by the data plane
	whole, bytes := tx("tx_eager"), tx("tx_eager_bytes")
	for _, way := range []string{"tx_inline", "tx_bounce"} {
		whole, bytes = whole+tx(way), bytes+tx(way+"_bytes")
	}
	if whole != 2*eager || bytes != 2*eagerBytes || got != eager+3*long ||
		tx("tx_inline") == 0 || tx("tx_bounce") == 0 {
		t.Errorf("sent %d eager, %d bytes, %d others", whole, bytes, got)
	}
	if sum := tx("tx_sync_bytes") + tx("tx_rendezvous_bytes"); sum != eagerBytes+3*longBytes {
		t.Errorf("sent %d bytes with acknowledgements", sum)
	}
	if rx("rx_eager")+rx("rx_direct")+rx("rx_rendezvous") != 3*(eager+long) ||
		rx("rx_eager_bytes")+rx("rx_direct_bytes")+rx("rx_rendezvous_bytes") != 3*(eagerBytes+longBytes) ||
		rx("rx_direct") == 0 {
		t.Errorf("received %d, %d and %d messages, %d, %d and %d bytes",
			rx("rx_eager"), rx("rx_direct"), rx("rx_rendezvous"),
			rx("rx_eager_bytes"), rx("rx_direct_bytes"), rx("rx_rendezvous_bytes"))
	}
	if n := uint64(len(sizes)); rx("rx_unexpected") != n || rx("unexpected_peak") != 1 || rx("rx_posts") != 3*n ||
		rx("rx_unexpected_bytes") != eagerBytes {
		t.Errorf("%d unexpected, %d posted", rx("rx_unexpected"), rx("rx_posts"))
	}
	for name, want := range map[string]uint64{"peers": 1, "tx_in_flight": 0, "unexpected": 0, "posted": 0,
		"unexpected_held_bytes": 0, "errors_truncated": 0, "connects": 1} {
		if v := tx(name); v != want {
			t.Errorf("%s of the sender is %d, want %d", name, v, want)
		}
	}
	if rx("senders") != 1 || rx("progress_batches") == 0 || rx("progress_arrivals") == 0 ||
		rx("progress_arrivals")+rx("rx_direct") < 3*eager || p.Value("endpoints") != 2 {
		t.Errorf("%d senders, %d batches of %d arrivals", rx("senders"), rx("progress_batches"),
			rx("progress_arrivals"))
	}
}

// TestCountFaults: errors by kind, refusals, unexpected messages and fragments.
func TestCountFaults(t *testing.T) {
	dir := t.TempDir()
	bench := newBench(t, func(c *config.Config) {
		c.SHMDir, c.UseCMA, c.UnexpectedBytes = dir, config.No, 1000
	}, nil)
	a, b := bench.side(t), bench.side(t)
	a.know(b)
	b.know(a)
	payload := pattern(2000, 1)
	for range 5 { // the first closes the window, the others are a rendezvous
		a.send(SendArgs{IOV: iovOf(payload), Dest: a.addr[b], Tag: 1, Tagged: true})
		b.ep.Progress()
	}
	b.housekeep()
	a.housekeep()
	rx := of(t, page(t, dir), b)
	if rx("unexpected") != 5 || rx("unexpected_held_bytes") != 2000 || rx("window_closes") != 1 ||
		rx("window_closed") != 1 {
		t.Errorf("%d unexpected, %d bytes, window closed %d times", rx("unexpected"), rx("unexpected_held_bytes"),
			rx("window_closes"))
	}
	if tx := of(t, page(t, dir), a); tx("tx_in_flight") != 4 {
		t.Errorf("%d in flight", tx("tx_in_flight"))
	}
	got, short := make([]byte, 2000), make([]byte, 10)
	for range 4 {
		b.recv(RecvArgs{IOV: iovOf(got), Src: fi.AddrUnspec, Tag: 1, Tagged: true, Context: 1})
		b.completion(a)
		if !bytes.Equal(got, payload) {
			t.Fatal("wrong data")
		}
	}
	b.recv(RecvArgs{IOV: iovOf(short), Src: fi.AddrUnspec, Tag: 1, Tagged: true, Context: 1})
	if _, err := b.next(a); !errors.Is(err, fi.EAVAIL) {
		t.Fatalf("a message that is too long: %v", err)
	}
	b.recv(RecvArgs{IOV: iovOf(got), Src: fi.AddrUnspec, Tag: 9, Tagged: true, Context: 77})
	if err := b.ep.Cancel(77); err != nil {
		t.Fatal(err)
	}
	for range 6 {
		b.ep.Progress()
	}
	b.housekeep()
	rx = of(t, page(t, dir), b)
	if rx("errors_truncated") != 1 || rx("errors_canceled") != 1 || rx("errors_other") != 0 || rx("rx_fragments") < 3 ||
		rx("rx_rendezvous") < 3 {
		t.Errorf("%d truncated, %d cancelled, %d fragments of %d messages",
			rx("errors_truncated"), rx("errors_canceled"), rx("rx_fragments"), rx("rx_rendezvous"))
	}
	if tx := of(t, page(t, dir), a); tx("tx_fragments") != rx("rx_fragments") ||
		tx("tx_fragment_bytes") != rx("rx_fragment_bytes") {
		t.Errorf("%d fragments sent, %d received", tx("tx_fragments"), rx("rx_fragments"))
	}
	for { // until the ring is full
		if err := a.ep.Send(&SendArgs{Dest: a.addr[b], Tag: 5, Tagged: true, Inject: true}); errors.Is(err, fi.EAGAIN) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if tx := of(t, page(t, dir), a); tx("eagain_ring") != 1 {
		t.Errorf("%d refused", tx("eagain_ring"))
	}
	for range 200 {
		b.ep.Progress()
	}
}

// TestNoRoomForCounters: an endpoint without a place on the page works.
func TestNoRoomForCounters(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("no small file system: mount: %v", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	bench := newBench(t, func(c *config.Config) { c.SHMDir, c.MaxPeers = dir, 16 }, nil)
	free := func() int64 {
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err != nil {
			t.Fatal(err)
		}
		return int64(st.Bavail) * st.Bsize
	}
	first := bench.side(t)
	left := free()
	second := bench.side(t)
	each := left - free() // of a segment and its counters
	second.close()
	filler, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer filler.Close()
	// The counters' block is 44 KiB, and what the second had stays the page's.
	if err := unix.Fallocate(int(filler.Fd()), 0, 0, free()-2*each+44<<10+8<<10); err != nil {
		t.Fatal(err)
	}
	second = bench.side(t)
	third := bench.side(t)
	if !first.ep.base.stats.Shown() || !second.ep.base.stats.Shown() || third.ep.base.stats.Shown() {
		t.Errorf("shown: %v %v %v", first.ep.base.stats.Shown(), second.ep.base.stats.Shown(),
			third.ep.base.stats.Shown())
	}
	third.know(third)
	third.send(SendArgs{IOV: iovOf([]byte("x")), Dest: third.addr[third], Context: 1})
	third.housekeep()
	if p := page(t, dir); len(p.Endpoints) != 2 || p.Value("endpoints_hidden") != 1 {
		t.Errorf("%d endpoints shown, %d not", len(p.Endpoints), p.Value("endpoints_hidden"))
	}
	first.close()
	second.close()
	third.close()
}
