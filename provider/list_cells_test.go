package provider

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/dmabuf"
)

// cell is one case of TestListCells.
type cell struct {
	here, there bool // memory of a device
	read        bool
	direct      bool // the posting thread may copy
	ways        config.Ways
}

// way is the one that elements are to take, and fi.Success; or why they cannot.
func (c *cell) way() (Way, fi.Errno) {
	switch {
	// the process has both sides, whatever leads from one to the other
	case c.ways.IPC && (c.here || c.there || c.direct):
		return WayIPC, fi.Success
	case c.ways.Message:
		return WayMessage, fi.Success
	}
	return 0, fi.EOPNOTSUPP
}

// wayChoices are all ways, and each turned off, and alone.
var wayChoices = []config.Ways{{IPC: true, RDMA: true, Message: true}, {RDMA: true, Message: true},
	{IPC: true, Message: true}, {IPC: true, RDMA: true}, {IPC: true}, {Message: true}, {RDMA: true}}

// TestListCells has elements with memory of the process and of a device, here and there, read and written, where this
// process may copy, where it may not, and over UDP, with each way turned off. Counters say which way was taken.
func TestListCells(t *testing.T) {
	defer dmabuf.Pretend()()
	for _, ways := range wayChoices {
		set := func(c *config.Config) { c.TokenWays = ways }
		t.Run(fmt.Sprint("memory ", ways), func(t *testing.T) {
			b := newBench(t, set, hmemHints())
			listCells(t, b.side(t), b.side(t), true)
		})
		t.Run(fmt.Sprint("messages ", ways), func(t *testing.T) {
			b := newBench(t, func(c *config.Config) { set(c); c.UseCMA = config.No }, hmemHints())
			listCells(t, b.side(t), b.side(t), false)
		})
		t.Run(fmt.Sprint("udp ", ways), func(t *testing.T) {
			sides := overUDPWith(t, 2, hmemHints(), set)
			listCells(t, sides[0], sides[1], false)
		})
	}
}

// listCells tries all kinds of memory between two sides.
func listCells(t *testing.T, x, y *side, direct bool) {
	const size = 4096
	mine, theirs := x.dmabuf(t, 5), y.dmabuf(t, 6)
	local, remote := make([]byte, size), make([]byte, size)
	to := [2]*Remote{x.opens(y.token(y.region(remote, 7, fi.RemoteRead|fi.RemoteWrite))), x.opens(y.token(theirs.mr))}
	from := [2]uintptr{iovOf(local)[0].Base, mine.iov(t, 0, size)[0].Base}
	for i := range 8 {
		c := cell{i&1 != 0, i&2 != 0, i&4 != 0, direct, x.domain.cfg.TokenWays}
		fresh, stale := bytes.Repeat([]byte{byte(i + 1)}, size), make([]byte, size)
		here, there := fresh, stale
		if c.read {
			here, there = stale, fresh
		}
		copy(local, here)
		copy(remote, there)
		mine.put(t, 0, here)
		theirs.put(t, 0, there)
		l := x.list([]Piece{{
			Local: from[i&1], Remote: to[i>>1&1], Addr: to[i>>1&1].Info().Base, Len: 32, LocalStride: 64,
			RemoteStride: 64, Count: size / 64,
		}})
		way, refused := c.way()
		before := [...]uint64{x.counts("list_ipc"), x.counts("list_rdma"), x.counts("list_message")}
		post(t, func() error { return l.Post(&ListArgs{Read: c.read, Context: 9}) }, x, y)
		_, e, done := settle(t, x, y)
		want := bytes.Repeat(append(bytes.Clone(fresh[:32]), make([]byte, 32)...), size/64)
		if refused != fi.Success {
			way, want = -1, stale
		}
		if done != (refused == fi.Success) || !done && e.Err != refused {
			t.Errorf("%+v: done %t, %+v", c, done, e)
		}
		for w, name := range [...]string{"list_ipc", "list_rdma", "list_message"} {
			if n := x.counts(name) - before[w]; n != map[bool]uint64{true: size / 64}[Way(w) == way] {
				t.Errorf("%+v: %d elements took %v", c, n, Way(w))
			}
		}
		switch changed := map[bool]bool{true: c.here, false: c.there}[c.read]; {
		case changed && c.read:
			mine.want(t, 0, want)
		case changed:
			theirs.want(t, 0, want)
		case c.read && !bytes.Equal(local, want), !c.read && !bytes.Equal(remote, want):
			t.Errorf("%+v: wrong bytes", c)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for i, name := range [...]string{"ipc", "ipc_bytes", "rdma", "rdma_bytes", "message", "message_bytes"} {
		if got, want := waysTo(x, y)[i], x.counts("list_"+name); got != want {
			t.Errorf("%d of %s to the peer, %d in all", got, name, want)
		}
	}
}

// waysTo are the elements and bytes that took each way to a peer, as weft top shows them.
func waysTo(x, y *side) (n [2 * ways]uint64) {
	l, err := x.ep.base.linkOf(x.addr[y])
	if err != nil {
		return n
	}
	defer l.Release()
	moved, _ := l.Ways.Moved()
	for w, m := range moved {
		n[2*w], n[2*w+1] = m.Elements, m.Bytes
	}
	return n
}

// TestListCounted has elements in a region whose writes are counted, which none but its owner may perform, among
// others: these are copied, as far as they come before it, and the operation ends well.
func TestListCounted(t *testing.T) {
	b := newBench(t, nil, rmaHints())
	x, y := b.side(t), b.side(t)
	const count, size = 3000, 16
	plain, counted := make([]byte, count*size), make([]byte, count*size)
	m := y.region(counted, 8, fi.RemoteWrite)
	cntr, err := b.domain.OpenCounter(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = m.Close()
		if err := cntr.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := m.BindCounter(cntr, fi.RemoteWrite); err != nil {
		t.Fatal(err)
	}
	to := [2]*Remote{x.opens(y.token(y.region(plain, 7, fi.RemoteWrite))), x.opens(y.token(m))}
	local := bytes.Repeat([]byte{7}, count*size)
	var pieces []Piece
	for i := range count {
		p := Piece{Local: iovOf(local)[0].Base + uintptr(i*size), Remote: to[0], Addr: uint64(i * size), Len: size}
		if i >= 2000 && i%2 == 0 {
			p.Remote = to[1]
		}
		pieces = append(pieces, p)
	}
	l := x.list(pieces)
	post(t, func() error { return l.Write(1) }, x, y)
	wantDone(t, x, y, 1, fi.RMA|fi.Write)
	for i := range count {
		in := plain
		if i >= 2000 && i%2 == 0 {
			in = counted
		}
		if !bytes.Equal(in[i*size:(i+1)*size], local[:size]) {
			t.Fatalf("element %d is wrong", i)
		}
	}
	if n := cntr.Read(); n != 500 {
		t.Errorf("%d writes were counted", n)
	}
	if n, m := x.counts("list_ipc"), x.counts("list_message"); n+m != count || n < 2000 || m < 500 {
		t.Errorf("%d elements were copied, %d went as messages", n, m)
	}
}
