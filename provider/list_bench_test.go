package provider

import (
	"slices"
	"testing"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
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
