package wire

import (
	"bytes"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/atomics"
)

func TestRMAHeads(t *testing.T) {
	var b [RTSBytes]byte
	for _, want := range []Write{
		{Key: 1, Request: 2, Flags: WriteAck | WriteLast},
		{Key: 1, Request: 2, Flags: WriteAck | WriteEnds},
		{Key: ^uint64(0), Request: 2, Flags: WriteData, Data: 3, Length: 4},
		{Key: maxBefore, Request: 2, Flags: WriteAck | WriteElements},
		{Request: 2, Flags: WriteData | WriteElements, Data: 3, Length: 4},
	} {
		var got Write
		if !got.Parse(want.Put(b[:])) || got != want {
			t.Errorf("write head %+v became %+v", want, got)
		}
	}
	for _, none := range []Write{
		{Flags: WriteElements << 1}, {Key: maxBefore + 1, Flags: WriteElements}, {Flags: WriteElements | WriteLast},
	} {
		if new(Write).Parse(none.Put(b[:])) {
			t.Errorf("a write with flags %#x and key %d is taken", none.Flags, none.Key)
		}
	}
	for _, e := range []Ends{EndsNothing, EndsOperation, EndsElement, EndsShared} {
		w := Write{Flags: WriteAck}
		if w.SetEnds(e); w.Ends() != e || w.Flags&WriteAck == 0 {
			t.Errorf("a write that ends %d ends %d", e, w.Ends())
		}
	}
	for _, r := range []Read{{1, 2, 3, 4, EndsElement, false}, {0, 2, 3, 4, EndsNothing, true}} {
		var got Read
		if !got.Parse(r.Put(b[:])) || got != r {
			t.Errorf("read head %+v became %+v", r, got)
		}
	}
	for _, r := range []Read{{Key: 1, Elements: true}, {Ends: EndsOperation, Elements: true}} {
		if new(Read).Parse(r.Put(b[:])) {
			t.Errorf("a read of several elements with a key or an end, %+v, is taken", r)
		}
	}
	a, gotAtomic := Atomic{1, 2, fi.OpCSwap, fi.Double, atomics.Compare, EndsElement, 5, 6}, Atomic{}
	if !gotAtomic.Parse(a.Put(b[:])) || gotAtomic != a {
		t.Errorf("atomic head %+v", gotAtomic)
	}
	for _, s := range []Share{
		{1, 2, 3, MinShareChunk, 4, true, false}, {1, 2, MaxMessage, MaxShareChunk, 1<<16 - 1, false, false},
		{1, 2, 3, 1, 4, true, true}, {1, 2, 1 << 24, hw.MaxPieces, 4, false, true},
	} {
		var got Share
		if !got.Parse(s.Put(b[:])) || got != s {
			t.Errorf("offer of a share %+v became %+v", s, got)
		}
	}
	for _, s := range []Share{
		{Want: 0, Chunk: MinShareChunk}, {Want: 9, Chunk: MinShareChunk - 1}, {Want: 9,
			Chunk: MaxShareChunk + 1},
		{Want: MaxMessage + 1, Chunk: MaxShareChunk}, {Want: MaxMessage, Chunk: MinShareChunk},
		{Want: 9, Chunk: MinShareChunk, Local: ^uint64(0)},
		{Want: 9, Chunk: 0, List: true}, {Want: 9, Chunk: hw.MaxPieces + 1, List: true},
		{Want: 9, Chunk: 1, Local: ^uint64(9*PieceBytes) + 2, List: true}, {Want: 1 << 24, Chunk: 1,
			List: true},
	} {
		if new(Share).Parse(s.Put(b[:])) {
			t.Errorf("offer of a share %+v is accepted", s)
		}
	}
	d, gotDone := Done{fi.EACCES, 9, 7}, Done{}
	if !gotDone.Parse(d.Put(b[:])) || gotDone != d {
		t.Errorf("outcome %+v", gotDone)
	}
}

