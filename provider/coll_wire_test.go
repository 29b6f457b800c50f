package provider

import (
	"bytes"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/collective"
)

// FuzzCollectiveHeads compares what parses with what it is encoded to.
func FuzzCollectiveHeads(f *testing.F) {
	f.Add(make([]byte, longHeadBytes))
	f.Add(bytes.Repeat([]byte{0xFF}, longHeadBytes))
	for _, n := range []int{
		joinHeadBytes, chunkHeadBytes, wordHeadBytes, pieceHeadBytes, relayHeadBytes, noteHeadBytes,
	} {
		f.Add(make([]byte, n))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var room [64]byte
		check := func(what string, ok bool, put func([]byte) []byte) {
			if ok && !bytes.Equal(put(room[:]), b) {
				t.Errorf("%s % x is % x", what, b, put(room[:]))
			}
		}
		var j joinHead
		check("join", j.parse(b), j.put)
		var s stepHead
		check("step", s.parse(b, stepHeadBytes), s.put)
		var l longHead
		check("announcement", l.parse(b), l.put)
		var c collChunkHead
		check("chunk", c.parse(b), c.put)
		var w collWordHead
		check("word", w.parse(b), w.put)
		var p collPieceHead
		check("piece", p.parse(b), p.put)
		var r collRelayHead
		check("relay", r.parse(b), r.put)
		var n noteHead
		check("note", n.parse(b), n.put)
	})
}

func TestCollectiveHeads(t *testing.T) {
	j := joinHead{group: 7<<32 | 5, size: 1000, rank: 999, says: joinSettings{relay: true, relaySize: 1 << 20}}
	l := longHead{stepHead: stepHead{seq: 1 << 31, kind: collective.Gather, rank: maxMembers - 1}, request: 3, length: 1 << 40, addr: 1 << 46}
	n := noteHead{group: 1 << 40, seq: 9, status: fi.ECONNRESET}
	var room [longHeadBytes]byte
	var j2 joinHead
	var l2 longHead
	var n2 noteHead
	if !j2.parse(j.put(room[:])) || j2 != j {
		t.Errorf("join %+v", j2)
	}
	if !l2.parse(l.put(room[:])) || l2 != l {
		t.Errorf("announcement %+v", l2)
	}
	if !n2.parse(n.put(room[:])) || n2 != n {
		t.Errorf("note %+v", n2)
	}
	j.rank = 1000
	l.addr = ^uint64(0)
	n.status = 1024
	if j2.parse(j.put(room[:])) || l2.parse(l.put(room[:])) || n2.parse(n.put(room[:])) {
		t.Error("values out of range are accepted")
	}
}

// FuzzCollectiveMessages gives what a member may send to the handlers of an
// endpoint in the middle of operations. Whatever it is, the endpoint lives and
// its memory outside the operations' buffers stays.
func FuzzCollectiveMessages(f *testing.F) {
	f.Add(uint8(1), uint8(0), uint64(0), []byte{0, 0, 0, 0, 1, 0, 0, 3}, []byte("12345678"))
	f.Add(uint8(2), uint8(0), uint64(0), make([]byte, longHeadBytes), []byte{})
	f.Add(uint8(3), uint8(1), uint64(0), make([]byte, ackHead), []byte{})
	f.Add(uint8(4), uint8(1), uint64(0), make([]byte, ctsHead), []byte{})
	f.Add(uint8(5), uint8(2), uint64(0), make([]byte, wordHead), []byte("x"))
	f.Add(uint8(6), uint8(0), uint64(0), make([]byte, noteHeadBytes), []byte{})
	f.Add(uint8(0), uint8(3), uint64(5), make([]byte, joinHeadBytes), []byte{})
	f.Add(uint8(1), uint8(0), uint64(0), make([]byte, chunkHeadBytes), []byte{})
	f.Add(uint8(6), uint8(0), uint64(0), make([]byte, wordHeadBytes), []byte{})
	f.Add(uint8(1), uint8(0), uint64(0), make([]byte, pieceHeadBytes), []byte("x"))
	f.Add(uint8(6), uint8(0), uint64(0), make([]byte, relayHeadBytes), []byte{})
	circle := newCircle(f, newBench(f, nil, collHints()), 2)
	groups := circle.joinAll([]int{0, 1})
	s := circle.sides[0]
	c, src := s.ep.coll, groups[0].members[1].src
	const long = 20000
	memory := make([]byte, 3*long)
	in, out := make([]byte, long), memory[long:2*long]
	handlers := []hw.Handler{c.onJoin, c.onStep, c.onRTS, c.onDone, c.onCTS, c.onFrag, c.onNote}
	f.Fuzz(func(t *testing.T, id, mode uint8, header uint64, head, payload []byte) {
		for c.outstanding < 3 { // small, announced and small
			n := []uint64{1, long / 8, 2}[c.outstanding]
			if err := s.sum(groups[0], in, out, n); err != nil {
				t.Fatal(err)
			}
		}
		switch mode % 4 {
		case 0:
			header = groups[0].id
		case 1:
			for header = range c.sends {
				break
			}
		case 2:
			for header = range c.pulls {
				break
			}
		}
		r := leasedOf(s.ep).rx
		r.acquire()
		handlers[int(id)%len(handlers)](src, header, head, payload)
		if len(c.early) > 100 {
			c.early = nil
		}
		groups[0].members[1].left = false
		r.give()
		circle.progress()
		for err := error(nil); err != fi.EAGAIN; {
			if _, err = s.cq.Read(nil); err == fi.EAVAIL {
				_, err = s.cq.ReadErr()
			} else {
				err = fi.EAGAIN
			}
		}
		for i, v := range memory {
			if v != 0 && (i < long || i >= 2*long) {
				t.Fatalf("byte %d outside the buffer was written", i)
			}
		}
	})
}
