package wire

import (
	"bytes"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/collective"
)

// FuzzCollectiveHeads compares what parses with what it is encoded to.
func FuzzCollectiveHeads(f *testing.F) {
	f.Add(make([]byte, CollLongBytes))
	f.Add(bytes.Repeat([]byte{0xFF}, CollLongBytes))
	for _, n := range []int{
		CollJoinBytes, CollChunkBytes, CollWordBytes, CollPieceBytes, CollRelayBytes, CollNoteBytes,
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
		var j CollJoin
		check("join", j.Parse(b), j.Put)
		var s CollStep
		check("step", s.Parse(b, CollStepBytes), s.Put)
		var l CollLong
		check("announcement", l.Parse(b), l.Put)
		var c CollChunk
		check("chunk", c.Parse(b), c.Put)
		var w CollWord
		check("word", w.Parse(b), w.Put)
		var p CollPiece
		check("piece", p.Parse(b), p.Put)
		var r CollRelay
		check("relay", r.Parse(b), r.Put)
		var n CollNote
		check("note", n.Parse(b), n.Put)
	})
}

func TestCollectiveHeads(t *testing.T) {
	j := CollJoin{Group: 7<<32 | 5, Size: 1000, Rank: 999, Settings: CollSettings{Relay: true, RelaySize: 1 << 20}}
	l := CollLong{CollStep: CollStep{Seq: 1 << 31, Kind: collective.Gather, Rank: MaxMembers - 1},
		Request: 3, Length: 1 << 40, Addr: 1 << 46}
	n := CollNote{Group: 1 << 40, Seq: 9, Status: fi.ECONNRESET}
	var room [CollLongBytes]byte
	var j2 CollJoin
	var l2 CollLong
	var n2 CollNote
	if !j2.Parse(j.Put(room[:])) || j2 != j {
		t.Errorf("join %+v", j2)
	}
	if !l2.Parse(l.Put(room[:])) || l2 != l {
		t.Errorf("announcement %+v", l2)
	}
	if !n2.Parse(n.Put(room[:])) || n2 != n {
		t.Errorf("note %+v", n2)
	}
	j.Rank = 1000
	l.Addr = ^uint64(0)
	n.Status = 1024
	if j2.Parse(j.Put(room[:])) || l2.Parse(l.Put(room[:])) || n2.Parse(n.Put(room[:])) {
		t.Error("values out of range are accepted")
	}
}
