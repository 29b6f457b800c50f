package exchange

import (
	"bytes"
	"testing"
	"time"
)

// FuzzWire: what parses is within bounds and is written as it was read.
func FuzzWire(f *testing.F) {
	c := Chunk{Total: 1 << 20, Offset: 1 << 10, Length: 1 << 16, Delay: time.Millisecond}
	w := Word{Got: 5, Invite: true}
	f.Add(c.Put(make([]byte, ChunkBytes)))
	f.Add(w.Put(make([]byte, WordBytes)))
	p := Piece{Total: 1 << 20, Number: 3, Offset: 100, Hop: true, Third: 5, Serial: 7}
	n := Note{Kind: NoteAsk, Serial: 9, Third: 2, Rate: 1e6}
	f.Add(p.Put(make([]byte, PieceBytes)))
	f.Add(n.Put(make([]byte, NoteBytes)))
	f.Fuzz(func(t *testing.T, b []byte) {
		var c Chunk
		if c.Parse(b) {
			if c.Total < 0 || c.Offset < 0 || c.Length < 0 || c.Offset+c.Length > c.Total || c.Total > mostBytes ||
				c.Delay < 0 || c.Delay > time.Minute {
				t.Fatalf("%+v", c)
			}
			if !bytes.Equal(c.Put(make([]byte, ChunkBytes)), b) {
				t.Fatalf("%x is written as another", b)
			}
		}
		var w Word
		if w.Parse(b) && (w.Got < 0 || w.Got > mostBytes || !bytes.Equal(w.Put(make([]byte, WordBytes)), b)) {
			t.Fatalf("%+v", w)
		}
		var p Piece
		if p.Parse(b) && (p.Total < 0 || p.Total > mostBytes || p.Offset < 0 || p.Offset > 1<<31 || p.Third < Own ||
			!bytes.Equal(p.Put(make([]byte, PieceBytes)), b)) {
			t.Fatalf("%+v", p)
		}
		var n Note
		if n.Parse(b) && (n.Third < 0 || n.Rate < 0 || !bytes.Equal(n.Put(make([]byte, NoteBytes)), b)) {
			t.Fatalf("%+v", n)
		}
	})
}

// TestWordFlags: each flag of a word is read as it was written, and the first bit that has no meaning refuses the word.
func TestWordFlags(t *testing.T) {
	for bit, w := range []Word{
		{Invite: true}, {Busy: true}, {Rested: true}, {Idle: true},
	} {
		b := w.Put(make([]byte, WordBytes))
		var read Word
		if b[8] != 1<<bit || !read.Parse(b) || read != w {
			t.Errorf("%+v is written as %x and read as %+v", w, b, read)
		}
	}
	b := (&Word{Got: 5}).Put(make([]byte, WordBytes))
	if b[8] = flagsKnown + 1; (&Word{}).Parse(b) {
		t.Errorf("flags %#x are read", b[8])
	}
}
