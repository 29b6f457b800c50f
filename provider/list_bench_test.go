package provider

import (
	"slices"
	"testing"
	"time"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
)

// scattered are pieces of n bytes that are at no regular distances.
func scattered(local, remote []byte, to *Remote, n int) []Piece {
	count := len(remote) / (2 * n)
	pieces := make([]Piece, count)
	for i := range pieces {
		at := i * 7919 % count * 2 * n
		pieces[i] = Piece{Local: iovOf(local)[0].Base + uintptr(at), Remote: to, Addr: uint64(at), Len: uint64(n)}
	}
	return pieces
}

// TestListRoom: a list has room for its runs and not for twice as many, whether its pieces join or not, and room is
// made a few times only.
func TestListRoom(t *testing.T) {
	b := newBench(t, nil, rmaHints())
	x, y := b.side(t), b.side(t)
	const size, count = 8, 4096
	memory, local := make([]byte, 2*size*count), make([]byte, 2*size*count)
	to := x.opens(y.token(y.region(memory, 7, fi.RemoteWrite)))
	apart := scattered(local, memory, to, size)
	joined := make([]Piece, count)
	for i := range joined {
		at := i * size
		joined[i] = Piece{Local: iovOf(local)[0].Base + uintptr(at), Remote: to, Addr: uint64(at), Len: size}
	}
	for what, pieces := range map[string][]Piece{
		"apart": apart, "joined": joined, "one": joined[:1],
		"first apart": slices.Concat(apart, joined), "last apart": slices.Concat(joined, apart),
	} {
		l := x.list(pieces)
		if l.Len() != len(pieces) || cap(l.Shape().Runs) > 2*len(l.Shape().Runs) {
			t.Errorf("%s: %d elements in %d runs, room for %d", what, l.Len(), len(l.Shape().Runs), cap(l.Shape().Runs))
		}
	}
	l := x.list(apart)
	if n := len(l.Shape().Runs); n < count/2 || cap(l.Shape().Runs) > n+n/8 {
		t.Errorf("%d runs of %d pieces, room for %d", n, count, cap(l.Shape().Runs))
	}
	if n := testing.AllocsPerRun(3, func() { _ = x.list(apart).Close() }); n > 12 {
		t.Errorf("%.0f allocations for a list of %d pieces", n, count)
	}
}

// BenchmarkListPrepare is the cost of an element.
func BenchmarkListPrepare(b *testing.B) {
	t := newBench(b, nil, rmaHints())
	x, y := t.side(b), t.side(b)
	memory := make([]byte, 20000*128)
	to := x.opens(y.token(y.region(memory, 7, fi.RemoteWrite)))
	pieces := scattered(memory, memory, to, 64)
	for n := 0; n < b.N; n += len(pieces) {
		l, err := x.ep.NewList(pieces)
		if err != nil {
			b.Fatal(err)
		}
		_ = l.Close()
	}
}

// BenchmarkListPost is the cost of an element of 8 bytes, the kernel's part included.
func BenchmarkListPost(b *testing.B) {
	t := newBench(b, nil, rmaHints())
	x, y := t.side(b), t.side(b)
	memory, local := make([]byte, 20000*16), make([]byte, 20000*16)
	l := x.list(scattered(local, memory, x.opens(y.token(y.region(memory, 7, fi.RemoteWrite))), 8))
	for n := 0; n < b.N; n += l.Len() {
		post(b, func() error { return l.Write(1) }, x, y)
		var got [1]cq.Entry
		for k, _ := x.cq.Read(got[:]); k != 1; k, _ = x.cq.Read(got[:]) {
			x.ep.Progress()
		}
	}
}

// idleDevice is a way by a device that moves nothing, and ends what it is given when it is asked to.
type idleDevice struct {
	standInPeer
	first   time.Time // when it was given the first operation
	under   []*hw.Completion
	corked  int // times that it was to keep an operation for the next
	uncorks int
}

func (d *idleDevice) PutZcopy(_ []hw.Segment, _ uint64, _ hw.RemoteKey, c *hw.Completion) (hw.Status, error) {
	if d.first.IsZero() {
		d.first = time.Now()
	}
	if c.More {
		d.corked++
	}
	d.under = append(d.under, c)
	return hw.InProgress, nil
}

func (d *idleDevice) Uncork() { d.uncorks++ }

// end ends what it was given.
func (d *idleDevice) end(s *side) {
	rx := s.ep.base.rx.acquire()
	for _, c := range d.under {
		c.Update(1, nil)
	}
	d.under = d.under[:0]
	rx.give()
}

// BenchmarkListDevice is the cost of an element of 20,000 that a device moves, without the device: what it is from the
// post until all have ended, of the fastest list, too, and of that until the device has the first. hw/verbs
// (BenchmarkPutCost) is what the device is given then.
func BenchmarkListDevice(b *testing.B) {
	x := newBench(b, nil, hmemAllocated()).side(b)
	d, way, p := x.byStandIn(b)
	memory, local := make([]byte, 20000*16), make([]byte, 20000*16)
	m := x.region(memory, 7, fi.RemoteWrite)
	r := x.opens(x.token(m))
	d.know(b, p, m, r.Info().Key)
	l := x.list(scattered(local, memory, r, 8))
	device := &idleDevice{standInPeer: standInPeer{d: d}}
	p.Endpoint = device
	defer way.Set(way.Path())
	way.Set(p)
	before, best, n := time.Duration(0), time.Hour, 0
	b.ReportAllocs()
	for b.ResetTimer(); n < b.N; n += l.Len() {
		first, all := device.timed(b, x, l)
		before, best = before+first, min(best, all)
	}
	if device.corked < n/2 || device.uncorks == 0 {
		b.Errorf("%d of %d elements were kept for the next, %d times those went", device.corked, n, device.uncorks)
	}
	b.ReportMetric(float64(before)/float64(n), "ns/first")
	b.ReportMetric(float64(best)/float64(l.Len()), "ns/best")
}

// timed writes a list, and returns how long it took until the device had the first element, and until all had ended.
func (d *idleDevice) timed(b *testing.B, x *side, l *List) (first, all time.Duration) {
	d.first = time.Time{}
	start := time.Now()
	if err := l.Write(1); err != nil {
		b.Fatal(err)
	}
	first = d.first.Sub(start)
	var got [1]cq.Entry
	for k, _ := x.cq.Read(got[:]); k != 1; k, _ = x.cq.Read(got[:]) {
		d.end(x)
		x.ep.Progress()
	}
	return first, time.Since(start)
}

// BenchmarkTokenPack and BenchmarkTokenOpen are those of a region and a peer that are known.
func BenchmarkTokenPack(b *testing.B) {
	t := newBench(b, nil, rmaHints())
	y := t.side(b)
	m := y.region(make([]byte, 64), 7, fi.RemoteWrite)
	for b.Loop() {
		if _, err := m.Token(nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTokenOpen(b *testing.B) {
	t := newBench(b, nil, rmaHints())
	x, y := t.side(b), t.side(b)
	tok := y.token(y.region(make([]byte, 64), 7, fi.RemoteWrite))
	for b.Loop() {
		r, err := x.ep.OpenToken(tok)
		if err != nil {
			b.Fatal(err)
		}
		_ = r.Close()
	}
}
