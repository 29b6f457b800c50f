package provider

import (
	"strconv"
	"testing"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
)

// BenchmarkMessage is one 8-byte tagged message to the endpoint itself: post
// the receive, send, progress, read both completions, all in Go and in one
// thread.
func BenchmarkMessage(b *testing.B) {
	s := newSide(b, fi.ThreadDomain)
	buf := make([]byte, 8)
	recv := RecvArgs{IOV: iovOf(buf), Src: fi.AddrUnspec, Tag: 1, Tagged: true}
	send := SendArgs{IOV: iovOf(buf), Dest: s.addr[s], Tag: 1, Tagged: true}
	var e [4]cq.Entry
	b.ReportAllocs()
	for b.Loop() {
		if s.ep.PostRecv(&recv) != nil || s.ep.Send(&send) != nil {
			b.Fatal("post")
		}
		s.ep.Progress()
		if n, err := s.cq.Read(e[:]); n != 2 {
			b.Fatal(n, err)
		}
	}
}

// BenchmarkBatch is BenchmarkMessage with 64 messages at a time.
func BenchmarkBatch(b *testing.B) {
	s := newSide(b, fi.ThreadDomain)
	buf := make([]byte, 8)
	recv := RecvArgs{IOV: iovOf(buf), Src: fi.AddrUnspec, Tag: 1, Tagged: true}
	send := SendArgs{IOV: iovOf(buf), Dest: s.addr[s], Tag: 1, Tagged: true}
	var e [128]cq.Entry
	b.ReportAllocs()
	for b.Loop() {
		for range 64 {
			if s.ep.PostRecv(&recv) != nil || s.ep.Send(&send) != nil {
				b.Fatal("post")
			}
		}
		s.ep.Progress()
		if n, err := s.cq.Read(e[:]); n != 128 {
			b.Fatal(n, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/message")
}

// TestMessageAllocations posts, sends and reads without Go's heap.
func TestMessageAllocations(t *testing.T) {
	s := newSide(t, fi.ThreadDomain)
	buf := make([]byte, 8)
	recv := RecvArgs{IOV: iovOf(buf), Src: fi.AddrUnspec, Tag: 1, Tagged: true}
	send := SendArgs{IOV: iovOf(buf), Dest: s.addr[s], Tag: 1, Tagged: true}
	var e [4]cq.Entry
	if n := testing.AllocsPerRun(200, func() {
		if s.ep.PostRecv(&recv) != nil || s.ep.Send(&send) != nil {
			t.Fatal("post")
		}
		s.ep.Progress()
		if n, err := s.cq.Read(e[:]); n != 2 {
			t.Fatal(n, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a message", n)
	}
}

// newSide is an endpoint that knows itself.
func newSide(b testing.TB, threading fi.Threading) *side {
	bench := newBench(b, nil, &fi.Info{Caps: fi.Msg | fi.Tagged, Domain: &fi.DomainAttr{Threading: threading}})
	s := bench.side(b)
	s.know(s)
	return s
}

// BenchmarkRendezvous is one message to the endpoint itself that is too long to go with its payload: read by the
// receiver, or copied by both sides.
func BenchmarkRendezvous(b *testing.B) {
	for _, n := range []int{64 << 10, 1 << 20} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			s := newSide(b, fi.ThreadDomain)
			from, to := make([]byte, n), make([]byte, n)
			recv := RecvArgs{IOV: iovOf(to), Src: fi.AddrUnspec, Tag: 1, Tagged: true}
			send := SendArgs{IOV: iovOf(from), Dest: s.addr[s], Tag: 1, Tagged: true}
			var e [4]cq.Entry
			b.ReportAllocs()
			for b.Loop() {
				if s.ep.PostRecv(&recv) != nil || s.ep.Send(&send) != nil {
					b.Fatal("post")
				}
				for got := 0; got < 2; {
					s.ep.Progress()
					if k, err := s.cq.Read(e[:]); err == nil {
						got += k
					}
				}
			}
		})
	}
}
