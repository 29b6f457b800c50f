package receive

import (
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/provider/internal/vector"
)

// TestLost has a sender go, and a peer: what waited for either is dropped, and nothing of others.
func TestLost(t *testing.T) {
	w := &model{world: newWorld(t, 2, Bounds{Bytes: 1 << 20, Memory: 1 << 20}, 2), claimed: map[uint64]*sent{}}
	var expect []*sent
	for w.next < 400 {
		w.arrive()
	}
	gone, at := hw.Source(3), w.eps[0]
	w.c.SenderLost(&at.e, gone)
	for _, m := range w.unexpected {
		if m.from != gone || m.at != at || m.kind != long {
			expect = append(expect, m)
		}
		if m.from == gone && m.at == at && m.kind == matched {
			m.kind = eager // an answer to it fails
		}
	}
	if len(expect) == len(w.unexpected) {
		t.Fatal("the sender has left no long message")
	}
	w.unexpected = expect
	for n := w.next; w.next < n+400; {
		w.receive()
	}
	w.check()
	for _, p := range w.receives {
		if p.source == int(gone) {
			p.out = true
			p.want = append(p.want, outcome{status: fi.ECONNRESET, tag: p.tag, payload: -1})
		}
	}
	left := w.receives[:0]
	for _, p := range w.receives {
		if !p.out {
			left = append(left, p)
		}
	}
	if len(left) == len(w.receives) {
		t.Fatal("no receive names the peer")
	}
	w.receives = left
	w.c.PeerLost(uint32(gone) + 1)
	for _, p := range w.world.receives { // the last completion of a buffer gives it back, as a failure does
		p.multi = false
	}
	w.check()
	for _, p := range w.receives {
		p.want = append(p.want, outcome{status: fi.ECANCELED, tag: p.tag, payload: -1})
	}
	w.receives = nil
	w.c.CancelAll()
	w.check()
}

// TestMerge has a peer be known by an alias: receives from the alias become the peer's, and what they match of its
// unexpected messages is delivered, in order.
func TestMerge(t *testing.T) {
	w := &model{world: newWorld(t, 3, Bounds{Bytes: 1 << 20, Memory: 1 << 20}, 1), claimed: map[uint64]*sent{}}
	const alias = 60
	for w.next < 300 {
		w.arrive()
	}
	for n := w.next; w.next < n+30; {
		w.next++
		p := &posted{context: w.next, source: alias, tagged: true, tag: w.r.Uint64N(4), buf: make([]byte, 300)}
		w.world.receives[p.context] = p
		w.receives = append(w.receives, p)
		w.push(hot.RecvEntry{
			Flags: hot.RecvTagged, Src: alias, Tag: p.tag, Context: p.context, Buf: uint64(vector.Of(p.buf).Base),
			Len: uint64(len(p.buf)),
		})
	}
	w.check()
	const peer = 3
	for _, p := range w.receives {
		p.source = peer
	}
	for i := 0; i < len(w.unexpected); i++ {
		m := w.unexpected[i]
		for _, p := range w.receives {
			if p.takes(m) {
				w.unexpected = append(w.unexpected[:i:i], w.unexpected[i+1:]...)
				i--
				w.deliver(p, m)
				break
			}
		}
	}
	w.c.Merge(alias+1, peer+1)
	w.check()
}
