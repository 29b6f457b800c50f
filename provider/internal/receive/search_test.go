package receive

import (
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
)

// TestSearch has a search on the post ring when a message arrives: its handler leaves the search, which finds the
// message after it. A search that finds nothing takes in what has arrived first.
func TestSearch(t *testing.T) {
	w := &model{world: newWorld(t, 7, Bounds{Bytes: 1 << 20, Memory: 1 << 20}, 2)}
	peek := func(context, tag uint64) *posted {
		p := &posted{context: context, buf: make([]byte, 1)}
		w.world.receives[context] = p
		w.push(hot.RecvEntry{
			Flags: hot.RecvTagged | fi.Peek, Src: uint64(fi.AddrUnspec), Tag: tag, Context: context,
		})
		return p
	}
	p := peek(100, 9)
	m := w.message(long, 20) // of tag 9
	if n := w.c.Urgent.Load(); n != 1 || len(p.got) != 0 || w.c.UnexpectedMessages() != 1 {
		t.Fatalf("%d searches are on the ring, %+v found, %d messages are unexpected", n, p.got,
			w.c.UnexpectedMessages())
	}
	w.c.Drain(0)
	want := outcome{tag: 9, length: 20, payload: -1}
	if n := w.c.Urgent.Load(); n != 0 || len(p.got) != 1 || p.got[0] != want || len(m.acks) != 0 {
		t.Errorf("%d searches are on the ring, %+v found, ACKs %v", n, p.got, m.acks)
	}
	w.c.SenderLost(&m.at.e, m.from)
	w.eps[1].pending = func() { w.message(long, 20) }
	p = peek(101, 9)
	if w.c.Drain(0); len(p.got) != 1 || p.got[0] != want {
		t.Errorf("%+v is found", p.got)
	}
	p = peek(102, 8)
	if w.c.Drain(0); len(p.got) != 1 || p.got[0].status != fi.ENOMSG {
		t.Errorf("%+v is found where nothing is", p.got)
	}
}