// TestAtomicBytes: an atomic is taken with the payload that its kind and count ask for, and with no other.
func TestAtomicBytes(t *testing.T) {
	for _, c := range []struct {
		a       Atomic
		payload int
		n       uint64 // 0: refused
	}{
		{Atomic{Op: fi.OpSum, Datatype: fi.Uint32, Count: 3}, 12, 12},
		{Atomic{Op: fi.OpSum, Datatype: fi.Uint32, Count: 3}, 11, 0},
		{Atomic{Op: fi.OpSum, Datatype: fi.Uint32}, 0, 0},
		{Atomic{Op: fi.OpRead, Datatype: fi.Uint64, Kind: atomics.Fetch, Count: 2}, 0, 16},
		{Atomic{Op: fi.OpRead, Datatype: fi.Uint64, Kind: atomics.Fetch, Count: 2}, 16, 0},
		{Atomic{Op: fi.OpCSwap, Datatype: fi.Uint64, Kind: atomics.Compare, Count: 2}, 32, 16},
		{Atomic{Op: fi.OpCSwap, Datatype: fi.Uint64, Kind: atomics.Compare, Count: 2}, 16, 0},
		{Atomic{Op: fi.OpCSwap, Datatype: fi.Uint64, Count: 2}, 16, 0},
		{Atomic{Op: fi.OpSum, Datatype: 200, Count: 1}, 0, 0},
		{Atomic{Op: fi.OpSum, Datatype: fi.Uint8, Count: atomics.MaxBytes}, atomics.MaxBytes, atomics.MaxBytes},
		{Atomic{Op: fi.OpSum, Datatype: fi.Uint8, Count: atomics.MaxBytes + 1}, atomics.MaxBytes + 1, 0},
		{Atomic{Op: fi.OpSum, Datatype: fi.Uint64, Count: 1<<32 - 1}, 8 * (1<<32 - 1), 0},
	} {
		if n, ok := c.a.Bytes(c.payload); ok != (c.n != 0) || ok && n != c.n {
			t.Errorf("%+v with %d bytes: %d, %v", c.a, c.payload, n, ok)
		}
	}
}

// FuzzRMAHeads feeds the parsers of peers' bytes: none may fault, and what they
// accept comes back the same from put.
func FuzzRMAHeads(f *testing.F) {
	var b [RTSBytes]byte
	f.Add(bytes.Clone((&Write{Key: 1, Flags: WriteData}).Put(b[:])))
	f.Add(bytes.Clone((&Read{Key: 1}).Put(b[:])))
	f.Add(bytes.Clone((&Atomic{Key: 1}).Put(b[:])))
	f.Add(bytes.Clone((&Done{}).Put(b[:])))
	f.Add(bytes.Clone((&KeyAnswer{Link: 1, Key: []byte("key")}).Put(b[:])))
	f.Add(bytes.Clone((&Share{Want: 9, Chunk: MinShareChunk}).Put(b[:])))
	f.Fuzz(func(t *testing.T, in []byte) {
		var out [RTSBytes]byte
		var w Write
		if w.Parse(in) && !bytes.Equal(w.Put(out[:]), in) {
			t.Errorf("write head %x became %x", in, w.Put(out[:]))
		}
		var r Read
		if r.Parse(in) && (r.Length > MaxMessage || !bytes.Equal(r.Put(out[:]), in)) {
			t.Errorf("read head %x became %x", in, r.Put(out[:]))
		}
		var a Atomic
		if a.Parse(in) && !bytes.Equal(a.Put(out[:]), in) {
			t.Errorf("atomic head %x became %x", in, a.Put(out[:]))
		}
		var s Share
		if s.Parse(in) && !bytes.Equal(s.Put(out[:]), in) {
			t.Errorf("offer of a share %x became %x", in, s.Put(out[:]))
		}
		if key, ok := ParseWord(in); ok && !bytes.Equal(PutWord(out[:], key), in) {
			t.Errorf("key %x became %x", in, PutWord(out[:], key))
		}
		var d Done
		if d.Parse(in) && !bytes.Equal(d.Put(out[:]), in) {
			t.Errorf("outcome %x became %x", in, d.Put(out[:]))
		}
		var k KeyAnswer
		if k.Parse(in, 0) && !bytes.Equal(k.Put(nil), in) {
			t.Errorf("answer about a key %x became %x", in, k.Put(nil))
		}
		if link, ok := ParseKeyAsk(in, 0); ok && !bytes.Equal(PutKeyAsk(out[:], link), in) {
			t.Errorf("question for a key %x became %x", in, PutKeyAsk(out[:], link))
		}
	})
}
