package provider

import (
	"os"
	"reflect"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/dmabuf"
	"github.com/weft-fabric/weft/internal/proxy"
)

// FuzzDelegatedRequest parses requests to copy: what parses is what was put together.
func FuzzDelegatedRequest(f *testing.F) {
	q := delegatedRequest{1, 2, fi.RemoteWrite, 4, 5, []delegatedPiece{{6, 7, 8}, {9, 10, 11}}}
	whole := q.append(nil)
	for n := range len(whole) + 1 {
		f.Add(whole[:n])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var q delegatedRequest
		if ok := q.parse(b); ok != (len(b) > delegatedHead && (len(b)-delegatedHead)%delegatedEach == 0) {
			t.Fatalf("%d bytes: %t", len(b), ok)
		} else if ok && !reflect.DeepEqual(q.append(nil), b) {
			t.Fatalf("%x is not %x", q.append(nil), b)
		}
	})
}

// TestDelegatedRefused asks for copies that the owner must not make.
func TestDelegatedRefused(t *testing.T) {
	defer dmabuf.Pretend()()
	b := newBench(t, nil, hmemHints())
	x, y := b.side(t), b.side(t)
	memory := make([]byte, 4096)
	m := y.region(memory, 7, fi.RemoteRead)
	from := x.dmabuf(t, 1)
	share, ok := b.domain.exportedAt(uint64(from.iov(t, 0, 8)[0].Base), 8)
	if !ok {
		t.Fatal("the dma-buf is not shared")
	}
	good := delegatedRequest{
		y.ep.incarnation, m.key, fi.RemoteRead, share.Token, share.Buffer, []delegatedPiece{{8, m.base + 16, 32}},
	}
	for what, c := range map[string]struct {
		change func(q *delegatedRequest)
		want   proxy.Status
	}{
		"right":             {func(*delegatedRequest) {}, proxy.StatusOK},
		"no such endpoint":  {func(q *delegatedRequest) { q.incarnation++ }, proxy.StatusNone},
		"no such region":    {func(q *delegatedRequest) { q.key++ }, proxy.StatusNone},
		"no right":          {func(q *delegatedRequest) { q.rights = fi.RemoteWrite }, proxy.StatusRefused},
		"no such memory":    {func(q *delegatedRequest) { q.token++ }, proxy.StatusNone},
		"beyond the region": {func(q *delegatedRequest) { q.pieces[0].addr = m.base + 4090 }, proxy.StatusRefused},
		"before the region": {func(q *delegatedRequest) { q.pieces[0].addr = m.base - 1 }, proxy.StatusRefused},
		"beyond the memory": {func(q *delegatedRequest) { q.pieces[0].offset = share.Size - 31 }, proxy.StatusRefused},
		"offset that wraps": {func(q *delegatedRequest) { q.pieces[0].offset = ^uint64(0) - 15 }, proxy.StatusRefused},
		"length that wraps": {func(q *delegatedRequest) { q.pieces[0].n = ^uint64(0) - 7 }, proxy.StatusRefused},
	} {
		q := good
		q.pieces = []delegatedPiece{good.pieces[0]}
		c.change(&q)
		if got := q.perform(os.Getpid()); got != c.want {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
	}
}
