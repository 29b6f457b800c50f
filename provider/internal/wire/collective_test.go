package wire

import (
	"bytes"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/exchange"
	"github.com/weft-fabric/weft/provider/collective"
)

// FuzzCollectiveHeads compares what parses with what it is encoded to.
func FuzzCollectiveHeads(f *testing.F) {
	f.Add(make([]byte, CollLongBytes))
	f.Add(bytes.Repeat([]byte{0xFF}, CollLongBytes))
	for _, n := range []int{
		CollJoinBytes, CollChunkBytes, CollWordBytes, CollPieceBytes, CollRelayBytes, CollNoteBytes,
		CollTargetBytes, CollPutBytes, CollRefusalBytes,
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
		check("notice", l.Parse(b), l.Put)
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
		var g CollTarget
		check("target", g.Parse(b), g.Put)
		var u CollPut
		check("put", u.Parse(b), u.Put)
		var grant CollGrant
		check("grant", grant.Parse(b), grant.Put)
		var refusal CollRefusal
		check("refusal", refusal.Parse(b), refusal.Put)
	})
}

func TestCollectiveHeads(t *testing.T) {
	j := CollJoin{Group: 7<<32 | 5, Number: 1 << 40, Taken: true, Size: 1000, Rank: 999,
		Settings: CollSettings{Relay: true, RelaySize: 1 << 20}}
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
		t.Errorf("notice %+v", l2)
	}
	if !n2.Parse(n.Put(room[:])) || n2 != n {
		t.Errorf("note %+v", n2)
	}
	for _, w := range []CollNote{{Group: 5, Withdrawn: true}, {Group: 5, Taken: true}} {
		if !n2.Parse(w.Put(room[:])) || n2 != w {
			t.Errorf("note %+v is %+v", w, n2)
		}
	}
	j.Rank = 1000
	l.Addr = ^uint64(0)
	n.Status = 1024
	if j2.Parse(j.Put(room[:])) || l2.Parse(l.Put(room[:])) || n2.Parse(n.Put(room[:])) {
		t.Error("values out of range are accepted")
	}
}

// TestCollectivePuts: lengths of targets and of puts are checked.
func TestCollectivePuts(t *testing.T) {
	step := CollStep{Seq: 4, Kind: collective.AllToAllV, Rank: 3}
	g := CollTarget{CollStep: step, Length: MaxMessage}
	g.SetKey(bytes.Repeat([]byte{0xFF}, CollKey))
	part := exchange.Chunk{Total: 100, Offset: 40, Length: 30}
	u := CollPut{CollChunk: CollChunk{CollStep: step, Part: part}, Bytes: 30}
	var room [CollTargetBytes]byte
	var g2 CollTarget
	var u2 CollPut
	if !g2.Parse(g.Put(room[:])) || g2 != g {
		t.Errorf("target %+v", g2)
	}
	if !u2.Parse(u.Put(room[:])) || u2 != u {
		t.Errorf("put %+v", u2)
	}
	for _, n := range []uint64{0, MaxMessage + 1} {
		if g.Length = n; g2.Parse(g.Put(room[:])) {
			t.Errorf("a target of %d bytes is accepted", n)
		}
	}
	g.Length = 1
	for _, n := range []uint8{1, 8, 30, CollKey} {
		g.Key = [CollKey]byte{}
		g.SetKey(bytes.Repeat([]byte{n}, int(n)))
		if !g2.Parse(g.Put(room[:])) || g2 != g || len(g2.PackedKey(nil)) != int(n) {
			t.Errorf("target with a key of %d bytes: %+v", n, g2)
		}
		for _, other := range []uint8{0, n - 1, CollKey + 1, 255} {
			if g.KeyBytes = other; g2.Parse(g.Put(room[:])) {
				t.Errorf("a key of %d bytes is accepted as one of %d", n, other)
			}
		}
	}
	for _, n := range []uint64{0, 31, 1 << 63} {
		if u.Bytes = n; u2.Parse(u.Put(room[:])) {
			t.Errorf("%d bytes of a chunk of 30 are accepted", n)
		}
	}
}

// TestCollectiveGets: lengths of grants and of refusals are checked.
func TestCollectiveGets(t *testing.T) {
	step := CollStep{Seq: 4, Kind: collective.AllToAllV, Rank: 3}
	g := CollGrant{CollStep: step, Part: exchange.Chunk{Total: 100, Offset: 40, Length: 60}}
	r := CollRefusal{CollStep: step, From: MaxMessage - 1}
	var room [CollGrantBytes]byte
	var g2 CollGrant
	var r2 CollRefusal
	if !g2.Parse(g.Put(room[:])) || g2 != g {
		t.Errorf("grant %+v", g2)
	}
	if !r2.Parse(r.Put(room[:])) || r2 != r {
		t.Errorf("refusal %+v", r2)
	}
	for _, n := range []int64{0, 61} {
		if g.Part.Length = n; g2.Parse(g.Put(room[:])) {
			t.Errorf("a grant of %d bytes at 40 of 100 is accepted", n)
		}
	}
	if r.From = MaxMessage; r2.Parse(r.Put(room[:])) {
		t.Errorf("a refusal from byte %d on is accepted", r.From)
	}
}
