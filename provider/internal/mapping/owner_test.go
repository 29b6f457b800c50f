package mapping

import (
	"bytes"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/cuda"
	"github.com/weft-fabric/weft/internal/dmabuf"
	"github.com/weft-fabric/weft/internal/proxy"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// copies is a request to copy 32 bytes of a region to or from an allocation.
func copies(x hmem.Exported, key, rights uint64) wire.CopyRequest {
	return wire.CopyRequest{
		Incarnation: incarnation, Key: key, Rights: rights, Token: x.Token, Buffer: x.Buffer,
		Pieces: []wire.CopyPiece{{Offset: 8, Addr: regionBase + 16, N: 32}},
	}
}

// ask has the process copy, by its descriptor thread.
func ask(t *testing.T, q *wire.CopyRequest) {
	t.Helper()
	here.left() // the race detector does not see that sockets order what comes before and after
	if _, err := hmem.Ask(os.Getpid(), proxy.KindCopy, q.Append(nil)); err != nil {
		t.Error(err)
	}
	here.left()
}

// TestCopyFor has the owner of host memory copy between it and memory of a device, as another process asks it.
func TestCopyFor(t *testing.T) {
	d := open(t, nil)
	memory, region := host(regionBytes)
	here.add(1, own{rights: fi.RemoteRead | fi.RemoteWrite, memory: region})
	d.Offer(1)
	local := device(t)
	x, ok := d.Exported(uint64(local.Parts[0].Base), 8)
	if !ok {
		t.Fatal("the dma-buf is not shared")
	}
	data := bytes.Repeat([]byte{9}, 32)
	put(t, x.Base+8, data)
	q := copies(x, 1, fi.RemoteWrite)
	ask(t, &q)
	if !bytes.Equal(memory[16:48], data) {
		t.Errorf("written: %x", memory[16:48])
	}
	memory[16] = 7
	q.Rights = fi.RemoteRead
	ask(t, &q)
	want(t, "read", x.Base+8, memory[16:48])
	short := q.Append(nil)[:47]
	for kind, body := range map[proxy.Kind][]byte{proxy.KindCopy: short, proxy.KindRegion: make([]byte, 41)} {
		if _, err := hmem.Ask(os.Getpid(), kind, body); err == nil {
			t.Errorf("%d bytes that are no request are answered", len(body))
		}
	}
	if !here.left() {
		t.Error("a gate is entered")
	}
}

// TestCopyRefused asks for copies that the owner must not make.
func TestCopyRefused(t *testing.T) {
	d := open(t, nil)
	off := open(t, func(c *config.Config) { c.HMEMMapSize = 0 })
	memory, region := host(regionBytes)
	here.add(1, own{rights: fi.RemoteRead, memory: region, domain: d})
	here.add(2, own{rights: fi.RemoteRead, memory: region, domain: off})
	here.add(3, own{rights: fi.RemoteRead, memory: device(t), domain: d})
	local := device(t)
	x, ok := d.Exported(uint64(local.Parts[0].Base), 8)
	if !ok {
		t.Fatal("the dma-buf is not shared")
	}
	good := copies(x, 1, fi.RemoteRead)
	for what, c := range map[string]struct {
		change func(q *wire.CopyRequest)
		want   proxy.Status
	}{
		"right":            {func(*wire.CopyRequest) {}, proxy.StatusOK},
		"no such endpoint": {func(q *wire.CopyRequest) { q.Incarnation++ }, proxy.StatusNone},
		"no such region":   {func(q *wire.CopyRequest) { q.Key = 7 }, proxy.StatusNone},
		"turned off":       {func(q *wire.CopyRequest) { q.Key = 2 }, proxy.StatusRefused},
		"device memory":    {func(q *wire.CopyRequest) { q.Key = 3 }, proxy.StatusRefused},
		"no right":         {func(q *wire.CopyRequest) { q.Rights = fi.RemoteWrite }, proxy.StatusRefused},
		"no such memory":   {func(q *wire.CopyRequest) { q.Token++ }, proxy.StatusNone},
		"beyond the region": {func(q *wire.CopyRequest) { q.Pieces[0].Addr = regionBase + regionBytes - 31 },
			proxy.StatusRefused},
		"before the region": {func(q *wire.CopyRequest) { q.Pieces[0].Addr = regionBase - 1 }, proxy.StatusRefused},
		"beyond the memory": {func(q *wire.CopyRequest) { q.Pieces[0].Offset = x.Size - 31 }, proxy.StatusRefused},
		"offset that wraps": {func(q *wire.CopyRequest) { q.Pieces[0].Offset = ^uint64(0) - 15 }, proxy.StatusRefused},
		"length that wraps": {func(q *wire.CopyRequest) { q.Pieces[0].N = ^uint64(0) - 7 }, proxy.StatusRefused},
	} {
		q := good
		q.Pieces = []wire.CopyPiece{good.Pieces[0]}
		c.change(&q)
		memory[16]++
		before := get(t, x.Base, int(x.Size))
		if got := (owner{here}).performCopy(&q, os.Getpid()); got != c.want {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
		if after := get(t, x.Base, int(x.Size)); bytes.Equal(before, after) != (c.want != proxy.StatusOK) {
			t.Errorf("%s: the memory is the same: %t", what, bytes.Equal(before, after))
		}
	}
}

// TestCopyFailed: a mapping is used no more after a copy has failed, whatever the error, but is after a piece was
// refused.
func TestCopyFailed(t *testing.T) {
	d := open(t, nil)
	_, region := host(regionBytes)
	here.add(1, own{rights: fi.RemoteRead, memory: region})
	for _, c := range []struct {
		outside bool
		errno   error
		same    bool
	}{{false, nil, true}, {true, nil, true}, {false, unix.EIO, false}, {false, unix.EACCES, false}} {
		local := device(t)
		x, ok := d.Exported(uint64(local.Parts[0].Base), 8)
		if !ok {
			t.Fatal("the dma-buf is not shared")
		}
		q := copies(x, 1, fi.RemoteRead)
		if c.outside {
			q.Pieces[0].Addr = regionBase - 1
		}
		mapping := func() cuda.Mapping {
			from := cuda.Foreign{PID: os.Getpid(), Token: q.Token, Buffer: q.Buffer}
			use, err := d.importer.Acquire(from, d.limits(), 0, false)
			if err != nil {
				t.Fatal(err)
			}
			defer use.Release()
			return use.Mapping()
		}
		before, want := mapping(), proxy.StatusOK
		if c.outside || c.errno != nil {
			want = proxy.StatusRefused
		}
		undo := func() {}
		if c.errno != nil {
			undo = dmabuf.PretendFailing(c.errno)
		}
		got := (owner{here}).performCopy(&q, os.Getpid())
		undo()
		if same := mapping() == before; same != c.same || got != want {
			t.Errorf("%+v: %v, the same mapping: %t", c, got, same)
		}
	}
}
