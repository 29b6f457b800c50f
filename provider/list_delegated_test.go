package provider

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/cuda"
	"github.com/weft-fabric/weft/internal/dmabuf"
	"github.com/weft-fabric/weft/internal/proxy"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// answering answers other processes.
var answering = mapOwner{ownProcess{}}

// TestDelegatedRefused asks for copies that the owner must not make.
func TestDelegatedRefused(t *testing.T) {
	defer dmabuf.Pretend()()
	b := newBench(t, nil, hmemHints())
	x, y := b.side(t), b.side(t)
	memory := make([]byte, 4096)
	m := y.region(memory, 7, fi.RemoteRead)
	from := x.dmabuf(t, 1)
	share, ok := b.domain.mappings.exported(uint64(from.iov(t, 0, 8)[0].Base), 8)
	if !ok {
		t.Fatal("the dma-buf is not shared")
	}
	base := m.region.Base
	good := wire.CopyRequest{
		Incarnation: y.ep.incarnation, Key: m.key, Rights: fi.RemoteRead,
		Token: share.Token, Buffer: share.Buffer, Pieces: []wire.CopyPiece{{Offset: 8, Addr: base + 16, N: 32}},
	}
	for what, c := range map[string]struct {
		change func(q *wire.CopyRequest)
		want   proxy.Status
	}{
		"right":             {func(*wire.CopyRequest) {}, proxy.StatusOK},
		"no such endpoint":  {func(q *wire.CopyRequest) { q.Incarnation++ }, proxy.StatusNone},
		"no such region":    {func(q *wire.CopyRequest) { q.Key++ }, proxy.StatusNone},
		"no right":          {func(q *wire.CopyRequest) { q.Rights = fi.RemoteWrite }, proxy.StatusRefused},
		"no such memory":    {func(q *wire.CopyRequest) { q.Token++ }, proxy.StatusNone},
		"beyond the region": {func(q *wire.CopyRequest) { q.Pieces[0].Addr = base + 4090 }, proxy.StatusRefused},
		"before the region": {func(q *wire.CopyRequest) { q.Pieces[0].Addr = base - 1 }, proxy.StatusRefused},
		"beyond the memory": {func(q *wire.CopyRequest) { q.Pieces[0].Offset = share.Size - 31 }, proxy.StatusRefused},
		"offset that wraps": {func(q *wire.CopyRequest) { q.Pieces[0].Offset = ^uint64(0) - 15 }, proxy.StatusRefused},
		"length that wraps": {func(q *wire.CopyRequest) { q.Pieces[0].N = ^uint64(0) - 7 }, proxy.StatusRefused},
	} {
		q := good
		q.Pieces = []wire.CopyPiece{good.Pieces[0]}
		c.change(&q)
		if got := answering.performCopy(&q, os.Getpid()); got != c.want {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
	}
}

// TestDelegatedFailed: a mapping is used no more after a copy has failed, whatever the error, but is after a piece was
// refused.
func TestDelegatedFailed(t *testing.T) {
	defer dmabuf.Pretend()()
	for _, c := range []struct {
		outside bool
		errno   error
		same    bool
	}{{false, nil, true}, {true, nil, true}, {false, unix.EIO, false}, {false, unix.EACCES, false}} {
		b := newBench(t, nil, hmemHints())
		x, y := b.side(t), b.side(t)
		m := y.region(make([]byte, 4096), 7, fi.RemoteRead)
		from := x.dmabuf(t, 1)
		share, ok := b.domain.mappings.exported(uint64(from.iov(t, 0, 8)[0].Base), 8)
		if !ok {
			t.Fatal("the dma-buf is not shared")
		}
		q := wire.CopyRequest{
			Incarnation: y.ep.incarnation, Key: m.key, Rights: fi.RemoteRead,
			Token: share.Token, Buffer: share.Buffer, Pieces: []wire.CopyPiece{{Offset: 8, Addr: m.region.Base, N: 32}},
		}
		if c.outside {
			q.Pieces[0].Addr = m.region.Base - 1
		}
		mapping := func() cuda.Mapping {
			from := cuda.Foreign{PID: os.Getpid(), Token: q.Token, Buffer: q.Buffer}
			use, err := b.domain.mappings.importer.Acquire(from, b.domain.mappings.limits(), 0, false)
			if err != nil {
				t.Fatal(err)
			}
			defer use.Release()
			return use.Mapping()
		}
		before := mapping()
		if c.errno != nil {
			undo := dmabuf.PretendFailing(c.errno)
			if got := answering.performCopy(&q, os.Getpid()); got != proxy.StatusRefused {
				t.Errorf("%+v: %v", c, got)
			}
			undo()
		} else {
			_ = answering.performCopy(&q, os.Getpid())
		}
		if same := mapping() == before; same != c.same {
			t.Errorf("%+v: the same mapping: %v", c, same)
		}
	}
}

// TestCloseWhileCopied: an endpoint is not closed while another process is at a copy, which does not end as long as
// that is stopped, and is closed when it has ended.
func TestCloseWhileCopied(t *testing.T) {
	b := newBench(t, nil, hmemHints())
	x := b.side(t)
	stopped := make(chan bool)
	x.ep.lists.Go(func() { <-stopped })
	closed := make(chan error, 1)
	go func() { closed <- x.ep.Close() }()
	select {
	case err := <-closed:
		wantErrno(t, err, fi.EBUSY, "close while a copy is under way")
	case <-time.After(time.Minute):
		close(stopped)
		t.Fatal("close waits for the copy")
	}
	wantErrno(t, x.ep.Close(), fi.EBUSY, "close again")
	close(stopped)
	x.close()
}
